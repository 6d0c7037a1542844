# SPDX-License-Identifier: BSD-2-Clause
"""No function ends in a tail call, so each stays in its call chain until it returns.

Compilers can turn a call at the end of a function into a jump. The frame of the function is then
gone, and samples in the callee do not count for it.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness import ROOT
from test_heatmap import CALL_ROW, FUNCTION_ROW, tables_in
from test_heatmap_chain import file_lines, stacks_of

# Functions that may end in tail calls: the sampler's interrupt handlers, and writers of events. The
# Kbuilds say why. Names are matched without the suffixes that compilers add.
EXEMPT = {
    "kernel/profile/samples/store.o": r"sample_take|take_slow|take_unframed",
    "kernel/profile/samples/source.o": r"profile_(timer|nmi)_came|timer_slow_path"
    r"|count_late|take_and_skip",
    "kernel/profile/trace/events.o": r"profile_trace_\w+(?<!_slow)",
}
FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
JUMP = re.compile(r"^ *[0-9a-f]+:\tj\w+ +(\S+)")
# An indirect jump with a scaled index is a switch, not a tail call.
INDIRECT = re.compile(r"^\*(?:%\w+|-?(?:0x)?[0-9a-f]*\(%\w+\))$")


def functions_of(image: Path) -> dict[int, str]:
    nm = subprocess.run(["nm", image], capture_output=True, text=True, check=True).stdout
    words = (line.split() for line in nm.splitlines())
    return {int(word[0], 16): word[2] for word in words if word[1] in "tT"}


def tail_jumps(image: Path) -> dict[str, set[str]]:
    """Returns the jumps of each function to the start of another one, or through a register."""
    starts = functions_of(image)
    command = ["objdump", "-d", "--no-show-raw-insn", image]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    jumps: dict[str, set[str]] = {}
    name = ""
    for line in listing.splitlines():
        if match := FUNCTION.match(line):
            name = match[2]
        elif match := JUMP.match(line):
            target = match[1]
            if INDIRECT.match(target):
                jumps.setdefault(name, set()).add(target)
            elif target[0] != "*" and starts.get(int(target, 16), name) != name:
                jumps.setdefault(name, set()).add(starts[int(target, 16)])
    return jumps


def functions_in(build: Path, objects: list[Path]) -> set[str]:
    return {name for path in objects for name in functions_of(build / path).values()}


def jumps_of_c(image: Path) -> dict[str, set[str]]:
    """The tail jumps of functions that are not written in assembly."""
    build = image.parent
    assembly = [path.relative_to(ROOT).with_suffix(".o") for path in ROOT.glob("arch/**/*.S")]
    assembly = [path for path in assembly if (build / path).exists()]
    assert len(assembly) >= 3
    left_out = functions_in(build, assembly)
    jumps = {}
    for name, targets in tail_jumps(image).items():
        # Compilers move rarely executed code to <function>.cold, which is no other function.
        targets = {target for target in targets if target != f"{name}.cold"}
        if targets and name not in left_out:
            jumps[name] = targets
    return jumps


@pytest.mark.parametrize("variant", [None, "llvm"])
def test_no_function_ends_in_a_jump(builds, variant):
    image = builds.kernel(variant)
    jumps = jumps_of_c(image)
    for path, pattern in EXEMPT.items():
        functions = functions_in(image.parent, [Path(path)]) & jumps.keys()
        exempt = {name for name in functions if re.fullmatch(pattern, name.partition(".")[0])}
        assert exempt, path
        jumps = {name: targets for name, targets in jumps.items() if name not in exempt}
    assert not jumps


def test_control_tail_calls_without_call_chains(builds):
    """Without call chains, the kernel is built with tail calls, and the search finds them."""
    jumps = jumps_of_c(builds.kernel("profile-none"))
    assert "make_name" in jumps["sys_mkdir"] and len(jumps) > 200


def test_files_that_are_exempt():
    flag = re.compile(r"^cflags-(\S+) := .*\$\(tail-calls\)", re.MULTILINE)
    found = {
        str(path.relative_to(ROOT).with_name(name))
        for top in ("arch", "kernel", "tests")
        for path in (ROOT / top).rglob("Kbuild")
        for name in flag.findall(path.read_text())
    }
    assert found == EXEMPT.keys()


@pytest.mark.parametrize("source", ["timer", "nmi"])
def test_a_call_has_its_functions_samples(boot, builds, source):
    """
    The samples of a system call are those with its function in the call chain, and those outside
    all functions of calls, mostly in do_syscall_64() itself. Samples of interrupts do not count.
    """
    append = f"profile.source={source} profile.hz=20000 profile.on_exit=none"
    log = boot("callers", 100, icount=True, append=append, timeout=240).log
    assert "PASS: callers" in log
    tables = tables_in(file_lines(log, "heatmap"))
    rows = [FUNCTION_ROW.match(row).groups() for row in tables["function"]]
    inclusive = {row[1]: int(row[4]) for row in rows}
    calls = (CALL_ROW.match(row).groups() for row in tables["system call"] if row[:20].strip())
    by_call = {row[0]: int(row[1]) for row in calls}
    all_stacks = stacks_of(log, builds.kernel())
    for call in ("sys_read", "sys_mmap", "sys_munmap"):
        stacks = [stack for stack in all_stacks if stack.call == f"[{call}]"]
        outside = [stack for stack in stacks if call not in stack.kernel]
        nr_outside = sum(stack.nr for stack in outside)
        hit = [stack for stack in all_stacks if stack not in stacks and call in stack.kernel]
        assert not [stack for stack in hit if "do_vector" not in stack.kernel]
        nr_hit = sum(stack.nr for stack in hit)
        assert sum(stack.nr for stack in stacks) == by_call[call]
        assert by_call[call] - (inclusive[call] - nr_hit) == nr_outside
        assert nr_hit < 0.05 * by_call[call]
        assert not [name for stack in outside for name in stack.kernel if name.startswith("sys_")]
        assert inclusive[call] > 100 and nr_outside < 0.35 * by_call[call]
        nr_around = sum(stack.nr for stack in outside if stack.kernel[0] == "do_syscall_64")
        nr_itself = sum(stack.nr for stack in outside if stack.kernel == ["do_syscall_64"])
        assert nr_itself > 0.5 * nr_around
