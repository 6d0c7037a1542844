# SPDX-License-Identifier: BSD-2-Clause
"""Finds exports in the log of a console: numbered pieces with checksums, among other lines.

kernel/profile/formats.md describes the lines.
"""

from __future__ import annotations

import mmap
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field

# Any program can print such lines, so all parts are bounded. The kernel's texts have 400 bytes.
PIECE = re.compile(
    rb"(export-([0-9a-f]{16}) (\d{1,10}) (\d{1,10})([-=<>]) (.{0,400})) ([0-9a-f]{8})[ \r]{0,9}$",
    re.MULTILINE,
)
ANNOUNCED = rb"profile: lines of exports begin with export-([0-9a-f]{16})"
WITH_TIME = re.compile(rb"\[ *\d+\.\d+\] " + ANNOUNCED)
WITHOUT_TIME = re.compile(rb"^" + ANNOUNCED, re.MULTILINE)  # of kernels that print no times
GAP = b"?\n"
MAX_SPANS = 9  # of missing lines, in a message
Data = bytes | mmap.mmap
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
        """
        Returns the complete lines. Where pieces are missing, there are as many a GAP, but at most
        two: two missing lines may have begun another table.
        """
        found: list[bytes] = []
        line: list[bytes] = []  # empty: the begin of the line is missing
        next_nr = 0
        for nr in sorted(self.pieces):
            if nr != next_nr:
                found.append(GAP * min(nr - next_nr, 2))
                line = []
            next_nr = nr + 1
            place, piece = self.pieces[nr]
            if place in BEGINS:
                line = []
            elif not line:
                continue
            line.append(piece)
            if place in ENDS:
                found.append(b"".join(line) + b"\n")
                line = []
        return b"".join(found)

    def missing(self) -> str:
        """Returns the numbers of missing pieces, as in "3, 5 to 9"; empty if all are there."""
        spans = []
        next_nr = 0
        for nr in sorted(self.pieces):
            if nr != next_nr:
                spans.append(f"{next_nr} to {nr - 1}" if nr - 1 != next_nr else f"{next_nr}")
            next_nr = nr + 1
        more = [f"and {len(spans) - MAX_SPANS} other places"] if len(spans) > MAX_SPANS else []
        return ", ".join(spans[:MAX_SPANS] + more)


def snapshots(log: Data) -> tuple[list[Snapshot], Counter[bytes]]:
    """
    Returns all exports, in the order in which they begin, and the number of intact lines by mark.
    Lines may be swapped or repeated.
    """
    found: list[Snapshot] = []
    latest: dict[tuple[bytes, int], Snapshot] = {}
    nr_intact: Counter[bytes] = Counter()
    for match in PIECE.finditer(log):
        head, mark, number, nr, place, piece, crc = match.groups()
        if zlib.crc32(head) != int(crc, 16):
            continue
        nr_intact[mark] += 1
        key = mark, int(number)
        snapshot = latest.get(key)
        if snapshot and snapshot.add(int(nr), (place, piece)):
            continue
        # With -icount, two boots have the same mark. Pieces that were equal so far belong to both.
        latest[key] = Snapshot(*key, snapshot.repeated if snapshot else {})
        latest[key].pieces[int(nr)] = place, piece
        found.append(latest[key])
    return found, nr_intact


class MarkError(Exception):
    """The log does not say which exports are the kernel's."""


def select(log: Data, found: list[Snapshot]) -> tuple[Snapshot, list[str]]:
    """
    Returns the last export with the mark that the log announces, and warnings. Programs can print
    lines with other marks, and announce them. They cannot know the kernel's mark.
    """
    announced = sorted(set(WITH_TIME.findall(log) or WITHOUT_TIME.findall(log)))
    if not announced:
        return found[-1], ["the log announces no exports: a program may have printed this one"]
    if len(announced) > 1:
        names = " and ".join(f"export-{mark.decode()}" for mark in announced[:MAX_SPANS])
        raise MarkError(f"marks of several boots, or of a program: {names}. Keep the log of one")
    if not (ours := [one for one in found if one.mark == announced[0]]):
        raise MarkError("only exports that the log does not announce: a program has printed them")
    return ours[-1], []


def last_export(log: Data) -> tuple[bytes, list[str]] | None:
    """Returns the text of the last export, and warnings; None without an export."""
    found, nr_intact = snapshots(log)
    if not found:
        return None
    last, warnings = select(log, found)
    if missing := last.missing():
        warnings.insert(0, f"of export {last.number}, lines {missing} are missing")
    nr_begun = len(re.findall(rb"export-%b \d" % last.mark, log))
    if nr_damaged := nr_begun - nr_intact[last.mark]:
        warnings.append(f"{nr_damaged} lines of exports are damaged")
    return last.text(), warnings
