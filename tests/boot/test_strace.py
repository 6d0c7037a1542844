# SPDX-License-Identifier: BSD-2-Clause
"""The tables of system calls: sleep, wide columns, children, /proc, and reading under load."""

import re

import pytest

import report

NS_PER_SEC = 1_000_000_000


def exit_reports(log):
    """Returns the table of each process by its pid."""
    return {found.strace.task[0]: found.strace for found in report.parse(log) if found.straces}


def test_sleep_is_wall_time_and_not_cpu_time(boot):
    log = boot("straces", "sleep", smp=2, icount=True, append="profile.report=wide").log
    futex = exit_reports(log)[1].row("futex")
    assert (futex.nr_calls, futex.nr_errors) == (1, 1)
    assert futex.wide.errors == {"ETIMEDOUT": 1}
    assert NS_PER_SEC <= futex.ns < 2 * NS_PER_SEC
    assert futex.wide.cpu_ns < NS_PER_SEC // 10
    assert futex.wide.p50_ns >= NS_PER_SEC and futex.wide.max_ns == futex.ns


def test_files_in_proc(boot):
    """A program reads its own table and that of a zombie, and writes off, on and reset."""
    log = boot("straces", "files", smp=2).log
    checks = int(re.search(r"PASS: straces: (\d+) checks", log)[1])
    assert checks > 40


OFF = r"(\d+\.\d{6}) s"
WAS_OFF = rf"was off for {OFF} of this time, last from {OFF} to {OFF}, by (\w+) \(pid (\d+)\)"


def test_off_leaves_a_trace(boot):
    """Each table says when counting was off, for how long, and which process switched it off."""
    lines = (
        "cd /proc/profile; look() { echo MARK $1; cat report; echo DONE $1; }",
        "echo off >strace; echo off >heatmap; echo -fork >points; sleep 0.03; look 1",
        "echo on >strace; echo on >heatmap; echo fork >points; look 2",
        "echo reset >report; look 3; exit",
    )
    with boot.start(None, initrd="shell.cpio", append="profile.on_exit=none") as guest:
        for i, line in enumerate(lines):
            guest.expect(r"lego:[^\n]*# ")
            guest.send(line + "\n")
            if i:
                guest.expect(rf"^DONE {i}")
        log = boot.finish(guest.wait(), ok=True, check=False).log
    found = re.findall(r"^MARK \d\r?$(.*?)^DONE", log, re.MULTILINE | re.DOTALL)
    still, over, reset = found
    for what in ("strace", "sampling", "at least one point"):
        is_off = rf"^{what} is off since {OFF}, by (\w+) \(pid (\d+)\): for {OFF} of"
        since = re.search(is_off, still, re.MULTILINE)
        assert float(since[4]) >= 0.03
        was = re.search(rf"^{what} {WAS_OFF}\r?$", over, re.MULTILINE)
        assert (was[2], was[4], was[5]) == since.groups()[:3]
        seconds = [float(was[i]) for i in (1, 2, 3)]
        assert abs(seconds[2] - seconds[1] - seconds[0]) < 0.000002
    assert not re.search(" is off since | was off for ", reset)


def test_off_at_boot(boot):
    log = boot("hello", append="profile.strace=off").log
    assert re.search(rf"strace is off since {OFF}, by the boot parameter: for {OFF} of", log)
    assert not exit_reports(log)[1].rows
    assert exit_reports(log)[1].total.nr_calls == 0


def test_demo_has_46_threads(boot):
    log = boot("wordcount", "-t", 46, "/data/small", smp=4, append="profile.report=wide").log
    table = exit_reports(log)[1]
    assert table.nr_threads == 46
    assert all(row.wide.nr_in_flight == 0 for row in table.rows)
    assert {row.name for row in table.rows} >= {"sys_execve", "sys_futex", "sys_exit_group"}


def test_interrupted_calls_are_one_call(boot):
    """Calls like pause() and nanosleep() are interrupted often, and none stays in flight."""
    log = boot("restarts", smp=2, append="profile.report=wide profile.on_exit=all").log
    tables = exit_reports(log)
    assert len(tables) > 10
    assert "interrupted calls were given up" not in log
    assert not [row for table in tables.values() for row in table.rows if row.wide.nr_in_flight]
    assert any("EINTR" in row.wide.errors for table in tables.values() for row in table.rows)


def test_children_add_up(boot):
    """The sums of init's descendants equal those of their own reports."""
    log = boot("execs", smp=2, append="profile.on_exit=all").log
    tables = exit_reports(log)
    (line,) = [name for name in tables[1].sums if name.startswith("including children")]
    nr_children = int(re.search(r"\((\d+)\)$", line)[1])
    assert nr_children == len(tables) - 1
    wanted = [0, 0]
    for table in tables.values():
        before = table.sums.get("not in this table", (0, 0, 0))
        wanted[0] += table.total.nr_calls + before[0]
        wanted[1] += table.total.nr_errors + before[1]
    assert list(tables[1].sums[line][:2]) == wanted


@pytest.mark.parametrize("variant", [None, "profile-sp"])
def test_looks_while_8_cpus_call(boot, variant):
    """While threads on all CPUs make calls, every reading of all tables adds up."""
    options = {"smp": 8, "variant": variant, "append": "profile.on_exit=none"}
    log = boot("straces", "storm", 8, 3000, **options).log
    assert "PASS: straces" in log
    assert int(re.search(r"straces: (\d+) reads", log)[1]) >= 8


def test_without_detail(boot):
    log = boot("straces", "sleep", variant="profile-sp", append="profile.report=wide").log
    futex = exit_reports(log)[1].row("futex")
    assert futex.ns >= NS_PER_SEC and futex.wide.cpu_ns is None
    times = re.findall(r'^\{"time_ns":(\d+),"cpu_ns":(\w+),', log, re.MULTILINE)
    assert int(times[-1][0]) >= NS_PER_SEC and all(cpu_ns == "null" for _, cpu_ns in times)
    assert futex.wide.errors == {"ETIMEDOUT": 1}
