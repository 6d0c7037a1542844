# SPDX-License-Identifier: BSD-2-Clause
"""
Measures what the sampling of used memory costs a program that uses 12 MiB of its 64 MiB again and
again: of its time, and for each page that is sampled. TLB misses are no instructions, so the misses
after a flush are not in it.
"""

from __future__ import annotations

from typing import Callable, Iterator

Run = dict[str, list[int]]

NR_ROUNDS = 60_000  # 1.1 s
SLOWDOWN_LIMIT = 1  # percent; the sampler's own limit is 1 % of one CPU
SAMPLE_LIMIT = 1200


def measure(boot: Callable[[str], Run]) -> Iterator[tuple[str, float, str, str, float]]:
    """
    Yields name, value, unit, note and limit of each row. boot(words): runs the kernel, and returns
    the numbers of each `bench: <name>` line.
    """
    user = f"profile.on_exit=none init=/bin/bench-events -- memory {NR_ROUNDS}"
    off, on = (boot(f"profile.working_set={word} {user}") for word in ("off", "on"))
    without, more = off["memory"][0], on["memory"][0] - off["memory"][0]
    nr_samples = on["samples"][0]
    note = f"{without} instructions without; 12 of 64 MiB used"
    yield "working_set_slowdown", 100 * more / without, "%", note, SLOWDOWN_LIMIT
    note = f"with wake-ups, flushes, and visits of all pages; {nr_samples} samples"
    yield "working_set_sample", more / nr_samples, "instructions", note, SAMPLE_LIMIT
