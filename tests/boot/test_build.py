# SPDX-License-Identifier: BSD-2-Clause
"""The build is reproducible, rebuilds only what a change affects, and has clear errors."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from harness import make

# Files that each link writes.
LINK_OUTPUT = re.compile(r"kallsyms|vmlinux|\.map$|build.?id|version")


@pytest.fixture(scope="module")
def trees(tree_copy):
    """Two copies of the tree in different places, both built."""
    copies = [tree_copy("one"), tree_copy("another-place")]
    for tree in copies:
        make("build/vmlinux", cwd=tree)
    return copies


def snapshot(tree: Path) -> dict[str, int]:
    build = tree / "build"
    return {
        str(path.relative_to(build)): path.stat().st_mtime_ns
        for path in build.rglob("*")
        if path.is_file() and ".pycache" not in path.parts
    }


def changed_by(tree: Path, goal: str = "build/vmlinux") -> set[str]:
    before = snapshot(tree)
    time.sleep(0.05)
    make(goal, cwd=tree)
    after = snapshot(tree)
    return {name for name in after if after[name] != before.get(name)}


def test_same_tree_same_bytes(trees):
    one, two = ((tree / "build" / "vmlinux").read_bytes() for tree in trees)
    assert one == two


def test_build_id(trees):
    image = trees[0] / "build" / "vmlinux"
    notes = subprocess.run(["readelf", "-n", image], capture_output=True, text=True).stdout
    assert re.search(r"Build ID: [0-9a-f]{40}", notes)


def test_no_paths_of_this_machine(trees):
    for tree in trees:
        image = (tree / "build" / "vmlinux").read_bytes()
        assert str(tree).encode() not in image
        assert os.environ.get("HOSTNAME", "\0no host name").encode() not in image


def test_nothing_to_do(trees):
    assert changed_by(trees[0]) == set()


def test_one_source_one_object(trees):
    (trees[0] / "kernel" / "main.c").touch()
    changed = {name for name in changed_by(trees[0]) if name.endswith(".o")}
    assert "kernel/main.o" in changed
    assert not [n for n in changed if n != "kernel/main.o" and not LINK_OUTPUT.search(n)]


def test_header_rebuilds_its_users(trees):
    (trees[0] / "kernel" / "profile" / "report.h").touch()
    changed = changed_by(trees[0])
    assert "kernel/profile/report.o" in changed and "vmlinux" in changed
    assert "kernel/main.o" not in changed


def test_option_rebuilds(trees):
    config = trees[1] / "build" / ".config"
    text = config.read_text()
    assert "CONFIG_PROFILE_POINTS=y" in text
    config.write_text(text.replace("CONFIG_PROFILE_POINTS=y", "# CONFIG_PROFILE_POINTS is not set"))
    assert "kernel/profile/report.o" in changed_by(trees[1], "build/kernel/profile/report.o")
    config.write_text(text)
    make("build/vmlinux", cwd=trees[1])
    test_same_tree_same_bytes(trees)


def test_missing_compiler_is_said(trees):
    done = make("CROSS_COMPILE=nonexistent-", "BUILD=build/other", cwd=trees[0], check=False)
    assert done.returncode != 0
    assert "nonexistent-gcc" in done.stdout + done.stderr
    assert len((done.stdout + done.stderr).splitlines()) <= 5


def test_broken_source_fails(trees):
    source = trees[0] / "kernel" / "main.c"
    text = source.read_text()
    source.write_text(text + "\n#error on purpose\n")
    try:
        done = make("build/vmlinux", cwd=trees[0], check=False)
    finally:
        source.write_text(text)
    assert done.returncode != 0 and "on purpose" in done.stderr + done.stdout


def test_unknown_config_is_said(trees):
    done = make("CONFIG=no-such", "BUILD=build/other", cwd=trees[0], check=False)
    assert done.returncode != 0 and "no-such" in done.stdout + done.stderr


def test_help(trees):
    text = make("help", cwd=trees[0]).stdout
    for goal in ("run", "test", "bench", "menuconfig", "deps"):
        assert re.search(rf"\b{goal}\b", text), goal
