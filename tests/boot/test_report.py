# SPDX-License-Identifier: BSD-2-Clause
"""The printed report: its arithmetic and its contents; and the checker, report.py."""

import re

import pytest

import report
import report_lines

SAMPLE = """\
[    1.000000] profile: report 1: demo (pid 20) exited with status 0 after 1.810 s
[    1.000000] CPU time: 1.020345 s, 46 threads = user code 0.820345 \
+ system calls 0.140000 + page faults 0.060000
[    1.000000] waited: 24.100000 s = futex 3.500000 + mm->lock 12.100000 + for a CPU 8.500000
[    1.000000] events: 1076 system calls, 11742 page faults (11700 anonymous, 42 file), \
5267 context switches (310 involuntary, 44 migrations)
[    1.000000] memory: peak 46.5 MiB = heap 40.3 + stacks 5.2 + page tables 1.0
[    1.000000]
[    1.000000] Kernel strace
[    1.000000] Task: 20:20 nr_accumulated_threads: 46
[    1.000000] % time        seconds  usecs/call     calls    errors syscall
[    1.000000] ------ -------------- ----------- --------- --------- ----------------
[    1.000000]  83.33    2.500000000     1250000         2         1 sys_futex
[    1.000000]  16.67    0.500000001      500001         1         0 sys_write
[    1.000000]   0.00    0.000000999           1         3         3 sys_999
[    1.000000] ------ -------------- ----------- --------- --------- ----------------
[    1.000000] 100.00    3.000001000                     6         4 total
[    1.000000]
hello from a program, not in the report
[    1.000000] Kernel Heatmap (top #2)
[    1.000000] samples: 1400, all CPUs since boot (1.12 s) = user 1 \
+ kernel 990 + interrupt 9 + idle 400
[    1.000000] of this process: 1000 = user 1 + kernel 990 + interrupt 9
[    1.000000] sampling: APIC timer, 100 per second and CPU at random moments (seed 1)
[    1.000000]          Address              Function          NR          %
[    1.000000] ----------------  --------------------  ----------  ---------
[    1.000000] ffffffff8101a600              cpu_idle         550      55.00
[    1.000000] ffffffff810666f0            __schedule         301      30.10
[    1.000000] 0000000000000000            [3 others]         149      14.90
[    1.000000] ----------------  --------------------  ----------  ---------
[    1.000000]                                               1000     100.00
[    1.000000] 37 of 1437 expected samples lost: 37 late by a whole period
[    1.000000] sampling cost: 0.03 % of CPU time, 315 ns a sample
[    1.000000]
[    1.000000] Kernel Heatmap of user functions (top #2)
[    1.000000]          Address              Function          NR          %  File
[    1.000000] ----------------  --------------------  ----------  ---------  ----
[    1.000000] 0000000000402270            worker_run           1     100.00  /bin/demo
[    1.000000] ----------------  --------------------  ----------  ---------  ----
[    1.000000]
[    1.000000] Kernel Waits (top #2)
[    1.000000] waits: 99 of this process's threads = asleep 3.000 s + ready without a CPU 1.000 s
[    1.000000]       seconds      for.a.CPU      times        longest  waits.for               \
where                 woken.by
[    1.000000] -------------  -------------  ---------  -------------  ----------------------  \
--------------------  --------------------
[    1.000000]      2.500000       0.600000         90       0.100000  futex 0x4bb310          \
wait_bitset           wake_waiters (demo)
[    1.000000]      0.400001       0.400001          6       0.300000  a CPU                   \
-                     -
[    1.000000] -------------  -------------  ---------
[    1.000000]      2.900001       1.000001         96
[    1.000000] 2 others, with 3 waits
[    1.000000]
[    1.000000] Kernel Profile Points
[    1.000000] of this process since its execve (0.80 s)
[    1.000000]  status                  name             total                nr            avg.ns
[    1.000000] -------  --------------------  ----------------  ----------------  ----------------
[    1.000000]      on      flush_tlb_others       0.000153470                55              2791
[    1.000000]     off     pcache_cache_miss      16.147020152            274698             58781
[    1.000000] -------  --------------------  ----------------  ----------------  ----------------
[    1.000000] overhead: 25 ns a pair, 12 ns of it inside total and avg.ns (not subtracted)
[    1.000000] profile: end of report 1
[    1.000000] reboot: power off, status 0
"""

DAMAGE = {
    "one call more": ("        2         1 sys_futex", "        3         1 sys_futex"),
    "one error less": ("3         3 sys_999", "3         2 sys_999"),
    "one ns more": ("0.500000001", "0.500000002"),
    "a percentage rounded down": (" 16.67 ", " 16.66 "),
    "a percentage cut to 100.00": (" 83.33 ", " 83.34 "),
    "total is not 100": ("100.00    3.0", " 99.99    3.0"),
    "usecs rounded down": (" 500001  ", " 500000  "),
    "errors above calls": ("3         3 sys_999", "3         4 sys_999"),
    "row missing": (re.compile(r"^.*sys_write\n", re.M), ""),
    "table cut short": (re.compile(r"^.*sys_999\n(.*\n)*", re.M), ""),
    "total row missing": (re.compile(r"^.* total\n", re.M), ""),
    "row garbled": ("0.500000001      500001", "0.500000001  <6>hello"),
    "unsorted": (re.compile(r"^(.*futex\n)(.*sys_write\n)", re.M), r"\2\1"),
    "row twice": ("sys_999", "sys_write"),
    "sample of the machine lost": ("samples: 1400", "samples: 1401"),
    "an expected sample is missing": ("of 1437 expected", "of 1438 expected"),
    "sample in no class": ("idle 400", "idle 399"),
    "sample of the process lost": ("process: 1000", "process: 1001"),
    "sample in no user function": ("worker_run           1", "worker_run           2"),
    "sample of no process": ("1000 = user 1 + kernel 990", "1000 = user 2 + kernel 989"),
    "sample lost": (" 301      30.10", " 300      30.00"),
    "heat percentage": ("30.10", "30.11"),
    "heat total": ("1000     100.00", " 999     100.00"),
    "more rows than top": ("top #2", "top #1"),
    "no total of samples": (re.compile(r"^.* 1000     100.00\n", re.M), ""),
    "no line with all samples": (re.compile(r"^.*samples: .*\n", re.M), ""),
    "a page fault of no kind": ("42 file", "41 file"),
    "a part of the CPU time": ("0.140000", "0.140001"),
    "a part of the time waited": ("12.100000", "12.100001"),
    "no time waited": (re.compile(r"^.*waited: .*\n", re.M), ""),
    "more switches than there are": ("310 involuntary", "5310 involuntary"),
    "more migrations than switches": ("44 migrations", "5444 migrations"),
    "a wait lost": ("with 3 waits", "with 2 waits"),
    "ready for longer than it waited": ("0.400001          6", "0.400002          6"),
    "time of waits": ("2.900001", "2.900002"),
    "a row of waits missing": (re.compile(r"^.* a CPU  .*\n.*\n", re.M), ""),
    "waits garbled": ("  0.300000  a CPU", "  <6>hello"),
    "average rounded down": ("2791", "2790"),
    "pairs": (" 55 ", " 56 "),
    "no first line": (re.compile(r"^.*report 1: demo.*\n", re.M), ""),
    "no last line": (re.compile(r"^.*end of report.*\n", re.M), ""),
    "a report is lost": ("report 1: demo", "report 2: demo"),
    "two heatmaps": (re.compile(r"(.*Kernel Heatmap (?:.*\n)*)(?=.*Kernel Profile P)"), r"\1\1"),
    "no overhead": (re.compile(r"^.*overhead: .*\n", re.M), ""),
    "points unsorted": ("flush_tlb_others", "qlush_tlb_others"),
    "points cut short": (re.compile(r"^.*274698(.*\n)*", re.M), ""),
}


def test_checker_accepts_a_right_report():
    assert report.check_log(SAMPLE) == []
    (found,) = report.parse(SAMPLE)
    assert found.parts == {"strace", "heatmap", "points"}
    assert found.why == "demo (pid 20) exited with status 0 after 1.810 s"
    assert found.strace.row("futex").nr_calls == 2 and found.strace.nr_threads == 46
    assert found.summary.parts["mm->lock"] == 12_100_000 and found.summary.nr_threads == 46
    assert found.waits.rows[0].waker == "wake_waiters (demo)"
    machine = dict(samples=1400, user=1, kernel=990, interrupt=9, idle=400)
    assert found.heatmap.split == machine
    assert found.heatmap.process == dict(samples=1000, user=1, kernel=990, interrupt=9, idle=0)
    assert found.points.row("flush_tlb_others").avg_ns == 2791


@pytest.mark.parametrize("damage", DAMAGE)
def test_checker_sees_damage(damage):
    old, new = DAMAGE[damage]
    if isinstance(old, str):
        assert old in SAMPLE
        damaged = SAMPLE.replace(old, new, 1)
    else:
        damaged, nr = old.subn(new, SAMPLE, count=1)
        assert nr == 1
    assert report.check_log(damaged) != []


def test_only_a_panic_may_cut_a_report():
    cut = SAMPLE[: SAMPLE.index("sys_write")] + "\n"
    panic = "[    2.0] Kernel panic: on purpose\n" + SAMPLE.replace("report 1", "report 2")
    assert report.check_log(cut) != []
    assert report.check_log(cut + panic) == []
    assert [found.number for found in report.parse(cut + panic)] == [2]
    assert [found.number for found in report.parse(SAMPLE + panic)] == [1, 2]
    assert report.check_log(SAMPLE + SAMPLE) != []
    assert report.check_log(panic) != []


def test_percent_is_rounded_half_up():
    assert report_lines.percent(1, 3) == "33.33"
    assert report_lines.percent(2, 3) == "66.67"
    assert report_lines.percent(1, 20000) == "0.01"
    assert report_lines.percent(1, 20001) == "0.00"
    assert report_lines.percent(2**64 - 1, 2**64 - 1) == "100.00"
    assert report_lines.percent(0, 0) == "0.00"


def only(log):
    found = report.parse(log)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("smp", [1, 4])
def test_demo_report(boot, smp):
    append = "profile.on_exit=all profile.top=all"
    log = boot("wordcount", "-t", 46, "/data/small", smp=smp, append=append).log
    found = only(log)
    assert found.parts == {"strace", "heatmap", "points"}
    assert found.strace.nr_threads == 46
    assert found.strace.row("execve").nr_calls == 1
    assert found.strace.row("exit_group").nr_calls == 1
    assert found.strace.row("exit").nr_calls == 45
    assert found.heatmap.total[0] > 0
    names = {row.name for row in found.points.rows}
    assert {"page_fault", "thread_create", "context_switch", "futex_wait"} <= names
    assert found.points.row("thread_create").nr == 45
    if smp > 1:
        assert "flush_tlb_others" in names


def test_demo_report_is_short(boot):
    """The report has at most 80 lines."""
    log = boot("wordcount", "-t", 46, "/data/small", icount=True).log
    lines = report_lines.Lines(log).lines
    (first,) = (i for i, line in enumerate(lines) if report.BEGIN.match(line))
    (last,) = (i for i, line in enumerate(lines) if report_lines.END.match(line))
    assert last - first + 1 <= 80


def test_known_answers(boot):
    """The calls that tests/user/profile/syscalls.c makes are counted exactly."""
    for program in ("syscalls", "syscalls.musl"):
        table = only(boot(program, smp=2, append="profile.top=all").log).strace
        expected = {
            "getppid": (1000, 0),
            "getuid": (7, 0),
            "999": (3, 3),
            "lseek": (11, 11),
            "sched_yield": (20, 0),
            "nanosleep": (5, 0),
            "access": (4, 1),
        }
        got = {name: table.row(name) for name in expected}
        assert all(got.values()), [name for name in got if not got[name]]
        assert {n: (row.nr_calls, row.nr_errors) for n, row in got.items()} == expected
        # Each nanosleep is for one millisecond.
        assert got["nanosleep"].ns >= 5 * 1000000


@pytest.mark.parametrize(
    "value, printed, unmatched",
    [
        ("all", True, []),
        ("none", False, []),
        ("hello", True, []),
        ("hel*,hello", True, []),
        ("other", False, ["other"]),
        ("other,h?llo", True, ["other"]),
        ("wordcount,spin*", False, ["wordcount", "spin*"]),
    ],
)
def test_on_exit(boot, value, printed, unmatched):
    log = boot(append=f"profile.on_exit={value}").log
    assert len(report.parse(log)) == printed
    named = re.findall(r"profile\.on_exit: no process ended that matches (\S+)$", log, re.M)
    assert [name.strip() for name in named] == unmatched


@pytest.mark.parametrize("top", [1, 3, "all"])
def test_top(boot, top):
    found = only(boot("wordcount", "-t", 8, "/data/small", append=f"profile.top={top}").log)
    for table in (found.strace, found.heatmap):
        shown = [row for row in table.rows if not report_lines.is_rest(row.name)]
        if top == "all":
            assert len(shown) == len(table.rows) > 4
        else:
            assert len(shown) == top and table.rows[-1].name.endswith(" others]")
    assert found.heatmap.top == (None if top == "all" else top)


def test_split_follows_the_load(boot):
    """A program that runs only user code has most samples in class `user`."""
    heatmap = only(boot("spin", 1500).log).heatmap
    assert heatmap.split["user"] > heatmap.split["samples"] / 2
    assert heatmap.process["user"] == heatmap.split["user"]
    # On four CPUs, three are idle.
    heatmap = only(boot("spin", 1500, smp=4).log).heatmap
    assert heatmap.split["idle"] > heatmap.split["samples"] / 4


def test_execve_restarts_the_table(boot):
    """execchain makes about ten execve calls that fail, then two that succeed."""
    table = only(boot("execchain", smp=2, append="profile.top=all").log).strace
    assert table.row("execve").nr_calls == 1 and table.row("execve").nr_errors == 0


def ask(guest, keys):
    """Types each key after the answer to the one before."""
    answers = {"p": "end of report", "z": "sysrq: reset"}
    for key in keys:
        guest.sysrq(key)
        guest.expect(answers[key])


def finish_churn(boot, guest):
    guest.send("\n")
    result = boot.finish(guest.wait(), ok=True, check=True)
    pattern = r"^churn: getppid (\d+) close (\d+) threads (\d+)$"
    counts = re.search(pattern, result.log, re.MULTILINE)
    return report.parse(result.log), [int(nr) for nr in counts.groups()]


def test_reports_under_load(boot):
    """
    Reports are right while threads start and end. No count decreases, and the last report has all
    calls.
    """
    with boot.start("churn", 8, smp=4, silence=60, append="profile.top=all") as guest:
        guest.expect("^churn: started")
        ask(guest, "p" * 12)
        reports, (nr_getppid, nr_close, nr_threads) = finish_churn(boot, guest)
    assert len(reports) == 13
    last = reports[-1].strace
    assert last.row("getppid").nr_calls == nr_getppid
    assert last.row("close").nr_errors == nr_close
    assert last.nr_threads == nr_threads + 1
    assert last.row("exit").nr_calls == nr_threads - 1
    sleep = last.row("clock_nanosleep")
    assert sleep.nr_calls == 1 and sleep.nr_errors == 0
    assert last.row("exit_group").nr_calls == 1
    for old, new in zip(reports, reports[1:]):
        for row in old.strace.rows:
            (later,) = (later for later in new.strace.rows if later.name == row.name)
            # A time may decrease: the time of a call in flight is an estimate. It is too long if
            # the host stops a CPU after the call has read its end time, but before it stores it.
            assert later.nr_calls >= row.nr_calls and later.nr_errors >= row.nr_errors
        assert all(new.heatmap.split[word] >= nr for word, nr in old.heatmap.split.items())


def test_reports_and_resets_under_load(boot):
    with boot.start("churn", 8, smp=4, silence=60, append="profile.top=all") as guest:
        guest.expect("^churn: started")
        ask(guest, "pzp" * 8)
        reports, (nr_getppid, _, _) = finish_churn(boot, guest)
    assert len(reports) == 17
    assert 0 < reports[-1].strace.row("getppid").nr_calls < nr_getppid
    assert reports[0].strace.row("execve")
    assert not any(found.strace.row("execve") for found in reports[1:])


def test_no_sample_is_lost_with_icount(boot):
    """On one CPU whose clock counts instructions, every sample is taken."""
    log = boot("threads", icount=True, append="profile.report=wide", timeout=180).log
    assert re.search(r"expected: \d+ samples .* = \d+ taken \+ 0 lost \+ 0 in the profiler\s", log)
    assert "expected samples lost" not in log
