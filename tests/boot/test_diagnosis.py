# SPDX-License-Identifier: BSD-2-Clause
"""Each program of tests/diagnosis/ is slow for one reason, and the default report must show it.

The reason must be in the summary, or in the first three rows of a table. diagnosis.py lists what
the report says of each program that is written as people write programs.
"""

from __future__ import annotations

import re

import pytest

import diagnosis
import findings
import report
import report_lines
from diagnosis import FIRST
from harness import script_image


@pytest.fixture
def report_of(boot):
    def run(program: str, smp: int = 1) -> report.Report:
        log = boot(program, smp=smp, icount=True).log
        assert report.check_log(log) == []
        if program.removeprefix("slow-") in findings.PROGRAMS:
            findings.check_cause(log, program)
        (found,) = report.parse(log)
        # Each switch counted by the scheduler is in a record of waits, with its time. A thread's
        # first run ends a wait, too, but no turn of the thread's own.
        assert "unknown" not in found.summary.parts
        assert found.summary.nr_switches == found.waits.nr - found.summary.nr_threads
        assert found.summary.nr_calls == found.strace.total.nr_calls
        return found

    return run


@pytest.mark.parametrize("case", diagnosis.CASES, ids=str)
def test_cause(boot, tmp_path, case):
    program: str | None = case.program
    options = {"smp": case.smp, "icount": True, "append": case.append}
    if case.link != "static":
        options["initrd"] = diagnosis.linked_image(tmp_path, case)
    if case.needs_shell:
        options["initrd"] = script_image(tmp_path, case.program, (case.program,))
        program = None
    log = boot(program, **options).log
    tables = diagnosis.tables_of(log, case.program)
    wrong = []
    for name, patterns in case.rows.items():
        first = tables[name] if name == "chains" else tables[name][:FIRST]
        wrong += [f"{name} lacks {p!r}" for p in patterns if not any(re.match(p, r) for r in first)]
    for name, pattern in case.never.items():
        wrong += [f"{name} has {row!r}" for row in tables[name] if re.match(pattern, row)]
    assert not wrong, tables
    if len(report.parse(log)) == 1 and case.link == "static":
        findings.check_cause(log, case.program)


def test_slow_call(report_of):
    found = report_of("slow-call")
    assert found.strace.rows[0].name == "sys_pwrite64"
    assert found.strace.rows[0].usecs_per_call > 100
    calls = found.summary.cpu_parts["system calls"]
    assert calls > 0.6 * found.summary.cpu_us
    # The table counts wall time, which is CPU time here because this program never waits. It has
    # faults of calls, and lacks the way back to user mode.
    faults = found.summary.cpu_parts["page faults"]
    assert 0.95 * calls < found.strace.total.ns / 1000 < calls + faults


def test_slow_faults(report_of):
    """Most of the CPU time is spent in page faults."""
    found = report_of("slow-faults")
    assert found.summary.nr_faults > 25_000
    faults = found.summary.cpu_parts["page faults"]
    assert faults > 0.6 * found.summary.cpu_us
    assert faults > 3 * found.summary.cpu_parts["system calls"]
    # The point counts the same faults, but not those before the execve, nor the entry code.
    point = found.process_points.row("page_fault")
    assert 0 <= found.summary.nr_faults - point.nr < 10
    # Entry and exit take some 190 of 1,150 instructions.
    assert 1.1 * point.ns / 1000 <= faults < 1.25 * point.ns / 1000


def test_memory(boot):
    """30,000 answers of 4,000 bytes are never freed."""
    (found,) = report.parse(boot("slow-leak", icount=True).log)
    assert 114.4 < found.summary.peak_mib < 116
    kinds = found.summary.fault_kinds
    assert kinds["anonymous"] > 29_296 and 10 < kinds["file"] < 100 and kinds["copied"] < 20


def test_slow_producer(report_of):
    """The consumer waits for the pipe. The producer sleeps before each write to it."""
    found = report_of("slow-producer")
    rows = {row.what: row for row in found.waits.rows[:FIRST]}
    pipe, sleep = rows["pipe->read_wait"], rows["sleep"]
    assert pipe.where == "pipe_read" and pipe.waker == "pipe_write (producer)"
    assert pipe.nr == sleep.nr == 20
    assert sleep.where == "sleep_user" and sleep.waker.endswith("(interrupt)")
    assert abs(pipe.ns - sleep.ns) < sleep.ns // 100
    assert list(found.summary.parts)[:2] == ["sleep", "pipe->read_wait"]
    # The C library keeps no frame pointers, but the chains name its callers.
    number = found.waits.rows.index(pipe) + 1
    assert f"row {number} waits in read < main" in found.waits.notes
    waker = f"row {number} is woken from write < produce < start_thread < clone3"
    assert waker in found.waits.notes


def test_slow_userlock(report_of):
    """The row has the lock's name. The waker is the function that held the lock for long."""
    found = report_of("slow-userlock", smp=2)
    (row,) = [row for row in found.waits.rows[:FIRST] if row.nr > 10 and "futex" in row.what]
    assert row.what == "futex shared_lock (slow-userlock)"
    number = found.waits.rows.index(row) + 1
    chains = {}
    for note in found.waits.notes:
        if match := re.match(rf"row {number} (waits in|is woken from) (.*)", note):
            chains[match[1]] = match[2].split(" < ")
    assert chains["waits in"][1:3] == ["lock", "hold_shortly"]
    assert chains["is woken from"][1:] == ["unlock", "hold_long", "main"]


def test_slow_mmlock(report_of):
    found = report_of("slow-mmlock", smp=4)
    assert any(row.what == "mm->lock" for row in found.waits.rows[:FIRST])
    assert "mm->lock" in list(found.summary.parts)[:FIRST]


def test_slow_cpu(report_of):
    """Two threads that never sleep share one CPU."""
    summary = report_of("slow-cpu").summary
    waited = summary.parts["for a CPU"]
    assert 0.8 * summary.cpu_us < waited < 1.2 * summary.cpu_us
    assert waited > 0.99 * summary.waited_us
    assert summary.nr_involuntary > 0.8 * summary.nr_switches
    # Ticks and samples: one or two thousand a second, of a few hundred instructions each.
    assert 0.0003 < summary.cpu_parts["interrupts"] / summary.cpu_us < 0.003
    assert summary.nr_migrations == 0


def test_uncounted_numbers_are_left_out(boot):
    """
    With waits and strace off, the summary leaves out the numbers it would get wrong. The kernel's
    accounts do not depend on them.
    """
    append = "profile.waits=off profile.strace=off"
    log = boot("slow-producer", icount=True, append=append).log
    lines = report_lines.Lines(log).lines
    (cpu,) = (line for line in lines if line.startswith("CPU time: "))
    parts = r" = user code 0\.\d+ \+ system calls 0\.\d+ \+ page faults 0\.\d+"
    assert re.search(rf"{parts}( \+ interrupts 0\.\d+)?$", cpu)  # a tick may be missing
    (waited,) = (line for line in lines if line.startswith("waited: "))
    assert re.search(r" = unknown 0\.[12]\d+$", waited)
    (events,) = (line for line in lines if line.startswith("events: "))
    assert re.fullmatch(r"events: \d+ page faults \(.*\)", events)
    assert any(line.startswith("recording of waits is off since ") for line in lines)


def test_forks_of_a_large_process(boot):
    options = {"icount": True, "append": "profile.on_exit=run"}
    findings.check_cause(boot("slow-fork", **options).log, "slow-fork")


def test_a_program_started_in_a_loop(boot, tmp_path):
    """Each process is short, and the parent only waits: the table by program has the cause."""
    image = script_image(tmp_path, "mkdir -p /tmp\nslow-system\n", ("slow-system",))
    log = boot(None, initrd=image, append="profile.on_exit=run", icount=True).log
    found = findings.findings_of(log)
    assert re.search(r"CPU time in 60 processes of rm, \d+ us each", found[0][0])
    assert not any(re.search(findings.NO_WAIT, match[0]) for match in found)


def test_nothing_dominates(boot):
    """A process that has lived for less than a millisecond has no finding."""
    log = boot("hello", append="profile.on_exit=run", icount=True).log
    assert findings.findings_of(log) == []
