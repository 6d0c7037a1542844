# SPDX-License-Identifier: BSD-2-Clause
"""Reads the functions of ELF files: kernels, programs and libraries."""

from __future__ import annotations

import bisect
import itertools
import re
import shutil
import struct
import subprocess
from pathlib import Path

from kallsyms import SUFFIX, plain_names
from profiles.elf import (
    PF_X,
    PT_LOAD,
    SHF_EXECINSTR,
    SHT_PROGBITS,
    SHT_RELA,
    X86_64,
    Elf,
    Section,
    Symbol,
    open_elf,
)
from profiles.export import ExportError

PAGE_BYTES = 4096
KERNEL_START = "_stext"  # only kernels have this symbol
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC = 0, 1, 2, 10
FUNCTIONS = (STT_FUNC, STT_NOTYPE, STT_GNU_IFUNC)

# How a C library returns from a signal: mov $15, %rax; syscall. Debuggers know it by this, too.
RESTORER = re.compile(rb"\x48\xc7\xc0\x0f\0\0\0\x0f\x05")
RESTORER_NAME = "__restore_rt"
STUB = re.compile(rb"\xff\x25(.{4})", re.DOTALL)  # jmp *displacement(%rip)
MAX_STUB_BYTES = 16
OPENING, CLOSING, MAX_TOLD = "<({", ">)}", 80
VERSION = re.compile(r"(?<=.)@@?[A-Za-z]\w*[\w.]*$")  # of a symbol: memcpy@@GLIBC_2.14
# What Rust adds to names to make them unique: at the end, or with version 0 after a crate's name.
RUST_HASH = re.compile(r"::h[0-9a-f]{16}(?=$| \[)|(?<=\w)\[[0-9a-f]{1,16}\](?=::)")


def demangle(names: list[str]) -> list[str]:
    """Returns names of C++ and Rust as their sources have them, if c++filt is there."""
    mangled = [i for i, name in enumerate(names) if name.startswith(("_Z", "_R"))]
    if not mangled or not shutil.which("c++filt"):
        return names
    lines = "\n".join(re.sub(r"\s", "?", names[i]) for i in mangled).encode()
    done = subprocess.run(["c++filt"], input=lines, capture_output=True)
    texts = done.stdout.decode(errors="replace").rstrip("\n").split("\n")
    texts = [RUST_HASH.sub("", text) for text in texts]
    return [*names] if len(texts) != len(mangled) else replaced(names, dict(zip(mangled, texts)))


def shortened(name: str) -> str:
    """Returns a name for a sentence: a long one of C++ or Rust without what is in its brackets."""
    if len(name) <= MAX_TOLD:
        return name
    found, depth = "", 0
    for character in name:
        if character in CLOSING:
            depth = max(depth - 1, 0)
        if not depth:
            found += character
        if character in OPENING:
            found += "" if depth else "..."
            depth += 1
    return found if not depth and len(found) <= MAX_TOLD else f"{name[: MAX_TOLD - 1]}~"


def replaced(names: list[str], others: dict[int, str]) -> list[str]:
    return [others.get(i, name) for i, name in enumerate(names)]


def text(data: bytes) -> str:
    return data.split(b"\0")[0].decode(errors="replace")


def is_function(symbol: Symbol) -> bool:
    """Labels of compilers and assemblers have no type, and begin with $ or a dot."""
    is_label = symbol.type == STT_NOTYPE and symbol.name.startswith(("$", "."))
    return bool(symbol.name) and symbol.type in FUNCTIONS and not is_label


def rank(symbol: Symbol) -> tuple[bool, int, int]:
    """The lowest of several names for one function is taken, as in the kernel's reports."""
    nr_underscores = len(symbol.name) - len(symbol.name.lstrip("_"))
    return not symbol.size, nr_underscores, symbol.name_at


class Symbols:
    """The functions of an ELF file, by address."""

    def clear(self, path: Path) -> None:
        self.path, self.full_path = path, str(path.resolve())
        self.names: list[str] = []
        self.objects: list[tuple[int, int, str]] = []  # address, size and name, such as locks
        self.addresses: list[int] = []
        self.ends: list[int] = []
        self.restorers: set[int] = set()
        self.build_id: str | None = None
        self.has_lines = self.has_symbols = False
        self.debug: Symbols | None = None  # the file that the names are from, if it is another one

    def __init__(self, path: Path, demangles: bool = True):
        self.clear(path)
        try:
            self.bytes = path.stat().st_size
            self.read(open_elf(path))
        except OSError as error:
            raise ExportError(f"{path}: {error.strerror}") from error
        except (ValueError, struct.error, OverflowError) as error:
            raise ExportError(f"{path} is not an ELF file: {error}") from error
        if demangles:
            both = demangle(self.names + [name for *_, name in self.objects])
            self.names, objects = both[: len(self.names)], both[len(self.names) :]
            self.objects = [(one[0], one[1], name) for one, name in zip(self.objects, objects)]
        self.known_names = frozenset(self.names)

    def read(self, elf: Elf) -> None:
        self.build_id = elf.build_id()
        self.segments = [one for one in elf.segments if one.type == PT_LOAD]
        segments = [one for one in self.segments if one.flags & PF_X]
        if not segments:
            raise ExportError(f"{self.path} has no code")
        self.code = [(one.vaddr, one.vaddr + one.memsz, one.offset) for one in segments]
        self.start, self.end, self.offset = self.code[0]
        # A file of objcopy --only-keep-debug lacks the code, and its offsets are not the program's.
        self.is_split = segments[0].filesz < segments[0].memsz
        self.has_lines = elf.section(".debug_line") is not None
        table = elf.section(".symtab") or elf.section(".dynsym")
        self.is_stripped = not table or table.name != ".symtab"
        link = elf.section(".gnu_debuglink")
        self.debug_link = text(elf.content(link)) if link else None
        sections = [one for one in elf.sections if one.flags & SHF_EXECINSTR]
        symbols = [one._replace(name=VERSION.sub("", one.name)) for one in elf.symbols(table)]
        found = self.read_table(symbols)
        self.has_symbols = bool(found)
        data = [one for one in symbols if one.type == STT_OBJECT and one.size and one.section]
        self.objects = sorted((one.value, one.size, one.name) for one in data)
        self.addresses = sorted(found)
        # A function ends where the next one starts, or with its section.
        borders = sorted(
            [end for _, end, _ in self.code]
            + [at for one in sections for at in (one.addr, one.addr + one.size)]
        )
        for address, after in itertools.zip_longest(self.addresses, self.addresses[1:]):
            i = bisect.bisect_right(borders, address)
            end = borders[i] if i < len(borders) else self.end
            self.ends.append(end if after is None else min(end, after))
        if table and table.name == ".dynsym":
            # A stripped library has the functions that it exports, and others between them.
            self.ends = [address + found[address].size for address in self.addresses]
        self.names = [found[address].name for address in self.addresses]
        is_kernel = any(one.name == KERNEL_START for one in symbols)
        plain = plain_names(self.names) if is_kernel else {}
        self.names = [plain.get(name) or SUFFIX.sub("", name) for name in self.names]
        self.restorers = {
            at for at, name in zip(self.addresses, self.names) if name == RESTORER_NAME
        }
        if not self.is_split:
            self.add_code(elf, sections)

    def take_names(self, debug: Symbols) -> None:
        """Takes the functions and objects of a file with debug information of the same program."""
        self.debug, self.has_symbols = debug, debug.has_symbols
        stubs = [(at, end, name) for at, end, name in zip(self.addresses, self.ends, self.names)]
        self.addresses, self.ends = list(debug.addresses), list(debug.ends)
        self.names, self.objects = list(debug.names), debug.objects
        self.restorers |= debug.restorers
        for stub in stubs:
            self.add(*stub)
        self.known_names = frozenset(self.names)

    def is_code(self, address: int) -> bool:
        return any(start <= address < end for start, end, _ in self.code)

    def read_table(self, symbols: list[Symbol]) -> dict[int, Symbol]:
        """Returns the best symbol of each function. Labels inside a function are none."""
        found: dict[int, Symbol] = {}
        for symbol in symbols:
            address = symbol.value
            if is_function(symbol) and self.is_code(address):
                found[address] = min(found.get(address, symbol), symbol, key=rank)
        end, labels = 0, []
        for address in sorted(found):
            symbol = found[address]
            if symbol.type != STT_NOTYPE:
                end = max(end, address + symbol.size)
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

    def add_code(self, elf: Elf, sections: list[Section]) -> None:
        """Adds functions that have no symbols, but are known by their code."""
        slots: dict[int, str] | None = None
        for section in sections if elf.machine == X86_64 else ():
            if section.type != SHT_PROGBITS:
                continue
            code, base = elf.content(section), section.addr
            for match in RESTORER.finditer(code):
                start = base + match.start()
                if start not in self.restorers:
                    if (at := self.index(start)) is not None and self.addresses[at] < start:
                        continue  # a function that calls the system by itself
                    self.restorers.add(start)
                    self.add(start, base + match.end(), RESTORER_NAME)
            if section.name.startswith(".plt"):
                slots = relocated_slots(elf, self) if slots is None else slots
                self.add_stubs(code, base, section.entsize, slots)

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

    def address_of_area(self, offset: int) -> int | None:
        """Returns the address in the ELF file of a mapping of code, which begins at this offset."""
        if self.is_split:
            return self.start & -PAGE_BYTES
        for start, end, first in self.code:
            if first & -PAGE_BYTES <= offset < first + end - start:
                return offset - first + start
        return None

    def object(self, address: int) -> str | None:
        """Returns the object at an address, such as a lock, with the distance from its start."""
        at = bisect.bisect_right(self.objects, (address, 1 << 64, "")) - 1
        if at < 0 or address >= self.objects[at][0] + self.objects[at][1]:
            return None
        start, _, name = self.objects[at]
        return f"{name}+{address - start:#x}" if address > start else name

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


def relocated_slots(elf: Elf, symbols: Symbols) -> dict[int, str]:
    """Returns the functions that the linker stores in slots of the global offset table."""
    found = {}
    for section in elf.of_type(SHT_RELA):
        table = elf.sections[section.link] if section.link < len(elf.sections) else None
        of_table = elf.symbols(table)
        for slot, number, addend in elf.relocations(section):
            name = None
            if 0 < number < len(of_table):
                name = of_table[number].name
            elif target := symbols.function(addend):
                name = target[1]
            if name:
                found[slot] = name
    return found
