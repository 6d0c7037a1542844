# SPDX-License-Identifier: BSD-2-Clause
"""
Measures the longest stretch with interrupts off while calls are made that concern all threads of a
process, or all processes: few and many of them. A QEMU plugin counts the instructions
(tests/accuracy/).
"""

from __future__ import annotations

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
# The program switches points on when all threads sleep, and sampling off when it is done.
WINDOW = ("points_begin", "source_apply")


def longest(build: Path, crowd: str, nr: int) -> int:
    append = "profile.source=nmi profile.hz=100 profile.on_exit=none "
    append += f"init=/bin/crowd -- {crowd} {nr} calls"
    kernel, image = build / "vmlinux", build / "accuracy.cpio"
    counted, _ = truth.observe(kernel, image, "nmi", append, window=WINDOW, mem=MEMORY)
    return counted.stretches[0].nr


def measure(build: Path) -> Iterator[tuple[str, float, float, str, float]]:
    """Yields name, instructions, instructions among few, note and limit of each row."""
    for crowd in CROWDS:
        few, many = (longest(build, crowd, nr) for nr in (FEW, MOST))
        note = f"longest stretch with interrupts off; {FEW} {crowd}; {MOST}"
        yield f"stretch_{crowd}", many, few, note, LIMIT
