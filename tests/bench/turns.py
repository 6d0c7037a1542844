# SPDX-License-Identifier: BSD-2-Clause
"""
Runs a list of operations in every variant of the kernel on several CPUs, which take turns under
-icount. A run that does not finish is an error. The time of one operation has a limit: an unmap
while threads on all other CPUs compute.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Callable, Iterator

Run = dict[str, list[int]]

VARIANTS = Path(__file__).resolve().parents[2] / "arch/x86/variants"
NR_CPUS = (2, 4, 8)
NR_OPERATIONS = 20
TURN_CYCLES = 10_000_000  # the longest turn of a CPU, 10 ms under -icount
# A run whose lines lack one of these did not finish it, which is an error.
OPERATIONS = (
    *("fork", "exec", "read_page", "read_byte", "pipe_page", "signal"),
    *("pairs", "pairs_touched", "unmap", "turn", "wait"),
)


def variants() -> list[str]:
    return sorted(re.findall(r"^profile-\w+", VARIANTS.read_text(), re.MULTILINE))


def measure(
    variant: str, boot: Callable[[str, int], Run]
) -> Iterator[tuple[str, float, str, float]]:
    """
    Yields name, instructions, note and limit of each row. boot(words, nr_cpus): runs the variant's
    kernel, and returns the numbers of each `bench: <name>` line.
    """
    for nr_cpus in NR_CPUS:
        limit = nr_cpus * TURN_CYCLES
        limit_ms = (NR_OPERATIONS + nr_cpus) * limit // 1_000_000
        run: Run = {}
        for user in (
            f"bench-events -- linux {NR_OPERATIONS}",
            f"bench-areas -- threads {nr_cpus} {NR_OPERATIONS}",
            f"turns -- {nr_cpus - 1} {NR_OPERATIONS} {limit_ms}",
        ):
            run |= boot(f"profile.on_exit=none init=/bin/{user}", nr_cpus)
        cycles = {name: run[name][0] / run[name][1] for name in OPERATIONS}
        note = "unmap of 1 MiB, or wait for a turn; the other CPUs compute"
        worst = max(cycles["unmap"], cycles["wait"])
        yield f"turns_{variant.removeprefix('profile-')}_{nr_cpus}", worst, note, limit
