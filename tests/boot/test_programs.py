# SPDX-License-Identifier: BSD-2-Clause
"""Every guest program passes in the kernel, on one CPU and on several, and on the host's Linux."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter

import pytest

from harness import BUILD, ROOT

sys.path.insert(0, str(ROOT / "tests/bench"))
import kernel_bound  # noqa: E402
import native_programs  # noqa: E402

CHECKERS = """
    badelf badptr exceptions execchain files fpu futexops futexpp klog mappings memory threads
    timeouts timing
""".split()
# Programs that fork; all of them exist with both C libraries.
PROCESSES = """
    attrs clocks cow epolls eventfds execs fdlinks fds forks ids iocounts jobs kills limits locks
    map-race messages perms perms-process perms-race pipes polls procs realtime restarts scripts
    sharing sigcontext sigframes sigqueues signalfds signals sockets splices timers tree waits
    wakeups
""".split()
FOR_ROOT = ("attrs", "ids", "perms", "perms-process", "perms-race", "realtime")
ONLY_GLIBC = ("badelf", "exceptions", "fpu", "futexops", "klog")
MUSL = [f"{name}.musl" for name in CHECKERS if name not in ONLY_GLIBC]
MODES = ["fork", "exec", "futex", "pipe", "mmap", "thread", "signal"]
ALONE = ["interps"]  # runs itself hundreds of times; all its processes have one report
NO_REPORTS = "profile.on_exit=none"  # of hundreds of processes
FATAL_SIGNALS = {
    "null": signal.SIGSEGV,
    "kernel": signal.SIGSEGV,
    "read-kernel": signal.SIGSEGV,
    "noncanonical": signal.SIGSEGV,
    "text": signal.SIGSEGV,
    "stack-exec": signal.SIGSEGV,
    "jump-kernel": signal.SIGSEGV,
    "prot-none": signal.SIGSEGV,
    "readonly": signal.SIGSEGV,
    "overflow": signal.SIGSEGV,
    "opcode": signal.SIGILL,
    "cli": signal.SIGSEGV,
    "port": signal.SIGSEGV,
    "divide": signal.SIGFPE,
    "unmap": signal.SIGSEGV,
    "protect": signal.SIGSEGV,
}


def program_passes(log, program):
    name = program.removesuffix(".musl")
    assert "FAIL:" not in log, [line for line in log.splitlines() if "FAIL:" in line]
    assert re.search(rf"^PASS: {name}: \d+ checks$", log, re.MULTILINE)


@pytest.mark.parametrize("smp", [1, 4])
@pytest.mark.parametrize("program", CHECKERS + MUSL)
def test_program(shared, program, smp):
    append = f"profile.on_exit={','.join(CHECKERS + MUSL)}"
    program_passes(shared(smp=smp, append=append).log, program)


@pytest.mark.parametrize("smp", [1, 4])
@pytest.mark.parametrize("program", ALONE)
def test_program_alone(boot, program, smp):
    program_passes(boot(program, smp=smp, append="profile.on_exit=run").log, program)


@pytest.mark.parametrize("smp", [1, 4])
@pytest.mark.parametrize("program", PROCESSES)
def test_processes(shared, program, smp):
    """Those with musl run on 2 CPUs: the kernel does not see which C library a program has."""
    program_passes(shared(smp=smp, append=NO_REPORTS).log, program)


@pytest.mark.parametrize("smp", [2])
@pytest.mark.parametrize("program", [f"{name}.musl" for name in PROCESSES])
def test_processes_musl(shared, program, smp):
    program_passes(shared(smp=smp, append=NO_REPORTS).log, program)


@pytest.mark.parametrize("smp", [2, 8])
@pytest.mark.parametrize("program", [f"stress:{mode}:1:4" for mode in MODES])
def test_stress(shared, program, smp):
    """Under load, no byte, signal or process is lost, and nothing is left over."""
    log = shared(smp=smp, append=NO_REPORTS).log
    mode = program.split(":")[1]
    assert "FAIL:" not in log and re.search(rf"^PASS: stress {mode}: ", log, re.MULTILINE)


@pytest.mark.parametrize("mem, limit", [("512M", 100), ("64M", 0)])
def test_fork_bomb(boot, mem, limit):
    """One run has a limit of 100 processes; in the other one, only memory limits their number."""
    log = boot("forkbomb", 2, limit, smp=4, mem=mem, append=NO_REPORTS).log
    program_passes(log, "forkbomb")


def test_out_of_memory(boot):
    """The kernel kills the process that took the memory, and no other, and logs it."""
    program_passes(boot("eatmem", smp=2, mem="64M", append=NO_REPORTS).log, "eatmem")


def reset_niceness():
    """Programs expect a niceness of 0, but the tests may run with another one."""
    if not os.geteuid():
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def run_on_linux(program, *args):
    command = [BUILD / "user" / program, *args]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, preexec_fn=reset_niceness
    )


@pytest.mark.parametrize("args", ["all 0.3 4", "futex 0.3 1"])
def test_stress_on_linux(builds, args):
    builds.initrd()
    done = run_on_linux("stress", *args.split())
    assert done.returncode == 0 and "FAIL:" not in done.stdout, done.stdout


@pytest.mark.parametrize("program", ["eatmem", "forkbomb 1 100"])
def test_limits_on_linux(builds, program):
    builds.initrd()
    name, *args = program.split()
    done = run_on_linux(name, *args)
    assert done.returncode == 0, done.stdout
    program_passes(done.stdout, name)


@pytest.mark.parametrize(
    "program", CHECKERS + MUSL + ALONE + PROCESSES + [f"{name}.musl" for name in PROCESSES]
)
def test_program_on_linux(builds, program):
    """Linux behaves as the programs expect."""
    if program.removesuffix(".musl") in FOR_ROOT and os.geteuid():
        pytest.skip("only root may")
    builds.initrd()
    done = run_on_linux(program)
    assert done.returncode == 0, done.stdout
    program_passes(done.stdout, program)


def test_checks_of_children_count(builds, boot):
    """If a check fails in a child, the program fails, no matter how the child ends."""
    builds.initrd()
    guest, host = boot("checks", ok=False), run_on_linux("checks")
    for log, status in ((guest.log, guest.status), (host.stdout, host.returncode)):
        assert status == 1 and "PASS" not in log
        assert re.search(r"^FAIL: checks: 4 of (\d+) checks failed$", log, re.MULTILINE)


def test_every_program_is_tested():
    """A new guest program must be listed here."""
    used_elsewhere = {"churn", "fuzz", "wordcount", "hello", "hello-pie", "exit", "segv", "spin"}
    used_elsewhere |= {"bench-syscall", "eatmem", "forkbomb", "points", "stress", "syscalls"}
    used_elsewhere |= {"accuracy", "chain", "chain-nofp", "decode", "heatmap", "renames"}
    used_elsewhere |= {"straces", "typed", "controls", "checks", "callers", "chain-libc"}
    used_elsewhere |= {"bench-events", "bench-kernel", "bench-processes"}
    used_elsewhere |= {"crowd", "tables", "names", "attacker", "offcpu", "hoard", "soak", "stall"}
    used_elsewhere |= {"failing", "codefiles", "bench-areas", "bench-crowds", "generations"}
    used_elsewhere |= {"agree", "operations", "turns", "crashes", "late-kills", "owners", "paths"}
    used_elsewhere |= {"batch", "critical", "herds", "mapped", "worksets"}
    sources = {path.stem for path in (ROOT / "tests/user").rglob("*.c*")}
    assert sources - used_elsewhere == set(CHECKERS + ALONE + PROCESSES)


@pytest.mark.parametrize("case", FATAL_SIGNALS)
def test_fault_ends_the_program_only(boot, case):
    """The signal kills the program. The kernel prints the report and powers off."""
    result = boot("segv", case, smp=2, ok=False)
    assert "Kernel panic" not in result.log and "BUG:" not in result.log
    assert "did no harm" not in result.log
    assert result.status == 128 + FATAL_SIGNALS[case]


def test_bench_program(boot):
    log = boot("bench-syscall", 1000, 100000).log
    assert re.search(r"^bench: syscall_getppid_cycles \d+$", log, re.MULTILINE)
    assert re.search(r"^bench: loop_cycles \d+$", log, re.MULTILINE)


def test_bench_events(boot):
    log = boot("bench-events", "each", 1000).log
    found = dict(re.findall(r"^bench: (\w+) \d+ (\d+)$", log, re.MULTILINE))
    nr_switches = int(found.pop("switch"))
    assert 990 <= nr_switches <= 1010, "a yield is no switch"
    events = ("fail", "fail_after_others", "unnamed", "fault")
    assert found == {name: "1000" for name in events} | {"nr_others": "1"}
    log = boot("bench-events", "run", "/bin/hello").log
    assert re.search(r"^bench: run \d+ 1$", log, re.MULTILINE)


def test_bench_kernel(boot):
    """It measures what tests/bench has a reference or a limit for, and runs on all CPUs."""
    log = boot("bench-kernel", 2).log
    found = set(re.findall(r"^bench: (\w+) \d+ \d+$", log, re.MULTILINE))
    assert found == {*kernel_bound.LINUX_COSTS, *kernel_bound.LIMITS, *kernel_bound.PROFILER_LIMITS}
    for operation in kernel_bound.SCALED:
        boot("bench-kernel", 2, operation, 2, smp=2)


def test_native_bench_builds(builds, tmp_path):
    """What os_hooks.h asks of a kernel, the programs on this machine define, too."""
    for program in native_programs.build(builds.kernel().parent, tmp_path):
        assert program.is_file()


WORD = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")


@pytest.mark.parametrize("program", ["wordcount", "wordcount.musl"])
@pytest.mark.parametrize("nr_threads", [1, 46, 200])
def test_wordcount_counts_right(boot, program, nr_threads):
    log = boot(program, "-t", nr_threads, "/data/small", smp=4).log
    data = small_text()
    words = WORD.findall(data)
    expected = {
        "threads": nr_threads,
        "lines": data.count(b"\n"),
        "words": len(words),
        "bytes": len(data),
        "distinct": len(set(words)),
    }
    for name, value in expected.items():
        assert re.search(rf"^{name} +{value}$", log, re.MULTILINE), name
    ranked = sorted((-nr, word) for word, nr in Counter(words).items())
    for count, word in ranked[:10]:
        assert re.search(rf"^ *{-count} {re.escape(word.decode())}$", log, re.MULTILINE), word


def small_text() -> bytes:
    """Returns /data/small from the initramfs: the same bytes as in the guest."""
    archive = (BUILD / "tests.cpio").read_bytes()
    pos = 0
    while True:
        header = archive[pos : pos + 110]
        assert header[:6] == b"070701"
        size, name_len = int(header[54:62], 16), int(header[94:102], 16)
        name = archive[pos + 110 : pos + 109 + name_len].decode()
        start = (pos + 110 + name_len + 3) & ~3
        if name.lstrip("./") == "data/small":
            return archive[start : start + size]
        assert name != "TRAILER!!!", "no data/small in tests.cpio"
        pos = (start + size + 3) & ~3


@pytest.mark.parametrize("args", ["", "-t 0 /data/small", "-t x /data/small", "-t 4 /no/such"])
def test_wordcount_bad_arguments(boot, args):
    result = boot("wordcount", *args.split(), ok=False)
    assert result.status in (1, 2)
    assert "wordcount: " in result.log
