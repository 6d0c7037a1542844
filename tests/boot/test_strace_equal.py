# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's system call table equals what strace counts on the host."""

import re
import subprocess
from pathlib import Path

import pexpect
import pytest
import strace_compare
import strace_log

from harness import BUILD, ROOT
from test_programs import small_text

EXCEPTIONS = Path(__file__).with_name("strace-exceptions.txt")
WORDCOUNT = ["wordcount", "wordcount.musl"]
CHECKERS = ["files", "badptr", "execchain"]
PROGRAMS = [*WORDCOUNT, "syscalls", "syscalls.musl", *CHECKERS, *(f"{p}.musl" for p in CHECKERS)]
PROGRAMS += ["hello", "hello.musl", "hello-pie", "fpu", "timing", "memory", "futexpp", "threads"]


def host_trace(program, tmp_path, text=None):
    """Runs strace on the same binary, with the same input and CPUs, on a terminal."""
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
    return boot(program, *arguments, smp=2, append="profile.top=all").log


def host_small(program, tmp_path):
    return host_trace(program, tmp_path, small_text() if program in WORDCOUNT else None)


def test_demo(boot, builds, tmp_path):
    """The whole demo of `make run`: 46 threads, 32 MB."""
    text = builds.initrd("initramfs.cpio").parent / "data" / "text"
    options = dict(initrd="initramfs.cpio", smp=2, append="profile.top=all")
    log = boot("wordcount", "-t", 46, "/data/text", **options).log
    host = strace_compare.count_strace(host_trace("wordcount", tmp_path, text.read_bytes()))
    exceptions = strace_compare.read_exceptions(EXCEPTIONS.read_text(), "wordcount")
    assert strace_compare.compare(host, strace_compare.count_report(log), exceptions) == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_equal(boot, builds, tmp_path, program):
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


def test_miscounted_call_fails(boot, builds, tmp_path, capsys):
    """strace-compare fails if one number in the console log is off by one."""
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
    assert run(log.replace(row[5], " [2 others]")) == 2
    # An incomplete report is named, and the others are compared.
    begin = re.search(r"^\[.*\] profile: report (\d+): .*\n", log, re.MULTILINE)
    cut = log[begin.start() : row.start()]
    capsys.readouterr()
    assert run(log.replace(begin[0], cut + begin[0])) == 1
    said = capsys.readouterr().err
    prefix = "strace-compare: left out, because it is incomplete: "
    assert said.startswith(prefix) and begin[1] in said
    assert said.count("\n") == 1


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

# The second thread makes an execve, which ends the first one; the last execve fails.
EXEC_TRACE = """\
200 read(3, 0x8, 1 <unfinished ...>
201 execve("./b", ["./b"], 0x7ff /* 3 vars */ <unfinished ...>
200 <... read resumed>)                 = ?
200 +++ superseded by execve in pid 201 +++
200 <... execve resumed>)               = 0
200 execve("./c", ["./c"], 0x7ff)       = -1 ENOENT (No such file or directory)
200 exit_group(0)                       = ?
"""


def test_strace_parser():
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


# In a pid namespace. The second child's first line comes before the end of its parent's clone().
TREE_TRACE = """\
50 execve("/usr/bin/unshare", ["unshare"], 0x7ff /* 3 vars */) = 0
50 fork()                              = 51
51 brk(NULL)                           = 0x1000
51 execve("/init", ["/init"], 0x7ff /* 3 vars */) = 0
51 clone(child_stack=NULL, flags=SIGCHLD) = 2 /* 52 in strace's PID NS */
52 set_robust_list(0x1, 24)            = 0
52 prctl(PR_SET_NAME, "a very long applet" <unfinished ...>
51 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>
53 read(0,  <unfinished ...>
52 <... prctl resumed>)                = 0
51 <... clone resumed>, child_tidptr=0x1) = 3 /* 53 in strace's PID NS */
53 <... read resumed>"", 1)            = 0
53 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} <unfinished ...>
54 write(1, "x", 1)                    = -1 EPIPE (Broken pipe)
53 <... clone3 resumed> => {parent_tid=[4]}, 88) = 4 /* 54 in strace's PID NS */
52 clock_nanosleep(CLOCK_REALTIME) = ? ERESTART_RESTARTBLOCK (Interrupted by signal)
52 --- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=1, si_uid=0} ---
52 +++ killed by SIGTERM +++
53 ????( <unfinished ...>
53 <... ???? resumed>)                  = ?
53 +++ killed by SIGKILL +++
51 clone(child_stack=NULL, flags=SIGCHLD) = ? ERESTARTNOINTR (To be restarted)
51 wait4(-1,  <unfinished ...>
50 exit_group(0)                       = ?
50 +++ exited with 0 +++
"""


# Calls that are restarted at once, after a handler, after two nested handlers, and not at all.
INTERRUPTED_TRACE = """\
60 execve("/init", ["/init"], 0x7ff /* 3 vars */) = 0
60 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=9}, 0x7) = ? ERESTART_RESTARTBLOCK (Interrupted)
60 --- SIGCONT {si_signo=SIGCONT} ---
60 restart_syscall(<... resuming interrupted clock_nanosleep ...>) = 0
60 read(0, 0x7f, 1)                     = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
60 --- SIGUSR1 {si_signo=SIGUSR1} ---
60 wait4(-1, NULL, 0, NULL)             = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
60 --- SIGUSR2 {si_signo=SIGUSR2} ---
60 read(3, "x", 1)                      = 1
60 rt_sigreturn({mask=[]})              = -1 EINTR (Interrupted system call)
60 rt_sigreturn({mask=[]})              = 0
60 read(0,  <unfinished ...>
60 <... read resumed>"y", 1)            = 1
60 pause()                              = ? ERESTARTNOHAND (To be restarted if no handler)
60 --- SIGUSR1 {si_signo=SIGUSR1} ---
60 rt_sigreturn({mask=[]})              = -1 EINTR (Interrupted system call)
60 pause()                              = ? ERESTARTNOHAND (To be restarted if no handler)
60 --- SIGTERM {si_signo=SIGTERM} ---
60 +++ killed by SIGTERM +++
"""


def test_interrupted_calls_count_once():
    (process,) = strace_log.read_processes(INTERRUPTED_TRACE)
    assert process.counts == {
        "execve": (1, 0),
        "clock_nanosleep": (1, 0),
        "read": (2, 0),
        "wait4": (1, 1),
        "rt_sigreturn": (3, 2),
        "pause": (2, 1),
    }


def test_strace_of_processes():
    processes = strace_log.read_processes(TREE_TRACE, "/init")
    names = [("init", 0), ("a very long app", 2), ("init", 3)]
    assert [(p.name, p.pid) for p in processes] == names
    assert [p.counts for p in processes] == [
        {"execve": (1, 0), "clone": (3, 0), "wait4": (1, 0)},
        {"set_robust_list": (1, 0), "prctl": (1, 0), "clock_nanosleep": (1, 0)},
        {"read": (1, 0), "clone3": (1, 0), "write": (1, 1)},
    ]
    everything = strace_log.read_processes(TREE_TRACE)
    assert [(p.name, p.pid) for p in everything] == names  # and not unshare, which made the first
    renamed = TREE_TRACE.replace("/init", "/usr/bin/unshare")
    named = strace_log.read_processes(renamed, "/usr/bin/unshare")
    assert [p.counts for p in named] == [p.counts for p in processes]
    with pytest.raises(strace_compare.InputError):
        strace_log.read_processes(TREE_TRACE, "/bin/other")


IGNORED_TRACE = """\
1 execve("./a", ["./a"], 0x7ff /* 3 vars */) = 0
1 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=9}, 0x7) = ? ERESTART_RESTARTBLOCK (Interrupted)
1 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
1 restart_syscall(<... resuming interrupted clock_nanosleep ...> <unfinished ...>
1 <... restart_syscall resumed>)          = ? ERESTART_RESTARTBLOCK (Interrupted by signal)
1 --- SIGSTOP {si_signo=SIGSTOP, si_code=SI_USER, si_pid=1, si_uid=0} ---
1 --- stopped by SIGSTOP ---
1 --- SIGCONT {si_signo=SIGCONT, si_code=SI_USER, si_pid=1, si_uid=0} ---
1 restart_syscall(<... resuming interrupted restart_syscall ...>) = 0
1 rt_sigaction(SIGINT, {sa_handler=SIG_IGN, sa_mask=[], sa_flags=0}, NULL, 8) = 0
1 read(0, 0x1, 1)                         = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
1 --- SIGINT {si_signo=SIGINT, si_code=SI_KERNEL} ---
1 read(0, "x", 1)                         = 1
1 rt_sigaction(SIGCHLD, {sa_handler=0x5, sa_mask=[], sa_flags=0}, NULL, 8) = 0
1 wait4(-1, 0x1, 0, NULL)                 = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
1 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
1 wait4(-1, 0x1, WNOHANG, NULL)           = 7
1 rt_sigreturn({mask=[]})                 = -1 EINTR (Interrupted system call)
"""


def test_ignored_signals():
    """Ignored signals interrupt calls only under a tracer. A handler may make the same call."""
    assert strace_compare.count_strace(IGNORED_TRACE) == {
        "execve": (1, 0),
        "clock_nanosleep": (1, 0),
        "rt_sigaction": (2, 0),
        "read": (1, 0),
        "wait4": (2, 1),
        "rt_sigreturn": (1, 1),
    }


def test_processes_find_each_other():
    def make(*counts):
        return [strace_log.Process(name, pid, "", dict(calls)) for pid, name, calls in counts]

    host = make((1, "sh", {"read": 1}), (2, "cat", {"write": 1}), (3, "cat", {"write": 2}))
    swapped = make((1, "sh", {"read": 1}), (2, "cat", {"write": 2}), (3, "cat", {"write": 1}))
    pairs, wrong = strace_compare.compare_processes(host, swapped)
    assert not wrong
    assert [(one.pid, other.pid) for one, other in pairs] == [(1, 1), (3, 2), (2, 3)]
    twice = make((1, "sh", {"read": 1}), (2, "cat", {"write": 2}), (3, "cat", {"write": 2}))
    lines = strace_compare.compare_processes(host, twice)[1]
    assert lines == ["process 3 (cat): write: calls: strace counts 1, the kernel 2"]
    assert not strace_compare.compare_processes(host, twice, "[cat] \nwrite 1 luck")[1]
    assert not strace_compare.compare_processes(host, twice, "[b* c?t]\nwrite 1 luck")[1]
    assert strace_compare.compare_processes(host, twice, "[sh]\nwrite 1 luck")[1]
    lines = strace_compare.compare_processes(host, swapped[:2])[1]
    assert lines == ["cat: not as many processes: 2 on the host, 1 in the kernel"]
    assert strace_compare.compare_processes(host[:2], swapped)[1]


def test_errors_have_names():
    """As many failed calls are not equal if they failed for other reasons."""
    trace = '60 execve("/init", ["/init"], 0x7ff /* 3 vars */) = 0\n'
    trace += '60 openat(AT_FDCWD, "a", O_RDONLY)     = -1 ENOENT (No such file or directory)\n'
    trace += '60 openat(AT_FDCWD, "b", O_RDONLY)     = -1 EACCES (Permission denied)\n'
    (host,) = strace_log.read_processes(trace)
    assert host.error_names == {"openat": {"ENOENT": 1, "EACCES": 1}}
    (guest,) = strace_log.read_processes(trace)
    assert strace_compare.compare_processes([host], [guest])[1] == []
    guest.error_names["openat"] = {"ENOENT": 2}
    told = "strace counts EACCES 1, ENOENT 1, the kernel ENOENT 2"
    line = f"process 0 (init): openat: errors: {told}"
    assert strace_compare.compare_processes([host], [guest])[1] == [line]
    assert strace_compare.compare_processes([host], [guest], "openat 0 luck")[1] == []
    del guest.error_names["openat"]  # a narrow report
    assert strace_compare.compare_processes([host], [guest])[1] == []


def run_script(*arguments):
    """Runs strace-compare as a user does, and returns its status and output."""
    command = [ROOT / "scripts" / "strace-compare", f"--build={BUILD}", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_program_of_the_users(builds, tmp_path):
    builds.kernel()
    builds.initrd()
    (tmp_path / "input").write_text("some words, and some more\n")
    program = BUILD / "user" / "wordcount"
    files = f"--files={tmp_path / 'input'}"
    status, output = run_script(files, "--", program, "-t", "3", "/data/input")
    assert status == 0, output
    assert re.search(r"^process 1 \(wordcount\)", output, re.MULTILINE)
    status, output = run_script("--", tmp_path / "missing")
    assert status == 2
    status, output = run_script("--", program, "two words")
    assert status == 2 and "use --cmd" in output


def test_command_of_the_users(builds):
    builds.kernel()
    command = "uname -n | tr a-z A-Z; sh -c 'kill -TERM $$'; exit $((1 + 2))"
    status, output = run_script("--cmd", command)
    assert status == 0, output
    assert output.count("LEGO\n") == 2
    for name in ("init", "sh", "uname", "tr"):
        assert re.search(rf"^process \d+ \({name}\)", output, re.MULTILINE), name
    # Host and guest have different numbers of mounts, and the difference is found.
    command = "for m in $(cut -d ' ' -f 2 /proc/mounts); do "
    command += "for i in 0 1 2 3 4 5 6 7 8 9; do test -e $m; done; done"
    status, output = run_script("--cmd", command)
    assert status == 1, output
    assert re.search(r"^strace-compare: process \d+ \(sh\): \w+: calls: ", output, re.MULTILINE)


def test_exceptions_parser():
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
