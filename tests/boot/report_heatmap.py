# SPDX-License-Identifier: BSD-2-Clause
"""Reads the heatmap and its table of user functions, and checks them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator

from report_lines import (
    DASHES,
    END,
    TOP,
    Lines,
    ReportError,
    is_rest,
    percent,
    twice,
)

HEAT_TITLE = re.compile(rf"^Kernel Heatmap(?: {TOP})?$")
USER_TITLE = re.compile(rf"^Kernel Heatmap of user functions(?: {TOP})?$")
USER_ROW = re.compile(r"^([0-9a-f]{16}) +(\S+) +(\d+) +(\d+\.\d\d)(?:  (\S.*))?$")
SAMPLES_IN_NO_ROW = re.compile(
    r"^(?:\d+ others?, with (\d+) samples|no room for (\d+) samples' rows)$"
)
HEAT_ROW = re.compile(r"^([0-9a-f]{16}) +(\S.*?) +(\d+) +(\d+\.\d\d)$")
HEAT_TOTAL = re.compile(r"^ +(\d+) +(\d+\.\d\d)$")
SAMPLES = re.compile(
    r"^samples: (\d+), all CPUs since (?:boot|the last reset) \(\d+\.\d\d s\)(?: = (.*))?$"
)
OF_PROCESS = re.compile(
    r"^of (?:this process|the run, without idle CPUs and reports): (\d+)(?: = (.*))?$"
)
LOST = re.compile(r"^(\d+) of (\d+) expected samples lost: ")
# Samples that are in no class, so that the classes do not add up to the samples taken.
WITHOUT_CLASS = ("while another was taken", "while they were counted")
SPLIT_WORDS = ("samples", "user", "kernel", "interrupt", "idle")
HEAT_HEADER = ["Address", "Function", "NR", "%"]
USER_HEADER = [*HEAT_HEADER, "File"]


@dataclass
class HeatRow:
    address: str
    name: str
    nr: int
    percent: str


@dataclass
class Heatmap:
    """split: samples of the machine by class. process: those of the report's process, if any."""

    top: int | None = None  # None: all
    split: dict[str, int] = field(default_factory=dict)
    process: dict[str, int] = field(default_factory=dict)
    rows: list[HeatRow] = field(default_factory=list)
    total: tuple[int, str] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def scope(self) -> dict[str, int]:
        return self.process or self.split


@dataclass
class UserRow:
    address: str  # in the ELF file
    name: str
    nr: int
    percent: str
    file: str


def to_split(match: re.Match[str]) -> dict[str, int]:
    """Classes that are not printed have no sample. Raises ReportError for an unknown class."""
    parts = [part.split(" ") for part in (match[2] or "").split(" + ") if part]
    split = dict.fromkeys(SPLIT_WORDS, 0) | {word: int(nr) for word, nr in parts}
    if len(split) > len(SPLIT_WORDS) or any(nr == "0" for _, nr in parts):
        raise ReportError(f"heatmap: not classes of samples: {match[0]!r}")
    return split | {"samples": int(match[1])}


def parse_heatmap(lines: Lines, title: re.Match[str]) -> Heatmap:
    heatmap = Heatmap(top=int(title[1]) if title[1] else None)
    above = lines.skip_header("heatmap", HEAT_HEADER)
    split = SAMPLES.match(above.pop(0)) if above else None
    if not split:
        raise ReportError("heatmap: no line with all samples below its heading")
    heatmap.split = to_split(split)
    if above and (process := OF_PROCESS.match(above[0])):
        is_all = not process[2] and int(process[1]) == heatmap.split["samples"]
        heatmap.process = dict(heatmap.split) if is_all else to_split(process)
        above.pop(0)
    heatmap.notes = above
    while not DASHES.match(line := lines.next("heatmap: a row or dashes")):
        match = HEAT_ROW.match(line)
        if not match:
            raise ReportError(f"heatmap: not a row: {line!r}")
        heatmap.rows.append(HeatRow(match[1], match[2], int(match[3]), match[4]))
    match = HEAT_TOTAL.match(line := lines.next("heatmap: the total"))
    if not match:
        raise ReportError(f"heatmap: not a total row: {line!r}")
    heatmap.total = (int(match[1]), match[2])
    while (line := lines.peek()) and not END.match(line):
        heatmap.notes.append(lines.next("heatmap: the notes"))
    return heatmap


def parse_user_functions(lines: Lines) -> list[UserRow]:
    """Samples in no row are a row without a name."""
    if lines.skip_header("user functions", USER_HEADER):
        raise ReportError("user functions: lines above the heading")
    rows = []
    while not DASHES.match(line := lines.next("user functions: a row or dashes")):
        if not (match := USER_ROW.match(line)):
            raise ReportError(f"user functions: not a row: {line!r}")
        rows.append(UserRow(match[1], match[2], int(match[3]), match[4], match[5] or ""))
    while (line := lines.peek()) and (match := SAMPLES_IN_NO_ROW.match(line)):
        lines.next("user functions: the others")
        rows.append(UserRow("", "", int(match[1] or match[2]), "", ""))
    return rows


def check_losses(heatmap: Heatmap) -> Iterator[str]:
    """Samples that were expected and not lost have been taken."""
    taken = heatmap.split["samples"]
    yield from (f"does not add up: {note}" for note in heatmap.notes if "left over" in note)
    if any(word in note for note in heatmap.notes for word in WITHOUT_CLASS):
        return
    for lost in filter(None, map(LOST.match, heatmap.notes)):
        if int(lost[2]) - int(lost[1]) != taken:
            yield f"{taken} samples were taken, but {lost[0]}"


def check_heatmap(heatmap: Heatmap) -> Iterator[str]:
    yield from check_losses(heatmap)
    assert heatmap.total is not None
    total, total_percent = heatmap.total
    nr_rows = sum(row.nr for row in heatmap.rows)
    if nr_rows != total:
        yield f"the rows make {nr_rows}, the total row says {total}"
    if total_percent != percent(total, total):
        yield f"the total row says {total_percent} %"
    for split in filter(None, (heatmap.split, heatmap.process)):
        parts = sum(nr for word, nr in split.items() if word != "samples")
        if parts != split["samples"]:
            yield f"the classes make {parts} of {split['samples']} samples"
    if total != heatmap.scope["samples"]:
        yield f"{heatmap.scope} samples, but the total row says {total}"
    for word, nr in heatmap.process.items():
        if nr > heatmap.split[word]:
            yield f"{word}: the process has {nr} of {heatmap.split[word]}"
    for row in heatmap.rows:
        if row.percent != percent(row.nr, total):
            right = percent(row.nr, total)
            yield f"{row.name}: {row.percent} %, its ratio is {right} %"
        if not row.nr:
            yield f"{row.name}: a row without a sample"
    shown = [row for row in heatmap.rows if not is_rest(row.name)]
    if any(a.nr < b.nr for a, b in zip(shown, shown[1:])):
        yield "rows are not sorted by samples"
    if heatmap.top is not None and len(shown) > heatmap.top:
        yield f"{len(shown)} rows, but top #{heatmap.top}"
    keys = [f"{row.address} {row.name}" for row in heatmap.rows]
    yield from (f"two rows for {key}" for key in twice(keys))


def check_user_functions(rows: list[UserRow], heatmap: Heatmap) -> Iterator[str]:
    nr_user = heatmap.scope.get("user", 0)
    if sum(row.nr for row in rows) != nr_user:
        yield f"{rows}, but there are {nr_user} samples"
    for row in filter(lambda row: row.address, rows):
        if row.percent != percent(row.nr, nr_user):
            yield f"{row}, not {percent(row.nr, nr_user)} %"
    keys = [f"{row.address} {row.file}" for row in rows]
    yield from (f"two rows for {key}" for key in twice(keys))
