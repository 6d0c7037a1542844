# SPDX-License-Identifier: BSD-2-Clause
"""Waits agree with strace, with the scheduler, and with a plugin that counts all instructions."""

import bisect
import json
import re
import sys
from collections import Counter

import pytest

import report
import report_strace
from harness import ROOT, Booter, script_image

sys.path.insert(0, str(ROOT / "tests/accuracy"))
import truth  # noqa: E402


@pytest.fixture
def report_of(boot):
    """
    Returns a function that runs a program with -icount and returns its wide report. A cycle takes a
    nanosecond, so times are exact.
    """

    def run(program: str, *args: object, **options) -> report.Report:
        append = "profile.report=wide profile.top=all"
        log = boot(program, *args, icount=True, append=append, **options).log
        assert report.check_log(log) == []
        return report.parse(log)[-1]

    return run


def calls_of(table: report_strace.Strace) -> dict[str, tuple[int, int]]:
    """Returns the time of each system call, and the part of it that was not CPU time."""
    return {row.name: (row.ns, row.ns - row.wide.cpu_ns) for row in table.rows}


@pytest.mark.parametrize(
    "program, smp, name",
    [
        ("slow-userlock", 2, "sys_futex"),
        ("slow-producer", 1, "sys_read"),
        ("slow-mmlock", 4, "sys_munmap"),
    ],
)
def test_calls_wait_for_as_long_as_strace_says(report_of, program, smp, name):
    found = report_of(program, smp=smp)
    calls, waits = calls_of(found.strace), waits_by_call(found)
    assert waits == time_off_cpus(found)
    assert waits[name] > 1_000_000
    # Control: the whole times of the calls, with CPU time, are not the same.
    assert waits != {call: ns for call, (ns, off_ns) in calls.items() if off_ns}


def waits_by_call(found: report.Report) -> dict[str, int]:
    waits = {row.what: row.ns for row in found.wait_views["system call"].rows}
    waits.pop("[no system call]", None)
    return waits


def time_off_cpus(found: report.Report) -> dict[str, int]:
    return {call: off_ns for call, (_, off_ns) in calls_of(found.strace).items() if off_ns}


@pytest.fixture(scope="module")
def agreeing(builds):
    """Returns the reports of the children of `agree`, by name: only the first of two loops."""
    booter = Booter(builds, "agree")
    append = "profile.report=wide profile.top=all profile.on_exit=all"
    log = booter("agree", smp=1, icount=True, append=append).log
    assert "PASS: agree" in log and "FAIL" not in log
    return {found.why.split()[0]: found for found in reversed(report.parse(log)) if found.straces}


def test_each_call_waits_for_as_long_as_strace_says(agreeing):
    """The two tables are equal to the nanosecond, for calls that are restarted, too."""
    names = {"loop", "sleeper", "poller", "reader", "waiter", "restarter", "failer", "killed"}
    assert names | {"agree"} == set(agreeing)
    for name, found in agreeing.items():
        assert waits_by_call(found) == time_off_cpus(found), name


def test_preemption_after_a_call_is_not_the_calls(agreeing):
    """Two loops share a CPU: they wait for it on the way back to user mode, or in user mode."""
    found = agreeing["loop"]
    ppid, back = found.strace.row("getppid"), time_off_cpus(found)[report_strace.RETURN_TO_USER]
    assert ppid.nr_calls == 200_000
    assert ppid.wide.cpu_ns == ppid.ns
    assert back > 4_000_000
    (row,) = (row for row in found.strace.rows if row.name == report_strace.RETURN_TO_USER)
    assert (row.nr_calls, row.usecs_per_call, row.wide.cpu_ns) == (0, None, 0)


STOPPED_CALLS = [
    ("sleeper", "nanosleep", 10),
    ("poller", "poll", 20),
    ("reader", "read", 15),
    ("waiter", "futex", 20),
]


@pytest.mark.parametrize("name, call, ms", STOPPED_CALLS)
def test_a_stop_is_not_the_calls(agreeing, name, call, ms):
    """A call that was stopped twice is one call. The 40 ms of the stops are not in it."""
    found = agreeing[name]
    row = found.strace.row(call)
    assert (row.nr_calls, row.nr_errors) == (1, call == "futex")
    assert not found.strace.row("restart_syscall")
    assert "sys_restart_syscall" not in waits_by_call(found)
    waits = waits_by_call(found)
    assert 40_000_000 <= waits[report_strace.RETURN_TO_USER] < 41_000_000
    assert abs(waits[f"sys_{call}"] / 1e6 - ms) < 1


def test_control_times_with_cpu_time_differ(agreeing):
    found = agreeing["sleeper"]
    with_cpu = {call: ns for call, (ns, off_ns) in calls_of(found.strace).items() if off_ns}
    assert waits_by_call(found).keys() == with_cpu.keys()
    assert waits_by_call(found) != with_cpu


def test_a_stop_that_has_not_ended(boot):
    """A stopped thread waits on the way to user mode, also since a reset."""
    log = boot("agree", "live", icount=True).log
    for word in ("", "reset."):
        parsed = map(json.loads, lines_of(log, f"{word}strace"))
        rows = {row["syscall"]: row for row in parsed if "syscall" in row}
        row = rows[report_strace.RETURN_TO_USER]
        assert 20_000_000 <= row["time_ns"] == row["max_ns"] < 22_000_000
        assert (row["calls"], row["us_per_call"], row["cpu_ns"]) == (0, None, 0)
        text = "\n".join(lines_of(log, f"{word}waits"))
        seconds = re.search(r"^ *(\d+\.\d+) .* \[return to user\]$", text, re.MULTILINE)[1]
        # The file of waits was read a little later.
        assert 0 <= float(seconds) * 1e9 - row["time_ns"] < 5_000_000


def lines_of(log: str, word: str) -> list[str]:
    lines = (line.rstrip("\r") for line in log.splitlines())
    return [line[len(word) + 1 :] for line in lines if line.startswith(f"{word} ")]


def rows_of(log: str, word: str) -> list[dict]:
    return [row for row in map(json.loads, lines_of(log, word)) if "waits" in row]


def test_waits_for_files_have_their_names(boot):
    log = boot("offcpu", "files", icount=True).log
    in_flight = [row for row in rows_of(log, "waits.json") if row["in_flight"]]
    assert Counter(row["what"] for row in in_flight) == Counter(
        ["epoll", "eventfd", "timerfd", "socket", "exit of a thread"]
    )
    for row in in_flight:
        assert row["waits"] == row["in_flight"] == 1 and row["waker"] == "(not yet)"
        assert 19_000_000 < row["wait_ns"] == row["longest_ns"] < 25_000_000


def test_waits_that_have_not_ended(boot):
    """The tables of a process that hangs say what its threads wait for."""
    log = boot("offcpu", "stuck", icount=True).log
    (address,) = lines_of(log, "stuck_word")
    # Only the table of the process knows what the address is.
    names = {"waits.json": f"futex {address}", "self.json": "futex stuck_word (offcpu)"}
    for word, futex in names.items():
        rows = {row["what"]: row for row in rows_of(log, word) if row["in_flight"]}
        assert rows.keys() == {"pipe->read_wait", futex}
        for what, function in (("pipe->read_wait", "pipe_read"), (futex, "wait_bitset")):
            row = rows[what]
            assert (row["function"], row["waker"]) == (function, "(not yet)")
            assert row["waits"] == row["in_flight"] == 1
            # The program waits for 20 ms, and then reads files, some with names of functions.
            assert 19_000_000 < row["wait_ns"] == row["longest_ns"] < 30_000_000
    (task,) = [row for row in rows_of(log, "tasks") if row["in_flight"]]
    assert (task["name"], task["in_flight"]) == ("offcpu", 2)
    stacks = [line.rsplit(" ", 1) for line in lines_of(log, "folded")]
    records = [row for row in rows_of(log, "records") if not row["user"]]
    for what, function in (("pipe->read_wait", "pipe_read"), ("futex", "wait_bitset")):
        (ns,) = (int(ns) for at, ns in stacks if at.endswith(f";[{what}]") and function in at)
        (row,) = (row for row in records if (row["what"], row["pid"]) == (what, 1))
        assert row["waits"] == 1 and row["cpu"] == 0 and row["waker_kernel"] is None
        assert 19_000_000 < ns < row["asleep_ns"] < 40_000_000
    text = lines_of(log, "self")
    assert any(line.endswith("; 2 of them have not ended") for line in text)
    assert "Kernel Waits by lock (all)" in text
    # At the exit, the waits have ended, and are in the report.
    (found,) = report.parse(log)
    assert found.waits.nr_in_flight == 0
    assert {row.what: row.nr for row in found.waits.rows}["pipe->read_wait"] == 1


def test_context_switches_of_getrusage(boot):
    """getrusage() counts the context switches of the report's summary."""
    log = boot("offcpu", "usage", icount=True).log
    child = report.parse(log)[0].summary
    (usage,) = lines_of(log, "usage")
    voluntary, involuntary = map(int, usage.split())
    assert voluntary >= 7 and involuntary >= 5
    assert (voluntary + involuntary, involuntary) == (child.nr_switches, child.nr_involuntary)
    (own,) = lines_of(log, "self")
    assert sum(map(int, own.split())) <= child.nr_switches <= sum(map(int, own.split())) + 2


def test_cpu_time_of_getrusage(boot):
    """User and system time are those of the summary, whose parts are rounded to microseconds."""
    log = boot("offcpu", "times", icount=True).log
    parts = report.parse(log)[0].summary.cpu_parts
    (times,) = lines_of(log, "times")
    user_us, system_us = map(int, times.split())
    assert parts["page faults"] > 1000 and parts["system calls"] > 1000
    assert abs(parts["user code"] - user_us) <= 1
    assert abs(user_us + system_us - sum(parts.values())) <= 2


def test_cpu_time_never_goes_back(boot):
    """Neither a reset nor switching strace changes the times."""
    log = boot("offcpu", "switched", smp=2, icount=True).log
    assert "PASS: offcpu switched" in log
    (reset,) = lines_of(log, "reset")
    assert int(reset) < 100
    before_us, after_us = map(int, lines_of(log, "calls"))
    assert before_us > 50 and after_us > before_us * 0.9


@pytest.fixture(scope="module")
def counted(builds):
    """Counts the waits of a program by a plugin, from a reset until waits are switched off."""
    builds.tools("truth.so")
    kernel = builds.kernel()
    found, result = truth.observe(
        kernel,
        builds.initrd("accuracy.cpio"),
        "timer",
        "init=/bin/offcpu",
        window=("waits_reset", "hook_keys_begin"),
    )
    assert "PASS: offcpu" in result.log
    # The plugin cannot count the time of a halted CPU.
    assert found.cpus[0].nr_idle == 0
    return found, result.log, truth.Symbols(kernel)


def kernel_chain(functions: list[str]) -> tuple[str, ...]:
    """Returns the chain up to schedule(), where the chains of the report end."""
    chain = tuple(functions)
    return chain[: chain.index("schedule")] if "schedule" in chain else chain


def recorded_waits(log: str, symbols: truth.Symbols) -> Counter:
    """Returns the times of the records by chain. All addresses are return addresses."""
    sums: Counter = Counter()
    for row in rows_of(log, "records"):
        sites = [int(pc, 16) - 1 for pc in reversed(row["kernel"])]
        names = [symbols.names[bisect.bisect_right(symbols.starts, pc) - 1] for pc in sites]
        sums[kernel_chain(names)] += row["asleep_ns"] + row["ready_ns"]
    return sums


def counted_waits(counted: truth.Truth, entry: set[str], cycles: str) -> Counter:
    sums: Counter = Counter()
    for waits in counted.waits:
        chain = [name for name in waits.chain if name not in entry]
        sums[kernel_chain(chain)] += getattr(waits, cycles)
    return sums


def test_waits_are_those_that_a_plugin_counts(counted):
    """The times of all call chains are equal to the cycle."""
    found, log, symbols = counted
    waits = recorded_waits(log, symbols)
    assert waits == counted_waits(found, symbols.entry, "cycles")
    functions = {name for chain in waits for name in chain}
    assert {"sys_futex", "pipe_read", "sleep_user", "sys_sched_yield"} <= functions
    assert sum(waits.values()) > 200_000_000
    folded = [line.rsplit(" ", 1) for line in lines_of(log, "waits")]
    assert sum(int(ns) for _, ns in folded) == sum(waits.values())
    functions = {tuple(stack.split(";")[2:5]) for stack, _ in folded}  # of the user's code
    assert ("start_thread", "read_from_pipe", "read") in functions
    (row,) = (row for row in rows_of(log, "tasks") if row["name"] == "offcpu")
    nr = sum(waits.nr for waits in found.waits if "kthread_main" not in waits.chain)
    assert row["waits"] == nr > 500


def test_control_another_clock_fails(counted):
    """Times from switch to switch differ by the instructions between clock and switch."""
    found, log, symbols = counted
    waits = recorded_waits(log, symbols)
    others = counted_waits(found, symbols.entry, "switch_cycles")
    assert waits != others
    total = sum(waits.values())
    assert 0 < abs(sum(others.values()) - total) < total / 100


RENAMED = """\
printf '#!/bin/sh\\nexec /bin/wordcount -t 4 /bin/wordcount\\n' >/tmp/has-a-long-name
chmod +x /tmp/has-a-long-name
/tmp/has-a-long-name
sed 's/^/tasks /' /proc/profile/waits_tasks.json
"""


def test_threads_of_a_program_that_another_one_has_executed(boot, tmp_path):
    """Its first thread had a longer name before: what is left of that makes no row of its own."""
    image = script_image(tmp_path, RENAMED, ("wordcount",))
    log = boot(None, append="profile.on_exit=none", initrd=image, icount=True).log
    names = Counter((row["pid"], row["name"]) for row in rows_of(log, "tasks"))
    assert any(name == "wordcount" for _, name in names)
    assert set(names.values()) == {1}, names
