# SPDX-License-Identifier: BSD-2-Clause
"""Finds exports in the log of a console: numbered pieces with checksums, among other lines.

kernel/profile/formats.md describes the lines.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field

PIECE = re.compile(
    rb"(export-([0-9a-f]{16}) (\d+) (\d+)([-=<>]) (.*)) ([0-9a-f]{8})[ \r]*$", re.MULTILINE
)
BEGUN = re.compile(rb"export-[0-9a-f]{16} \d")
ANNOUNCED = re.compile(
    rb"^\[ *\d+\.\d+\] profile: lines of exports begin with export-(\w{16})", re.MULTILINE
)
GAP = b"?\n"
BEGINS, ENDS = b"=<", b"=>"  # = is a whole line, < its begin, > its end, - its middle


@dataclass
class Snapshot:
    """One export: its pieces, each with its place in a line, by number."""

    mark: bytes
    number: int
    pieces: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    repeated: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)

    def add(self, nr: int, piece: tuple[bytes, bytes]) -> bool:
        """Returns False if the export has a different piece with this number."""
        if nr in self.pieces:
            self.repeated[nr] = piece
        return self.pieces.setdefault(nr, piece) == piece

    def text(self) -> bytes:
        """Returns the complete lines, and a GAP for each piece that is missing."""
        found: list[bytes] = []
        line: list[bytes] = []  # empty: the begin of the line is missing
        for nr in range(max(self.pieces) + 1):
            if nr not in self.pieces:
                found.append(GAP)
                continue
            place, piece = self.pieces[nr]
            if place in BEGINS:
                line = []
            elif not line or nr - 1 not in self.pieces:
                line = []
                continue
            line.append(piece)
            if place in ENDS:
                found.append(b"".join(line) + b"\n")
                line = []
        return b"".join(found)

    def missing(self) -> list[str]:
        spans: list[list[int]] = []
        for nr in sorted(set(range(max(self.pieces) + 1)) - self.pieces.keys()):
            if spans and spans[-1][1] == nr - 1:
                spans[-1][1] = nr
            else:
                spans.append([nr, nr])
        return [f"{a} to {b}" if a != b else f"{a}" for a, b in spans]


def snapshots(log: bytes) -> tuple[list[Snapshot], int]:
    """
    Returns all exports, in the order in which they begin, and the number of damaged lines. Lines
    may be swapped or repeated.
    """
    found: list[Snapshot] = []
    latest: dict[tuple[bytes, int], Snapshot] = {}
    nr_whole = 0
    for match in PIECE.finditer(log):
        head, mark, number, nr, place, piece, crc = match.groups()
        if zlib.crc32(head) != int(crc, 16):
            continue
        nr_whole += 1
        key = mark, int(number)
        snapshot = latest.get(key)
        if snapshot and snapshot.add(int(nr), (place, piece)):
            continue
        # With -icount, two boots have the same mark. Pieces that were equal so far belong to both.
        latest[key] = Snapshot(*key, snapshot.repeated if snapshot else {})
        latest[key].pieces[int(nr)] = place, piece
        found.append(latest[key])
    return found, len(BEGUN.findall(log)) - nr_whole


def last_export(log: bytes) -> tuple[bytes, list[str]] | None:
    """Returns the text of the last export, and warnings; None without an export."""
    found, nr_damaged = snapshots(log)
    if not found:
        return None
    last, warnings = found[-1], []
    if missing := last.missing():
        warnings.append(f"of export {last.number}, lines {', '.join(missing)} are missing")
    if nr_damaged:
        warnings.append(f"{nr_damaged} lines of exports are damaged")
    announced = ANNOUNCED.search(log)
    if not announced:
        warnings.append("the log does not announce exports: a program may have printed this one")
    elif announced[1] != last.mark:
        warnings.append("the log announces other exports: a program may have printed this one")
    return last.text(), warnings
