# SPDX-License-Identifier: BSD-2-Clause
"""
Finds out how many samples, waits or counted calls of an export are missing. Events have their own
gaps.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from profiles.export import Export

MAX_COUNT = 1 << 48


@dataclass
class Losses:
    what: str = "samples"
    lost: Counter[int | None] = field(default_factory=Counter)  # by CPU; None: unknown
    expected: Counter[int | None] = field(default_factory=Counter)  # lost or not

    def __str__(self) -> str:
        """Returns what was lost, in words; nothing if nothing was."""
        nr, expected = self.lost.total(), self.expected.total()
        share = f" ({100 * nr / expected:.2f} %)" if expected else ""
        return f"{nr} of {expected} {self.what} were lost{share}" if nr else ""

    def keep_cpus(self, cpus: frozenset[int]) -> None:
        for one in self.lost, self.expected:
            for cpu in [cpu for cpu in one if cpu is not None and cpu not in cpus]:
                del one[cpu]


def count(row: dict, key: str) -> int:
    """Returns a count; 0 if it is missing, as in exports of older kernels, or damaged."""
    value = row.get(key)
    return value if type(value) is int and 0 <= value < MAX_COUNT else 0


def of_samples(export: Export) -> Losses:
    """Counts samples that were not taken in time, or had no room in the store."""
    found = Losses()
    for row in export.rows("source.json"):
        cpu = count(row, "cpu")
        found.lost[cpu] += count(row, "lost") + count(row, "self")
        found.expected[cpu] += count(row, "expected")
    for row in export.rows("cpus.json"):
        found.lost[count(row, "cpu")] += count(row, "dropped")
    return found


def of_notes(export: Export, what: str, stored: str, noted: str, pattern: str) -> Losses:
    """stored: the file with the rows that are there. noted: that with a note of the others."""
    found = Losses(what)
    notes = [note for table in export.files.get(noted, []) for note in table.notes]
    lost = sum(int(nr) for note in notes for nr in re.findall(pattern, note))
    found.lost[None] = lost
    found.expected[None] = lost + sum(count(row, what) for row in export.rows(stored))
    return found


def of_waits(export: Export) -> Losses:
    """The note is in kernel/profile/waits/report.c."""
    pattern = r"not in the store: (\d{1,14}) waits"
    return of_notes(export, "waits", "waits_stacks.json", "waits.json", pattern)


def of_memory(export: Export) -> Losses:
    """The note is in kernel/profile/memory/chains_report.c."""
    pattern = r"not in the store: (\d{1,14}) pages"
    return of_notes(export, "pages", "memory_stacks.json", "memory_chains.json", pattern)


def of_calls(export: Export) -> Losses:
    """The note is in kernel/profile/functions/report.c."""
    file = "function_calls.json"
    return of_notes(export, "calls", file, file, r"no room for (\d{1,14}) calls")
