# SPDX-License-Identifier: BSD-2-Clause
"""Reads KTAP from a console log: a version line, a plan, and suites of subtests. The parser is
strict: each plan must be met, numbers must be in order, and the result of a suite must agree with
its subtests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PREFIX = re.compile(r"^\[ *\d+\.\d+\] ?")
PLAN = re.compile(r"^( *)1\.\.(\d+)$")
RESULT = re.compile(r"^( *)(not )?ok (\d+) (?:- )?([^#]*?)(?: *#.*)?$")
SUBTEST = re.compile(r"^ +# Subtest: (\S.*)$")


class KtapError(Exception):
    pass


@dataclass
class Test:
    name: str
    ok: bool


@dataclass
class Suite:
    name: str
    tests: list[Test] = field(default_factory=list)
    planned: int | None = None


def parse(log: str) -> list[Suite]:
    lines = [PREFIX.sub("", line.rstrip("\r")) for line in log.splitlines()]
    starts = [i for i, line in enumerate(lines) if line == "KTAP version 1"]
    if len(starts) != 1:
        raise KtapError(f"{len(starts)} version lines")
    planned: int | None = None
    suites: list[Suite] = []
    suite: Suite | None = None
    for line in lines[starts[0] + 1 :]:
        if match := SUBTEST.match(line):
            if suite:
                raise KtapError(f"{suite.name} has no result")
            suite = Suite(match[1])
        elif match := PLAN.match(line):
            if not match[1]:
                if planned is not None:
                    raise KtapError("two plans")
                planned = int(match[2])
            elif suite and suite.planned is None:
                suite.planned = int(match[2])
            else:
                raise KtapError(f"a plan without a suite: {line!r}")
        elif match := RESULT.match(line):
            ok = not match[2]
            if match[1]:
                if not suite or int(match[3]) != len(suite.tests) + 1:
                    raise KtapError(f"out of order: {line!r}")
                suite.tests.append(Test(match[4], ok))
                continue
            if not suite or match[4] != suite.name or int(match[3]) != len(suites) + 1:
                raise KtapError(f"out of order: {line!r}")
            if suite.planned != len(suite.tests):
                raise KtapError(f"{suite.name}: {len(suite.tests)} of {suite.planned} tests")
            if ok != all(test.ok for test in suite.tests):
                raise KtapError(f"{suite.name}: the result does not agree with its tests")
            suites.append(suite)
            suite = None
    if suite:
        raise KtapError(f"{suite.name} has no result")
    if planned != len(suites):
        raise KtapError(f"{len(suites)} of {planned} suites")
    return suites
