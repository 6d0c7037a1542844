# SPDX-License-Identifier: BSD-2-Clause
"""
After thousands of processes the stores of samples and waits have as much room as at the start: the
last process is known as well as the first, and no sample is lost. `make soak SOAK_ARGS=--long` runs
more processes.
"""

import os
import re
import subprocess

import pytest
import report
from harness import BUILD, ROOT, Booter

HZ = 9973
NR_PROCESSES = int(os.environ.get("LONG_RUN_PROCESSES", 3000))
NR_FILES = int(os.environ.get("LONG_RUN_FILES", 24))
TIMEOUT_S = 900 + NR_PROCESSES / 10


def due(found):
    """Returns how many samples a process should have, by its CPU time."""
    return found.summary.cpu_us * HZ / 1e6


def check_whole(found):
    """The process has its samples, within what their random moments allow, and its waits."""
    nr = found.heatmap.process["samples"]
    assert abs(nr - due(found)) < 4 + 0.1 * due(found)
    assert not [note for note in found.heatmap.notes if "not in" in note]
    assert "unknown" not in found.summary.parts


@pytest.fixture(scope="module")
def log(builds):
    append = f"profile.on_exit=first,last profile.hz={HZ}"
    boot = Booter(builds, "generations")
    options = {"icount": True, "append": append, "timeout": TIMEOUT_S, "silence": TIMEOUT_S}
    return boot("generations", NR_PROCESSES, **options).log


def test_the_last_process_is_as_well_known_as_the_first(log):
    first, last = report.parse(log)
    check_whole(first)
    check_whole(last)
    rows = [[(row.what, row.nr) for row in found.waits.rows] for found in (first, last)]
    assert rows[0] == rows[1]


def test_memory_is_flat(log):
    (kib,) = re.findall(r"^memory: (-?\d+) KiB$", log, re.MULTILINE)
    assert int(kib) < 512


def test_ended_processes_are_summed_up_by_program(log):
    """All samples taken are in the rows, of live processes or of programs."""
    tasks = re.findall(r"^heatmap +(\d+) +(\d+) +(\S+) +(\d+) +\d+\.\d+", log, re.MULTILINE)
    programs = {name: int(nr) for pid, tid, name, nr in tasks if pid == tid == "0"}
    assert all(programs[name] > NR_PROCESSES for name in ("spring", "summer", "autumn"))
    (cpu,) = re.findall(r"^heatmap +0 +\d+ +\d+ +\d+ +\d+ +(\d+) +(\d+) +(\d+)", log, re.MULTILINE)
    attempts, stored, dropped = map(int, cpu)
    assert attempts == stored and not dropped
    assert sum(int(nr) for *_, nr in tasks) == stored


@pytest.fixture(scope="module")
def build_image(tmp_path_factory):
    """An image whose command compiles files with make -j4."""
    directory = tmp_path_factory.mktemp("gcc")
    root = directory / "root"
    (root / "src").mkdir(parents=True)
    for i in range(NR_FILES):
        text = f"int f{i}(int a) {{ for (int i = {i}; i < a; i++) a *= i; return a; }}\n"
        (root / "src" / f"f{i}.c").write_text(text)
    rule = "%.o: %.c\n\tgcc -O1 -c -o $@ $<\n"
    files = " ".join(f"f{i}.o" for i in range(NR_FILES))
    (root / "src" / "Makefile").write_text(f"all: {files}\n{rule}")
    (root / "command").write_text("make -s -j4 -C /src\n")
    image = directory / "gcc.cpio"
    command = [ROOT / "scripts/mkinitramfs", "-o", image, f"--cache={BUILD / 'packages'}"]
    command += ["--busybox", "--debian=gcc", "--debian=make", ROOT / "scripts/shell", root]
    subprocess.run(command + [f"--dir=/{name}" for name in ("dev", "proc", "tmp")], check=True)
    return image


def test_each_compiler_of_a_build_has_its_samples(boot, build_image):
    append = f"profile.on_exit=cc1 profile.hz={HZ}"
    options = {"icount": True, "append": append, "timeout": TIMEOUT_S, "silence": TIMEOUT_S}
    log = boot(None, initrd=build_image, mem=None, **options).log
    found = report.parse(log)
    assert len(found) == NR_FILES
    for compiler in found:
        check_whole(compiler)


def test_a_build_has_a_short_report(boot, build_image):
    """With the options of make run: one report for over 70 processes, of at most 100 lines."""
    append = "profile.on_exit=run profile.path=on profile.hz=10007 profile.samples=2097152"
    options = {"icount": True, "append": append, "timeout": TIMEOUT_S, "silence": TIMEOUT_S}
    log = boot(None, initrd=build_image, mem="2G", smp=1, **options).log
    (found,) = report.parse(log)
    (nr,) = re.findall(r"run of (\d+) processes", found.why)
    assert int(nr) > 3 * NR_FILES
    lines = log[log.index("profile: report 1: ") : log.index("profile: end of report 1\n")]
    assert lines.count("\n") + 1 <= 100
