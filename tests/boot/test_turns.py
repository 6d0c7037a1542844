# SPDX-License-Identifier: BSD-2-Clause
"""
Several CPUs under -icount take turns on one thread of the host. Each one makes progress, in every
configuration, and no turn is longer than 10 ms of the guest's time. The limits are in that time, so
they do not depend on the host.
"""

import re

import pytest
import report

MS = 1_000_000  # TSC cycles
TURN_MS = 10


@pytest.mark.parametrize(
    "variant, append",
    [
        ("profile-none", ""),
        (None, ""),
        ("profile-none", "tick_hz=2"),
    ],
)
def test_every_cpu_makes_progress(boot, variant, append):
    """Three threads compute without a pause, and a fourth one unmaps memory, then computes too."""
    nr_cpus, nr_unmaps = 4, 20
    limit_ms = (nr_unmaps + 10 + nr_cpus) * nr_cpus * TURN_MS
    options = dict(variant=variant, smp=nr_cpus, icount=True, append=append)
    log = boot("turns", nr_cpus - 1, nr_unmaps, limit_ms, **options).log
    found = re.findall(r"bench: (\w+) (\d+) (\d+)", log)
    cycles = {name: int(value) / int(nr) for name, value, nr in found}
    assert cycles["turn"] <= TURN_MS * MS
    assert cycles["wait"] <= nr_cpus * TURN_MS * MS
    assert cycles["unmap"] <= nr_cpus * TURN_MS * MS
    # The kernel cannot know who waits for a turn, so each report says once that times include it.
    says = f"profile: {nr_cpus} CPUs take turns in this emulator: times and samples include waits"
    assert log.count(says) == log.count("take turns in") == len(report.parse(log))
    assert "host gave the CPU no time" not in log
