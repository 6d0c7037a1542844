# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's system call table equals what strace counts on the host."""

import re
import subprocess

import pytest

from harness import BUILD
from test_programs import small_text

EXCEPTIONS = "strace-exceptions.txt"
PROGRAMS = ["wordcount", "wordcount.musl", "syscalls", "syscalls.musl"]


def host_trace(program, tmp_path):
    """Raw strace of the same binary on the same input and number of CPUs."""
    arguments = []
    if program.startswith("wordcount"):
        (tmp_path / "small").write_bytes(small_text())
        arguments = ["-t", "46", tmp_path / "small"]
    trace = tmp_path / "trace"
    command = ["taskset", "-c", "0,1", "strace", "-f", "-o", trace]
    command += [BUILD / "user" / program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return trace.read_text(errors="replace")


def guest_log(boot, program):
    arguments = ["-t", 46, "/data/small"] if program.startswith("wordcount") else []
    return boot(program, *arguments, smp=2).log


@pytest.fixture
def exceptions(strace_compare, request):
    return strace_compare.read_exceptions((request.path.parent / EXCEPTIONS).read_text())


@pytest.mark.parametrize("program", PROGRAMS)
def test_equal(boot, builds, strace_compare, exceptions, tmp_path, program):
    builds.initrd()
    log = guest_log(boot, program)
    host = strace_compare.count_strace(host_trace(program, tmp_path))
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
    (tmp_path / "host").write_text(host_trace("wordcount", tmp_path))

    def run(text):
        (tmp_path / "log").write_text(text)
        exceptions = f"--exceptions={__file__.rsplit('/', 1)[0]}/{EXCEPTIONS}"
        return strace_compare.main([str(tmp_path / "host"), str(tmp_path / "log"), exceptions])

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


def test_strace_parser(strace_compare):
    assert strace_compare.count_strace(TRACE) == {
        "execve": (1, 0),
        "futex": (1, 1),
        "999": (1, 1),
        "write": (1, 0),
        "read": (1, 0),
        "exit": (1, 0),
        "exit_group": (1, 0),
    }
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
