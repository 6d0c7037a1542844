# SPDX-License-Identifier: BSD-2-Clause
"""Reads the table of calls by path, and checks it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator

from report_lines import DASHES, END, SECONDS, TOP, Lines, ReportError, percent, to_ns, twice

FILES_TITLE = re.compile(rf"^Kernel Files {TOP}$")
HEADER = ["% time", "seconds", "calls", "errors", "error", "path"]
SCOPE = re.compile(r"^files: (\d+) calls of (this process|all processes) got a path, (\d+) failed$")
# The column of errors is 7 wide, and its value is to the left, but for "-".
ROW = re.compile(
    rf"^ *(\d+\.\d\d) +{SECONDS} +(\d+) +(\d+) ( {{6}}-| {{7}}|(?=.{{7}} )[\w?]+ *|\w{{8,}}) (.*)$"
)
TOTAL = re.compile(rf"^ *(\d+\.\d\d) +{SECONDS} +(\d+) +(\d+) +total$")
REST = re.compile(r"\[\d+ others?\]|\[further paths\]")


@dataclass
class FileRow:
    percent: str
    ns: int
    nr_calls: int
    nr_errors: int
    error: str  # the most frequent one; "-": none
    path: str


@dataclass
class Files:
    of_process: bool
    nr_calls: int
    nr_errors: int
    rows: list[FileRow] = field(default_factory=list)
    total: FileRow | None = None
    notes: list[str] = field(default_factory=list)


def parse_files(lines: Lines) -> Files:
    above = lines.skip_header("files", HEADER)
    scope = SCOPE.match(above[-1]) if above else None
    if not scope:
        raise ReportError(f"files: not what the table covers: {above!r}")
    table = Files(scope[2] == "this process", int(scope[1]), int(scope[3]))
    while not DASHES.match(line := lines.next("files: a row or dashes")):
        if not (match := ROW.match(line)):
            raise ReportError(f"files: not a row: {line!r}")
        row = FileRow(match[1], to_ns(match[2]), int(match[3]), int(match[4]), "", match[6])
        row.error = match[5].strip()
        table.rows.append(row)
    if not (match := TOTAL.match(line := lines.next("files: the total"))):
        raise ReportError(f"files: not a total row: {line!r}")
    table.total = FileRow(match[1], to_ns(match[2]), int(match[3]), int(match[4]), "", "total")
    while (line := lines.peek()) and not END.match(line):
        table.notes.append(lines.next("files: the notes"))
    return table


def check_files(table: Files) -> Iterator[str]:
    total = table.total
    assert total is not None
    for what in ("ns", "nr_calls", "nr_errors"):
        if sum(getattr(row, what) for row in table.rows) != getattr(total, what):
            yield f"the rows' {what} are not those of the total row"
    if (total.nr_calls, total.nr_errors) != (table.nr_calls, table.nr_errors):
        yield "the total row is not what the line above says"
    for row in table.rows:
        if row.percent != percent(row.ns, total.ns):
            yield f"{row.path}: {row.percent} % of {total.ns} ns"
        if not row.nr_errors <= row.nr_calls or not row.nr_calls:
            yield f"{row.path}: {row.nr_errors} of {row.nr_calls} calls failed"
        if row.error and (row.error == "-") != (row.nr_errors == 0):
            yield f"{row.path}: {row.nr_errors} errors, but {row.error}"
    shown = [row for row in table.rows if not REST.fullmatch(row.path)]
    if any(a.ns < b.ns for a, b in zip(shown, shown[1:])) or shown != table.rows[: len(shown)]:
        yield "rows are not sorted by time, the rest last"
    yield from (f"two rows for {path}" for path in twice([r.path for r in table.rows]))
