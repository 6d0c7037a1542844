# SPDX-License-Identifier: BSD-2-Clause
"""Measures operations on an address space of many areas, and on one that many threads change."""

from __future__ import annotations

from typing import Callable, Iterator

Run = dict[str, list[int]]

NR_OPERATIONS = 1000
# Debian's Linux 6.1.192-2 with mitigations=off, measured the same way with the same program.
LINUX_COSTS = {
    100: {"unmap": 11_159, "map": 7_459, "fault": 7_264, "fork": 836_931},
    1000: {"unmap": 13_018, "map": 11_516, "fault": 7_597, "fork": 4_513_973},
    20000: {"unmap": 17_111, "map": 14_249, "fault": 7_879, "fork": 82_310_402},
}
GROWTH_LIMIT = 2  # times the cost of the operation with 100 areas


def per_event(run: Run, name: str) -> float:
    cycles, nr = run[name]
    return cycles / nr


def measure(
    boot: Callable[[str, int], Run],
) -> Iterator[tuple[str, float, float, str, float | None]]:
    """
    Yields name, instructions, reference, note and limit of each row. boot(words, nr_cpus): runs the
    kernel, and returns the numbers of each `bench: <name>` line.
    """
    user = "profile.on_exit=none init=/bin/bench-areas --"
    first: dict[str, float] = {}
    for nr_areas, linux in LINUX_COSTS.items():
        run = boot(f"{user} areas {nr_areas} {NR_OPERATIONS}", 1)
        for name, reference in linux.items():
            value, limit = per_event(run, name), float(reference)
            if name != "fork":
                limit = min(limit, GROWTH_LIMIT * first.setdefault(name, value))
            note = f"Linux 6.1; {nr_areas} areas of one page"
            yield f"areas_{name}_{nr_areas}", value, reference, note, limit
    alone, together = (boot(f"{user} threads {nr} {NR_OPERATIONS}", 8) for nr in (1, 8))
    for name, what in (("pairs", "mmap, munmap"), ("pairs_touched", "mmap, write, munmap")):
        note = f"one thread; {what} of a page by 8 threads, all CPUs"
        yield f"areas_{name}", per_event(together, name), per_event(alone, name), note, None
