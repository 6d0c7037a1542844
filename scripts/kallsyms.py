#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes and checks the kernel's table of its own function names.

usage: kallsyms.py empty            >table.S
       nm -ap vmlinux | kallsyms.py generate >table.S
       nm -ap vmlinux | kallsyms.py verify vmlinux

The table, in section .rodata.kallsyms, read by kernel/kallsyms.c:
  kallsyms_nr            u32      number of symbols
  kallsyms_offsets       u32[nr]  address - KERNEL_VIRT of <asm/page.h>, ascending
  kallsyms_name_offsets  u32[nr]  offset of the name in kallsyms_names
  kallsyms_names         NUL-terminated names
There is one name for each address of a function in [_stext, _etext): the first global one in
alphabetical order, else the first local one. A name that more than one function has is followed by
its file, as in `alloc@slab`, for readers that have no addresses to tell the functions apart. What
compilers append to the names of copies and parts that they make, as in `send.constprop.0`, is left
out, unless there is a function `send`, too. legoprof names kernel functions in the same way. (In
programs, it and the kernel leave these endings out in any case.)
"""

from __future__ import annotations

import re
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Iterable, NamedTuple

KERNEL_VIRT = 0xFFFFFFFF81000000
BOUNDS = ("_stext", "_etext")
SUFFIX = re.compile(r"(?<=.)\.(constprop|isra|part|lto_priv|llvm)\.\d.*")


class Symbol(NamedTuple):
    addr: int
    name: str


class NmSymbol(NamedTuple):
    addr: int
    kind: str
    name: str
    file: str  # of a local symbol, without its suffix


def parse_nm(lines: Iterable[str]) -> list[NmSymbol]:
    """Returns every defined symbol of nm -ap, where files precede their local symbols."""
    out = []
    file = ""
    for line in lines:
        fields = line.split()
        if len(fields) != 3:
            continue
        addr, kind, name = fields
        if kind == "a" and not int(addr, 16):
            file = Path(name).stem
        else:
            out.append(NmSymbol(int(addr, 16), kind, name, file if kind.islower() else ""))
    return out


def is_function(name: str) -> bool:
    """Returns false for local labels and sections."""
    return not name.startswith((".", "$"))


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """Returns the names without what compilers append, where that leaves no two names equal."""
    plain = {name: SUFFIX.sub("", name) for name in names}
    nr = Counter(plain.values())
    return {name: short if nr[short] == 1 else name for name, short in plain.items()}


def text_symbols(nm: list[NmSymbol]) -> list[Symbol]:
    """Returns the symbols that belong in the table, in its order."""
    bounds = {symbol.name: symbol.addr for symbol in nm if symbol.name in BOUNDS}
    if len(bounds) != 2:
        missing = [b for b in BOUNDS if b not in bounds]
        sys.exit(f"kallsyms: the linker script defines no {' and no '.join(missing)}")
    start, end = bounds["_stext"], bounds["_etext"]
    if not KERNEL_VIRT <= start < end <= KERNEL_VIRT + 0xFFFFFFFF:
        sys.exit(f"kallsyms: [_stext, _etext) = [{start:#x}, {end:#x}) is not kernel text")

    candidates = [
        # A function of any kind comes before _stext, a global one before a local one.
        (addr, name in BOUNDS, kind.islower(), name, file)
        for addr, kind, name, file in nm
        if kind in "tTW" and start <= addr < end and is_function(name)
    ]
    firsts = {addr: (name, file) for addr, _, _, name, file in reversed(sorted(candidates))}
    plain = plain_names(name for name, _ in firsts.values())
    counted = Counter(name for name, _ in firsts.values())
    return [
        Symbol(addr, f"{plain[name]}@{file}" if counted[name] > 1 and file else plain[name])
        for addr, (name, file) in sorted(firsts.items())
    ]


def block(label: str, lines: Iterable[str], align: int = 4) -> list[str]:
    return [f"\t.balign {align}", f"\t.globl {label}", f"{label}:", *lines]


def render(table: list[Symbol]) -> str:
    """Returns the table as assembly."""
    name_offsets, at = [], 0
    for sym in table:
        name_offsets.append(at)
        at += len(sym.name.encode()) + 1

    out = ['\t.section .rodata.kallsyms, "a"']
    out += block("kallsyms_nr", [f"\t.long {len(table)}"])
    out += block("kallsyms_offsets", [f"\t.long {sym.addr - KERNEL_VIRT:#x}" for sym in table])
    out += block("kallsyms_name_offsets", [f"\t.long {offset}" for offset in name_offsets])
    out += block("kallsyms_names", [f'\t.asciz "{sym.name}"' for sym in table] + ["\t.byte 0"], 1)
    out += ['\t.section .note.GNU-stack, "", @progbits']
    return "\n".join(out) + "\n"


class Elf:
    """Reads a 64-bit little-endian ELF file by virtual address."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            sys.exit("kallsyms: not a 64-bit little-endian ELF file")
        (phoff,) = struct.unpack_from("<Q", data, 32)
        phentsize, phnum = struct.unpack_from("<HH", data, 54)
        self.data = data
        self.loads = []
        for i in range(phnum):
            header = struct.unpack_from("<IIQQQQ", data, phoff + i * phentsize)
            kind, _, offset, vaddr, _, filesz = header
            if kind == 1:
                self.loads.append((vaddr, offset, filesz))

    def offset(self, addr: int) -> int:
        for vaddr, offset, filesz in self.loads:
            if vaddr <= addr < vaddr + filesz:
                return offset + addr - vaddr
        sys.exit(f"kallsyms: nothing in the file is loaded at {addr:#x}")

    def read(self, addr: int, count: int) -> bytes:
        at = self.offset(addr)
        return self.data[at : at + count]

    def u32s(self, addr: int, count: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{count}I", self.data, self.offset(addr)) if count else ()

    def string(self, addr: int) -> str:
        at = self.offset(addr)
        return self.data[at : self.data.index(b"\0", at)].decode()


def decode(elf: Elf, nm: list[NmSymbol]) -> list[Symbol]:
    """Returns the table embedded in a linked kernel, read as the kernel reads it."""
    where = {symbol.name: symbol.addr for symbol in nm if symbol.name.startswith("kallsyms_")}
    (count,) = elf.u32s(where["kallsyms_nr"], 1)
    offsets = elf.u32s(where["kallsyms_offsets"], count)
    name_offsets = elf.u32s(where["kallsyms_name_offsets"], count)
    return [
        Symbol(KERNEL_VIRT + offset, elf.string(where["kallsyms_names"] + name_offset))
        for offset, name_offset in zip(offsets, name_offsets)
    ]


def differences(embedded: list[Symbol], expected: list[Symbol]) -> list[str]:
    """Returns a line for each difference between the embedded table and the output of nm."""
    out = []
    if embedded != sorted(embedded):
        out.append("the addresses do not ascend")
    for what, here, there in (
        ("only in the table", embedded, expected),
        ("not in the table", expected, embedded),
    ):
        out += [f"{what}: {s.addr:#x} {s.name}" for s in sorted(set(here) - set(there))]
    if not expected:
        out.append("the kernel has no function")
    return out


def main(argv: list[str]) -> None:
    match argv[1:]:
        case ["empty"]:
            sys.stdout.write(render([]))
        case ["generate"]:
            sys.stdout.write(render(text_symbols(parse_nm(sys.stdin))))
        case ["verify", path]:
            nm = parse_nm(sys.stdin)
            bad = differences(decode(Elf(Path(path).read_bytes()), nm), text_symbols(nm))
            if bad:
                more = [f"... and {len(bad) - 10} more"] if len(bad) > 10 else []
                sys.exit("\n".join(["kallsyms: table and nm differ:", *bad[:10], *more]))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv)
