# SPDX-License-Identifier: BSD-2-Clause
"""With -icount, two runs print the same bytes, and costs do not grow with the number of objects."""

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
    """`timeouts exact` also checks that no wait ends early, or more than 1 % and 10 us late."""
    log = run_until_equal(lambda: boot(program, *args, smp=smp, icount=True, timeout=180).log)
    assert "FAIL:" not in log


def costs_of(log):
    lines = re.findall(r"bench: (\w+) (\d+) (\d+)\n", log)
    return {name: int(cycles) / int(nr) for name, cycles, nr in lines}


def test_many_areas_cost_little_more(boot):
    """Compares the cost of an operation in address spaces of 100 and of 20,000 areas."""
    few, many = (
        costs_of(boot("bench-areas", "areas", nr, 50, icount=True).log) for nr in (100, 20000)
    )
    assert set(few) == {"unmap", "map", "fault", "fork"}
    for name in set(few) - {"fork"}:
        assert many[name] < 2 * few[name], name


@pytest.mark.parametrize(
    "words, operations",
    [
        ("bench-crowds files", "open stat miss replace rename paths list"),
        ("bench-crowds fds", "use uses dup watch change wait replace poll fork list close"),
        (
            "bench-crowds sockets",
            "connect connect_abstract replace replace_abstract receive",
        ),
        ("bench-crowds locks", "record find share"),
        (
            "bench-processes processes",
            "fork fork_any fork_user replace find child uses stat group list end",
        ),
    ],
)
def test_crowds_cost_little_more(boot, words, operations):
    """Compares the cost of an operation among 100 objects and among many."""
    options = {"icount": True, "mem": "8G", "append": "profile.on_exit=none"}
    few, many = (costs_of(boot(*words.split(), nr, 50, **options).log) for nr in (100, 20000))
    assert set(few) == set(operations.split())
    for name, cost in few.items():
        assert many[name] < 2 * cost, name
