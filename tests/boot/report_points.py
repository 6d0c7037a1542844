# SPDX-License-Identifier: BSD-2-Clause
"""Reads the table of profile points, and checks it."""

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
    to_ns,
)

POINT_ROW = re.compile(
    rf"^ *(on|off) +(\S+) +{SECONDS} +(\d+) +(\d+)"
    r"(?: +(\d+) +(\d+|-) +(\d+) +<= *(\d+) +<= *(\d+) +(\d+))?$"
)
OVERHEAD = re.compile(
    r"^overhead: (\d+) ns a pair, (\d+) ns of it inside total and avg\.ns \(not subtracted\)$"
)
POINT_SCOPE = re.compile(
    r"^(?:(of this process) since its (?:start|execve)|(?:of this process|all CPUs) since the last "
    r"reset|all CPUs since boot) \(\d+\.\d\d s\)$"
)
POINT_ANOMALY = re.compile(
    r"^(\S+): (?:the clock went backwards in \d+ pairs \(not included\)"
    r"|\d+ of \d+ pairs ended on another CPU \(included\)"
    r"|\d+ ends without a start \(not included\))$"
)
INCOMPLETE = re.compile(r"^(?:no complete pair:|   )((?: [\w.]+,)*(?: [\w.]+))(,?)$")
BUCKET = re.compile(r"^ *(\S+)  2\^(\d+) +cycles +(\d+)  (\*+)$")
POINT_HEADER = ["status", "name", "total", "nr", "avg.ns"]
POINT_WIDE = ["net.ns", "oncpu.ns", "min.ns", "p50.ns", "p99.ns", "max.ns"]


@dataclass
class PointRow:
    enabled: bool
    name: str
    ns: int
    nr: int
    avg_ns: int
    wide: dict[str, int | None] = field(default_factory=dict)  # by column; None: "-"


@dataclass
class Points:
    is_wide: bool = False
    rows: list[PointRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    of_process: bool = False  # pairs of the report's process; False: of all CPUs
    empty_pair_ns: tuple[int, int] | None = None  # its cost, and the part of it inside `total`
    anomalies: dict[str, list[str]] = field(default_factory=dict)  # lines, by point
    incomplete: list[str] = field(default_factory=list)  # points that have no complete pair
    buckets: dict[str, dict[int, int]] = field(default_factory=dict)  # by point, by log2

    def row(self, name: str) -> PointRow | None:
        return next((row for row in self.rows if row.name == name), None)


def parse_points(lines: Lines) -> Points:
    points = Points(notes=lines.skip_header("points", POINT_HEADER, POINT_WIDE))
    points.is_wide = lines.has_more
    if len(points.notes) != 1 or not POINT_SCOPE.match(points.notes[0]):
        raise ReportError(f"points: does not say what it covers: {points.notes!r}")
    points.of_process = points.notes[0].startswith("of this process ")
    while not DASHES.match(line := lines.next("points: a row or dashes")):
        match = POINT_ROW.match(line)
        if not match:
            raise ReportError(f"points: not a row: {line!r}")
        numbers = to_ns(match[3]), int(match[4]), int(match[5])
        if bool(match[6]) != points.is_wide:
            raise ReportError(f"points: the columns are not those of the heading: {line!r}")
        wide = (None if nr in (None, "-") else int(nr) for nr in match.groups()[5:])
        row = PointRow(match[1] == "on", match[2], *numbers)
        row.wide = dict(zip(POINT_WIDE, wide)) if points.is_wide else {}
        points.rows.append(row)
    match = OVERHEAD.match(line := lines.next("points: the empty pair"))
    if not match:
        raise ReportError(f"points: not the cost of an empty pair: {line!r}")
    points.empty_pair_ns = int(match[1]), int(match[2])
    parse_below_points(lines, points)
    return points


def parse_below_points(lines: Lines, points: Points) -> None:
    goes_on = False  # the list of points without a pair continues on the next line
    while (line := lines.peek()) is not None:
        if match := POINT_ANOMALY.match(line):
            points.anomalies.setdefault(match[1], []).append(line)
        elif (match := INCOMPLETE.match(line)) and line.startswith("no") != goes_on:
            points.incomplete += match[1].replace(",", "").split()
            goes_on = bool(match[2])
        elif match := BUCKET.match(line):
            points.buckets.setdefault(match[1], {})[int(match[2])] = int(match[3])
        else:
            return
        lines.at += 1


def check_wide_point(row: PointRow) -> Iterator[str]:
    at = row.wide
    in_order = at["min.ns"] <= at["p50.ns"] <= at["p99.ns"] <= at["max.ns"]
    if not in_order:
        yield f"{row.name}: {at} are not in order"
    # One CPU may have added a pair's time, but not yet counted the pair.
    if not at["min.ns"] <= row.avg_ns <= at["max.ns"] + 1 + row.avg_ns // row.nr:
        yield f"{row.name}: {row.avg_ns} ns is no average of {at}"
    if at["net.ns"] > row.avg_ns:
        yield f"{row.name}: net {at['net.ns']} ns is more than {row.avg_ns} ns"


def check_points(points: Points) -> Iterator[str]:
    for row in points.rows:
        if not row.nr:
            yield f"{row.name}: a row without a pair"
        elif row.avg_ns != ceil_div(row.ns, row.nr):
            right = ceil_div(row.ns, row.nr)
            yield f"{row.name}: {row.avg_ns} ns on average, should be {right}"
        elif points.is_wide:
            yield from check_wide_point(row)
        buckets = points.buckets.get(row.name)
        if buckets and sum(buckets.values()) != row.nr:
            yield f"{row.name}: its histogram makes {sum(buckets.values())} pairs"
    names = [row.name for row in points.rows]
    if names != sorted(names):
        yield "rows are not sorted by name"
