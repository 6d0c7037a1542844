# SPDX-License-Identifier: BSD-2-Clause
"""Collects for a page which memory was used when: the picture of profiles/working_set.py."""

from __future__ import annotations

from profiles import working_set
from profiles.export import Export, printable
from profiles.page_columns import Columns
from profiles.working_set import Cell, size

PARTS = 100  # of a pixel


def of_process(heading: str, cells: list[Cell], columns: Columns) -> dict:
    """Returns a picture. A cell belongs to the time before its moment."""
    made = working_set.layout(cells)
    moments, tops, heights = zip(*(place[1:] for place in made.places))
    found = {
        "moment": columns.add(moments),
        "top": columns.add(round(PARTS * top) for top in tops),
        "tall": columns.add(round(PARTS * height) for height in heights),
    }
    for key in "start", "end", "accessed", "written":
        found[key] = columns.add(getattr(place[0], key) for place in made.places)
    ranges = [[f"{start:016x}", size(end - start), top, height]
              for start, end, top, height in made.ranges]  # fmt: skip
    return found | {"heading": printable(heading), "height": made.height, "ranges": ranges,
                    "times": [made.begin, *made.times]}  # fmt: skip


def write(export: Export, columns: Columns) -> tuple[list[dict], list[str]]:
    """Returns a picture for each process, the largest working set first, and what is damaged."""
    cells, nr_damaged = working_set.read(export)
    known = working_set.processes(export)
    order = sorted(cells, key=lambda pid: (-known.get(pid, (0,))[0], pid))
    found = [{"pid": pid} | of_process(known.get(pid, (0, "?"))[1], cells[pid], columns)
             for pid in order]  # fmt: skip
    limits = [f"{nr_damaged} damaged rows of used memory are left out"] if nr_damaged else []
    return found, limits
