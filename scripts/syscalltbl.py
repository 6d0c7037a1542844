#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make <generated/syscalls.h> from the system call table.

usage: syscalltbl.py SYSCALLS.TBL HEADER

The header has NR_SYSCALLS (highest number + 1), a prototype of each implementation, the numbers
as __NR_name, and the list
SYSCALL_LIST(X) of X(number, name, function) in ascending order; the function is sys_ni for a call
that is not implemented. Numbers without a name are not in the list.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NO_ENTRY = "sys_ni"


class Call(NamedTuple):
    number: int
    name: str
    entry: str


def parse(text: str, path: str) -> list[Call]:
    """The calls of a table; exits with the place of the first mistake."""
    calls: list[Call] = []
    for line_number, line in enumerate(text.splitlines(), 1):

        def fail(what: str) -> None:
            sys.exit(f"{path}:{line_number}: {what}")

        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 3:
            fail("not <number> TAB <name> TAB <function or ->")
        number, name, entry = fields
        if not number.isascii() or not number.isdigit():
            fail(f"{number!r} is not a number")
        if not IDENTIFIER.fullmatch(name):
            fail(f"{name!r} is not a name")
        if entry == "-":
            entry = NO_ENTRY
        elif not IDENTIFIER.fullmatch(entry):
            fail(f"{entry!r} is neither a function nor -")
        if calls and int(number) <= calls[-1].number:
            fail(f"number {number} follows {calls[-1].number}")
        if any(call.name == name for call in calls):
            fail(f"{name} is there twice")
        calls.append(Call(int(number), name, entry))
    if not calls:
        sys.exit(f"{path}: no system call in it")
    return calls


def render(calls: list[Call]) -> str:
    entries = sorted({call.entry for call in calls} | {NO_ENTRY})
    out = [
        "/* SPDX-License-Identifier: BSD-2-Clause */",
        "/* Made by scripts/syscalltbl.py from arch/x86/entry/syscalls.tbl. */",
        "#ifndef GENERATED_SYSCALLS_H",
        "#define GENERATED_SYSCALLS_H",
        "",
        f"#define NR_SYSCALLS {calls[-1].number + 1}",
        "",
        "struct pt_regs;",
        "",
    ]
    out += [f"long {entry}(const struct pt_regs *regs);" for entry in entries]
    out += [""] + [f"#define __NR_{call.name} {call.number}" for call in calls]
    out += ["", "#define SYSCALL_LIST(X) \\"]
    rows = [f"\tX({call.number}, {call.name}, {call.entry})" for call in calls]
    out += [row + " \\" for row in rows[:-1]] + rows[-1:]
    out += ["", "#endif"]
    return "\n".join(out) + "\n"


def main(argv: list[str]) -> None:
    if len(argv) != 3:
        sys.exit(__doc__)
    Path(argv[2]).write_text(render(parse(Path(argv[1]).read_text(), argv[1])))


if __name__ == "__main__":
    main(sys.argv)
