#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes <generated/syscalls.h> from the system call table.

usage: syscalltbl.py SYSCALLS.TBL HEADER

The header has NR_SYSCALLS (highest number + 1), a prototype of each implementation, the numbers as
__NR_name, and three lists in ascending order of the numbers that have a name:
- SYSCALL_LIST(X) has X(number, name, function) for each call. The function is sys_ni if the call is
  not implemented.
- SYSCALL_DECODE_LIST(X) has X(number, name, classes, return, arguments...). Its words become
  LIVE_CLASS_<class>, LIVE_RET_<how> and LIVE_ARG(<type>, <table or argument>), which
  kernel/profile/strace/live/live.h defines. The compiler reports unknown ones.
- SYSCALL_PARAMS_LIST(X) has X(number, "(parameters)") for each call that has trace events. A table
  may lack this column.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ARGUMENT = re.compile(r"([a-z]+)(?::([a-z_0-9]+))?")
NO_ENTRY = "sys_ni"
PARAMETER = r"\w[\w *]*[ *]\w+"
PARAMETERS = re.compile(rf"\w*\((?:{PARAMETER}(?:, {PARAMETER})*)?\)")
MAX_ARGUMENTS = 6


class Call(NamedTuple):
    number: int
    name: str
    entry: str
    classes: list[str]
    parameters: str  # "" without events
    arguments: list[str]  # C's, as is ret
    ret: str


def parse_arguments(text: str) -> tuple[list[str], str] | str:
    """Returns the arguments and return value of the table's last column, or its problem."""
    ret = "dec"
    if text == "-":
        return ["LIVE_ARG(raw, 0)"], ret
    words = text.split(" ")
    if words[-2:-1] == ["->"]:
        ret = words[-1]
        words = words[:-2]
    if words == ["none"] or not words:
        words = []
    arguments = []
    for word in words:
        match = ARGUMENT.fullmatch(word)
        if not match:
            return f"{word!r} is no argument"
        kind, with_it = match.groups()
        if with_it is None:
            with_it = "0"
        elif not with_it.isdigit():
            with_it = f"LIVE_XLAT_{with_it}"
        elif int(with_it) >= len(words):
            return f"{word!r} points behind the arguments"
        arguments.append(f"LIVE_ARG({kind}, {with_it})")
    if len(arguments) > MAX_ARGUMENTS or not IDENTIFIER.fullmatch(ret):
        return f"{text!r} are no arguments"
    return arguments, ret


def parse(text: str, path: str) -> list[Call]:
    """Returns the calls of a table. Exits with the place of the first mistake."""
    calls: list[Call] = []
    for line_number, line in enumerate(text.splitlines(), 1):

        def fail(what: str) -> None:
            sys.exit(f"{path}:{line_number}: {what}")

        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) == 5:
            fields.append("-")
        if len(fields) != 6:
            columns = "<number>", "<name>", "<function or ->", "<classes>", "<arguments>"
            fail(f"not {' TAB '.join(columns)} TAB <parameters or ->")
        number, name, entry, classes, decoded, parameters = fields
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
        class_names = [] if classes == "-" else classes.split(",")
        if not all(map(IDENTIFIER.fullmatch, class_names)):
            fail(f"{classes!r} are no classes")
        arguments = parse_arguments(decoded)
        if isinstance(arguments, str):
            fail(arguments)
        if parameters == "-":
            parameters = ""
        elif not PARAMETERS.fullmatch(parameters):
            fail(f"{parameters!r} are no parameters")
        elif parameters.count(",") >= MAX_ARGUMENTS:
            fail(f"{parameters!r} are too many")
        calls.append(Call(int(number), name, entry, class_names, parameters, *arguments))
    if not calls:
        sys.exit(f"{path}: the table has no system calls")
    return calls


def render_decode(call: Call) -> str:
    classes = " | ".join(f"LIVE_CLASS_{name}" for name in call.classes) or "0"
    arguments = ", ".join([f"LIVE_RET_{call.ret}", *call.arguments])
    return f"\tX({call.number}, {call.name}, {classes}, {arguments})"


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
    out += ["", "#define SYSCALL_DECODE_LIST(X) \\"]
    rows = [render_decode(call) for call in calls]
    out += [row + " \\" for row in rows[:-1]] + rows[-1:]
    out += ["", "#define SYSCALL_PARAMS_LIST(X) \\"]
    rows = [f'\tX({call.number}, "{call.parameters}")' for call in calls if call.parameters]
    out += [row + " \\" for row in rows[:-1]] + rows[-1:]
    out += ["", "#endif"]
    return "\n".join(out) + "\n"


def main(argv: list[str]) -> None:
    if len(argv) != 3:
        sys.exit(__doc__)
    Path(argv[2]).write_text(render(parse(Path(argv[1]).read_text(), argv[1])))


if __name__ == "__main__":
    main(sys.argv)
