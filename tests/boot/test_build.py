# SPDX-License-Identifier: BSD-2-Clause
"""The build is reproducible, rebuilds only what a change affects, and has clear errors."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from harness import ROOT, make

# Files that each link writes.
LINK_OUTPUT = re.compile(r"kallsyms|vmlinux|\.map$|build.?id|version")


POINTS_ON, POINTS_OFF = "CONFIG_PROFILE_POINTS=y", "# CONFIG_PROFILE_POINTS is not set"


@pytest.fixture(scope="module")
def switched(tree_copy) -> tuple[Path, set[str]]:
    """
    A copy of the tree in which one object was built, and built again for an option that was changed
    and changed back. And the files that the change of the option changed.
    """
    tree, goal = tree_copy("other-option"), "build/kernel/profile/report.o"
    make(goal, cwd=tree)
    config = tree / "build" / ".config"
    text = config.read_text()
    assert POINTS_ON in text
    config.write_text(text.replace(POINTS_ON, POINTS_OFF))
    changed = changed_by(tree, goal)
    config.write_text(text)
    make(goal, cwd=tree)
    return tree, changed


@pytest.fixture(scope="module")
def tree(builds, tree_copy) -> Path:
    """A copy of the tree in another place, where an eighth of the objects are built again."""
    built = builds.kernel().parent
    tree = tree_copy("another-place", built)
    if built.relative_to(ROOT) != Path("build"):
        (tree / built.relative_to(ROOT)).rename(tree / "build")
    (tree / "build" / "vmlinux").unlink()
    for path in sorted((tree / "build").rglob("*.o"))[::8]:
        path.unlink()
    make("build/vmlinux", cwd=tree)
    return tree


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


def test_same_tree_same_bytes(builds, tree):
    """Another place and another order make no difference."""
    assert builds.kernel().read_bytes() == (tree / "build" / "vmlinux").read_bytes()


def test_same_option_same_bytes(builds, switched):
    """An option that changed meanwhile makes no difference to an object and generated headers."""
    build, other = builds.kernel().parent, switched[0] / "build"
    headers = [path.relative_to(other) for path in (other / "include").rglob("*.h")]
    assert len(headers) > 3
    for name in [*headers, Path("kernel/profile/report.o")]:
        assert (build / name).read_bytes() == (other / name).read_bytes(), name


def test_build_id(tree):
    image = tree / "build" / "vmlinux"
    notes = subprocess.run(["readelf", "-n", image], capture_output=True, text=True).stdout
    assert re.search(r"Build ID: [0-9a-f]{40}", notes)


def test_no_paths_of_this_machine(tree):
    image = (tree / "build" / "vmlinux").read_bytes()
    assert str(tree).encode() not in image
    assert os.environ.get("HOSTNAME", "\0no host name").encode() not in image


def test_nothing_to_do(tree):
    assert changed_by(tree) == set()


def test_one_source_one_object(tree):
    (tree / "kernel" / "main.c").touch()
    changed = {name for name in changed_by(tree) if name.endswith(".o")}
    assert "kernel/main.o" in changed
    assert not [n for n in changed if n != "kernel/main.o" and not LINK_OUTPUT.search(n)]


def test_header_rebuilds_its_users(tree):
    (tree / "kernel" / "profile" / "samples" / "source.h").touch()
    changed = changed_by(tree)
    assert "kernel/profile/samples/source.o" in changed and "vmlinux" in changed
    assert "kernel/main.o" not in changed


def test_option_rebuilds(switched):
    assert "kernel/profile/report.o" in switched[1]


def test_missing_compiler_is_said(tree):
    done = make("CROSS_COMPILE=nonexistent-", "BUILD=build/other", cwd=tree, check=False)
    assert done.returncode != 0
    assert "nonexistent-gcc" in done.stdout + done.stderr
    assert len((done.stdout + done.stderr).splitlines()) <= 5


def test_broken_source_fails(tree):
    source = tree / "kernel" / "main.c"
    text = source.read_text()
    source.write_text(text + "\n#error on purpose\n")
    try:
        done = make("build/vmlinux", cwd=tree, check=False)
    finally:
        source.write_text(text)
    assert done.returncode != 0 and "on purpose" in done.stderr + done.stdout


def test_unknown_config_is_said(tree):
    done = make("CONFIG=no-such", "BUILD=build/other", cwd=tree, check=False)
    assert done.returncode != 0 and "no-such" in done.stdout + done.stderr


def test_config_of_another_variant_is_refused(tree):
    """Or a user would get the default kernel, and not see why there are no functions in it."""
    stamp = tree / "build/.variant"
    made_from = stamp.read_text()
    done = make("run", "CONFIG=functions", cwd=tree, check=False)
    text = done.stdout + done.stderr
    assert done.returncode != 0 and "`make run CONFIG=functions BUILD=build/functions`" in text
    assert "`make defconfig CONFIG=functions`" in text
    make("-n", "CONFIG=functions", "defconfig", cwd=tree)
    stamp.write_text("functions\n")
    make("-n", "CONFIG=functions", "build/vmlinux", cwd=tree)
    stamp.write_text(made_from)


def test_help(tree):
    text = make("help", cwd=tree).stdout
    for goal in ("run", "test", "bench", "menuconfig", "deps"):
        assert re.search(rf"\b{goal}\b", text), goal
