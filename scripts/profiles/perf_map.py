# SPDX-License-Identifier: BSD-2-Clause
"""Reads perf-<pid>.map, in which a JIT compiler names its code, from a file or an export.

Format: tools/perf/Documentation/jit-interface.txt of Linux. A line is `<start> <size> <name>`, with
hexadecimal numbers. A later line replaces what earlier ones say of its addresses.
"""

from __future__ import annotations

import bisect
import re
from pathlib import Path

from profiles.export import Export, ExportError
from profiles.images import label, number
from profiles.symbols import Symbols

LINE = re.compile(r"([0-9a-fA-F]{1,16}) ([0-9a-fA-F]{1,16}) (\S.*)")
NAME = re.compile(r"perf-(\d+)\.map$")


class PerfMap(Symbols):
    """The functions that a process has made."""

    def __init__(self, text: str, path: Path):
        self.clear(path)
        rows = [LINE.match(line) for line in text.splitlines()]
        # From the latest to the first: a row counts where no later one does.
        for row in reversed([row for row in rows if row]):
            start, size = int(row[1], 16), int(row[2], 16)
            self.add_rest(start, start + size, row[3].strip())
        self.has_symbols = bool(self.names)
        self.known_names = frozenset(self.names)

    def add_rest(self, start: int, end: int, name: str) -> None:
        """Adds a function from the end of the one before it to the begin of the next one."""
        at = bisect.bisect_right(self.addresses, start)
        if at:
            start = max(start, self.ends[at - 1])
        if at < len(self.addresses):
            end = min(end, self.addresses[at])
        if start < end:
            self.addresses.insert(at, start)
            self.ends.insert(at, end)
            self.names.insert(at, name)


def read_export(export: Export) -> dict[tuple[str | None, int], PerfMap]:
    """Returns the functions by run and process, from the maps that the kernel has read."""
    lines: dict[tuple[str | None, int], list[str]] = {}
    for row in export.rows("jit_maps.json"):
        try:
            text = str(row["line"]).encode("latin-1").decode("utf-8", "replace")
            lines.setdefault((label(row), number(row["pid"], 31)), []).append(text)
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return {
        (run, pid): PerfMap("\n".join(found), Path(f"perf-{pid}.map"))
        for (run, pid), found in lines.items()
    }


def read_files(paths: list[Path]) -> dict[int, PerfMap]:
    """Returns the functions by process."""
    found = {}
    for path in paths:
        if not (match := NAME.search(path.name)):
            raise ExportError(f"{path}: its name must be perf-<pid>.map, as its program made it")
        try:
            found[int(match[1])] = PerfMap(path.read_text("utf-8", "replace"), path)
        except OSError as error:
            raise ExportError(f"{path}: {error.strerror}") from error
    return found
