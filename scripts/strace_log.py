# SPDX-License-Identifier: BSD-2-Clause
"""Reads a log of `strace -f -o` into one table of calls and errors per process.

clone, fork and vfork make processes; the calls of threads count for their process. The name of a
process is its comm, as in the kernel: that of the last program it executed, or set by prctl. A
successful execve starts a new table, as its first call. A call counts when it starts, so a call
without an end counts. A call that a signal interrupts and that is restarted counts once; the return
of the handler shows whether the call is restarted or fails with EINTR.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Counts = dict[str, tuple[int, int]]  # by name of the call: calls, errors

COMM_LEN = 15
LINE = re.compile(r"^(\d+) +(.*)$")
START = re.compile(r"(\w+)\(")
RESUMED = re.compile(r"<\.\.\. (\w+) resumed>")
# Of a task that is killed before strace has seen which call it makes, the call is ???.
OTHER = re.compile(r"\+\+\+ |--- |\?+\( <|<\.\.\. \?+ resumed>")
SUPERSEDED = re.compile(r"\+\+\+ superseded by execve in pid (\d+) \+\+\+")
FAILED = re.compile(r"= -1 (E\w+)(?: \([^)]*\))?$")
INTERRUPTED = re.compile(r"= \? ERESTART\w+ \([^)]*\)$")
SIGNAL = re.compile(r"--- (SIG\w+) \{")
ACTION = re.compile(r"rt_sigaction\((SIG\w+), \{sa_handler=(\w+)")
SUCCESS = re.compile(r"= 0$")
CHILD = re.compile(r"= (\d+)(?: /\* (\d+) in strace's PID NS \*/)?$")
EXECUTED = re.compile(r'execve\("((?:[^"\\]|\\.)*)"')
NAMED = re.compile(r'prctl\(PR_SET_NAME, "((?:[^"\\]|\\.)*)"')
MAKES_TASKS = ("clone", "clone3", "fork", "vfork")


class InputError(Exception):
    pass


@dataclass
class Process:
    name: str
    pid: int  # as the process itself sees it; 0 for the first
    group: str = ""
    calls: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    # How often each error of a call came. Calls whose errors have no names are missing.
    error_names: dict[str, dict[str, int]] = field(default_factory=dict)
    actions: dict[str, str] = field(default_factory=dict)  # by signal

    def handles(self, signal: str) -> bool:
        return self.actions.get(signal, "SIG_DFL") not in ("SIG_DFL", "SIG_IGN")

    def fail(self, call: str, error: str) -> None:
        self.errors[call] = self.errors.get(call, 0) + 1
        names = self.error_names.setdefault(call, {})
        names[error] = names.get(error, 0) + 1

    @property
    def counts(self) -> Counts:
        return {name: (nr, self.errors.get(name, 0)) for name, nr in self.calls.items()}


def name_of(text: str) -> str:
    """
    Translates the name of an unknown call: strace's syscall_0x3e7 is the kernel's 999. strace shows
    all of rax, but kernels use only its lower half.
    """
    match = re.fullmatch(r"syscall_0x([0-9a-f]+)", text)
    return str(int(match[1], 16) & 0xFFFFFFFF) if match else text


def split_lines(trace: str) -> list[tuple[int, str]]:
    lines = []
    for line in trace.splitlines():
        match = LINE.match(line.rstrip())
        if not match:
            raise InputError(f"not a line of strace -f -o: {line!r}")
        lines.append((int(match[1]), match[2]))
    return lines


def find_births(lines: list[tuple[int, str]]) -> dict[int, tuple[int, bool, int]]:
    """
    Returns (parent, whether it is a thread of the parent's process, pid in its namespace) for each
    task, by strace's number. A child's first line may come before the end of its parent's call.
    """
    births = {}
    flags: dict[int, str] = {}
    for task, text in lines:
        match = START.match(text)
        if match and match[1] in MAKES_TASKS:
            flags[task] = text
        elif not (match := RESUMED.match(text)) or match[1] not in MAKES_TASKS:
            continue
        if child := CHILD.search(text):
            own = int(child[1])
            is_thread = "CLONE_THREAD" in flags.get(task, "")
            births[int(child[2] or own)] = (task, is_thread, own)
    return births


class Reader:
    """
    Collects the processes of a log. If a program is named, starts with its first execve, but not
    that of the log's first task: this is unshare, which strace runs, whatever the program is.
    """

    def __init__(self, trace: str, program: str | None):
        self.lines = split_lines(trace)
        self.births = find_births(self.lines)
        self.program = program
        self.leaders: dict[int, int] = {}  # by task
        self.processes: dict[int, Process] = {}  # by leader
        self.root: Process | None = None
        self.executed: dict[int, str] = {}  # the path of a task's unfinished execve
        self.restarted: dict[int, str] = {}  # the call that a task's restart_syscall stands for
        self.may_go_on: set[int] = set()  # tasks whose next call may continue an interrupted one
        self.interrupted: dict[int, list[str]] = {}  # by task: interrupted calls, the last one last

    def task_process(self, task: int) -> Process:
        """Returns a task's process. A task without a maker is the first, or one of its threads."""
        if task not in self.leaders:
            maker, is_thread, pid = self.births.get(task, (None, True, 0))
            if maker is not None:
                parent = self.task_process(maker)
            elif self.processes:
                maker = next(iter(self.processes))
                parent = self.processes[maker]
            else:
                parent, is_thread = Process("", 0), False
            if is_thread and maker is not None:
                self.leaders[task] = self.leaders[maker]
            else:
                self.leaders[task] = task
                process = Process(parent.name, pid, self.group_of(parent))
                process.actions = dict(parent.actions)
                self.processes[task] = process
        return self.processes[self.leaders[task]]

    def group_of(self, parent: Process) -> str:
        """Returns the group of a new process; "" if it does not descend from the root."""
        return "in" if parent is self.root or parent.group else ""

    def succeed(self, task: int) -> None:
        path = self.executed.pop(task, "")
        process = self.task_process(task)
        process.name = path.rsplit("/", 1)[-1][:COMM_LEN]
        process.calls, process.errors, process.error_names = {"execve": 1}, {}, {}
        ignored = [signal for signal, action in process.actions.items() if action == "SIG_IGN"]
        process.actions = dict.fromkeys(ignored, "SIG_IGN")
        if self.root is None and path == self.program and task != self.lines[0][0]:
            self.root = process

    def going_on(self, task: int, name: str) -> str:
        """
        Returns the call that continues when a task starts one: its last interrupted call, if this
        is the first call after the interruption or after the return of a handler; else "".
        """
        calls = self.interrupted.get(task, [])
        is_next = task in self.may_go_on
        self.may_go_on.discard(task)
        self.restarted.pop(task, None)
        if is_next and calls and name in (calls[-1], "restart_syscall"):
            if name == "restart_syscall":
                self.restarted[task] = calls[-1]
            return calls.pop()
        return ""

    def end_handler(self, task: int, text: str) -> None:
        """Ends a handler: rt_sigreturn returns the result of the interrupted call."""
        self.may_go_on.add(task)
        if self.interrupted.get(task) and (match := FAILED.search(text)):
            self.task_process(task).fail(self.interrupted[task].pop(), match[1])

    def read_line(self, task: int, text: str) -> None:
        process = self.task_process(task)
        if match := START.match(text):
            name = name_of(match[1])
            if going_on := self.going_on(task, name):
                name = going_on
            else:
                process.calls[name] = process.calls.get(name, 0) + 1
            if match := EXECUTED.match(text):
                self.executed[task] = match[1]
            elif match := ACTION.match(text):
                process.actions[match[1]] = match[2]
            elif (match := NAMED.match(text)) and self.leaders[task] == task:
                process.name = match[1][:COMM_LEN]
        elif match := RESUMED.match(text):
            name = name_of(match[1])
            if name == "restart_syscall":
                name = self.restarted.get(task, name)
        elif OTHER.match(text):
            if match := SUPERSEDED.match(text):
                self.executed[task] = self.executed.pop(int(match[1]), "")
            elif (match := SIGNAL.match(text)) and process.handles(match[1]):
                self.may_go_on.discard(task)  # the next call is the handler's
            return
        else:
            raise InputError(f"not a line of strace -f -o: {task} {text!r}")
        if name == "rt_sigreturn" and not text.endswith("<unfinished ...>"):
            self.end_handler(task, text)
        if name in MAKES_TASKS and (child := CHILD.search(text)):
            self.task_process(int(child[2] or child[1]))
        if name == "execve" and SUCCESS.search(text):
            self.succeed(task)
        elif INTERRUPTED.search(text):
            self.interrupted.setdefault(task, []).append(name)
            self.may_go_on.add(task)
        elif not text.endswith("<unfinished ...>") and (match := FAILED.search(text)):
            process.fail(name, match[1])

    def read(self) -> list[Process]:
        for task, text in self.lines:
            self.read_line(task, text)
        if self.program is None:
            chosen = list(self.processes.values())
            if len(chosen) > 1 and chosen[0].name == "unshare":
                del chosen[0]  # it only made the namespaces for the others
            self.root = next(iter(chosen), None)
        else:
            chosen = [p for p in self.processes.values() if p is self.root or p.group]
        if self.root is None or self.root.calls.get("execve", 0) < 1:
            raise InputError("the strace log does not begin with execve")
        self.root.pid = 0
        return sorted(chosen, key=lambda process: process.pid)


def read_processes(trace: str, program: str | None = None) -> list[Process]:
    """
    Returns the processes in order of creation. program: only the first process that executes this
    path, and its descendants.
    """
    processes = Reader(trace, program).read()
    for process in processes:
        process.group = ""
    return processes
