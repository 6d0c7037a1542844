# SPDX-License-Identifier: BSD-2-Clause
"""The heatmap's views: the sums of each table add up, even after heavy load of all kinds."""

from __future__ import annotations

import re

import pytest

import report
import report_lines

CPU_ROW = re.compile(r"^ *(\d+)" + r" +(\d+)" * 9 + "$")
TITLE = re.compile(r"^Kernel Heatmap by (function|system call|task|CPU)\b")
FUNCTION_ROW = re.compile(r"^([0-9a-f]{16}) +(\S+) +(\d+) +(\d+\.\d\d) +(\d+) +(\d+\.\d\d) +(\d+)$")
CALL_ROW = re.compile(r"^ *(\S.*?) +(\d+) +(\d+\.\d\d) +(\d+\.\d\d)$")
TASK_ROW = re.compile(r"^ *(\d+) +(\d+) +(\S+) +(\d+) +(\d+\.\d\d) +(\d+) +(\d+) +(\d+) +(\d+)$")


def tables_of(log: str) -> dict[str, list[str]]:
    """Returns the rows of each view in the last report."""
    lines = report_lines.Lines(log).lines
    return tables_in(lines[max(i for i, line in enumerate(lines) if report.BEGIN.match(line)) :])


def tables_in(lines: list[str]) -> dict[str, list[str]]:
    tables: dict[str, list[str]] = {}
    for i, line in enumerate(lines):
        if title := TITLE.match(line):
            rows = lines[i + 4 :]
            end = next(n for n, row in enumerate(rows) if report_lines.DASHES.match(row))
            tables[title[1]] = rows[:end]
    return tables


def test_names_of_a_task(boot):
    """A sample has the name that its task had at that time. An execve changes the name."""
    log = boot("renames", icount=True, append="profile.heatmap=tasks").log
    rows = [TASK_ROW.match(row).groups() for row in tables_of(log)["task"]]
    user = {row[2]: int(row[5]) for row in rows if row[:2] == ("1", "1")}
    assert 390 <= user["renames"] <= 410 and 190 <= user["second"] <= 210


def check_views(log: str) -> None:
    """
    Checks all views. In a report of an exit, the views by function and call cover the process, and
    those by CPU and task the machine.
    """
    heatmap = report.parse(log)[-1].heatmap
    tables = tables_of(log)

    sums = dict.fromkeys(("user", "kernel", "interrupt", "idle"), 0)
    nr_stored = 0
    for row in tables["CPU"]:
        numbers = [int(n) for n in CPU_ROW.match(row).groups()]
        user, kernel, irq, idle, attempts, stored, dropped = numbers[1:8]
        assert attempts == stored + dropped == user + kernel + irq + idle, row
        nr_stored += stored
        for name, nr in zip(sums, numbers[1:5]):
            sums[name] += nr
    assert sums == {name: heatmap.split[name] for name in sums}
    assert nr_stored <= heatmap.split["samples"]
    nr_scope = heatmap.process.get("samples", nr_stored)
    assert nr_scope <= nr_stored

    functions = [FUNCTION_ROW.match(row).groups() for row in tables["function"]]
    assert sum(int(row[2]) for row in functions) == nr_scope
    exclusive = {(row.address, row.name): row.nr for row in heatmap.rows}
    for address, name, nr, percent, inclusive, _, irqs_off in functions:
        assert int(irqs_off) <= int(nr) <= int(inclusive) <= nr_scope
        assert percent == report_lines.percent(int(nr), nr_scope)
        # The first table of a report on the machine includes dropped user samples.
        all_nr = exclusive.get((address, name), 0)
        assert int(nr) == all_nr or (name == "[user]" and int(nr) < all_nr)

    tasks = [TASK_ROW.match(row).groups() for row in tables["task"]]
    assert sum(int(row[3]) for row in tasks) == nr_stored
    for row in tasks:
        assert int(row[3]) == sum(int(nr) for nr in row[5:])

    # The row of a call is its 100 %. The rows of its functions, indented below it, add up to it.
    total = part = nr_call = 0
    for row in tables["system call"]:
        _, nr, percent, of_call = CALL_ROW.match(row).groups()
        if row[:20].strip():
            assert part in (0, nr_call), row
            assert of_call == "100.00"
            total, part, nr_call = total + int(nr), 0, int(nr)
        else:
            part += int(nr)
        assert percent == report_lines.percent(int(nr), nr_scope)
        assert of_call == report_lines.percent(int(nr), nr_call)
    assert total == nr_scope


@pytest.mark.parametrize("smp", [1, 4])
@pytest.mark.parametrize("depth", [1, 32])
def test_counts_add_up_after_load(boot, smp, depth):
    """One report of all processes: reports of each of them would be most of the load."""
    append = f"profile.report=wide profile.top=all profile.on_exit=run profile.depth={depth}"
    result = boot("stress", "all", 0.2, 6, smp=smp, append=append, timeout=240)
    check_views(result.log)


def test_counts_add_up_in_a_small_store(boot):
    append = "profile.report=wide profile.top=all profile.on_exit=stress profile.samples=16384"
    check_views(boot("stress", "all", 0.2, 2, smp=2, append=append, timeout=240).log)


def test_a_store_without_room_says_so(boot):
    """At this rate the worker comes too late. What is full first depends on the chains."""
    append = "profile.samples=16384 profile.hz=100000"
    log = boot("forks", "threads", "clone", "zombies", append=append, icount=True).log
    reason = r"not in the store: \d+ of \d+ samples: \d+ (no slot within reach|log full)"
    assert re.search(reason, log)
    assert re.search(r"not in this table: \d+ of this process's samples, which had no room", log)


def test_callers_have_inclusive_time(boot):
    append = "profile.heatmap=functions profile.top=all profile.on_exit=stress"
    tables = tables_of(boot("stress", "pipe", 0.3, 4, smp=2, append=append, timeout=240).log)
    assert list(tables) == ["function"]
    rows = {row[1]: row for row in (FUNCTION_ROW.match(r).groups() for r in tables["function"])}
    assert int(rows["do_syscall_64"][4]) > int(rows["do_syscall_64"][2])


def test_little_memory(boot):
    """A machine with little memory has a smaller store and logs one line about it."""
    result = boot("hello", mem="128M", smp=12)
    (line,) = re.findall(r"profile: memory is short: (\d+) bytes, not (\d+)", result.log)
    assert int(line[0]) < int(line[1]) == 1 << 20
