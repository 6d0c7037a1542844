# SPDX-License-Identifier: BSD-2-Clause
"""Reads the table of memory by the user code that has touched it first, and checks it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator

from report_lines import DASHES, END, TOP, Lines, ReportError, percent

MEMORY_TITLE = re.compile(rf"^Memory {TOP}$")
HEADER = ["touched.bytes", "%", "pages", "memory", "thread", "first touched in"]
SCOPE = re.compile(r"^touched first by (this process|the run|all processes): (\d+) pages$")
ROW = re.compile(r"^ *(\d+) +(\d+\.\d\d) +(\d+)  ([a-z ]+?(?:, copied)?)  +(\S.*?)?  +(\S.*)$")
TOTAL = re.compile(r"^ *(\d+) +(\d+)  total$")
OTHERS = re.compile(r"^\d+ others?, with (\d+) pages$")
NO_ROW = re.compile(r"^no room for the rows of (\d+) pages$")
PAGE = 4096


@dataclass
class MemoryRow:
    nr_bytes: int
    percent: str
    pages: int
    kind: str
    thread: str
    place: str


@dataclass
class Memory:
    scope: str
    pages: int
    rows: list[MemoryRow] = field(default_factory=list)
    total: tuple[int, int] = (0, 0)  # bytes, pages
    notes: list[str] = field(default_factory=list)


def parse_memory(lines: Lines) -> Memory:
    above = lines.skip_header("memory", HEADER)
    scope = SCOPE.match(above[-1]) if above else None
    if not scope:
        raise ReportError(f"memory: not what the table covers: {above!r}")
    table = Memory(scope[1], int(scope[2]))
    while not DASHES.match(line := lines.next("memory: a row or dashes")):
        if not (match := ROW.match(line)):
            raise ReportError(f"memory: not a row: {line!r}")
        row = MemoryRow(int(match[1]), match[2], int(match[3]), match[4], match[5] or "", match[6])
        table.rows.append(row)
    if not (match := TOTAL.match(line := lines.next("memory: the total"))):
        raise ReportError(f"memory: not a total row: {line!r}")
    table.total = int(match[1]), int(match[2])
    while (line := lines.peek()) and not END.match(line):
        table.notes.append(lines.next("memory: the notes"))
    return table


def check_memory(table: Memory) -> Iterator[str]:
    for row in table.rows:
        if row.nr_bytes != row.pages * PAGE or not row.pages:
            yield f"{row.place}: {row.pages} pages have {row.nr_bytes} bytes"
        if row.percent != percent(row.pages, table.pages):
            yield f"{row.place}: {row.percent} % of {table.pages} pages"
    if table.rows != sorted(table.rows, key=lambda row: -row.pages):
        yield "rows are not sorted by pages"
    pages = sum(row.pages for row in table.rows)
    if table.total != (pages * PAGE, pages):
        yield "the total is not the sum of the rows"
    rest = [re.match(one, note) for one in (OTHERS, NO_ROW) for note in table.notes]
    if pages + sum(int(match[1]) for match in rest if match) != table.pages:
        yield f"the rows and the others are not {table.pages} pages"
