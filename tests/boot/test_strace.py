# SPDX-License-Identifier: BSD-2-Clause
"""The tables of system calls: time asleep, wide columns, families, /proc, and looks under load."""

import re

import pytest

import report

NS_PER_SEC = 1_000_000_000


def exit_reports(log):
    """The table of each process by its pid."""
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
    """Of itself and of a zombie, off, on and reset: the program checks it."""
    log = boot("straces", "files", smp=2).log
    checks = int(re.search(r"PASS: straces: (\d+) checks", log)[1])
    assert checks > 40


def test_demo_has_46_threads(boot):
    log = boot("wordcount", "-t", 46, "/data/small", smp=4, append="profile.report=wide").log
    table = exit_reports(log)[1]
    assert table.nr_threads == 46
    assert all(row.wide.nr_in_flight == 0 for row in table.rows)
    assert {row.name for row in table.rows} >= {"sys_execve", "sys_futex", "sys_exit_group"}


def test_interrupted_calls_are_one_call(boot):
    """pause, nanosleep and others under a hail of signals: none is given up or left in flight."""
    log = boot("restarts", smp=2, append="profile.report=wide profile.on_exit=all").log
    tables = exit_reports(log)
    assert len(tables) > 10
    assert "interrupted calls were given up" not in log
    assert not [row for table in tables.values() for row in table.rows if row.wide.nr_in_flight]
    assert any("EINTR" in row.wide.errors for table in tables.values() for row in table.rows)


def test_children_add_up(boot):
    """What init says of all its descendants is what their own reports say."""
    log = boot("execs", smp=2, append="profile.on_exit=all").log
    tables = exit_reports(log)
    (line,) = [name for name in tables[1].sums if name.startswith("with ")]
    nr_children = int(line.split()[1])
    assert nr_children == len(tables) - 1
    wanted = [0, 0]
    for table in tables.values():
        before = table.sums.get("before exec", (0, 0, 0))
        wanted[0] += table.total.nr_calls + before[0]
        wanted[1] += table.total.nr_errors + before[1]
    assert list(tables[1].sums[line][:2]) == wanted


@pytest.mark.parametrize("variant", [None, "profile-sw"])
def test_looks_while_8_cpus_call(boot, variant):
    """All tables are read while threads call on all CPUs: every sum is right, each time."""
    options = {"smp": 8, "variant": variant, "append": "profile.on_exit=none"}
    log = boot("straces", "storm", 8, 3000, **options).log
    assert "PASS: straces" in log
    assert int(re.search(r"straces: (\d+) reads", log)[1]) > 3


def test_without_detail(boot):
    log = boot("straces", "sleep", variant="profile-sw", append="profile.report=wide").log
    futex = exit_reports(log)[1].row("futex")
    assert futex.ns >= NS_PER_SEC and futex.wide.cpu_ns is None
    assert futex.wide.errors == {"ETIMEDOUT": 1}


def test_off_at_boot(boot):
    log = boot("hello", append="profile.strace=off").log
    assert not exit_reports(log)[1].rows
