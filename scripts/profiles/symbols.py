# SPDX-License-Identifier: BSD-2-Clause
"""Reads the functions of ELF files: kernels, programs and libraries."""

from __future__ import annotations

import bisect
import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol

from profiles.export import ExportError

PAGE_BYTES = 4096
FUNCTIONS = ("STT_FUNC", "STT_NOTYPE", "STT_LOOS")  # the last one is GNU's, for ifuncs


# How a C library returns from a signal: mov $15, %rax; syscall. Debuggers know it by this, too.
RESTORER = re.compile(rb"\x48\xc7\xc0\x0f\0\0\0\x0f\x05")
RESTORER_NAME = "__restore_rt"
STUB = re.compile(rb"\xff\x25(.{4})", re.DOTALL)  # jmp *displacement(%rip)
MAX_STUB_BYTES = 16


def demangle(names: list[str]) -> list[str]:
    """Returns names of C++ and Rust as their sources have them, if c++filt is there."""
    mangled = [i for i, name in enumerate(names) if name.startswith(("_Z", "_R"))]
    if not mangled or not shutil.which("c++filt"):
        return names
    lines = "\n".join(re.sub(r"\s", "?", names[i]) for i in mangled).encode()
    done = subprocess.run(["c++filt"], input=lines, capture_output=True)
    texts = done.stdout.decode(errors="replace").rstrip("\n").split("\n")
    return [*names] if len(texts) != len(mangled) else replaced(names, dict(zip(mangled, texts)))


def replaced(names: list[str], others: dict[int, str]) -> list[str]:
    return [others.get(i, name) for i, name in enumerate(names)]


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
        self.names: list[str] = []
        try:
            self.bytes = path.stat().st_size
            with path.open("rb") as file:
                self.read(ELFFile(file))
        except OSError as error:
            raise ExportError(f"{path}: {error.strerror}") from error
        except (ELFError, ValueError) as error:
            raise ExportError(f"{path} is not an ELF file: {error}") from error
        self.names = demangle(self.names)
        self.known_names = frozenset(self.names)

    def read(self, elf: ELFFile) -> None:
        self.build_id = read_build_id(elf)
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
        table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
        self.has_symbols = table is not None
        sections = [one for one in elf.iter_sections() if one["sh_flags"] & 4]
        found = self.read_table(table.iter_symbols() if table else iter(()))
        self.addresses = sorted(found)
        # A function ends where the next one starts, or with its section.
        borders = sorted(
            [end for _, end, _ in self.code]
            + [at for one in sections for at in (one["sh_addr"], one["sh_addr"] + one["sh_size"])]
        )
        self.ends = []
        for address, after in itertools.zip_longest(self.addresses, self.addresses[1:]):
            i = bisect.bisect_right(borders, address)
            end = borders[i] if i < len(borders) else self.end
            self.ends.append(end if after is None else min(end, after))
        if table and table.name == ".dynsym":
            # A stripped library has the functions that it exports, and others between them.
            self.ends = [address + found[address]["st_size"] for address in self.addresses]
        self.names = [found[address].name for address in self.addresses]
        self.restorers = {
            at for at, name in zip(self.addresses, self.names) if name == RESTORER_NAME
        }
        if not self.is_split:
            self.add_code(elf, sections)

    def is_code(self, address: int) -> bool:
        return any(start <= address < end for start, end, _ in self.code)

    def read_table(self, symbols: Iterator[Symbol]) -> dict[int, Symbol]:
        """Returns the best symbol of each function. Labels inside a function are none."""
        found: dict[int, Symbol] = {}
        for symbol in symbols:
            address = symbol["st_value"]
            if is_function(symbol) and self.is_code(address):
                found[address] = min(found.get(address, symbol), symbol, key=rank)
        end, labels = 0, []
        for address in sorted(found):
            symbol = found[address]
            if symbol["st_info"]["type"] != "STT_NOTYPE":
                end = max(end, address + symbol["st_size"])
            elif address < end:
                labels.append(address)
        for address in labels:
            del found[address]
        return found

    def add(self, start: int, end: int, name: str) -> None:
        """Adds a function where none is known."""
        if self.index(start) is None:
            at = bisect.bisect_right(self.addresses, start)
            self.addresses.insert(at, start)
            self.ends.insert(at, end)
            self.names.insert(at, name)

    def add_code(self, elf: ELFFile, sections: list) -> None:
        """Adds functions that have no symbols, but are known by their code."""
        slots: dict[int, str] | None = None
        for section in sections:
            if section["sh_type"] != "SHT_PROGBITS":
                continue
            code, base = section.data(), section["sh_addr"]
            for match in RESTORER.finditer(code):
                start = base + match.start()
                if start not in self.restorers:
                    if (at := self.index(start)) is not None and self.addresses[at] < start:
                        continue  # a function that calls the system by itself
                    self.restorers.add(start)
                    self.add(start, base + match.end(), RESTORER_NAME)
            if section.name.startswith(".plt"):
                slots = relocated_slots(elf, self) if slots is None else slots
                self.add_stubs(code, base, section["sh_entsize"], slots)

    def add_stubs(self, code: bytes, base: int, step: int, slots: dict[int, str]) -> None:
        """Adds the stubs of a procedure linkage table: each jumps to the content of a slot."""
        step = step if step in (8, MAX_STUB_BYTES) else MAX_STUB_BYTES
        for at in range(0, len(code), step):
            if match := STUB.search(code, at, at + step):
                after = base + match.end()
                slot = after + int.from_bytes(match[1], "little", signed=True)
                if slot in slots:
                    self.add(base + at, base + at + step, f"{slots[slot]}@plt")

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


def read_build_id(elf: ELFFile) -> str | None:
    found = None
    for section in elf.iter_sections("SHT_NOTE"):
        for note in section.iter_notes():
            # Notes with other names have the same types, for example those of systemtap.
            if note["n_name"] == "GNU" and note["n_type"] == "NT_GNU_BUILD_ID":
                found = note["n_desc"]
    return found


def relocated_slots(elf: ELFFile, symbols: Symbols) -> dict[int, str]:
    """Returns the functions that the linker stores in slots of the global offset table."""
    found = {}
    for section in elf.iter_sections("SHT_RELA"):
        table = elf.get_section(section["sh_link"])
        for one in section.iter_relocations():
            number, name = one["r_info_sym"], None
            if number and hasattr(table, "get_symbol"):
                name = table.get_symbol(number).name
            elif target := symbols.function(one["r_addend"]):
                name = target[1]
            if name:
                found[one["r_offset"]] = name
    return found
