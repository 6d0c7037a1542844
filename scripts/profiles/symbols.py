# SPDX-License-Identifier: BSD-2-Clause
"""Reads the functions of ELF files: kernels, programs and libraries."""

from __future__ import annotations

import bisect
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol

from profiles.export import ExportError

PAGE_BYTES = 4096
FUNCTIONS = ("STT_FUNC", "STT_NOTYPE", "STT_LOOS")  # the last one is GNU's, for ifuncs


def is_function(symbol: Symbol) -> bool:
    """Labels of compilers and assemblers have no type, and begin with $ or a dot."""
    kind = symbol["st_info"]["type"]
    is_label = kind == "STT_NOTYPE" and symbol.name.startswith(("$", "."))
    return bool(symbol.name) and kind in FUNCTIONS and not is_label


def rank(symbol: Symbol) -> tuple[bool, int, int]:
    """The lowest of several names for one function is taken, as in the kernel's reports."""
    nr_underscores = len(symbol.name) - len(symbol.name.lstrip("_"))
    return not symbol["st_size"], nr_underscores, symbol["st_name"]


class Symbols:
    """The functions of an ELF file, by address."""

    def __init__(self, path: Path):
        self.path, self.full_path = path, str(path.resolve())
        try:
            self.bytes = path.stat().st_size
            with path.open("rb") as file:
                self.read(ELFFile(file))
        except OSError as error:
            raise ExportError(f"{path}: {error.strerror}") from error
        except ELFError as error:
            raise ExportError(f"{path} is not an ELF file: {error}") from error

    def read(self, elf: ELFFile) -> None:
        self.build_id = None
        for section in elf.iter_sections("SHT_NOTE"):
            for note in section.iter_notes():
                # Notes with other names have the same types, for example those of systemtap.
                if note["n_name"] == "GNU" and note["n_type"] == "NT_GNU_BUILD_ID":
                    self.build_id = note["n_desc"]
        table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
        if table is None:
            raise ExportError(f"{self.path} has no symbols")
        segments = [one for one in elf.iter_segments("PT_LOAD") if one["p_flags"] & 1]
        if not segments:
            raise ExportError(f"{self.path} has no code")
        self.code = [
            (one["p_vaddr"], one["p_vaddr"] + one["p_memsz"], one["p_offset"]) for one in segments
        ]
        self.start, self.end, self.offset = self.code[0]
        # A file of objcopy --only-keep-debug lacks the code, and its offsets are not the program's.
        self.is_split = segments[0]["p_filesz"] < segments[0]["p_memsz"]
        self.has_lines = elf.get_section_by_name(".debug_line") is not None
        found: dict[int, Symbol] = {}
        for symbol in table.iter_symbols():
            address = symbol["st_value"]
            if is_function(symbol) and self.start <= address < self.end:
                found[address] = min(found.get(address, symbol), symbol, key=rank)
        self.addresses = sorted(found)
        self.names = [found[address].name for address in self.addresses]
        self.ends = [*self.addresses[1:], self.end]  # a function ends where the next one starts
        if table.name == ".dynsym":
            # A stripped library has the functions that it exports, and others between them.
            self.ends = [address + found[address]["st_size"] for address in self.addresses]

    def address_at(self, offset: int, first_offset: int | None) -> int:
        """
        Returns the address in the ELF file of code at a file offset; 0: there is no code.
        first_offset is that of the first page of the program's code, if it is known.
        """
        if self.is_split and first_offset is not None:
            address = offset - first_offset + (self.start & -PAGE_BYTES)
            return address if self.start <= address < self.end else 0
        for start, end, first in self.code:
            if first <= offset < first + end - start:
                return offset - first + start
        return 0

    def index(self, address: int) -> int | None:
        at = bisect.bisect_right(self.addresses, address) - 1
        return at if at >= 0 and address < self.ends[at] else None

    def function(self, address: int) -> tuple[int, str] | None:
        """Returns the start and the name of the function at an address."""
        at = self.index(address)
        return None if at is None else (self.addresses[at], self.names[at])

    def place(self, address: int) -> str:
        """Returns function+offset/size."""
        at = self.index(address)
        if at is None:
            return f"{address:#x}"
        start = self.addresses[at]
        return f"{self.names[at]}+{address - start:#x}/{self.ends[at] - start:#x}"
