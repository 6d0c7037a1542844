# SPDX-License-Identifier: BSD-2-Clause
"""With -icount two runs of one image print the same bytes, time stamps included."""

import difflib

import pytest


@pytest.mark.parametrize(
    "program, args, smp",
    [
        ("wordcount", ("-t", 46, "/data/small"), 1),
        ("threads", (), 1),
        ("hello", (), 2),
    ],
)
def test_two_runs_are_equal(boot, program, args, smp):
    first = boot(program, *args, smp=smp, icount=True, timeout=180).log
    second = boot(program, *args, smp=smp, icount=True, timeout=180).log
    lines = first.splitlines(), second.splitlines()
    different = list(difflib.unified_diff(*lines, lineterm="", n=0))
    assert not different, "\n".join(different[:40])
