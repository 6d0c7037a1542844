# SPDX-License-Identifier: BSD-2-Clause
"""Call chains into user code, named by /proc/<pid>/maps and the programs' symbols."""

from __future__ import annotations

import bisect
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import report
import report_lines
from harness import BUILD
from profiles.stacks import Symbols, call_sites, frame_name, sample
from test_heatmap import CALL_ROW, CPU_ROW, FUNCTION_ROW, TASK_ROW, tables_in, tables_of

MAP = re.compile(r"^maps ([0-9a-f]+)-([0-9a-f]+) ..x. ([0-9a-f]+) \S+ \d+ +(/\S+)$", re.MULTILINE)
STACK = re.compile(r"^stacks (\S.*) (\d+)$", re.MULTILINE)
USER_ROW = re.compile(r"^([0-9a-f]{16}) +(\S+)\+0x([0-9a-f]+) +(\d+) +(\d+\.\d\d)$")
PLACE_TITLE = "Kernel Heatmap of do_syscall_64: {} of {} samples"
PLACE_ROW = re.compile(r"^([0-9a-f]{16}) +\+(?:0x)?([0-9a-f]+) +(\d+) +(\d+\.\d\d) +(\d+)$")
CHAIN = ["chain_start", "outer", "middle", "inner"]


def tool_lines(*command: object) -> list[list[str]]:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


class Program:
    """The functions of a guest program, by offset in its file."""

    def __init__(self, name: str):
        path = BUILD / "user" / name
        self.path = f"/bin/{name}"
        loads = [
            [int(word, 16) for word in words[1:5]]
            for words in tool_lines(os.environ.get("READELF", "readelf"), "-lW", path)
            if words[:1] == ["LOAD"]
        ]
        functions = []
        for words in tool_lines(os.environ.get("NM", "nm"), path):
            for offset, addr, _, size in loads:
                if words[1] in "tTWi" and addr <= int(words[0], 16) < addr + size:
                    functions.append((int(words[0], 16) - addr + offset, words[2]))
        self.functions = sorted(functions)

    def name_at(self, offset: int) -> str:
        return self.functions[bisect.bisect_right(self.functions, (offset, "~")) - 1][1]


@dataclass
class Stack:
    task: str
    truncated: str | None
    user: list[int]  # outermost first
    call: str | None
    kernel: list[str]
    nr: int


def stacks_of(log: str, kernel: Path) -> list[Stack]:
    """Returns the records of samples, with the names of the kernel's functions."""
    symbols = Symbols(kernel)
    rows = (line for line in file_lines(log, "records") if line.startswith('{"cpu'))
    return [
        Stack(
            one.comm,
            one.truncated,
            one.user[::-1],
            one.call and f"[{one.call}]",
            [frame_name(symbols, pc) for pc in call_sites(one.kernel, True)][::-1],
            one.weight,
        )
        for one in (sample(json.loads(row)) for row in rows)
    ]


def folded_of(log: str) -> list[tuple[list[str], int]]:
    """Returns the lines of /proc/profile/stacks: the frames, and their samples."""
    return [(stack.split(";"), int(nr)) for stack, nr in STACK.findall(log)]


def user_rows(log: str) -> list[tuple[int, str, int, int]]:
    """Returns address, file, offset and samples from the last report's table of user code."""
    lines = report_lines.Lines(log).lines
    at = max(i for i, line in enumerate(lines) if line.startswith("Kernel Heatmap of user code"))
    rows = []
    for line in lines[at + 4 :]:
        if report_lines.DASHES.match(line):
            break
        addr, file, offset, nr, _ = USER_ROW.match(line).groups()
        rows.append((int(addr, 16), file, int(offset, 16), int(nr)))
    return rows


def call_rows(log: str) -> dict[str, dict[str, int]]:
    """Returns the samples of each function by system call, from the last report."""
    calls: dict[str, dict[str, int]] = {}
    for row in tables_of(log)["system call"]:
        name, nr, _, _ = CALL_ROW.match(row).groups()
        if row[:20].strip():
            functions = calls[name] = {}
        else:
            functions[name] = functions.get(name, 0) + int(nr)
    return calls


def file_lines(log: str, word: str) -> list[str]:
    """Returns the lines of a file, which the program has printed after this word."""
    return [line[len(word) + 1 :] for line in log.splitlines() if line.startswith(f"{word} ")]


def check_files(log: str, builds, task: str) -> None:
    """Compares the files by stack, task, function and instruction: they show the same samples."""
    stacks = stacks_of(log, builds.kernel())
    assert sum(nr for _, nr in folded_of(log)) == sum(stack.nr for stack in stacks)
    tables = tables_in(file_lines(log, "heatmap"))
    assert set(tables) == {"function", "system call", "task", "CPU"}
    total = sum(stack.nr for stack in stacks)
    assert total == sum(int(CPU_ROW.match(row)[7]) for row in tables["CPU"])
    rows = [FUNCTION_ROW.match(row).groups() for row in tables["function"]]
    names = [name for _, name, *_ in rows]
    in_kernel = [stack for stack in stacks if stack.kernel]
    for _, name, nr, _, nr_inclusive, _, _ in rows:
        own = sum(stack.nr for stack in in_kernel if stack.kernel[-1] == name)
        inclusive = sum(stack.nr for stack in in_kernel if name in stack.kernel)
        # Stacks have names only, so functions that share their name with others are left out.
        if names.count(name) == 1 and name[0] != "[" and "@" not in name:
            assert (int(nr), int(nr_inclusive)) == (own, inclusive)
    ((start, own, inclusive),) = (
        (int(row[0], 16), int(row[2]), int(row[4])) for row in rows if row[1] == "do_syscall_64"
    )
    assert 0 < own < inclusive

    tasks = [TASK_ROW.match(row).groups() for row in tables["task"]]
    ((nr, nr_user),) = ((int(t[3]), int(t[5])) for t in tasks if t[:3] == ("1", "1", task))
    own_stacks = [stack for stack in stacks if stack.task == task]
    assert nr == sum(stack.nr for stack in own_stacks) > 1000
    assert nr_user == sum(stack.nr for stack in own_stacks if not stack.kernel)

    title, _, _, _, *lines = file_lines(log, "function")
    assert title == PLACE_TITLE.format(own, total)
    rows = (line for line in lines if not report_lines.DASHES.match(line))
    places = [PLACE_ROW.match(line).groups() for line in rows]
    assert sum(int(nr) for _, _, nr, _, _ in places) == own
    addresses = [int(address, 16) for address, *_ in places]
    assert len(addresses) > 1 and addresses == sorted(set(addresses))
    symbols = tool_lines(os.environ.get("NM", "nm"), "-S", builds.kernel())
    (size,) = (int(words[1], 16) for words in symbols if words[3:] == ["do_syscall_64"])
    for address, offset, nr, percent, irqs_off in places:
        assert int(address, 16) - start == int(offset, 16) < size
        assert percent == report_lines.percent(int(nr), own) and int(irqs_off) <= int(nr)


def offsets_in(log: str, program: Program) -> Callable[[int], int]:
    """Returns a function that converts an address to an offset in the program's file."""
    maps = [
        (int(start, 16), int(end, 16), int(offset, 16), path)
        for start, end, offset, path in MAP.findall(log)
    ]

    def offset_of(addr: int) -> int:
        (found,) = (a for a in maps if a[0] <= addr < a[1])
        assert found[3] == program.path
        return addr - found[0] + found[2]

    return offset_of


def nr_of(stacks: list[Stack]) -> int:
    return sum(stack.nr for stack in stacks)


@pytest.mark.parametrize("source", ["timer", "nmi"])
@pytest.mark.parametrize("name", ["chain", "chain-nofp"])
def test_user_chain(boot, builds, name, source):
    append = f"profile.source={source} profile.hz=20000 profile.heatmap=user,calls profile.top=all"
    log = boot(name, 100, icount=True, append=append, timeout=240).log
    assert "PASS: chain" in log
    check_files(log, builds, name)
    program = Program(name)
    offset_of = offsets_in(log, program)

    def own(stack: Stack) -> str:
        """Returns the innermost user function. In a system call, the address is behind the call."""
        return program.name_at(offset_of(stack.user[-1] - (stack.call is not None)))

    def chain(stack: Stack) -> list[str]:
        callers = [program.name_at(offset_of(addr - 1)) for addr in stack.user[:-1]]
        return [*callers, own(stack)]

    stacks = stacks_of(log, builds.kernel())
    stacks = [stack for stack in stacks if stack.task == name and stack.user]
    stacks = [stack for stack in stacks if own(stack) == "inner"]
    in_user = [stack for stack in stacks if not stack.kernel]
    in_call = [stack for stack in stacks if stack.call == "[sys_getppid]"]
    for found in (in_user, in_call):
        assert nr_of(found) > 100
        assert {(stack.truncated, *chain(stack)) for stack in found} == {(None, *CHAIN)}
        # The return addresses are the same in all samples.
        assert len({tuple(stack.user[:-1]) for stack in found}) == 1
    # The folded text has the names of the same functions.
    folded = folded_of(log)
    assert sum(nr for frames, nr in folded if frames == [name, *CHAIN]) == nr_of(in_user)
    begin = [name, *CHAIN, "[sys_getppid]"]
    assert sum(nr for frames, nr in folded if frames[: len(begin)] == begin) == nr_of(in_call)
    if source == "nmi":
        assert ["do_syscall_64", "sys_getppid"] in [stack.kernel for stack in in_call]

    # The report of the exit has the same addresses, with file and offset.
    rows = {addr: (file, offset, nr) for addr, file, offset, nr in user_rows(log)}
    for stack in in_user:
        file, offset, nr = rows[stack.user[-1]]
        assert (file, offset) == (program.path, offset_of(stack.user[-1]))
        assert nr >= stack.nr
    # Their sums by function are what the table of user functions has. Samples of libc's start
    # differ from boot to boot, and have other names there (aliases, update_active.constprop.0).
    functions: Counter[str] = Counter()
    for file, offset, nr in rows.values():
        assert file == program.path
        functions[program.name_at(offset)] += nr
    table = report.parse(log)[-1].user_functions
    found = {row.name: row.nr for row in table}
    assert {name: found.get(name, 0) for name in CHAIN} == {name: functions[name] for name in CHAIN}
    assert sum(row.nr for row in table) == functions.total()
    # It also has the system call, with the kernel functions that ran in it.
    calls = call_rows(log)["sys_getppid"]
    assert sum(calls.values()) >= sum(stack.nr for stack in in_call)
    assert {"do_syscall_64", *(stack.kernel[-1] for stack in in_call)} <= set(calls)


@pytest.mark.parametrize("source", ["timer", "nmi"])
def test_callers_across_libc(boot, builds, source):
    """Each chain from libc leads to the function that called it, and on to the first function."""
    append = f"profile.source={source} profile.hz=20000"
    log = boot("chain-libc", 100, icount=True, append=append, timeout=240).log
    assert "PASS: chain-libc" in log
    program = Program("chain-libc")
    offset_of = offsets_in(log, program)
    stacks = stacks_of(log, builds.kernel())
    stacks = [stack for stack in stacks if stack.task == "chain-libc" and stack.user]
    nr_whole = nr_in_handler = nr_in_write = nr_named = 0
    for stack in stacks:
        names = [program.name_at(offset_of(addr - 1)).split(".")[0] for addr in stack.user]
        if "handle" in [*names[:-1], program.name_at(offset_of(stack.user[-1]))]:
            nr_named += stack.nr
        if not stack.truncated and names[:1] == ["_start"] and "main" in names:
            nr_whole += stack.nr
        if "handle" in names:
            assert names.index("work") < names.index("handle")
            nr_in_handler += stack.nr
        if stack.call == "[sys_write]" and names[-2] != "main":  # which stops the samples
            assert "record" in names[names.index("work") :][1:-1]
            nr_in_write += stack.nr
    total = sum(stack.nr for stack in stacks)
    assert total > 1000 and nr_whole >= 0.99 * total
    assert nr_in_handler > 100 and nr_in_write > 100
    # The folded text names the interrupted instruction itself, not the one before it.
    assert sum(nr for frames, nr in folded_of(log) if "handle" in frames) == nr_named
