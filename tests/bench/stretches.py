# SPDX-License-Identifier: BSD-2-Clause
"""
Measures the longest stretch with interrupts off while calls are made that concern all threads of a
process, or all processes, or that wake those that wait for one thing: few and many of them. A QEMU
plugin counts the instructions (tests/accuracy/).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/accuracy"))
import truth  # noqa: E402

FEW = 100
MOST = 8000
CROWDS = ("threads", "processes", "waiters", "parents")
MEMORY = "4G"  # a limit of 8,000 threads needs 2
LIMIT = 50_000
GROWTH_LIMIT = 2
WAKE_ALL = ("signalfd_read", "sleep")  # all look at a signal, as on Linux; wall time
# The program switches points on when all threads sleep, and sampling off when it is done.
WINDOW = ("points_begin", "source_apply")


def run(build: Path, words: str) -> tuple[int, dict[str, float]]:
    """Returns the longest stretch, and what each wake-up takes by the kind of wait."""
    append = f"profile.source=nmi profile.hz=100 profile.on_exit=none init=/bin/{words}"
    kernel, image = build / "vmlinux", build / "accuracy.cpio"
    counted, result = truth.observe(kernel, image, "nmi", append, window=WINDOW, mem=MEMORY)
    found = re.findall(r"bench: (\w+) (\d+) (\d+)", result.log)
    return counted.stretches[0].nr, {name: int(value) / int(nr) for name, value, nr in found}


def measure(build: Path) -> Iterator[tuple[str, float, float, str, float | None]]:
    """Yields name, instructions, instructions among few, note and limit of each row."""
    for crowd in CROWDS:
        (few, _), (many, _) = (run(build, f"crowd -- {crowd} {nr} calls") for nr in (FEW, MOST))
        note = f"longest stretch with interrupts off; {FEW} {crowd}; {MOST}"
        yield f"stretch_{crowd}", many, few, note, LIMIT
    (few, few_waits), (many, many_waits) = (run(build, f"herds -- {nr}") for nr in (FEW, MOST))
    note = f"the same; {FEW} threads that wait for the same; {MOST}"
    yield "stretch_herds", many, few, note, LIMIT
    for name, value in many_waits.items():
        limit = None if name in WAKE_ALL else GROWTH_LIMIT * few_waits[name]
        note = f"of each thread that is woken; {FEW} wait for the same; {MOST}"
        yield f"herd_{name}", value, few_waits[name], note, limit
