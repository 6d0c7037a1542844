# SPDX-License-Identifier: BSD-2-Clause
"""Reads the table of system calls, and checks it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator

from report_lines import (
    DASHES,
    SECONDS,
    Lines,
    ReportError,
    ceil_div,
    is_rest,
    percent,
    to_ns,
    twice,
)

TASK = re.compile(r"^Task: (\d+):(\d+) nr_accumulated_threads: (\d+)(?: \((.*)\))?$")
STRACE_ROW = re.compile(rf"^ *(\d+\.\d\d) +{SECONDS} +(\d+|-) +(\d+) +(\d+) (\S.*)$")
STRACE_TOTAL = re.compile(rf"^ *(\d+\.\d\d) +{SECONDS} +(\d+) +(\d+) total$")
# Below a table: the calls before the execve, and the sum with the children.
STRACE_SUM = re.compile(
    r"^(not in this table|including children that were waited for \(\d+\)): (\d+) calls"
    rf"(?: before execve)?, (\d+) errors, {SECONDS} s(?: of CPU time)?$"
)
# A row and the total with the columns of profile.report=wide.
STRACE_ROW_WIDE = re.compile(
    r"^(.*?\S) +(\d+\.\d{9}|-) +(?:<= (\d+[num]?s)|-) +(?:<= (\d+[num]?s)|-) +(\d+\.\d{9}|-) +"
    r"(\d+|-)(?:  (\S.*))?$"
)
STRACE_TOTAL_WIDE = re.compile(
    r"^ *(\d+\.\d\d) +(\d+\.\d{9}) +(\d+) +(\d+) total +(\d+\.\d{9}|-) +(\d+|-)$"
)
STRACE_HEADER = ["% time", "seconds", "usecs/call", "calls", "errors", "syscall"]
STRACE_WIDE = ["cpu seconds", "p50", "p99", "max seconds", "in flight", "errors by name"]
RETURN_TO_USER = "[return to user]"  # no call, but waits after calls


@dataclass
class StraceWide:
    """The columns of wide reports. None stands for "-"."""

    cpu_ns: int | None
    p50_ns: int | None = None  # an upper bound, rounded up, as p99_ns
    p99_ns: int | None = None
    max_ns: int | None = None
    nr_in_flight: int | None = None
    errors: dict[str, int] = field(default_factory=dict)


@dataclass
class StraceRow:
    percent: str
    ns: int
    usecs_per_call: int | None  # None stands for "-": a row without calls
    nr_calls: int
    nr_errors: int
    name: str
    wide: StraceWide | None = None


@dataclass
class Strace:
    task: tuple[int, int] = (0, 0)
    nr_threads: int = 0
    name: str = ""  # of the process; empty in a report of an exit
    rows: list[StraceRow] = field(default_factory=list)
    total: StraceRow | None = None
    sums: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # calls, errors, ns
    notes: list[str] = field(default_factory=list)

    def row(self, name: str) -> StraceRow | None:
        """Returns the row of a call, or None. The table must have all rows (profile.top=all)."""
        if any(is_rest(row.name) for row in self.rows):
            raise ReportError(f"the table lacks rows, so it cannot tell about {name}")
        return next((row for row in self.rows if row.name == f"sys_{name}"), None)


def to_bound_ns(text: str | None) -> int | None:
    if text is None:
        return None
    number, unit = re.fullmatch(r"(\d+)([num]?s)", text).groups()
    return int(number) * {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit]


def to_strace_row(match: re.Match[str]) -> StraceRow:
    usecs = None if match[3] == "-" else int(match[3])
    return StraceRow(match[1], to_ns(match[2]), usecs, int(match[4]), int(match[5]), match[6])


def parse_wide_row(row: StraceRow) -> None:
    """Splits the wide columns off the row's name."""
    match = STRACE_ROW_WIDE.match(row.name)
    if not match:
        raise ReportError(f"strace: not a wide row: {row.name!r}")
    row.name = match[1]
    cpu, longest, flying = (None if match[i] == "-" else match[i] for i in (2, 5, 6))
    errors = [word.rpartition(" ") for word in match[7].split(", ")] if match[7] else []
    row.wide = StraceWide(
        cpu_ns=to_ns(cpu) if cpu else None,
        p50_ns=to_bound_ns(match[3]),
        p99_ns=to_bound_ns(match[4]),
        max_ns=to_ns(longest) if longest else None,
        nr_in_flight=int(flying) if flying else None,
        errors={name: int(nr) for name, _, nr in errors},
    )


def parse_strace_total(line: str, is_wide: bool) -> StraceRow:
    match = (STRACE_TOTAL_WIDE if is_wide else STRACE_TOTAL).match(line)
    if not match:
        raise ReportError(f"strace: not a total row: {line!r}")
    total = StraceRow(match[1], to_ns(match[2]), 0, int(match[3]), int(match[4]), "total")
    if is_wide:
        cpu, flying = (None if match[i] == "-" else match[i] for i in (5, 6))
        total.wide = StraceWide(to_ns(cpu) if cpu else None)
        total.wide.nr_in_flight = int(flying) if flying else None
    return total


def parse_strace(lines: Lines) -> Strace:
    table = Strace()
    seen_task = False
    for line in lines.skip_header("strace", STRACE_HEADER, STRACE_WIDE):
        match = TASK.match(line)
        if match:
            table.task = (int(match[1]), int(match[2]))
            table.nr_threads = int(match[3])
            table.name = match[4] or ""
            seen_task = True
        elif line == "Calls of: all processes":
            seen_task = True
        else:
            table.notes.append(line)
    if not seen_task:
        raise ReportError("strace: no Task line")
    is_wide = lines.has_more
    while not DASHES.match(line := lines.next("strace: a row or dashes")):
        match = STRACE_ROW.match(line)
        if not match:
            raise ReportError(f"strace: not a row: {line!r}")
        table.rows.append(to_strace_row(match))
        if is_wide:
            parse_wide_row(table.rows[-1])
    table.total = parse_strace_total(lines.next("strace: the total"), is_wide)
    while match := STRACE_SUM.match(lines.peek() or ""):
        table.sums[match[1]] = (int(match[2]), int(match[3]), to_ns(match[4]))
        lines.at += 1
    return table


def check_wide_strace(row: StraceRow) -> Iterator[str]:
    wide = row.wide
    if sum(wide.errors.values()) != row.nr_errors:
        yield f"{row.name}: {wide.errors} are not {row.nr_errors} errors"
    if wide.cpu_ns is None:
        return
    if wide.cpu_ns > row.ns:
        yield f"{row.name}: {wide.cpu_ns} ns on a CPU in {row.ns} ns"
    if wide.nr_in_flight > row.nr_calls:
        yield f"{row.name}: {wide.nr_in_flight} of {row.nr_calls} in flight"
    if (wide.p50_ns or 0) > (wide.p99_ns or 0):
        yield f"{row.name}: p50 {wide.p50_ns} ns, p99 {wide.p99_ns} ns"
    # p99 is rounded up to its unit.
    if (wide.p99_ns or 0) > wide.max_ns + max(wide.max_ns // 9, 1):
        yield f"{row.name}: p99 {wide.p99_ns} ns, the longest {wide.max_ns} ns"


def check_strace(table: Strace) -> Iterator[str]:
    total = table.total
    assert total is not None
    sums = {
        "seconds": (sum(row.ns for row in table.rows), total.ns),
        "calls": (sum(row.nr_calls for row in table.rows), total.nr_calls),
        "errors": (sum(row.nr_errors for row in table.rows), total.nr_errors),
    }
    if total.wide and total.wide.cpu_ns is not None:
        wides = [row.wide for row in table.rows]
        sums["cpu seconds"] = (sum(wide.cpu_ns for wide in wides), total.wide.cpu_ns)
        flying = sum(wide.nr_in_flight for wide in wides)
        sums["in flight"] = (flying, total.wide.nr_in_flight)
    for row in table.rows:
        if row.wide:
            yield from check_wide_strace(row)
    for what, (rows, printed) in sums.items():
        if rows != printed:
            yield f"{what}: the rows make {rows}, the total row says {printed}"
    if total.percent != percent(total.ns, total.ns):
        yield f"the total row says {total.percent} %"
    for row in table.rows:
        if row.percent != percent(row.ns, total.ns):
            right = percent(row.ns, total.ns)
            yield f"{row.name}: {row.percent} %, its ratio is {right} %"
        right = ceil_div(row.ns, row.nr_calls * 1000) if row.nr_calls else None
        if row.usecs_per_call != right:
            yield f"{row.name}: {row.usecs_per_call} usecs/call, should be {right}"
        if not row.nr_calls and row.name != RETURN_TO_USER:
            yield f"{row.name}: a row without a call"
        if row.nr_errors > row.nr_calls:
            yield f"{row.name}: more errors than calls"
    shown = [row for row in table.rows if not is_rest(row.name)]
    if any(a.ns < b.ns for a, b in zip(shown, shown[1:])):
        yield "rows are not sorted by time"
    if len(table.rows) > len(shown) + 1 or shown != table.rows[: len(shown)]:
        yield "the others are not the last row"
    names = [row.name for row in table.rows]
    yield from (f"two rows for {name}" for name in twice(names))
