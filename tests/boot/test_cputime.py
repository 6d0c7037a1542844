# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's accounts of CPU time against a plugin that counts instructions by crossing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest
import report
from harness import BUILD, ROOT, qemu

sys.path.insert(0, str(ROOT / "tests/accuracy"))
import truth  # noqa: E402

# Instructions outside the two reads of the clock, which count for whom the entry interrupts.
CALL_EDGES = 25
VECTOR_EDGES = 35
SWITCH_EDGES = 400  # between schedule()'s read of the clock and the switch
OWNERS = ["user", "call", "fault", "exception", "irq", "nmi"]


@dataclass
class Counts:
    """What the plugin has counted so far."""

    nr: dict[str, int]  # instructions, by owner
    nr_begun: dict[str, int]
    nr_switches: int  # between threads of different owners

    def since(self, before: Counts) -> Counts:
        return Counts(
            subtract(self.nr, before.nr),
            subtract(self.nr_begun, before.nr_begun),
            self.nr_switches - before.nr_switches,
        )


def subtract(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {key: a[key] - b[key] for key in a}


def plugin_counts(text: str) -> list[Counts]:
    rows = [[int(word) for word in line.split()] for line in text.splitlines()]
    return [
        Counts(dict(zip(OWNERS, row[1::2])), dict(zip(OWNERS, row[2::2])), row[0]) for row in rows
    ]


def kernel_cycles(log: str) -> dict[str, dict[str, int]]:
    """Returns the cycles of each owner before each kind of work. A cycle is an instruction."""
    found: dict[str, dict[str, int]] = {}
    for line in re.findall(r'^\{"(?:before|owner)".*\}', log, re.MULTILINE):
        row = json.loads(line)
        if "before" in row:
            found[row["before"]] = rows = {}
        else:
            rows[row["owner"]] = row["cycles"]
    return found


def by_plugin_owner(cycles: dict[str, int]) -> dict[str, int]:
    """The kernel also divides what the plugin sees as system calls."""
    owners = ["user code", "page faults", "other exceptions", "interrupts", "NMIs"]
    user, fault, exception, irq, nmi = (cycles[owner] for owner in owners)
    call = sum(cycles.values()) - user - fault - exception - irq - nmi
    return dict(zip(OWNERS, (user, call, fault, exception, irq, nmi)))


def run(builds, tmp_path, append: str) -> tuple[str, list[Counts]]:
    builds.tools("crossings.so")
    kernel, out = builds.kernel(), tmp_path / "crossings"
    addr = truth.Symbols(kernel).addr
    at = {
        "syscall": "syscall_entry",
        "stubs": "entry_stubs",
        "nmi": "nmi_entry",
        "switch": "switch_stack",
        "mark": "cputime_of_machine",
    }
    words = [f"{word}={addr[name]:#x}" for word, name in at.items()] + [f"out={out}"]
    options = qemu.Options(
        kernel=kernel,
        initrd=builds.initrd("accuracy.cpio"),
        icount=True,
        append=f"{append} profile.on_exit=run init=/bin/owners",
        extra=["-plugin", ",".join([str(BUILD / "accuracy/crossings.so"), *words])],
        timeout=200,
    )
    result = qemu.run(options)
    assert result.ok, result.error
    return result.log, plugin_counts(out.read_text())


def check_work(work: str, counts: Counts, cycles: dict[str, int]) -> None:
    """
    The owners have all of the time, exactly. An owner lacks the edges of its own entries and
    returns, and has those of what it is interrupted by.
    """
    kernel = by_plugin_owner(cycles)
    assert sum(kernel.values()) == sum(counts.nr.values()), work
    edges = {  # and one of the two instructions that read the clock
        owner: nr * (1 + (CALL_EDGES if owner == "call" else VECTOR_EDGES))
        for owner, nr in counts.nr_begun.items()
    }
    switches = counts.nr_switches * SWITCH_EDGES
    for owner in OWNERS:
        others = sum(edges.values()) - edges[owner]
        more = kernel[owner] - counts.nr[owner]
        assert -edges[owner] - switches <= more <= others + switches, (work, owner)
        if not counts.nr_begun[owner]:
            assert owner == "user" or not kernel[owner], (work, owner)


# For each kind of work, the least number of calls, faults and so on that begin.
WORKS = {
    "calls": {"call": 3000},
    "forks": {"call": 90, "fault": 60},
    "execs": {"call": 100, "fault": 300},
    "ping-pong": {"call": 800},
    "preemption": {"irq": 4},
    "signals": {"call": 600, "exception": 100, "irq": 10},
    "faults": {"fault": 1000},
}


@pytest.mark.parametrize(
    "append, vectors",
    [
        ("profile.hz=20000", "irq"),
        ("profile.source=nmi profile.hz=20000", "nmi"),
        ("profile.heatmap=off profile.strace=off profile.waits=off", None),
    ],
)
def test_owners_have_what_a_plugin_counts(builds, tmp_path, append, vectors):
    """
    The kernel's accounts of all kinds of work are those of the plugin, except for the instructions
    at the edges. The threads of all processes together have what the CPU has.
    """
    log, counts = run(builds, tmp_path, append)
    cycles = kernel_cycles(log)
    assert [*cycles] == [*WORKS, "the end"]
    steps = zip(cycles.values(), [*cycles.values()][1:], counts, counts[1:])
    for work, (cycles_before, cycles_after, before, after) in zip(WORKS, steps):
        found = after.since(before)
        for owner, least in WORKS[work].items():
            assert found.nr_begun[owner] >= least, (work, owner)
        check_work(work, found, subtract(cycles_after, cycles_before))
    if vectors:
        assert counts[-1].nr_begun[vectors] > 200
    parts = report.parse(log)[-1].summary.cpu_parts
    for owner in "user code", "page faults", "other exceptions":
        rest_ns = 1000 * parts[owner] - cycles["the end"][owner]
        assert -1000 <= rest_ns <= 10000, owner


def instructions(kernel, symbol: str) -> list[str]:
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={symbol}", str(kernel)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s*[0-9a-f]+:\s+(\w+)", text, re.MULTILINE)


@pytest.mark.parametrize(
    "entry, leave, nr_before, most",
    [
        ("syscall_entry", "syscall_entry", 0, CALL_EDGES),
        ("syscall_entry", "return_to_user", 0, CALL_EDGES),
        ("vector_entry", "return_to_user", 3, VECTOR_EDGES),  # behind a stub of up to 3
        ("vector_entry", "vector_entry", 4, VECTOR_EDGES),  # one jump more, from the kernel
        ("nmi_entry", "nmi_entry", 0, VECTOR_EDGES),
    ],
)
def test_the_clock_is_read_at_the_edge(builds, entry, leave, nr_before, most):
    """Few instructions lie before the first read of the clock and after the last one."""
    first, last = (instructions(builds.kernel(), symbol) for symbol in (entry, leave))
    before = nr_before + first.index("rdtsc")
    after = last[::-1].index("rdtsc")
    assert 0 < before + after <= most


def test_counts_do_not_depend_on_profilers(boot):
    """getrusage() counts as many waits and page faults, whatever is compiled in or switched on."""
    off = "profile.strace=off profile.waits=off profile.heatmap=off profile.points=-*"
    storm = "profile.source=nmi profile.hz=20000 trace_event=*:*"
    without = [("profile-none", ""), ("profile-sp", "")]
    counts = set()
    for variant, append in [(None, ""), (None, off), (None, storm), *without]:
        options = {"variant": variant, "append": f"profile.on_exit=none {append}"}
        log = boot("offcpu", "usage", icount=True, smp=1, **options).log
        counts.add(re.search(r"^usage (\d+) \d+\r?\nfaults (\d+)", log, re.MULTILINE).groups())
    ((voluntary, faults),) = counts
    assert int(voluntary) >= 7 and int(faults) > 10


def test_time_of_the_machine(boot):
    """The owners of all CPUs have all of the time since boot."""
    with boot.start("spin", "-", 1, smp=1, icount=True) as guest:
        guest.expect("^spin: started")
        guest.sysrq("p")
        guest.expect("end of report")
        guest.send("\n")
        log = boot.finish(guest.wait(), ok=True, check=True).log
    (line,) = re.findall(r"time of 1 CPU: (\d+\.\d+) s = (.*)", log)
    parts = dict(re.findall(r"([a-zA-Z ]+?) (\d+\.\d+)", line[1].replace(" + ", "+")))
    assert abs(sum(map(float, parts.values())) - float(line[0])) < 1e-6
    assert {"user code", "system calls", "idle", "kernel threads"} <= set(parts)
