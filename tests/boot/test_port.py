# SPDX-License-Identifier: BSD-2-Clause
"""
tests/port/ is a kernel that uses kernel/profile/ and no other file of this tree. Here it runs on
x86-64: on one CPU with -icount, where times are exact, and on four. tests/seam/test_ports.py runs
it on other architectures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import port
import pytest
import qemu
import report
from harness import ROOT, code_lines

PORT = ROOT / "tests/port"


def test_is_short():
    """What the architectures share has at most 400 lines of code, an architecture 500."""
    assert 300 < sum(map(code_lines, PORT.glob("*.[ch]"))) <= 400
    for arch in "x86_64", "aarch64", "riscv64":
        files = [*(PORT / arch).iterdir(), *(PORT / "virt").iterdir()]
        assert 150 < sum(map(code_lines, files)) <= 500


def run(append: str = "") -> qemu.Result:
    """Boots the kernel, and checks its exit code and the arithmetic of its reports."""
    kernel = port.build("x86_64", "port-x86_64")
    result = qemu.run(qemu.Options(kernel=kernel, append=append, icount=True, mem="128M"))
    port.keep_log(append or "narrow", result.log)
    assert result.exit_code == port.EXIT_CODES["x86_64"], result.tail()
    assert report.check_log(result.log) == []
    return result


def test_tables():
    """On one CPU, samples and CPU times agree, and the time of all tasks is that of the CPU."""
    found = port.check_counts(run("profile.top=all").log)
    worker, sleeper, pipe, spinner, last = (found[name] for name in [*port.CALLS, "last"])
    for one in worker, pipe:
        busy = next(row for row in one.heatmap.rows if row.name == "add_up_bytes")
        assert busy.nr > 0.9 * one.heatmap.process["samples"]
        calls = one.strace.row("checksum")
        assert busy.nr == pytest.approx(calls.ns / 1e6, abs=calls.nr_calls)  # a tick each, at most
    assert worker.strace.nr_threads == 2
    assert 0.99e9 < sleeper.strace.row("sleep").ns < 1.5e9
    assert sleeper.heatmap.process["samples"] <= 1

    busy = spinner.heatmap.rows[0]
    assert busy.name == "spin"
    assert busy.nr == pytest.approx(spinner.summary.cpu_us / 1000, rel=0.05)
    assert spinner.summary.nr_involuntary == pytest.approx(busy.nr, rel=0.1)

    assert last.why == "all tasks are gone"
    cpu_us = sum(one.summary.cpu_us for one in (worker, sleeper, pipe, spinner))
    assert last.heatmap.split["kernel"] == pytest.approx(cpu_us / 1000, rel=0.03)


def test_all_cpus():
    port.check_all("x86_64")


def test_contracts_of_all_cpus():
    port.check_contracts("x86_64")


def test_tick():
    """
    Samples come with a periodic tick, not with NMIs. A periodic tick cannot measure its blind spot.
    """
    result = run("profile.report=wide profile.source=nmi profile.hz=500 profile.hz=0")
    assert "profile: this kernel has no NMIs to take samples with" in result.log
    assert "profile: profile.hz=0: not valid; accepted: 1 to " in result.log
    assert "profile: samples come with the timer's tick, 1000 per second" in result.log
    assert "sampling: timer tick, 1000 per second and CPU at regular intervals" in result.log
    assert "blind spot" not in result.log
    for found in report.parse(result.log):
        expected = next(note for note in found.heatmap.notes if note.startswith("expected: "))
        assert " 0 lost + 0 in the profiler" in expected


def nr_lines(paths: Iterable[Path]) -> int:
    """Counts lines that are neither blank nor only comment."""
    text = "".join(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in paths)
    return len([line for line in text.splitlines() if line.strip() and line[:2] != "//"])


def test_is_small():
    """A stranger can read the whole kernel, and what an architecture needs."""
    assert 300 < nr_lines(PORT.glob("*.[ch]")) <= 400
    for arch in port.COMMANDS:
        virt = [] if arch == "x86_64" else (PORT / "virt").iterdir()
        assert 100 < nr_lines([*(PORT / arch).iterdir(), *virt]) <= 500


def test_wide_tables():
    """Wide tables have CPU time, errors by name, and the callers of functions."""
    log = run("profile.report=wide").log
    found = port.by_process(log)
    worker, sleeper = found["worker"], found["sleeper"]
    busy = worker.heatmap.rows[0]
    assert re.search(rf" burn +0 +0\.00 +{busy.nr} +\d+\.\d+ ", log)
    assert worker.strace.row("read").wide.errors == {"EBADF": 40}
    checksum = worker.strace.row("checksum")
    assert checksum.wide.cpu_ns == checksum.ns
    assert sleeper.strace.row("sleep").wide.cpu_ns < 0.01 * sleeper.strace.row("sleep").ns


def test_selftest():
    """All contracts of this kernel hold, also while its threads end."""
    log = run("profile.selftest=on").log
    assert re.findall(r"\] port: (.*)", log) == ["all contracts that were checked hold"]


# What tests/port/broken/ breaks, and the lines that say so.
BROKEN = {
    "printf": ['os_vsnprintf() made "42", not "'],
    "zeroed": ["os_zalloc(24) returned memory that is not zeroed"],
    "full": ["os_zalloc(5000) returned NULL"],
    "current": ["os_current_profile() is not os_task_profile(os_current_task())"],
    "names": ["os_symbol_lookup() does not find profile_init() at "],
    "symbols": ["os_symbol_lookup() calls "],
    "clock": ["os_cycles() does not move"],
    "backwards": ["os_cycles() went back from "],
    "ns": ["os_cycles_to_ns(os_cycles_per_second()) is 2000000000 ns"],
    "rate": ["os_cycles_to_ns(os_cycles_per_second()) is ", "profile_tick() was called"],
    "lock": ["os_lock() leaves interrupts on"],
    "inner": ["os_unlock() of an inner lock turns interrupts on"],
    "unlock": ["profile_tick() was never called on CPU 0: does os_unlock() turn interrupts on"],
    "cpus": [
        "os_run_on_all_cpus() called its function 0 times where os_cpu() is 1",
        "profile_tick() was never called on CPU 1",
    ],
    "exec": ["os_off_cycles() + os_task_exec_cycles() of a running thread is "],
    "asleep": ["os_task_exec_cycles() of a thread went back from "],
    "off": [
        "os_off_cycles() went back from ",
        "os_off_cycles() + os_task_exec_cycles() of a running thread is ",
    ],
    "runs": ["profile_task_runs() came when os_off_cycles() of its thread was 0, not "],
    "call": ["os_task_syscall() is 65536, which is not below 65536"],
    "task": ["profile_task_exit() came without profile_task_init()"],
    "process": ["profile_process_exit() of pid 7 came without profile_process_init()"],
}
LATER = {"exec", "asleep", "off", "runs", "call", "task", "process"}  # seen after profile_init()


@pytest.fixture(scope="module")
def broken_kernel():
    return port.build("x86_64", "port-broken", "BROKEN=1", "OPTIMIZE=-O0")


@pytest.mark.parametrize("contract", BROKEN)
def test_broken_contract_is_said(broken_kernel, contract):
    """
    Each contract that does not hold has its line, and no other has one. An instruction takes 4 ns,
    not 1: the self-test looks at clocks and ticks for 80 ms.
    """
    append = f"profile.selftest=on break={contract}"
    options = qemu.Options(kernel=broken_kernel, append=append, icount=True, mem="128M")
    log = qemu.run(replace(options, extra=["-icount", "shift=2"], timeout=60)).log
    lines = re.findall(r"\] port: (.*)", log)
    end = f"contracts that do not hold: {len(BROKEN[contract])}; see os.h"
    if contract in LATER:
        assert lines.pop(0) == "all contracts that were checked hold"
    else:
        assert lines.pop() == end
    assert len(lines) == len(BROKEN[contract]), lines
    for line, begin in zip(lines, BROKEN[contract]):
        assert line.startswith(begin)
