# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's system call table equals what strace counts on the host."""

import re
from pathlib import Path

import pexpect
import pytest

from harness import BUILD
from test_programs import small_text

EXCEPTIONS = Path(__file__).with_name("strace-exceptions.txt")
WORDCOUNT = ["wordcount", "wordcount.musl"]
CHECKERS = ["files", "badptr", "execchain"]
PROGRAMS = [*WORDCOUNT, "syscalls", "syscalls.musl", *CHECKERS, *(f"{p}.musl" for p in CHECKERS)]
PROGRAMS += ["hello", "hello.musl", "hello-pie", "fpu", "timing", "memory", "futexpp", "threads"]


def host_trace(program, tmp_path, text=None):
    """Raw strace of the same binary on the same input and number of CPUs, on a terminal."""
    arguments = []
    if text is not None:
        (tmp_path / "text").write_bytes(text)
        arguments = ["-t", "46", str(tmp_path / "text")]
    trace = tmp_path / "trace"
    command = ["-c", "0,1", "strace", "-f", "-o", trace, BUILD / "user" / program, *arguments]
    child = pexpect.spawn("taskset", [*map(str, command)], cwd=tmp_path, timeout=120)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    return trace.read_text(errors="replace")


def guest_log(boot, program):
    arguments = ["-t", 46, "/data/small"] if program in WORDCOUNT else []
    return boot(program, *arguments, smp=2).log


def host_small(program, tmp_path):
    return host_trace(program, tmp_path, small_text() if program in WORDCOUNT else None)


def test_demo(boot, builds, strace_compare, tmp_path):
    """The demo of `make run`, whole: 46 threads, 32 MB."""
    text = builds.initrd("initramfs.cpio").parent / "data" / "text"
    log = boot("wordcount", "-t", 46, "/data/text", initrd="initramfs.cpio", smp=2).log
    host = strace_compare.count_strace(host_trace("wordcount", tmp_path, text.read_bytes()))
    exceptions = strace_compare.read_exceptions(EXCEPTIONS.read_text(), "wordcount")
    assert strace_compare.compare(host, strace_compare.count_report(log), exceptions) == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_equal(boot, builds, strace_compare, tmp_path, program):
    builds.initrd()
    log = guest_log(boot, program)
    host = strace_compare.count_strace(host_small(program, tmp_path))
    exceptions = strace_compare.read_exceptions(EXCEPTIONS.read_text(), program)
    guest = strace_compare.count_report(log)
    assert strace_compare.compare(host, guest, exceptions) == []
    # One call more, one error more or less, a row too many or too few: each must be seen.
    for name in guest.keys() - exceptions.keys():
        calls, errors = guest[name]
        for changed in ((calls + 1, errors), (calls - 1, errors), (calls, errors + 1)):
            assert strace_compare.compare(host, guest | {name: changed}, exceptions)
        without = {other: counts for other, counts in guest.items() if other != name}
        assert strace_compare.compare(host, without, exceptions)
    assert strace_compare.compare(host, guest | {"extra": (1, 0)}, exceptions)


def test_miscounted_call_fails(boot, builds, strace_compare, tmp_path):
    """The whole script on a console log in which one number is off by one."""
    builds.initrd()
    log = guest_log(boot, "wordcount")
    (tmp_path / "host").write_text(host_small("wordcount", tmp_path))

    def run(text):
        (tmp_path / "log").write_text(text)
        inputs = [str(tmp_path / "host"), str(tmp_path / "log")]
        options = [f"--exceptions={EXCEPTIONS}", "--program=wordcount"]
        return strace_compare.main(inputs + options)

    assert run(log) == 0
    row = re.search(r"^(.* )(\d+)( +)(\d+)( sys_pread64)$", log, re.MULTILINE)
    for calls, errors in ((1, 0), (-1, 0), (0, 1)):
        line = f"{row[1]}{int(row[2]) + calls}{row[3]}{int(row[4]) + errors}{row[5]}"
        assert run(log.replace(row[0], line)) == 1
    assert run(log.replace(row[0] + "\n", "")) == 1
    assert run("nothing") == 2


TRACE = """\
100 execve("./a", ["./a"], 0x7ff /* 3 vars */) = 0
100 futex(0x1, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>
101 syscall_0x3e7(0x1, 0x2)             = -1 ENOSYS (Function not implemented)
101 syscall_0xffffffffffffffff(0x1)     = -1 ENOSYS (Function not implemented)
101 write(1, "= -1 EFAKE (no)", 15)     = 15
100 <... futex resumed>)                = -1 EAGAIN (Resource temporarily unavailable)
101 read(3, 0x8, 1 <unfinished ...>
101 <... read resumed>)                 = ?
100 --- SIGCHLD {si_signo=SIGCHLD} ---
101 exit(0)                             = ?
101 +++ exited with 0 +++
100 exit_group(0)                       = ?
100 +++ exited with 0 +++
"""

# The second execve is by a thread that is not the first; the third fails.
EXEC_TRACE = """\
200 read(3, 0x8, 1 <unfinished ...>
201 execve("./b", ["./b"], 0x7ff /* 3 vars */ <unfinished ...>
200 <... read resumed>)                 = ?
200 +++ superseded by execve in pid 201 +++
200 <... execve resumed>)               = 0
200 execve("./c", ["./c"], 0x7ff)       = -1 ENOENT (No such file or directory)
200 exit_group(0)                       = ?
"""


def test_strace_parser(strace_compare):
    assert strace_compare.count_strace(TRACE) == {
        "execve": (1, 0),
        "futex": (1, 1),
        "999": (1, 1),
        "4294967295": (1, 1),
        "write": (1, 0),
        "read": (1, 0),
        "exit": (1, 0),
        "exit_group": (1, 0),
    }
    again = TRACE + EXEC_TRACE
    assert strace_compare.count_strace(again) == {"execve": (2, 1), "exit_group": (1, 0)}
    with pytest.raises(strace_compare.InputError):
        strace_compare.count_strace("garbage\n")
    with pytest.raises(strace_compare.InputError):
        strace_compare.count_strace("")


def test_exceptions_parser(strace_compare):
    parsed = strace_compare.read_exceptions("# comment\n\nfutex 3 it depends\nbrk any why not\n")
    assert parsed == {"futex": (3, "it depends"), "brk": (float("inf"), "why not")}
    host, guest = {"futex": (10, 0), "brk": (1, 0)}, {"futex": (13, 3), "brk": (100, 0)}
    assert strace_compare.compare(host, guest, parsed) == []
    assert strace_compare.compare(host, guest | {"futex": (14, 3)}, parsed)
    assert strace_compare.compare(host, guest | {"futex": (13, 4)}, parsed)
    for bad in ("futex", "futex 3", "futex many reason"):
        with pytest.raises(strace_compare.InputError):
            strace_compare.read_exceptions(bad)
    sections = "brk 1 all\n[a b]\nfutex 2 some\n[c]\nbrk 3 c's\n"
    of = {program: strace_compare.read_exceptions(sections, program) for program in "abcd"}
    assert of["a"] == of["b"] == {"brk": (1, "all"), "futex": (2, "some")}
    assert of["c"] == {"brk": (3, "c's")} and of["d"] == {"brk": (1, "all")}
