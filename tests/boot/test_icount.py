# SPDX-License-Identifier: BSD-2-Clause
"""With -icount two runs of one image print the same bytes, time stamps included."""

import pytest
from harness import run_until_equal


@pytest.mark.parametrize(
    "program, args, smp",
    [
        ("wordcount", ("-t", 46, "/data/small"), 1),
        ("threads", (), 1),
        ("hello", (), 2),
    ],
)
def test_two_runs_are_equal(boot, program, args, smp):
    run_until_equal(lambda: boot(program, *args, smp=smp, icount=True, timeout=180).log)
