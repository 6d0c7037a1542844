# SPDX-License-Identifier: BSD-2-Clause
"""The critical path of programs whose path is known by construction, and of real ones."""

from __future__ import annotations

import json
import re

import pytest

import report
from harness import Booter, script_image
from report_path import Path

# Of each case: the rows that take most of the path, and at least which part of it.
COMPUTE = "user code"
CASES = {
    "pipeline": [(COMPUTE, "compute_first", 0.85)],
    "fork-join": [(COMPUTE, "compute_first", 0.9)],
    "locks": [(COMPUTE, f"compute_{name}", 0.28) for name in ("first", "second", "third")],
    "timer": [("timer", "sys_clock_nanosleep", 0.9)],
    "io": [("system call", "sys_pread64", 0.7)],
    "cpus": [(COMPUTE, "compute_first", 0.28), (COMPUTE, "compute_second", 0.28)],
    "signal": [(COMPUTE, f"compute_{name}", 0.4) for name in ("first", "second")],
    "futex": [(COMPUTE, f"compute_{name}", 0.4) for name in ("first", "second")],
    "condition": [(COMPUTE, f"compute_{name}", 0.4) for name in ("first", "second")],
    "exec": [(COMPUTE, f"compute_{name}", 0.4) for name in ("first", "second")],
    "early": [(COMPUTE, "compute_first", 0.9)],
    "faults": [("page fault", "touch_pages", 0.6)],
}
ON = "profile.path=on profile.top=all profile.hz=10007 profile.samples=2097152"
JSON = "cat /proc/profile/critical_path_parts.json /proc/profile/critical_path.json\n"


@pytest.fixture(scope="module")
def reports(builds, tmp_path_factory) -> dict[str, report.Report]:
    """Returns the reports of all cases, by case: one boot runs them all."""
    script = "".join(f"critical {case}\n" for case in CASES)
    image = script_image(tmp_path_factory.mktemp("path"), script, ("critical",))
    append = f"{ON} profile.on_exit=critical"
    log = Booter(builds, "critical")(None, initrd=image, smp=4, icount=True, append=append).log
    return dict(zip(CASES, report.parse(log), strict=True))


def path_of(found: report.Report) -> Path:
    assert found.path and found.path.total
    return found.path


@pytest.mark.parametrize("case", CASES)
def test_known_path(reports, case):
    path = path_of(reports[case])
    assert path.known_from is None
    for cause, function, least in CASES[case]:
        assert path.share(cause, function) > least, function
        assert cause != COMPUTE or f"{function}()" in path.parts
    # Functions are those of the nearest sample, of which the shortest path has 70.
    assert path.share(COMPUTE, "compute_hidden") < 0.06
    assert path.share("unknown", "-") == 0
    # The sum is the age of the process.
    (seconds,) = re.findall(r"after (\d+\.\d{3}) s", reports[case].why)
    assert path.total.ns // 10**6 == int(seconds.replace(".", ""))


def segments_of(log: str) -> tuple[list[dict], list[dict]]:
    """Returns the rows of both files: the parts, and the segments."""
    tables: list[list[dict]] = []
    for line in log.splitlines():
        if line.startswith('{"table":"'):
            tables.append([])
        elif line.startswith('{"') and tables:
            tables[-1].append(json.loads(line))
    parts, segments = ([row for row in rows if "note" not in row] for rows in tables)
    return parts, segments


def test_segments(boot, tmp_path):
    """The segments follow each other without a gap, and their sums are the rows of the table."""
    image = script_image(tmp_path, f"critical locks\ncritical io\n{JSON}", ("critical",))
    append = f"{ON} profile.on_exit=none"
    parts, segments = segments_of(boot(None, initrd=image, smp=4, icount=True, append=append).log)
    assert len(segments) > 100
    assert [row["from_ns"] for row in segments[:-1]] == [row["to_ns"] for row in segments[1:]]
    assert all(row["from_ns"] < row["to_ns"] for row in segments)
    sums: dict[tuple, list[int]] = {}
    for row in segments:
        key = row["cause"], row["function"], row["task"] or "-"
        found = sums.setdefault(key, [0, 0])
        found[0] += row["to_ns"] - row["from_ns"] - row["interrupts_ns"]
        found[1] += 1
        if row["interrupts_ns"]:
            found = sums.setdefault(("interrupt", "timer", row["task"]), [0, 0])
            found[0] += row["interrupts_ns"]
            found[1] += 1
    # Two threads of one name are one row.
    expected: dict[tuple, list[int]] = {}
    for row in parts:
        found = expected.setdefault((row["cause"], row["function"], row["task"]), [0, 0])
        found[0] += row["time_ns"]
        found[1] += row["times"]
    # The files are read one after the other: the second path has a little more at its end.
    big = {key for key, (ns, _) in expected.items() if ns > 1_000_000}
    assert big and {key: sums[key] for key in big} == {key: expected[key] for key in big}


@pytest.mark.parametrize(
    "program, cause, function, task, caller",
    [
        ("slow-producer", "timer", "sys_clock_nanosleep", "producer", "produce"),
        ("slow-queue", "timer", "sys_clock_nanosleep", "slow-queue", "order"),
        ("slow-userlock", "timer", "sys_clock_nanosleep", "slow-userlock", r"hold_long \(8. %\)"),
        ("slow-faults", "page fault", "main", "slow-faults", "-"),
        ("slow-proc", "system call", "sys_read", "slow-proc", "\\w+"),
    ],
)
def test_diagnosis(boot, program, cause, function, task, caller):
    """
    The path names the cause, where the waits of the main thread name only what it waited for. It
    also names the program's function, which neither the event nor the C library's function is.
    """
    append = f"{ON} profile.on_exit=run"
    log = boot(program, smp=4, icount=True, append=append).log
    path = path_of(report.parse(log)[-1])
    assert (path.rows[0].cause, path.rows[0].function) == (cause, function)
    assert path.share(cause, function, task) > 0.4
    assert re.fullmatch(caller, path.rows[0].caller)
    if caller != "-":
        ((name, _), *_) = path.parts.items()
        written = re.sub(r"^\S+", r"\g<0>\\(\\)", caller)  # in the line, as in findings
        assert re.fullmatch(rf"{function}.* called from {written}", name)
    elif cause == "page fault":
        assert f"page faults in {function}()" in path.parts


def test_idle_time_fills_no_rings(boot, tmp_path):
    """Neither the ticks of idle CPUs nor those of reports push events out of the rings."""
    image = script_image(tmp_path, "busybox sleep 8\n")
    append = f"{ON} profile.on_exit=all"
    log = boot(None, initrd=image, smp=2, icount=True, append=append).log
    path = path_of(report.parse(log)[-1])
    assert path.known_from is None
    assert path.share("timer", "sys_clock_nanosleep") > 0.9


@pytest.mark.parametrize("program, smp, mem", [("slow-fsync", 1, "512M"), ("slow-timer", 2, "40M")])
def test_lost_events(boot, program, smp, mem):
    """Rings that were overwritten: the path says from when on it is known."""
    options = {"icount": True, "smp": smp, "mem": mem}
    log = boot(program, append=f"{ON} profile.on_exit=run", **options).log
    path = path_of(report.parse(log)[-1])
    assert path.known_from
    (row,) = [row for row in path.rows if row.cause == "not recorded"]
    # Rounded down to milliseconds or, if little is known, to microseconds.
    digits = len(path.known_from.partition(".")[2])
    assert row.ns // 10 ** (9 - digits) == int(path.known_from.replace(".", ""))
    # All of the rest is in the parts: what is rounded off is small.
    assert float(path.parts["others"]) < 0.5 * float(path.whole)


WRITES = """\
critical timer
cat /sys/kernel/tracing/set_event
echo 1 > /sys/kernel/tracing/tracing_on
echo written
cat /sys/kernel/tracing/set_event /sys/kernel/tracing/buffer_size_kb
critical timer
cat /proc/profile/critical_path.json
echo read
"""


def test_write_to_tracefs_ends_it(boot, tmp_path):
    """From then on the trace is as if the path had never been recorded."""
    image = script_image(tmp_path, WRITES, ("critical",))
    append = f"{ON} profile.on_exit=critical"
    log = boot(None, initrd=image, icount=True, append=append).log
    before, after = report.parse(log)
    assert before.path and not after.path
    lines = [line.strip() for line in log.splitlines()]
    written, read = lines.index("written"), lines.index("read")
    assert {"sched:sched_switch", "raw_syscalls:sys_enter"} <= set(lines[:written])
    assert lines[written + 1] == "1024"
    assert lines[read - 1] == '{"table":"Kernel Critical Path"}'


def test_off_by_default(boot):
    (found,) = report.parse(boot("hello").log)
    assert not found.path


def test_names_forge_no_line(boot):
    """A thread's name is printed as printable characters, in one line."""
    append = f"{ON} profile.on_exit=run"
    log = boot("names", icount=True, append=append).log
    assert any(found.path for found in report.parse(log))
