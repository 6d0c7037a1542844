# SPDX-License-Identifier: BSD-2-Clause
"""The debug kernel: it has no complaint in normal runs, and each check finds its fault."""

import re
import time

import pytest

import ktap

OPTIONS = dict(variant="debug", silence=60)
ALL_CPUS = dict(OPTIONS, smp=4)
PROGRAMS = ["files", "locks", "threads", "futexops", "cow", "forks", "signals", "restarts", "polls"]
PROGRAMS += ["epolls", "fdlinks", "fds", "messages", "procs", "sharing", "signalfds", "sockets"]
PROGRAMS += ["eventfds", "map-race", "timers"]
# No more CPUs than the host has, which would spin longest where checks make holders of locks slow.
# Little memory, as one suite fills all of it several times.
SUITES = dict(OPTIONS, smp=2, mem="80M")

# The faults that tests/kernel/crash.c makes, and the messages about them.
REPORTS = {
    "lock-order": "lock order",
    "lock-sleep": r"sleeping where that is forbidden|schedule\(\) with a spinlock held",
}
PANICS = {
    "assert": r"BUG: kernel/fs/ramfs\.c:\d+ tree_find\(\): &tree_lock is held",
    "lock-twice": r"BUG: lock taken twice: \S+crash\.c:\d+ lock_a",
    "use-after-free": r"BUG: write to freed memory: byte 7 of the object of 100 at \w+ is 01,.*",
    "page-after-free": r"BUG: write to a free page: byte 4095 of \w+ is 01, not 6b",
    "behind-end": r"BUG: write behind the end: byte 64 of the object of 64 at \w+ is 01,.*",
    "double-free": r"BUG: second free of the object of 32 at \w+",
    "middle-free": r"BUG: free of the middle of an object: \w+",
    "page-free": r"BUG: free of what is not allocated: \w+",
    "behind-array": "BUG: write behind an array on the stack of write_behind_array",
    "wild-free": r"BUG: free of an address outside of memory: \w+",
}

# The suites of tests/kernel/test_leak.c, which leak on purpose.
LEAKS = {
    "broken_leak": r"leaks: \+1 objects of up to (1024|1536) bytes",
    "broken_leak_page": r"leaks: \+1 pages",
    "broken_leak_task": r"leaks: \+1 tasks",
}


def test_all_suites(boot):
    result = boot(None, append="selftest=all", **SUITES)
    suites = ktap.parse(result.log)
    # `memory` matters here: its counters share pages with the states of CONFIG_DEBUG_SLAB.
    names = {suite.name for suite in suites}
    assert {"assert", "lock_check", "leak", "memory", "mm", "fs"} <= names
    assert all(test.ok for suite in suites for test in suite.tests)
    assert all(suite.tests[-1].name == "nothing_is_left_over" for suite in suites)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(boot, program):
    """forks has one report, not one of each of its 600 processes: these take ten times as long."""
    append = "profile.on_exit=run" if program == "forks" else ""
    boot(program, append=append, **ALL_CPUS)


@pytest.mark.parametrize("what", ["alloc", "usercopy"])
def test_injected_faults(boot, what):
    """
    On each call path, the first allocation or copy of user memory fails, then the second. The
    kernel survives, and nothing leaks. For a longer run by hand: init=/bin/failing -- alloc 1 20
    300 forks threads ... strace is off, because its table for init would grow with new errors of
    the children.
    """
    options = dict(OPTIONS, append="profile.on_exit=none profile.strace=off")
    log = boot("failing", what, 1, 2, 40, "files", "execs", **options).log
    rounds = re.findall(r"fail_\w+: use (\d+) failed on (\d+) of \d+ paths, (.*)$", log, re.M)
    assert [int(use) for use, *_ in rounds[-2:]] == [1, 2]
    assert all(int(nr) > 50 and what == "nothing leaked" for _, nr, what in rounds[-2:]), rounds


@pytest.mark.parametrize("mode", REPORTS)
def test_misuse_of_locks_is_reported(boot, mode):
    result = boot("spin", 60000, ok=False, check=False, append=f"crash={mode}", **ALL_CPUS)
    warning = re.search(rf"WARNING: kernel/debug/\S+:\d+ (?:{REPORTS[mode]})$", result.log, re.M)
    assert warning, result.tail()
    assert result.verdict.warnings >= 1 and not result.ok, result.error
    # The next lines name the lock and the function that has taken it.
    assert re.search(r"locks: .*crash\.c:\d+ \w+.* \w+\+0x", result.log[warning.end() :])
    if mode == "lock-order":
        both = r"crash\.c:\d+ (\w+) held, since \w+\+0x.*crash\.c:\d+ (\w+) was wanted, at \w+\+0x"
        assert re.findall(both, result.log) == [("lock_b", "lock_a"), ("lock_a", "lock_b")]


@pytest.mark.parametrize("mode", PANICS)
def test_misuse_of_memory_stops_the_kernel(boot, mode):
    result = boot("spin", 60000, ok=False, check=False, append=f"crash={mode}", **ALL_CPUS)
    assert re.search(f"Kernel panic: {PANICS[mode]}$", result.log, re.M), result.tail()
    if mode == "use-after-free":
        for what in ("last allocated", "last freed"):
            assert re.search(rf"slab: {what} at write_to_freed_object\+0x", result.log), what


def test_a_late_kill_is_explained(boot):
    """A lock that its thread waits for is held: the log has tasks, what CPUs run, and waits."""
    options = dict(smp=2, icount=True, variant="functions", append="crash=late-kill")
    log = boot("late-kills", 0, **options).log
    told = log[log.index("process 2: killed by signal 9 1 s ago, but has 1 threads yet") :]
    assert re.search(r" 2 late-kills +blocked .* mm->lock$", told, re.M)
    assert re.search(r"late-kills \(pid 2\) has waited \d\.\d+ s for mm->lock in ", told)
    assert {f"CPU{cpu} runs" for cpu in (0, 1)} == set(re.findall(r"CPU\d runs", told))
    assert "PASS: late-kills: " in told


@pytest.mark.parametrize("variant", ["debug", "functions"])
def test_a_leak_fails_its_suite(boot, variant):
    result = boot(None, append="selftest=broken_*", ok=False, check=False, variant=variant)
    suites = ktap.parse(result.log)
    assert {suite.name for suite in suites} == set(LEAKS)
    for suite in suites:
        assert [test.ok for test in suite.tests] == [True, False]
        # The lines of this suite, up to its result.
        start = result.log.index(f"# Subtest: {suite.name}\n")
        lines = result.log[start : result.log.index(f" {suite.name}\n", start + 20)]
        assert re.search(LEAKS[suite.name], lines), lines
    assert "status 1" in result.log
    if variant == "debug":
        assert re.search(r"slab: allocated at selftest_broken_leak_object\+0x", result.log)


def test_sysrq_counts_objects(boot):
    """
    Two counts in a row are the same while nothing happens, in a kernel without checks. The test
    counts five times, because on a busy host the threads may still be starting.
    """
    with boot.start("spin", "-", 3, smp=2) as guest:
        guest.expect("^spin: started")
        for _ in range(5):
            guest.sysrq("l")
            guest.expect(r"leaks: pages \d+.*\n")
            time.sleep(0.1)
        guest.send("\n")
        result = boot.finish(guest.wait(), ok=True, check=True)
    held = re.findall(r"leaks: (pages \d+, stacks \d+, .*)$", result.log, re.M)
    assert len(held) == 5 and any(a == b for a, b in zip(held, held[1:])), held
    counts = {name: int(nr) for name, nr in re.findall(r"([a-z' ]+?) (\d+)(?:, |$)", held[-1])}
    assert counts["processes"] == 1 and counts["tasks"] >= 4 and counts["address spaces"] == 1


ROUND = (
    "for i in 1 2 3 4 5 6; do ls -l / | cat >/dev/null; (sleep 0.01 &); ps >/dev/null;"
    " mkdir /tmp/d; echo $i >/tmp/d/f; ln -s f /tmp/d/l; mv /tmp/d/f /tmp/d/g; rm -r /tmp/d;"
    " done; sleep 0.2; echo round $((40 + 2))"
)


def test_a_session_leaks_nothing(boot):
    """
    The shell's own memory may grow a little now and then, so some counts may differ. A leak would
    add to every round, and all counts would differ.
    """
    options = dict(ALL_CPUS, initrd="shell.cpio", append="profile.on_exit=none")
    with boot.start(None, **options) as guest:
        guest.expect(r"lego:[^\n]*# ")
        for _ in range(6):
            guest.send(ROUND + "\n")
            guest.expect(r"^round 42")
            guest.expect(r"lego:[^\n]*# ")
            guest.sysrq("l")
            guest.expect(r"leaks: pages \d+.*\n")
        guest.send("exit\n")
        result = boot.finish(guest.wait(), ok=True, check=True)
    counts = re.findall(r"leaks: pages.*address spaces.*", result.log)
    assert len(counts) == 6 and len(set(counts)) < 6, counts
