# SPDX-License-Identifier: BSD-2-Clause
"""All suites of tests/kernel/ pass, and ktap.py rejects incomplete KTAP output."""

import re

import pytest

import ktap


@pytest.mark.parametrize("smp", [1, 4, 8])
def test_all_suites(boot, smp):
    """8 CPUs take turns: 4 that really run at once find races, and 8 only that one is left out."""
    result = boot(None, append="selftest=all", variant="functions", smp=smp, one_thread=smp == 8)
    suites = ktap.parse(result.log)
    assert {"memory", "mm", "points", "static_key"} <= {suite.name for suite in suites}
    bad = [f"{suite.name}: {test.name}" for suite in suites for test in suite.tests if not test.ok]
    assert not bad
    assert all(suite.tests for suite in suites)


def test_patching_on_64_cpus(boot):
    options = dict(variant="functions", smp=64, mem="1G", one_thread=True)
    result = boot(None, append="selftest=static_key", **options)
    assert all(test.ok for suite in ktap.parse(result.log) for test in suite.tests)


def test_one_suite(boot):
    suites = ktap.parse(boot(None, append="selftest=lib.*", variant="functions").log)
    assert [suite.name for suite in suites] == ["lib"]


def test_no_such_suite(boot):
    result = boot(None, append="selftest=no-such-suite.*", variant="functions", ok=False)
    assert not result.ok and re.search("no-such-suite", result.log)


GOOD = """\
KTAP version 1
1..2
    # Subtest: lib
    1..2
    # a comment
    ok 1 sort
    ok 2 div # SKIP no reason
ok 1 lib
    # Subtest: mm
    1..1
    ok 1 alloc
ok 2 mm
# totals
"""


def test_parser():
    suites = ktap.parse(GOOD)
    assert [(s.name, [t.name for t in s.tests]) for s in suites] == [
        ("lib", ["sort", "div"]),
        ("mm", ["alloc"]),
    ]
    assert ktap.parse(re.sub("^", "[    1.0] ", GOOD, flags=re.M)) == suites


@pytest.mark.parametrize(
    "old, new",
    [
        ("KTAP version 1\n", ""),
        ("    ok 2 div # SKIP no reason\n", ""),
        ("ok 2 mm\n", ""),
        ("    ok 1 sort", "    not ok 1 sort"),
        ("ok 1 lib", "ok 3 lib"),
        ("1..2\n    # Sub", "1..3\n    # Sub"),
        ("    1..1\n", ""),
        ("ok 1 lib", "not ok 1 lib"),
    ],
)
def test_parser_is_strict(old, new):
    assert old in GOOD
    try:
        suites = ktap.parse(GOOD.replace(old, new, 1))
    except ktap.KtapError:
        return
    assert any(not test.ok for suite in suites for test in suite.tests)
