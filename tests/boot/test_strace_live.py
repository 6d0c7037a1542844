# SPDX-License-Identifier: BSD-2-Clause
"""Trace output equals that of the host's strace, run on the same program in the same image."""

import difflib
import re
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Iterator

import pytest

import host_run
import report

# As the kernel: structures are addresses, and there are no lines for signals and exits.
STRACE = ["strace", "-f", "-a0", "-qqq", "-everbose=none", "-esignal=none", "--pidns-translation"]
HOST_LINE = re.compile(r"(\d+) +(.*)")
GUEST_LINE = re.compile(r"\[ *\d+\.\d+\] \[pid (\d+)\] (.*)")
UNFINISHED = re.compile(r"(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)$")
DURATION = re.compile(r" <\d+\.\d{6}>$")
TRANSLATED = re.compile(r"(\d+) /\* \d+ in strace's PID NS \*/")

# Random bytes and addresses may differ. Numbers of 5 digits or more are addresses, except in flags.
ADDRESS = re.compile(r"(?<![|0-9a-zA-Z])0x[0-9a-f]{5,}(?![0-9a-f]| /\*)")
RANDOM = re.compile(r'^(getrandom\()"[^"]*"')
# These calls are not compared: run.h polls for the end of a test, and the host's vDSO reads the
# clock without a call.
POLLING = re.compile(
    r"wait4\(-1, ADDRESS, WNOHANG, NULL\) = 0$|clock_nanosleep\(CLOCK_REALTIME, 0, ADDRESS, "
    r"|restart_syscall\(<\.\.\. resuming interrupted clock_nanosleep|clock_gettime\("
)
# stdio asks the guest's serial line whether it is a terminal; it knows a pty by its number.
IS_TERMINAL = re.compile(r"ioctl\(1, TCGETS, ")


@dataclass
class Task:
    lines: list[str]
    unfinished: str = ""


def normalize(line: str, arguments: bool = False) -> str:
    if arguments:
        line = line.rsplit(" = ", 1)[0]
    line = TRANSLATED.sub(r"\1", DURATION.sub("", line))
    line = ADDRESS.sub("ADDRESS", line)
    return RANDOM.sub(r'\1"RANDOM"', line)


def normalize_lines(lines: list[str], arguments: bool) -> Iterator[str]:
    for line in lines:
        line = normalize(line, arguments)
        if not IS_TERMINAL.match(line) and (arguments or not POLLING.match(line)):
            yield line


def find_execve(task: Task, tasks: dict[int, Task]) -> Task:
    started = [t for t in (task, *tasks.values()) if t.unfinished.startswith("execve(")]
    return started[0] if started else task


def read_host(trace: str, program: str) -> list[list[str]]:
    """Returns the lines of each task, by its number, from the execve of the program on."""
    tasks: dict[int, Task] = {}
    others: set[str] = set()
    for text in trace.splitlines():
        number, line = HOST_LINE.fullmatch(text).groups()
        if number in others:
            continue
        task = tasks.setdefault(int(number), Task([]))
        if match := UNFINISHED.match(line):
            task.unfinished = match[1]
            continue
        if match := RESUMED.match(line):
            # After an execve by another thread, the program continues as the first thread.
            started = task if match[1] != "execve" else find_execve(task, tasks)
            line = started.unfinished + match[2]
            started.unfinished = ""
        if not others and line.startswith(f'execve("{program}"'):
            others = {str(other) for other in tasks} - {number}
            tasks = {int(number): task}
            task.lines = []
            continue
        task.lines.append(line)
    for task in tasks.values():
        if task.unfinished:
            task.lines.append(f"{task.unfinished}) = ?")
    return [tasks[number].lines for number in sorted(tasks)]


def read_guest(log: str) -> list[list[str]]:
    """Does the same for a console log, which has no line for the kernel's own execve of init."""
    tasks: dict[int, list[str]] = {}
    for text in log.splitlines():
        if match := GUEST_LINE.fullmatch(text):
            tasks.setdefault(int(match[1]), []).append(match[2])
    return [tasks[number] for number in sorted(tasks)]


def compare(host: list[list[str]], guest: list[list[str]], arguments=False) -> list[str]:
    """Returns a unified diff of each task's normalized lines. arguments: without return values."""
    wrong = []
    if len(host) != len(guest):
        wrong.append(f"{len(host)} tasks on the host, {len(guest)} in the kernel")
    for nr, (one, other) in enumerate(zip(host, guest)):
        lines = [list(normalize_lines(side, arguments)) for side in (one, other)]
        wrong += difflib.unified_diff(*lines, f"host {nr}", f"kernel {nr}", n=1, lineterm="")
    return wrong


def trace_host(image, arguments: list[str], tmp_path) -> list[list[str]]:
    trace = tmp_path / "trace"
    command = host_run.command(image, arguments)
    output, status = host_run.run([*STRACE, "-o", str(trace), *command], 2)
    assert status == 0, output
    return read_host(trace.read_text(), arguments[0])


def trace_guest(boot, *arguments: str, live: str = "all,wait", **options) -> str:
    append = f"profile.on_exit=none profile.strace_live={live}"
    log = boot(*arguments, smp=2, append=append, **options).log
    assert "lines lost" not in log
    return log


def run_both(boot, image: Path, tmp_path, *arguments: str):
    host = trace_host(image, [f"/bin/{arguments[0]}", *arguments[1:]], tmp_path)
    return host, read_guest(trace_guest(boot, *arguments, initrd=image))


# Programs, with the tests to run in them, whose calls do not depend on time.
PROGRAMS = ["files", "files.musl", "pipes dup sendfile", "attrs times stat access"]
COMMANDS = ["cat /etc/passwd", "id", "wc /init", "mkdir -p /tmp/a/b", "cp /init /tmp/x"]


@pytest.mark.parametrize("arguments", PROGRAMS)
def test_equal(boot, builds, tmp_path, arguments):
    host, guest = run_both(boot, builds.image(arguments), tmp_path, *arguments.split())
    assert compare(host, guest) == []
    # One more character, and one line less, must be noticed.
    changed = [list(lines) for lines in guest]
    changed[0][-2] += "!"
    assert compare(host, changed)
    assert compare(host, [guest[0][:-1], *guest[1:]])


@pytest.mark.parametrize("arguments", COMMANDS)
def test_busybox(boot, builds, tmp_path, arguments):
    arguments = ["busybox", *arguments.split()]
    host, guest = run_both(boot, builds.initrd("shell.cpio"), tmp_path, *arguments)
    assert len(guest[0]) > 10
    assert compare(host, guest) == []


# The time that `strace -f -ttt` prints after the number of the task.
TIMED = re.compile(r"(\d{10}\.\d{6}) (.*)")


def test_time(boot, builds, tmp_path):
    """Lines have the form of the host's, with the time at which the call began."""
    trace = tmp_path / "trace"
    command = host_run.command(builds.image("files"), ["/bin/files"])
    output, status = host_run.run([*STRACE, "-ttt", "-T", "-o", str(trace), *command], 2)
    assert status == 0, output
    lines = [HOST_LINE.fullmatch(line).groups() for line in trace.read_text().splitlines()]
    untimed = [f"{number} {TIMED.fullmatch(line)[2]}" for number, line in lines]
    host = read_host("\n".join(untimed), "/bin/files")
    begin = time.time()
    (timed,) = read_guest(trace_guest(boot, "files", live="all,wait,+time"))
    end = time.time()
    matches = [TIMED.fullmatch(line) for line in timed]
    guest = [[match[2] for match in matches]]
    assert compare(host, guest) == []
    # In one thread, a call begins after the end of the one before. Both times are rounded down.
    starts = [Decimal(match[1]) for match in matches]
    for line, start, following in zip(guest[0], starts, starts[1:]):
        duration = re.search(r" <(\d+\.\d{6})>$", line)
        assert following >= start + Decimal(duration[1]) - Decimal("0.000001"), line
    # The clock was set to the host's at boot, to the second.
    assert begin - 2 <= starts[0] and starts[-1] <= end + 2
    on_cpus = read_guest(trace_guest(boot, "files", live="all,wait,+cpu"))
    cpu = re.compile(r" \(CPU [01]\)(?= <\d+\.\d{6}>$)")
    assert all(cpu.search(line) or line.endswith(" = ?") for line in on_cpus[0])
    assert compare(host, [[cpu.sub("", line) for line in on_cpus[0]]]) == []


def test_arguments(boot, builds, tmp_path):
    """Every flag, odd characters, bad pointers. Return values are not compared."""
    host, guest = run_both(boot, builds.image("decode"), tmp_path, "decode")
    assert len(guest[0]) > 2500
    assert compare(host, guest, arguments=True) == []


def test_chosen(boot):
    """A filter prints the selected calls, all of them, and no others."""
    guest = read_guest(trace_guest(boot, "files", live="file,failed,wait"))
    assert len(guest) == 1 and guest[0]
    for line in guest[0]:
        assert re.match(r"(open|openat|access|unlink|newfstatat|readlink)\(", line), line
        assert re.search(r" = -1 E[A-Z]+ \([A-Z][^)]*\) <\d+\.\d{6}>$", line), line
    everything = read_guest(trace_guest(boot, "files"))
    named = re.compile(r"(open|openat|access|unlink|newfstatat|readlink)\(.* = -1 ")
    failed = [line for line in everything[0] if named.match(line)]
    assert list(map(normalize, guest[0])) == list(map(normalize, failed))


def test_slow(boot):
    """A filter by time prints a futex that waits for long, and not the many short calls."""
    guest = read_guest(trace_guest(boot, "straces", "sleep", live=">50ms,wait"))
    lines = [line for lines in guest for line in lines]
    assert any(line.startswith("futex(") for line in lines)
    for line in lines:
        duration = re.search(r" <(\d+\.\d{6})>$", line)
        assert line.endswith(" = ?") or float(duration[1]) >= 0.05, line


def test_lost(boot):
    """Without `wait` a storm loses lines. Printed and lost lines add up to all calls."""
    log = boot("threads", smp=2, append="profile.strace_live=all").log
    shown = sum(map(len, read_guest(log)))
    lost = re.findall(r"strace: (\d+) lines lost: (\d+) had no room, (\d+) no memory", log)
    for total, room, memory in lost:
        assert int(total) == int(room) + int(memory)
    calls = sum(row.nr_calls for each in report.parse(log) for row in each.strace.rows)
    # The first execve is the kernel's own, which has no line.
    assert shown + (int(lost[-1][0]) if lost else 0) == calls - 1
