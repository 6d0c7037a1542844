# SPDX-License-Identifier: BSD-2-Clause
"""Reads the table of memory by the user code that has touched it first, and checks it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator

from report_lines import DASHES, END, TOP, Lines, ReportError, percent

MEMORY_TITLE = re.compile(rf"^Memory {TOP}$")
HEADER = ["touched.bytes", "%", "pages", "live.bytes", "memory", "thread", "first touched in"]
SCOPE = re.compile(r"^touched first by (this process|the run|all processes): (\d+) pages$")
LIVE = re.compile(r"^live, now or when their process ended: (\d+) pages$")
ROW = re.compile(
    r"^ *(\d+) +(\d+\.\d\d) +(\d+) +(\d+|-)  ([a-z ]+?(?:, copied)?|-)  +(\S.*?)?  +(\S.*)$"
)
TOTAL = re.compile(r"^ *(\d+) +(\d+) +(\d+)  total$")
OTHERS = re.compile(r"^\d+ others?, with (\d+) pages$")
NO_ROW = re.compile(r"^no room for the rows of (\d+) pages, \d+ of them live$")
PAGE = 4096


@dataclass
class MemoryRow:
    nr_bytes: int
    percent: str
    pages: int
    live_bytes: int | None
    kind: str
    thread: str
    place: str


@dataclass
class Memory:
    scope: str
    pages: int
    live_pages: int
    rows: list[MemoryRow] = field(default_factory=list)
    total: tuple[int, int, int] = (0, 0, 0)  # bytes, pages, live bytes
    notes: list[str] = field(default_factory=list)


def parse_memory(lines: Lines) -> Memory:
    above = lines.skip_header("memory", HEADER)
    scope, live = (SCOPE.match(above[-2]), LIVE.match(above[-1])) if above[1:] else (None, None)
    if not scope or not live:
        raise ReportError(f"memory: not what the table covers: {above!r}")
    table = Memory(scope[1], int(scope[2]), int(live[1]))
    while not DASHES.match(line := lines.next("memory: a row or dashes")):
        if not (match := ROW.match(line)):
            raise ReportError(f"memory: not a row: {line!r}")
        live_bytes = None if match[4] == "-" else int(match[4])
        numbers = int(match[1]), match[2], int(match[3]), live_bytes
        table.rows.append(MemoryRow(*numbers, match[5], match[6] or "", match[7]))
    if not (match := TOTAL.match(line := lines.next("memory: the total"))):
        raise ReportError(f"memory: not a total row: {line!r}")
    table.total = int(match[1]), int(match[2]), int(match[3])
    while (line := lines.peek()) and not END.match(line):
        table.notes.append(lines.next("memory: the notes"))
    return table


def check_memory(table: Memory) -> Iterator[str]:
    for row in table.rows:
        if row.nr_bytes != row.pages * PAGE or not (row.pages or row.live_bytes):
            yield f"{row.place}: {row.pages} pages have {row.nr_bytes} bytes"
        if row.percent != percent(row.pages, table.pages):
            yield f"{row.place}: {row.percent} % of {table.pages} pages"
    if table.rows != sorted(table.rows, key=lambda row: -row.pages):
        yield "rows are not sorted by pages"
    pages = sum(row.pages for row in table.rows)
    live_bytes = sum(row.live_bytes or 0 for row in table.rows)
    if table.total != (pages * PAGE, pages, live_bytes):
        yield "the total is not the sum of the rows"
    if live_bytes > table.live_pages * PAGE:
        yield f"rows have {live_bytes} live bytes, of {table.live_pages} pages"
    if not table.notes and live_bytes != table.live_pages * PAGE:
        yield f"no other rows, but {live_bytes} live bytes are not {table.live_pages} pages"
    rest = [re.match(one, note) for one in (OTHERS, NO_ROW) for note in table.notes]
    if pages + sum(int(match[1]) for match in rest if match) != table.pages:
        yield f"the rows and the others are not {table.pages} pages"
