# SPDX-License-Identifier: BSD-2-Clause
"""
Measures operations that consist of kernel code: beside Linux, with the default profilers beside
none, with profile=off beside a kernel without profilers, and on several CPUs at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/accuracy"))
import truth  # noqa: E402

Run = dict[str, list[int]]

NR_ROUNDS = 200
# Linux 6.1 in the same QEMU, measured with a static program. All profilers are on here.
LINUX_COSTS = {
    "unknown": (211, "a call that does not exist"),
    "write_byte": (581, "write of 1 byte to /dev/null"),
    "poll": (836, "poll of one"),
    "poll_100": (13_342, "poll of 100"),
    "select_100": (16_849, "select of 100"),
    "epoll_100": (722, "epoll_wait, one of 100 is ready"),
    "pipe_odd": (3_298, "4 KiB through a pipe, after 100 bytes"),
    "file_fault": (599, "first read of a page of a mapped file"),
}
# The cost with the default profilers, at most this many times that without. The ratio grows when
# the kernel's own part becomes cheaper: a mix without profilers took 340,000 instructions when its
# goal was set, and takes 236,000.
PROFILER_LIMITS = {
    "yields": (1.59, "two processes; goal 1.60"),
    "pipe_bytes": (1.365, "ping-pong through pipes"),
    "futex": (1.44, "ping-pong by futex; goal 1.45"),
    "thread": (1.38, "create, join; goal 1.40"),
    "fork": (1.085, "fork, exit, wait; goal 1.08"),
    "exec": (1.11, "fork, execve, exit, wait; goal 1.12"),
    "mix": (1.15, "fork, exec, pipe, open, read, close"),
}
# With the default profilers, in instructions.
LIMITS = {
    "getppid": (172, "default profilers; without"),
    "fail": (168, "close of a bad descriptor, default profilers; without"),
    "getrusage": (900, "one thread, default profilers; without"),
}
# With profile=off, beside a kernel without profilers that has the same flags: two NOPs are 2.2 % of
# the shortest system call.
OFF_LIMIT = 1.025


def per_round(run: Run, name: str) -> float:
    cycles, nr = run[name]
    return cycles / nr


def measure(with_all: Run, without: Run) -> Iterator[tuple[str, float, float, str, str, float]]:
    """Yields name, instructions, reference, note, the field with a limit, and the limit."""
    for name, (linux, what) in LINUX_COSTS.items():
        note = f"Linux 6.1; {what}"
        yield f"kernel_{name}", per_round(with_all, name), linux, note, "value", linux
    for name, (limit, note) in LIMITS.items():
        value, none = per_round(with_all, name), per_round(without, name)
        yield f"profilers_{name}", value, none, note, "value", limit
    for name, (limit, what) in PROFILER_LIMITS.items():
        value, none = per_round(with_all, name), per_round(without, name)
        note = f"no profilers; {what}"
        yield f"profilers_{name}", value, none, note, "ratio", limit


def measure_off(off: Run, without: Run) -> Iterator[tuple[str, float, float, str, str, float]]:
    """Yields the same for all operations with profile=off, beside those without profilers."""
    for name in (*LINUX_COSTS, *LIMITS, *PROFILER_LIMITS):
        value, none = per_round(off, name), per_round(without, name)
        yield f"off_{name}", value, none, "no profilers, same flags", "ratio", OFF_LIMIT


NR_CPUS = (1, 2, 4, 8)
# Operations on each CPU at once, in processes of their own or in threads of one (shared_*), and
# how often: about five million instructions on each CPU, which take turns of one million or more.
SCALED = {
    "getppid": 20_000,
    "open": 2000,
    "pipe": 2000,
    "map": 2000,
    "fork": 60,
    "exec": 20,
    "shared_open": 2000,
    "shared_map": 2000,
    "shared_thread": 300,
}
# Functions that wait for other CPUs in a loop.
SPINNING = ("spin_lock_contended", "smp_wait_zero", "spin")
# Of useful work, from one CPU to eight, in processes. Threads also send TLB shootdowns, and sleep
# for the locks of their address space.
GROWTH_LIMIT = 1.15
# The guest switches points on before the operations, and sampling off after them.
WINDOW = ("points_begin", "source_apply")


def scale(build: Path, name: str, nr_rounds: int, nr_cpus: int) -> tuple[float, float]:
    """Returns the instructions of an operation: those of its work, and those spent spinning."""
    append = "profile.source=nmi profile.hz=100 profile.on_exit=none "
    append += f"init=/bin/bench-kernel -- {nr_rounds} {name} {nr_cpus}"
    image = build / "tests.cpio"
    counted, _ = truth.observe(
        build / "vmlinux", image, "nmi", append, smp=nr_cpus, window=WINDOW, mem="1G"
    )
    busy = sum(cpu.nr_busy for cpu in counted.cpus.values())
    spinning = sum(chain.nr for chain in counted.chains if chain.own in SPINNING)
    nr = nr_rounds * nr_cpus
    return (busy - spinning) / nr, spinning / nr


def scaling(build: Path) -> Iterator[tuple[str, float, float, str, float | None]]:
    """Yields name, instructions, those on one CPU, note and the limit of their ratio."""
    for name, nr_rounds in SCALED.items():
        first = 0.0
        for nr_cpus in NR_CPUS:
            useful, spinning = scale(build, name, nr_rounds, nr_cpus)
            first = first or useful
            note = f"one CPU; and {spinning:.0f} spinning"
            is_limited = nr_cpus == NR_CPUS[-1] and not name.startswith("shared_")
            limit = GROWTH_LIMIT if is_limited else None
            yield f"scale_{name}_{nr_cpus}", useful, first, note, limit
