#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prepares and checks the places at the start of functions where calls can be patched in.

usage: nm -ap vmlinux | function_places.py vmlinux

With -fpatchable-function-entry=5, each function begins with a place: five bytes of NOPs, whose
address is in section __patchable_function_entries. In the linked file, this script
- replaces the NOPs (five by GCC, one with another displacement by clang) by one of five bytes,
- sorts the addresses, for binary search,
- checks that each place is at the start of a function,
- checks that no two places are in the same 16 bytes (FUNCTION_ALIGN in <asm/function_call.h>),
- checks that functions which run during a patched call, or in the breakpoint exception while a
  place is being patched, have no place,
- checks that no function ends in a jump to a function with a place. The hook there would find the
  return address of the first function, which an earlier hook may have replaced.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
import kallsyms

SECTION = "__patchable_function_entries"
NOPS = re.compile(rb"\x90{5}|\x0f\x1f\x44\x00.", re.DOTALL)
NOP = b"\x0f\x1f\x44\x00\x00"  # SDM vol. 2, NOP
ALIGN = 16

# Hooks called from these functions would call themselves, or run too early or too late: not all
# registers of an exception are in memory yet, or its stack cannot be used twice. Functions called
# by those in NO_PLACE_BELOW must not have a place, either.
NO_PLACE: tuple[str, ...] = ("do_vector", "do_exception", "do_nmi", "do_double_fault")
NO_PLACE += ("do_machine_check",)
NO_PLACE += ("do_syscall_64",)  # recognized by its return address
NO_PLACE += ("text_patch_breakpoint",)  # calls resume_site() or function_resume() by a pointer
NO_PLACE_BELOW = ("resume_site", "function_resume")
# The same holds for the hooks, which are between these symbols.
HOOKS = ("function_calls_start", "function_calls_end")

FUNCTION = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
BRANCH = re.compile(r"\t(call|jmp|j[a-z]{1,3})q? +(?:0x)?[0-9a-f]+ <([^>+]+)(\+0x\w+)?>")
INDIRECT = re.compile(r"\t(?:call|jmp)q? +\*")


def read_calls(path: str) -> tuple[dict[str, set[str]], set[str], dict[str, str]]:
    """
    Returns the functions that each function calls or jumps to, the functions that do so through a
    register, and, for each function that is jumped to, one that jumps to it.
    """
    command = ["objdump", "-d", "--no-show-raw-insn", path]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    calls: dict[str, set[str]] = defaultdict(set)
    indirect = set()
    jumped_to = {}
    name = ""
    for line in lines:
        if match := FUNCTION.match(line):
            name = match[2]
        elif match := BRANCH.search(line):
            calls[name].add(match[2])
            if match[1] != "call" and not match[3]:
                jumped_to[match[2]] = name
        elif INDIRECT.search(line):
            indirect.add(name)
    return calls, indirect, jumped_to


def below(root: str, calls: dict[str, set[str]]) -> set[str]:
    found, todo = set(), [root]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += calls[name]
    return found


def check_functions(path: str, placed: set[str], where: dict[str, int]) -> list[str]:
    calls, indirect, jumped_to = read_calls(path)
    bad = [f"there is no {name}" for name in (*NO_PLACE, *NO_PLACE_BELOW) if name not in where]
    bad += [f"{name} must be notrace" for name in NO_PLACE if name in placed]
    bad += [f"{jumped_to[name]} jumps to {name}" for name in sorted(jumped_to.keys() & placed)]
    start, end = (where[name] for name in HOOKS)
    hooks = [name for name, addr in where.items() if start <= addr < end and name not in HOOKS]
    for root in (*NO_PLACE_BELOW, *hooks):
        found = below(root, calls)
        bad += [f"{name} must be notrace: {root} calls it" for name in sorted(found & placed)]
        bad += [f"{name} calls by a register, below {root}" for name in sorted(found & indirect)]
    return bad


def main(path: str) -> None:
    nm = kallsyms.parse_nm(sys.stdin)
    where = {symbol.name: symbol.addr for symbol in nm}
    names = defaultdict(set)
    for symbol in nm:
        if symbol.kind in "tTW":
            names[symbol.addr].add(symbol.name)
    data = bytearray(Path(path).read_bytes())
    elf = kallsyms.Elf(bytes(data))
    start, end = where[f"__start_{SECTION}"], where[f"__stop_{SECTION}"]
    at = elf.offset(start)
    nr = (end - start) // 8
    places = sorted(struct.unpack_from(f"<{nr}Q", data, at))
    struct.pack_into(f"<{nr}Q", data, at, *places)

    bad = []
    placed = set()
    for place in places:
        code = elf.offset(place)
        if not NOPS.match(data, code) or place not in names:
            bad.append(f"{place:#x} is not at the start of a function")
        data[code : code + 5] = NOP
        placed |= names[place]
    units = {place // ALIGN for place in places}
    if len(units) != nr or not nr:
        bad.append(f"{nr} places in {len(units)} units of {ALIGN} bytes")
    bad += check_functions(path, placed, where)
    if bad:
        sys.exit("\n".join(["function-places:", *bad[:10]]))
    Path(path).write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
