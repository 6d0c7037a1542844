# SPDX-License-Identifier: BSD-2-Clause
"""
tests/port/ is a kernel that uses kernel/profile/ and no other file of this tree. It runs two
processes with known numbers of system calls, pairs and samples (tests/port/main.c), and prints
reports.
"""

from __future__ import annotations

import re

import pytest
import qemu
import report
import report_points
import report_strace
from harness import BUILD, ROOT, locked, make

DIRECTORY = BUILD / "port"
EXIT_OK = 16 << 1 | 1  # isa-debug-exit turns main.c's EXIT_OK into this

WORKER = {
    "sys_getpid": (100, 0),
    "sys_read": (60, 40),
    "sys_checksum": (50, 0),
    "sys_sleep": (50, 0),
    "sys_exit": (2, 0),
    "sys_5": (1, 1),
}
SLEEPER = {"sys_sleep": (10, 0), "sys_exit": (1, 0)}


def run(append: str = "") -> qemu.Result:
    """Boots the kernel, and checks its exit code and the arithmetic of its reports."""
    with locked(BUILD / "test-locks" / "port"):
        make("-s", f"BUILD={DIRECTORY}", cwd=ROOT / "tests/port")
    options = qemu.Options(kernel=DIRECTORY / "kernel", append=append, icount=True, mem="64M")
    result = qemu.run(options)
    path = BUILD / "test-logs" / f"port_{append or 'narrow'}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(result.log)
    assert result.exit_code == EXIT_OK, result.tail()
    assert report.check_log(result.log) == []
    return result


def calls(table: report_strace.Strace) -> dict[str, tuple[int, int]]:
    return {row.name: (row.nr_calls, row.nr_errors) for row in table.rows}


def pairs(points: report_points.Points) -> dict[str, int]:
    return {row.name: row.nr for row in points.rows}


def checksum_ms(worker: report.Report) -> float:
    """Returns the milliseconds in checksum(). Each has a tick, and so a sample."""
    return worker.strace.row("checksum").ns / 1e6


def test_tables():
    worker, sleeper, last = report.parse(run("profile.top=all").log)

    assert re.fullmatch(r"worker \(pid 1\) exited after \d\.\d{3} s", worker.why)
    assert calls(worker.strace) == WORKER
    assert worker.strace.nr_threads == 2
    assert pairs(worker.process_points) == {"checksum": 50, "sleep": 50}
    busy = worker.heatmap.rows[0]
    assert busy.name == "add_up_bytes"
    assert busy.nr > 0.98 * worker.heatmap.process["samples"]
    assert busy.nr == pytest.approx(checksum_ms(worker), rel=0.02)

    assert calls(sleeper.strace) == SLEEPER
    assert pairs(sleeper.process_points) == {"sleep": 10}
    assert 0.99e9 < sleeper.strace.row("sleep").ns < 1.2e9
    assert sleeper.heatmap.process["samples"] <= 1

    assert last.why == "all tasks are gone"
    assert pairs(last.points) == {"checksum": 50, "sleep": 60}
    assert last.heatmap.split["idle"] > 300
    busy, idle, *rest = last.heatmap.rows
    assert [busy.name, idle.name] == ["add_up_bytes", "run_until_all_exit"]
    assert sum(row.nr for row in rest) <= 3  # the reports' own work


def test_tick():
    """
    Samples come with a periodic tick, not with NMIs. A periodic tick cannot measure its blind spot.
    """
    result = run("profile.report=wide profile.source=nmi profile.hz=500")
    assert "profile: this kernel has no NMIs to take samples with" in result.log
    assert "profile: samples come with the timer's tick, 1000 per second" in result.log
    assert "sampling: timer tick, 1000 per second and CPU at regular intervals" in result.log
    assert "blind spot" not in result.log
    for found in report.parse(result.log):
        expected = next(note for note in found.heatmap.notes if note.startswith("expected: "))
        assert " 0 lost + 0 in the profiler" in expected


def test_wide_tables():
    """Wide tables have CPU time, errors by name, and the callers of functions."""
    log = run("profile.report=wide").log
    worker, sleeper, _ = report.parse(log)
    busy = worker.heatmap.rows[0]
    assert re.search(rf" burn +0 +0\.00 +{busy.nr} +100\.00 ", log)
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
    "task": ["profile_task_exit() came without profile_task_init()"],
    "process": ["profile_process_exit() of pid 7 came without profile_process_init()"],
}
LATER = {"exec", "task", "process"}  # seen after profile_init()


@pytest.fixture(scope="module")
def broken_kernel():
    directory = BUILD / "port-broken"
    with locked(BUILD / "test-locks" / "port-broken"):
        make("-s", "BROKEN=1", f"BUILD={directory}", cwd=ROOT / "tests/port")
    return directory / "kernel"


@pytest.mark.parametrize("contract", BROKEN)
def test_broken_contract_is_said(broken_kernel, contract):
    """Each contract that does not hold has its line, and no other has one."""
    append = f"profile.selftest=on break={contract}"
    options = qemu.Options(kernel=broken_kernel, append=append, icount=True, mem="64M")
    log = qemu.run(options).log
    lines = re.findall(r"\] port: (.*)", log)
    end = f"contracts that do not hold: {len(BROKEN[contract])}; see os.h"
    if contract in LATER:
        assert lines.pop(0) == "all contracts that were checked hold"
    else:
        assert lines.pop() == end
    assert len(lines) == len(BROKEN[contract]), lines
    for line, begin in zip(lines, BROKEN[contract]):
        assert line.startswith(begin)
