# SPDX-License-Identifier: BSD-2-Clause
"""Reads the tables of 64-bit ELF files: segments, sections, symbols, relocations, notes.

The format is in the System V ABI, chapters 4 and 5. Anybody may have made a file, so nothing in it
is trusted: a wrong number ends in ElfError, and time and memory are bounded by the file's size.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT, SECTION = struct.Struct("<IIQQQQQQ"), struct.Struct("<IIQQQQIIQQ")
SYMBOL, RELOCATION, NOTE = struct.Struct("<IBBHQQ"), struct.Struct("<QQq"), struct.Struct("<III")
X86_64, AARCH64, RISCV = 62, 183, 243
PT_LOAD, PT_NOTE = 1, 4
PF_X = 1
SHT_PROGBITS, SHT_SYMTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 1, 2, 4, 7, 8, 11
SHF_EXECINSTR = 4
NT_GNU_BUILD_ID = 3
MAX_NAME_BYTES = 4096


class ElfError(ValueError):
    """The file is not an ELF file, or a damaged one."""


class Segment(NamedTuple):
    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int


class Section(NamedTuple):
    name: str
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    entsize: int


class Symbol(NamedTuple):
    name: str
    name_at: int  # in the table of names
    type: int
    section: int
    value: int
    size: int


def padded(nr: int) -> int:
    return nr + 3 & ~3


class Elf:
    """An ELF file in memory. The caller keeps the data."""

    def __init__(self, data: bytes | mmap.mmap):
        self.data = data
        if len(data) < HEADER.size or data[:6] != b"\x7fELF\2\1":
            raise ElfError("it does not begin as a 64-bit ELF file does")
        head = HEADER.unpack_from(data)
        phoff, shoff = head[5:7]
        phentsize, phnum, shentsize, shnum, names = head[9:]
        self.machine = head[2]
        if self.machine not in (X86_64, AARCH64, RISCV):
            raise ElfError("it is not for x86-64, aarch64 or riscv64")
        self.segments = [Segment(*row) for row in self.table(SEGMENT, phoff, phentsize, phnum)]
        if shoff and not shnum:  # it is in the first section, as it is too large for the header
            shnum = SECTION.unpack(self.read(shoff, SECTION.size))[5]
        rows = list(self.table(SECTION, shoff, shentsize, shnum))
        text = rows[names][4:6] if names < len(rows) else (0, 0)
        budget = Names(self, *text)
        self.sections = [
            Section(budget.get(name), kind, flags, addr, offset, size, link, entsize)
            for name, kind, flags, addr, offset, size, link, _, _, entsize in rows
        ]

    def read(self, at: int, size: int) -> bytes:
        if at + size > len(self.data):
            raise ElfError("it ends too early")
        return self.data[at : at + size]

    def table(self, row: struct.Struct, at: int, row_bytes: int, nr: int) -> Iterator[tuple]:
        if nr and row_bytes != row.size:
            raise ElfError(f"its table has rows of {row_bytes} bytes, not {row.size}")
        return row.iter_unpack(self.read(at, nr * row.size))

    def content(self, section: Section) -> bytes:
        return b"" if section.type == SHT_NOBITS else self.read(section.offset, section.size)

    def section(self, name: str) -> Section | None:
        return next((one for one in self.sections if one.name == name), None)

    def of_type(self, kind: int) -> list[Section]:
        return [one for one in self.sections if one.type == kind]

    def symbols(self, table: Section | None) -> list[Symbol]:
        if not table or table.type not in (SHT_SYMTAB, SHT_DYNSYM):
            return []
        if table.link >= len(self.sections):
            raise ElfError("its symbols have no names")
        text = self.sections[table.link]
        names = Names(self, text.offset, text.size)
        rows = self.table(SYMBOL, table.offset, table.entsize, table.size // SYMBOL.size)
        return [
            Symbol(names.get(name), name, info & 15, section, value, size)
            for name, info, _, section, value, size in rows
        ]

    def relocations(self, table: Section) -> Iterator[tuple[int, int, int]]:
        """Yields offset, number of the symbol, and addend."""
        nr = table.size // RELOCATION.size
        for at, info, addend in self.table(RELOCATION, table.offset, table.entsize, nr):
            yield at, info >> 32, addend

    def build_id(self) -> str | None:
        """Returns the last one, by sections or, if the file has none, by segments."""
        places = [(one.offset, one.size) for one in self.of_type(SHT_NOTE)]
        if not self.sections:
            places = [(one.offset, one.filesz) for one in self.segments if one.type == PT_NOTE]
        found = None
        for at, size in places:
            data = self.read(at, size)
            at = 0
            while at + NOTE.size <= size:
                name_bytes, desc_bytes, kind = NOTE.unpack_from(data, at)
                at += NOTE.size
                desc = at + padded(name_bytes)
                # Notes with other names have the same types, for example those of systemtap.
                if kind == NT_GNU_BUILD_ID and data[at : at + name_bytes] == b"GNU\0":
                    found = data[desc : desc + desc_bytes].hex()
                at = desc + padded(desc_bytes)
        return found


class Names:
    """The texts of a table of names. All that are read are bounded by a few times its size."""

    def __init__(self, elf: Elf, at: int, size: int):
        self.data = elf.read(at, size)
        self.left = 16 * size + MAX_NAME_BYTES

    def get(self, at: int) -> str:
        end = self.data.find(b"\0", at, at + MAX_NAME_BYTES)
        text = self.data[at : end if end >= 0 else at + MAX_NAME_BYTES]
        self.left -= len(text)
        if self.left < 0:
            raise ElfError("its names are longer than their table")
        return text.decode(errors="replace")


def open_elf(path: Path) -> Elf:
    """Raises OSError or ElfError."""
    if not path.is_file():  # a FIFO or a device would block, or never end
        raise FileNotFoundError(2, "No such file" if not path.exists() else "Not a regular file")
    with path.open("rb") as file:
        try:
            return Elf(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        except (ValueError, struct.error, OverflowError) as error:
            raise ElfError(str(error)) from error
