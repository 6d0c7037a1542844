# SPDX-License-Identifier: BSD-2-Clause
"""Profilers that are compiled out leave no code: with all of them off, every function has the same
machine code as in a tree whose hook lines are deleted."""

import re
import subprocess
from pathlib import Path

import pytest

from harness import ROOT, make

HOOK = re.compile(r"^[ \t]*(?:DEFINE_PROFILE|PROFILE|profile)_\w+\(.*\);?[ \t]*$", re.MULTILINE)
CALL = re.compile(r"\b((?:DEFINE_PROFILE|PROFILE|profile)_\w+) *\(")
COMMENT = re.compile(r"^[ \t]*(?:/\*|\*|//)")
HOOKS_LIVE_IN = ("arch", "kernel", "include")
NOT_COMPARED = "kernel/profile/"
NOT_HOOKS = ("kernel/profile/", "include/lego/profile_os")


def sources(tree: Path):
    for top in HOOKS_LIVE_IN:
        for path in sorted((tree / top).rglob("*.[chS]")):
            if not str(path.relative_to(tree)).startswith(NOT_HOOKS):
                yield path


def delete_hooks(tree: Path) -> list[str]:
    """Empties the lines that call hooks, without changing line numbers, and returns them."""
    deleted = []
    for path in sources(tree):
        text = path.read_text()
        found = HOOK.findall(text)
        if found:
            deleted += found
            path.write_text(HOOK.sub("", text))
    return deleted


def hooks_left(tree: Path) -> list[str]:
    """Returns the lines that still use a name from the profiler's headers."""
    profile = tree / "kernel/profile"
    headers = [*profile.glob("include/profile/*.h"), *profile.glob("*/hooks.h")]
    others = ("functions", "stack_walk", "user_unwind")
    texts = [path.read_text() for path in headers if path.stem not in others]
    declared = {name for text in texts for name in CALL.findall(text)}
    assert "profile_tick" in declared
    return [
        f"{path.relative_to(tree)}: {line.strip()}"
        for path in sources(tree)
        for line in path.read_text().splitlines()
        if not COMMENT.match(line) and declared & set(CALL.findall(line))
    ]


def machine_code(build: Path) -> dict[str, str]:
    """Disassembles each object of the kernel, with relocations, except those of the profilers."""
    code = {}
    for path in sorted(path for name in ("arch", "kernel") for path in (build / name).rglob("*.o")):
        name = str(path.relative_to(build))
        if name.startswith(NOT_COMPARED) or "kallsyms" in name:
            continue
        command = ["objdump", "-d", "-r", "-w", path]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        code[name] = done.stdout.split("\n", 3)[-1]  # without the file's name
    return code


@pytest.fixture(scope="module")
def none_code(builds):
    return machine_code(builds.kernel("profile-none").parent)


def test_off_leaves_nothing_behind(none_code, builds, tree_copy):
    """No other object changes: test_build.py holds that equal sources give equal bytes."""
    build = builds.kernel("profile-none").parent
    tree = tree_copy("without-hooks", build)
    deleted = delete_hooks(tree)
    names = {re.match(r"\s*(\w+)", line)[1] for line in deleted}
    expected = {"profile_syscall_enter", "profile_syscall_exit", "profile_tick", "profile_init"}
    expected |= {"profile_next_deadline", "profile_nmi"}
    assert expected <= names and len(deleted) > 15, sorted(names)
    assert not hooks_left(tree), "these hooks do not have a line of their own"

    name = build.relative_to(ROOT)
    make(f"BUILD={name}", "CONFIG=profile-none", "debug-info=-g0", f"{name}/vmlinux", cwd=tree)
    code = machine_code(tree / name)
    assert code.keys() == none_code.keys()
    different = [name for name in code if code[name] != none_code[name]]
    assert not different


def test_control_with_profilers_on_it_differs(none_code, builds):
    """The comparison notices hooks: functions that have some differ in the default build."""
    code = machine_code(builds.kernel().parent)
    different = [name for name in none_code if code.get(name) != none_code[name]]
    assert len(different) >= 4, different


def test_nothing_of_the_profilers_in_the_image(builds):
    nm = ["nm", builds.kernel("profile-none")]
    symbols = subprocess.run(nm, capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in symbols if name.startswith(("profile_", "heatmap_", "strace_"))]
