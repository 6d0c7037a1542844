# SPDX-License-Identifier: BSD-2-Clause
"""Checks the dependencies between the folders of kernel/profile/, by the symbols of the objects.

A folder may use the files at the top, which all profilers share. strace/live/ may also use strace/.
So there are no circular dependencies.
"""

import os
import re
import subprocess

import harness

MAY_USE = {
    ".": set(),
    "strace": {"."},
    "strace/live": {".", "strace"},
    "samples": {"."},
    "waits": {"."},
    "points": {"."},
    "trace": {"."},
    "export": {"."},
    "images": {"."},
}


def objects():
    """Returns the objects of kernel/profile/ that are in the kernel, by folder."""
    top = harness.BUILD / "kernel/profile"
    linked = (harness.BUILD / ".kernel-objects").read_text()
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


def test_no_circle_between_folders():
    found = {folder: symbols(files) for folder, files in objects().items()}
    assert found.keys() == MAY_USE.keys()
    for folder, (_, wanted) in found.items():
        for other, (defined, _) in found.items():
            if other != folder and other not in MAY_USE[folder]:
                assert not wanted & defined, f"{folder} uses {other}"
    # Control: two known dependencies are seen.
    assert "report_printf" in found["samples"][1] & found["."][0]
    assert "strace_switch_shown" in found["strace/live"][1] & found["strace"][0]


SCRIPT = """\
busybox true
cat /proc/profile/toy
echo reset > /proc/profile/report
cat /proc/profile/toy
cat /proc/profile/toy
cat /proc/profile/report
"""


def test_toy_profiler(boot, tmp_path):
    """A profiler is one source file, one entry in Kconfig, and one line in Kbuild."""
    image = harness.script_image(tmp_path, SCRIPT)
    result = boot(None, initrd=image, append="profile.on_exit=none", variant="selftest")
    lines = [line.strip() for line in result.log.splitlines()]
    # The reset comes between the exits of the first and the second cat.
    before, *after = [int(line) for line in lines if line.isdigit()][:3]
    assert (before, after) == (1, [0, 1])
    at = lines.index("Toy Profiler")
    assert lines[at + 1 : at + 4] == ["exits", "--------", "2"]
    titles = [line for line in lines if re.match(r"Kernel (Heatmap \(|Profile)|Toy", line)]
    assert [title.split()[1] for title in titles] == ["Heatmap", "Profiler", "Profile"]
