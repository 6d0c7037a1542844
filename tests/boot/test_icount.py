# SPDX-License-Identifier: BSD-2-Clause
"""With -icount two runs of one image print the same bytes, time stamps included."""

import re

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


def test_many_areas_cost_little_more(boot):
    """What one operation costs among 100 and 20,000 areas of one address space."""
    few, many = (
        dict(re.findall(r"bench: (\w+) (\d+) 50\n", result.log))
        for result in (
            boot("bench-areas", "areas", nr_areas, 50, icount=True) for nr_areas in (100, 20000)
        )
    )
    assert set(few) == {"unmap", "map", "fault"}
    for name, cycles in few.items():
        assert int(many[name]) < 2 * int(cycles), name
