#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the kernel's table of the code that runs without a stack frame.

usage: frameless.py empty                      >table.S
       nm -ap vmlinux | frameless.py generate vmlinux >table.S

The compiler's call frame information says at which instructions a function has no frame yet, or no
longer: where the canonical frame address (CFA; DWARF 5, 6.4) depends on the stack pointer. The
table, read by arch/x86/kernel/stacktrace.c, has these ranges, but not the single instructions that
have their own opcodes: the two that make a frame, and RET. Assembly has no such information; of
its functions, those that make no frame at all are in the table.

  frameless_ranges  u32[][2]  start and end, minus KERNEL_VIRT of <asm/page.h>, ascending; the
                              last one is at the end of all addresses
  frameless_pages   u32[]     for each 4 KiB from KERNEL_VIRT on, the first range that ends behind
                              its start

So the cost of a look-up does not depend on functions elsewhere.
"""

from __future__ import annotations

import bisect
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

sys.dont_write_bytecode = not sys.pycache_prefix
import function_places
import kallsyms

FUNCTION = re.compile(r".* FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)$")
ROW = re.compile(r"([0-9a-f]{16}) (\S+)")
RET, MOV_RSP_RBP = b"\xc3", b"\x48\x89\xe5"
# PUSH %rbp, also behind a place for a call (function_places.py).
PUSH_RBP = re.compile(b"(?:" + function_places.NOPS.pattern + rb")?\x55", re.DOTALL)
# Between functions, and before the targets of jumps (SDM vol. 2, NOP).
PADDING = re.compile(
    rb"(?:\x66*\x2e?(?:\x90|\x0f\x1f(?:\x00|\x40.|\x44..|\x80.{4}|\x84.{5})))*", re.DOTALL
)
PROLOGUE_BYTES = 40  # an assembly function with a frame makes it within its first 40 bytes
PAGE = 4096
# The CFA if the return address is on top of the stack, and if it is one word above the top.
FIRST, SECOND = "rsp+8", "rsp+16"


class Row(NamedTuple):
    start: int
    end: int
    cfa: str


def read_rows(path: str) -> tuple[list[Row], set[int]]:
    """Returns the rows of readelf's table, and the starts of the functions that have some."""
    command = ["readelf", "-wF", path]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"frameless: {error}")
    rows, functions, in_function = [], set(), False
    for line in result.stdout.splitlines():
        if match := FUNCTION.match(line):
            rows.append(Row(int(match[1], 16), int(match[2], 16), FIRST))
            functions.add(rows[-1].start)
            in_function = True
        elif " CIE " in line:
            in_function = False
        elif in_function and (match := ROW.match(line)):
            start, end, cfa = rows.pop()
            at = int(match[1], 16)
            rows += [Row(start, at, cfa)] if at > start else []
            rows.append(Row(at, end, match[2]))
    return rows, functions


def of_compiled_code(rows: Iterable[Row], elf: kallsyms.Elf) -> Iterator[tuple[int, int]]:
    for start, end, cfa in rows:
        if cfa.startswith("rbp"):
            continue
        if cfa not in (FIRST, SECOND):
            sys.exit(f"frameless: no frame at {start:#x}, but pushed registers: CFA is {cfa}")
        code = elf.read(start, end - start)
        if code[:1] == RET:
            start, code = start + 1, code[1:]  # another path through the function, or nothing
            if PADDING.fullmatch(code):
                continue
        if code != MOV_RSP_RBP and not PUSH_RBP.fullmatch(code):
            yield start, end


def of_assembly(
    table: list[kallsyms.Symbol], compiled: set[int], end: int, elf: kallsyms.Elf
) -> Iterator[tuple[int, int]]:
    ends = [symbol.addr for symbol in table[1:]] + [end]
    for (start, _), end in zip(table, ends):
        if start not in compiled and MOV_RSP_RBP not in elf.read(
            start, min(end - start, PROLOGUE_BYTES)
        ):
            yield start, end


def merge(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def render(ranges: list[tuple[int, int]], text_end: int) -> str:
    """Returns the table as assembly."""
    base = kallsyms.KERNEL_VIRT
    words = [at - base for each in ranges for at in each] + [0xFFFFFFFF] * 2
    ends = [end for _, end in ranges]
    pages = [bisect.bisect_right(ends, page) for page in range(base, text_end, PAGE)]
    out = ['\t.section .rodata.kallsyms, "a"']
    out += kallsyms.block("frameless_ranges", [f"\t.long {word:#x}" for word in words])
    out += kallsyms.block("frameless_pages", [f"\t.long {index}" for index in pages])
    return "\n".join(out) + "\n"


def generate(path: str, nm_lines: Iterable[str]) -> tuple[list[tuple[int, int]], int]:
    """Returns start and end of each range, and the end of the text."""
    nm = kallsyms.parse_nm(nm_lines)
    (text_end,) = (symbol.addr for symbol in nm if symbol.name == "_etext")
    elf = kallsyms.Elf(Path(path).read_bytes())
    rows, compiled = read_rows(path)
    table = kallsyms.text_symbols(nm)
    assembly = of_assembly(table, compiled, text_end, elf)
    return merge([*of_compiled_code(rows, elf), *assembly]), text_end


def main(argv: list[str]) -> None:
    match argv[1:]:
        case ["empty"]:
            sys.stdout.write(render([], kallsyms.KERNEL_VIRT))
        case ["generate", path]:
            sys.stdout.write(render(*generate(path, sys.stdin)))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv)
