# SPDX-License-Identifier: BSD-2-Clause
"""What `make check-perf` adds to an export: the costs of operations, and the kernel's code.

tests/user/profile/operations.c prints the costs. The code of each function is a count of
instructions and a checksum of them, without addresses, so that two kernels can be compared by name.
"""

from __future__ import annotations

import re
import subprocess
import zlib
from pathlib import Path

COST = re.compile(r"^operation: (.+): (\d+) (\d+)$", re.MULTILINE)
FUNCTION = re.compile(r"^<(.+)>:$")
# Operands that change if the linker moves code or data: displacements, virtual and physical
# addresses, constants that the compiler computes from them, and offsets from another symbol.
ADDRESS = re.compile(
    r"-?0x[0-9a-f]+(?=\(%rip\))|-?0x(?:[0-9a-f]{4,8})?[7-9a-f][0-9a-f]{7}\b|"
    r"\$?0x[2-7][0-9a-f]{5}\b|# <.*\+0x.*>"
)
# Instructions that only align code. The NOP of 5 bytes is left out: it may be a static key.
PADDING = re.compile(r"int3|nopw|cs nopw|data16|xchg +%ax,%ax|nopl +(0x0)?\(%rax\)$")


def costs(log: str) -> list[dict]:
    """Returns the rows that the program has printed on the console."""
    found = COST.findall(log.replace("\r", ""))
    return [{"operation": a, "rounds": int(b), "instructions": int(c)} for a, b, c in found]


def digest(name: str, lines: list[str]) -> list[int]:
    code = [ADDRESS.sub("", line) for line in lines if not PADDING.match(line.lstrip())]
    while code and code[-1].lstrip().startswith("nop"):
        code.pop()
    return [len(code), zlib.crc32("\n".join(code).replace(f"<{name}+", "<+").encode())]


def functions(kernel: Path) -> dict[str, list[int]]:
    """Returns [instructions, checksum] of each function; nothing without objdump."""
    command = ["objdump", "-d", "--no-show-raw-insn", "--no-addresses", str(kernel)]
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    bodies: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            lines = bodies.setdefault(match[1], [])
        elif line:
            lines.append(line)
    return {name: digest(name, body) for name, body in bodies.items()}


def changed(old: dict, new: dict) -> list[str]:
    """
    Returns the functions whose code differs, with the instructions added or removed, to which a
    NOP for an alignment can belong. Those that only one kernel has come last.
    """
    found = []
    for name in sorted(old.keys() ^ new.keys() | {n for n in old if old[n] != new.get(n)}):
        more = new.get(name, [0])[0] - old.get(name, [0])[0]
        found.append((name in old and name in new, f"{name} ({more:+d})" if more else name))
    return [text for _, text in sorted(found, key=lambda one: not one[0])]
