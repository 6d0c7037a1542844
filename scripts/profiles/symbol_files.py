# SPDX-License-Identifier: BSD-2-Clause
"""Writes ELF files that have only names of functions, for readers that take names from files alone.

They stand for the kernel and the programs that are not on this machine, but whose functions the
kernel has named in the export. perf and hotspot read a file if its build id is the one they expect.
"""

from __future__ import annotations

import itertools
import re
import struct
from pathlib import Path
from typing import NamedTuple

from profiles.exported_symbols import KERNEL, ExportedSymbols
from profiles.symbols import PAGE_BYTES

HEADER, SEGMENT, SECTION, SYMBOL = "<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<IIQQQQIIQQ", "<IBBHQQ"
ET_EXEC, ET_DYN, X86_64, PT_LOAD, READ_EXEC = 2, 3, 62, 1, 5
NOTE, NOBITS, SYMTAB, STRTAB, ALLOC, ALLOC_EXEC, NT_GNU_BUILD_ID = 7, 8, 2, 3, 2, 6, 3
GLOBAL_FUNCTION = 1 << 4 | 2
MAX_BUILD_ID_BYTES = 20  # that perf knows
MAX_SEGMENTS = 64  # files of compilers have one or two with code
# A program that is always at one address has its code there, far behind where that is in the file.
MIN_FIXED_DISTANCE = 1 << 20
SAFE_NAME = re.compile(r"(?!\.)[\w.+-]{1,100}", re.ASCII)


class Segment(NamedTuple):
    """A part of a file, in whole pages: addresses, and where it is in the file."""

    start: int
    end: int
    offset: int


def segments_of(functions: list[tuple[int, int, str]], offsets: dict[int, int]) -> list[Segment]:
    """functions: sorted by address. Those with the same distance to their place are together."""

    def distance(function: tuple[int, int, str]) -> int:
        return (function[0] & -PAGE_BYTES) - (offsets[function[0]] & -PAGE_BYTES)

    found: list[Segment] = []
    for moved, group in itertools.groupby(functions, distance):
        some = list(group)
        start, end = some[0][0] & -PAGE_BYTES, max(end for _, end, _ in some)
        end = -(-end // PAGE_BYTES) * PAGE_BYTES
        if not found:
            start = moved  # at the file's begin, where hotspot looks for a mapping's file
        if moved >= 0 and end < 1 << 64:
            found.append(Segment(start, end, start - moved))
    return found[:MAX_SEGMENTS]


def make(symbols: ExportedSymbols, build_id: bytes) -> tuple[bytes, list[Segment]]:
    """
    Returns a file with the names, whose code is not there, as in split debug files; and where the
    code would be.
    """
    offsets = dict(zip(symbols.starts, symbols.offsets))
    if symbols.full_path == KERNEL.path:  # whose functions have no offsets
        offsets = {at: at - (symbols.addresses[0] & -PAGE_BYTES) for at in offsets}
    functions = list(zip(symbols.addresses, symbols.ends, symbols.names))
    segments = segments_of(functions, offsets)
    names, table = bytearray(1), bytearray(struct.calcsize(SYMBOL))
    for start, end, name in functions:
        if any(one.start <= start and end <= one.end for one in segments):
            table += struct.pack(SYMBOL, len(names), GLOBAL_FUNCTION, 0, 2, start, end - start)
            names += name.replace("\0", "?").encode() + b"\0"
    section_names = b"\0.note.gnu.build-id\0.text\0.symtab\0.strtab\0"
    note = struct.pack("<III4s", 4, len(build_id), NT_GNU_BUILD_ID, b"GNU") + build_id
    note += bytes(-len(note) % 4)
    at, places, body = 64 + 56 * len(segments), [], bytearray()
    for part in note, table, names, section_names:
        places.append((at + len(body), len(part)))
        body += part + bytes(-len(part) % 8)

    def section(name: bytes, kind: int, flags: int, *rest: int) -> bytes:
        return struct.pack(SECTION, section_names.find(name), kind, flags, *rest)

    first = segments[0] if segments else Segment(0, 0, 0)
    text_bytes = max((one.end for one in segments), default=0) - first.start
    sections = [
        bytes(64),
        section(b".note.gnu.build-id", NOTE, ALLOC, 0, *places[0], 0, 0, 4, 0),
        section(b".text", NOBITS, ALLOC_EXEC, first.start, first.offset, text_bytes, 0, 0, 16, 0),
        section(b".symtab", SYMTAB, 0, 0, *places[1], 4, 1, 8, struct.calcsize(SYMBOL)),
        section(b".strtab", STRTAB, 0, 0, *places[2], 0, 0, 1, 0),
        section(b".strtab", STRTAB, 0, 0, *places[3], 0, 0, 1, 0),
    ]
    is_fixed = first.start - first.offset >= MIN_FIXED_DISTANCE
    header = struct.pack(
        HEADER, b"\x7fELF\2\1\1", ET_EXEC if is_fixed else ET_DYN, X86_64, 1, 0,
        64, at + len(body), 0, 64, 56, len(segments), 64, len(sections), 5,
    )  # fmt: skip
    loads = [
        struct.pack(SEGMENT, PT_LOAD, READ_EXEC, one.offset, one.start, one.start, 0,
                    one.end - one.start, PAGE_BYTES)
        for one in segments
    ]  # fmt: skip
    return b"".join([header, *loads, body, *sections]), segments


class SymbolFiles:
    """The files with the names of one output. Without a directory there are none."""

    def __init__(self, directory: Path | None):
        self.directory = directory.absolute() if directory else None
        self.files: dict[Path, bytes] = {}
        self.segments: dict[Path, list[Segment]] = {}

    def add(
        self, symbols: ExportedSymbols, name: str, build_id: str | None
    ) -> tuple[str, list[Segment]] | None:
        """Returns the path of the file with these names, and where its code is; None: no file."""
        try:
            key = bytes.fromhex(build_id or "")
        except ValueError:
            return None
        if not self.directory or len(key) > MAX_BUILD_ID_BYTES:
            return None
        # Without a build id, the file is known by its place in the output.
        directory = key.hex() or str(len(self.files))
        path = self.directory / directory / (name if SAFE_NAME.fullmatch(name) else "file")
        if path not in self.files:
            self.files[path], self.segments[path] = make(symbols, key)
        return str(path), self.segments[path]
