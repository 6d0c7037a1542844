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
        ("timeouts", ("exact",), 1),
        ("timeouts", ("exact",), 4),
    ],
)
def test_two_runs_are_equal(boot, program, args, smp):
    """`timeouts exact` checks as well that no wait is early, or more than 1 % late."""
    log = run_until_equal(lambda: boot(program, *args, smp=smp, icount=True, timeout=180).log)
    assert "FAIL:" not in log
