# SPDX-License-Identifier: BSD-2-Clause
"""
Measures operations among few and among many files, descriptors, sockets, processes and timers.
"""

from __future__ import annotations

from typing import Callable, Iterator

Run = dict[str, list[int]]

FEW = 100
# As many of each kind as there may be of most. RLIMIT_SIGPENDING bounds the timers.
KINDS = {
    "bench-crowds -- files": 20_000,
    "bench-crowds -- fds": 20_000,
    "bench-crowds -- sockets": 20_000,
    "bench-crowds -- locks": 20_000,
    "bench-processes -- processes": 20_000,
    "bench-processes -- timers": 16_000,
}
MEMORY = "8G"  # a limit of 20,000 processes needs 5
NR_OPERATIONS = 200
GROWTH_LIMIT = 2


def measure(
    boot: Callable[[str, str], Run],
) -> Iterator[tuple[str, float, float, str, float]]:
    """
    Yields name, instructions, instructions among few, note and limit of each row. boot(words, mem):
    runs the kernel, and returns the numbers of each `bench: <name>` line.
    """
    for words, most in KINDS.items():
        kind = words.split()[-1]
        few, many = (
            boot(
                f"profile.on_exit=none init=/bin/{words} {nr} {NR_OPERATIONS}",
                MEMORY,
            )
            for nr in (FEW, most)
        )
        for name, (instructions, nr) in many.items():
            value, first = instructions / nr, few[name][0] / few[name][1]
            note = f"{FEW} {kind}; {most}"
            yield f"{kind}_{name}", value, first, note, GROWTH_LIMIT * first
