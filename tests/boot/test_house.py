# SPDX-License-Identifier: BSD-2-Clause
"""Checks the dependencies between the folders of kernel/profile/, by the symbols of the objects.

A folder may use the files at the top, which all profilers share. strace/live/ and strace/files/ may
also use strace/; functions/ records in the rings of trace/, and path/ reads them. So there are no
circular dependencies. The rest of the kernel sees only the hooks.
"""

import os
import re
import subprocess
from collections import defaultdict

import harness

MAY_USE = {
    ".": set(),
    "strace": {"."},
    "strace/files": {".", "strace"},
    "strace/live": {".", "strace"},
    "samples": {"."},
    "waits": {"."},
    "points": {"."},
    "trace": {"."},
    "export": {"."},
    "images": {"."},
    "memory": {"."},
    "working_set": {"."},
    "functions": {".", "trace"},
    "path": {".", "trace"},
}


def objects(build):
    """Returns the objects of kernel/profile/ that are in the kernel, by folder."""
    top = build / "kernel/profile"
    linked = (build / ".kernel-objects").read_text()
    found = {}
    for name in re.findall(r"\S*kernel/profile/(\S+\.o)\b", linked):
        found.setdefault(os.path.dirname(name) or ".", []).append(top / name)
    return found


def symbols(objects):
    """Returns the symbols that the objects define, and those that they use from elsewhere."""
    out = subprocess.run(["nm", *objects], capture_output=True, text=True, check=True).stdout
    defined = set(re.findall(r"^\w+ [A-TV-Z] (\S+)$", out, re.MULTILINE))
    wanted = set(re.findall(r"^ +[UWw] (\S+)$", out, re.MULTILINE))
    return defined, wanted - defined


def test_no_circle_between_folders(builds):
    build = builds.kernel("functions").parent  # has all folders
    found = {folder: symbols(files) for folder, files in objects(build).items()}
    assert found.keys() == MAY_USE.keys()
    for folder, (_, wanted) in found.items():
        for other, (defined, _) in found.items():
            if other != folder and other not in MAY_USE[folder]:
                assert not wanted & defined, f"{folder} uses {other}"
    # Control: two known dependencies are seen.
    assert "report_printf" in found["samples"][1] & found["."][0]
    assert "strace_switch_shown" in found["strace/live"][1] & found["strace"][0]


def test_only_hooks_are_visible():
    """kernel/profile/ is one object, and its other names cannot clash with the kernel's."""
    visible, _ = symbols([harness.BUILD / "kernel/profile.o"])
    assert {name for name in visible if not name.startswith("profile_")} == {"print_profile_points"}
    # Control: the names are there, in its parts.
    assert "report_printf" in symbols(objects(harness.BUILD)["."])[0]


# Names of functions that say nothing in a heatmap or a stack.
EMPTY_NAMES = {
    *("add", "alloc", "apply", "begin", "copy", "do", "drain", "emit", "end", "find", "finish"),
    *("fold", "free", "get", "handle", "make", "measure", "move", "process", "put", "read"),
    *("remove", "run", "send", "serialize", "set", "take", "toggle", "transfer", "update"),
    *("visit", "walk", "work", "write"),
}


def functions(build):
    """Returns the names of the functions of kernel/ and arch/, without what GCC appends to them."""
    linked = (build / ".kernel-objects").read_text()
    files = re.findall(r"\S*\b(?:kernel|arch)/\S+\.o\b", linked)
    files = [name for name in files if "tests/kernel/" not in name]
    out = subprocess.run(
        ["nm", *files], cwd=harness.ROOT, capture_output=True, text=True, check=True
    ).stdout
    return set(re.findall(r"^\w+ [Tt] ([^.\s]+)", out, re.MULTILINE))


def test_names_of_functions_say_something(builds):
    for build in (harness.BUILD, builds.kernel("functions").parent):  # the latter has all folders
        names = functions(build)
        assert not EMPTY_NAMES & names
        assert "rw_transfer" in names  # control: static functions are seen


# Words that many CPUs read, and words that they write at the same time.
READ_MOSTLY = {"page_map", "sched_cpus"}
WRITTEN = {"buddy_lock", "nr_free", "pid_lock", "process_tree_lock", "task_list_lock", "tree_lock"}


def test_words_that_cpus_write_share_no_cache_line():
    lines = defaultdict(set)
    out = subprocess.run(
        ["nm", "-S", harness.BUILD / "vmlinux"], capture_output=True, text=True, check=True
    ).stdout
    for start, size, name in re.findall(r"^(\w+) (\w+) [bBdD] (\w+)$", out, re.MULTILINE):
        for line in range(int(start, 16) // 64, (int(start, 16) + int(size, 16) - 1) // 64 + 1):
            lines[line].add(name)
    assert READ_MOSTLY | WRITTEN <= set.union(*lines.values())
    for names in lines.values():
        hot = names & WRITTEN
        assert len(hot) <= 1 and not (hot and names & READ_MOSTLY), names
        # A lock has a line for itself.
        assert not any(name.endswith("_lock") for name in hot) or len(names) == 1, names


SCRIPT = """\
busybox true
cat /proc/profile/toy
echo reset > /proc/profile/report
cat /proc/profile/toy
cat /proc/profile/toy
cat /proc/profile/report
"""


def test_a_profiler_is_a_folder():
    """A profiler with a hook and a state of each thread is its folder, an entry in Kconfig, a line
    in Kbuild and the lines of its hook."""
    text = subprocess.run(
        ["git", "grep", "-liE", "profile_?toy|kernel/toy|[^a-z]toy/|profiler\\(toy"],
        cwd=harness.ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    told = {"tests/README.md", "kernel/profile/README.md", "tests/boot/test_house.py"}
    folder = {f"tests/kernel/toy/{name}" for name in ("hooks.h", "profiler.c")}
    assert set(text) - told == folder | {
        "Kconfig",
        "tests/kernel/Kbuild",
        "tests/kernel/test_profile.c",  # calls the hook
    }


def test_toy_profiler(boot, tmp_path):
    """It is in the report, in /proc/profile, and in a reset."""
    image = harness.script_image(tmp_path, SCRIPT)
    result = boot(None, initrd=image, append="profile.on_exit=none", variant="functions")
    lines = [line.strip() for line in result.log.splitlines()]
    # The reset comes between the exits of the first and the second cat.
    before, *after = [int(line) for line in lines if line.isdigit()][:3]
    assert (before, after) == (1, [0, 1])
    at = lines.index("Toy Profiler")
    assert [lines[i].split() for i in (at + 1, at + 3)] == [["exits", "steps"], ["2", "0"]]
    titles = [line for line in lines if re.match(r"Kernel (Heatmap \(|Profile)|Toy", line)]
    assert [title.split()[1] for title in titles] == ["Heatmap", "Profiler", "Profile"]
