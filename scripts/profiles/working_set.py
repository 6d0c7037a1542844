# SPDX-License-Identifier: BSD-2-Clause
"""Draws which memory programs have used over time, as SVG: addresses upwards, time to the right.

Memory that was never mapped takes no room. The stronger a color, the more samples of a region had
been used: blue is memory that was read, red is memory that was written to.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

from profiles.export import Export, ExportError, printable
from profiles.images import number

FILE = "working_set_history.json"
WIDTH, HEIGHT, LEFT, TOP, GAP = 1200, 400, 170, 40, 6
MIN_HEIGHT = 3.0  # of a range of addresses
MAX_RANGES = 1000
FONT = 'font-family="monospace" font-size="11"'


@dataclass(frozen=True)
class Cell:
    """A region in the time before a moment."""

    ns: int
    start: int
    end: int
    accessed: int  # percent
    written: int


def cell_of(row: dict) -> Cell:
    """Returns the cell of a row, or raises ValueError."""
    start, end = number(row.get("start"), 64), number(row.get("end"), 64)
    accessed, written = (number(row.get(f"{key}_percent"), 7) for key in ("accessed", "written"))
    cell = Cell(number(row.get("ns"), 64), start, end, accessed, written)
    if not start < end or max(accessed, written) > 100:
        raise ValueError(row)
    return cell


def read(export: Export) -> tuple[dict[int, list[Cell]], int]:
    """Returns the cells by process, and how many rows are damaged."""
    found: dict[int, list[Cell]] = {}
    nr_damaged = 0
    for row in export.rows(FILE):
        try:
            found.setdefault(number(row.get("pid"), 32), []).append(cell_of(row))
        except ValueError:
            nr_damaged += 1
    return {pid: cells for pid, cells in found.items() if cells}, nr_damaged


def joined(cells: Iterable[Cell]) -> list[tuple[int, int]]:
    """Returns the ranges that the cells cover, in order."""
    ranges: list[tuple[int, int]] = []
    for start, end in sorted({(cell.start, cell.end) for cell in cells}):
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(end, ranges[-1][1])
        else:
            ranges.append((start, end))
    return ranges[:MAX_RANGES]


class Scale:
    """Maps addresses to heights, the lowest address at the bottom."""

    def __init__(self, ranges: list[tuple[int, int]]):
        total = sum(end - start for start, end in ranges)
        self.ranges: list[tuple[int, int, float, float]] = []
        at = 0.0
        for start, end in ranges:
            height = max(MIN_HEIGHT, HEIGHT * (end - start) / total)
            self.ranges.append((start, end, at, height))
            at += height + GAP
        self.height = at - GAP

    def top(self, at: float, height: float) -> float:
        return self.height - at - height

    def place(self, start: int, end: int) -> tuple[float, float] | None:
        """Returns the top and the height of a part of a range, or None beyond all."""
        for first, last, at, height in self.ranges:
            if first <= start and end <= last:
                unit = height / (last - first)
                part = (end - start) * unit
                return self.top(at + (start - first) * unit, part), part
        return None


@dataclass
class Layout:
    """Where the regions of a process are in its picture."""

    height: float
    ranges: list[tuple[int, int, float, float]]  # start, end, top, height
    begin: int  # ns; of the first moment's regions
    times: list[int]  # moments
    places: list[tuple[Cell, int, float, float]]  # number of the moment, top, height


def layout(cells: list[Cell]) -> Layout:
    scale = Scale(joined(cells))
    times = sorted({cell.ns for cell in cells})
    moments = {ns: i for i, ns in enumerate(times)}
    step = times[1] - times[0] if len(times) > 1 else 1
    ranges = [(start, end, scale.top(at, size), size) for start, end, at, size in scale.ranges]
    places = [(cell, moments[cell.ns], *place)
              for cell in sorted(cells, key=lambda cell: (cell.ns, cell.start))
              if (place := scale.place(cell.start, cell.end))]  # fmt: skip
    return Layout(scale.height, ranges, times[0] - step, times, places)


def size(nr_bytes: int) -> str:
    return f"{nr_bytes / (1 << 20):.1f} MiB" if nr_bytes >= 1 << 20 else f"{nr_bytes >> 10} KiB"


def rect(x: float, y: float, width: float, height: float, fill: str, title: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.2f}"'
    return f'<rect {place} fill="{fill}"><title>{html.escape(title)}</title></rect>'


def color(cell: Cell) -> str:
    """White if it is unused; the others are mixed from blue and red."""
    strength = cell.accessed / 100
    red = cell.written / max(cell.accessed, 1)
    mixed = [40 + 170 * min(red, 1), 80 * (1 - min(red, 1)) + 30, 210 - 170 * min(red, 1)]
    return "#" + "".join(f"{round(255 - (255 - part) * strength):02x}" for part in mixed)


def panel(cells: list[Cell], heading: str, top: float) -> tuple[list[str], float]:
    """Returns the picture of a process, and its height."""
    made = layout(cells)
    begins = [made.begin, *made.times]
    per_ns = (WIDTH - LEFT - 10) / max(made.times[-1] - made.begin, 1)
    parts = [f'<text x="10" y="{top + 16:.1f}" {FONT}>{html.escape(printable(heading))}</text>']
    top += 26
    for start, end, at, height in made.ranges:
        y = top + at
        parts.append(rect(LEFT, y, WIDTH - LEFT - 10, height, "#f4f4f4", size(end - start)))
        if height >= 10:
            parts.append(f'<text x="10" y="{y + height:.1f}" {FONT}>{start:016x}</text>')
    for cell, moment, at, height in made.places:
        if not cell.accessed:
            continue
        x, width = (ns * per_ns for ns in (begins[moment] - made.begin, cell.ns - begins[moment]))
        title = f"{cell.start:x}-{cell.end:x} ({size(cell.end - cell.start)})"
        title += f" at {cell.ns / 1e9:.3f} s: accessed {cell.accessed} %, written {cell.written} %"
        parts.append(rect(LEFT + x, top + at, width, height, color(cell), title))
    bottom = top + made.height
    for i, ns in ((0, made.begin), (1, made.times[-1])):
        anchor = f'x="{LEFT + i * (WIDTH - LEFT - 10)}" text-anchor="{("start", "end")[i]}"'
        parts.append(f'<text {anchor} y="{bottom + 14:.1f}" {FONT}>{ns / 1e9:.3f} s</text>')
    return parts, bottom + 30


def processes(export: Export) -> dict[int, tuple[int, str]]:
    """Returns by pid the working set of 10 s and a heading."""
    found = {}
    for row in export.rows("working_set.json"):
        try:
            used, resident = (number(row.get(f"{k}_bytes"), 64) for k in ("used_10s", "resident"))
            text = f"has used {size(used)} of its {size(resident)} in the last 10 s"
            found[number(row.get("pid"), 32)] = used, f"{row.get('program')} {text}"
        except ValueError:
            continue
    return found


def draw(export: Export, cells: dict[int, list[Cell]]) -> bytes:
    """Returns SVG with a panel for each process, the lowest pid first."""
    if not cells:
        raise ExportError(f"{export.path} has no used memory: profile.working_set=on samples it")
    names = {pid: text for pid, (_, text) in processes(export).items()}
    parts: list[str] = []
    top = float(TOP)
    for pid in sorted(cells):
        more, top = panel(cells[pid], f"pid {pid}: {names.get(pid, '?')}", top)
        parts += more
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top:.0f}">'
    what = "Memory used over time: blue was read, red was written to"
    title = f'<text x="10" y="20" font-family="sans-serif" font-size="15">{what}</text>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', title, *parts,
                      "</svg>", ""]).encode()  # fmt: skip
