# SPDX-License-Identifier: BSD-2-Clause
"""perf and pprof find functions and lines of user programs, with fixed addresses and without."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

import qemu
from conftest import HZ, KERNEL, ROOT, legoprof, run

SOURCE = """\
#include <stdlib.h>
__attribute__((noinline)) unsigned long hash(unsigned long n)
{
	unsigned long sum = 0;
	for (unsigned long i = 0; i < n; i++)
		sum = sum * 31 + (i ^ sum >> 7); /* the hot line */
	return sum;
}
__attribute__((noinline)) unsigned long twice(unsigned long n)
{
	return hash(n) + 1 + hash(n + 1);
}
int main(int argc, char **argv)
{
	return twice(atoi(argv[1])) == 0;
}
"""
LINKS = {"static": ["-static", "-no-pie"], "pie": ["-static-pie"]}


@pytest.fixture(scope="module", params=LINKS)
def program(request, tmp_path_factory):
    """Returns (program, export of its run)."""
    directory = tmp_path_factory.mktemp(request.param)
    path, source = directory / "hasher", directory / "hasher.c"
    source.write_text(SOURCE)
    command = ["gcc", "-O2", "-g", "-fno-omit-frame-pointer", source, "-o", path]
    run(*command, *LINKS[request.param])
    run(ROOT / "scripts/mkinitramfs", "-o", directory / "initramfs.cpio", path)
    options = qemu.Options(
        kernel=KERNEL,
        initrd=directory / "initramfs.cpio",
        append=f"profile.hz={HZ} profile.on_exit=none init=/bin/hasher -- 1000000",
        icount=True,
        export=directory / "run.lego",
    )
    result = qemu.run(options)
    assert result.ok and not result.export_error, result.tail()
    return path, options.export


def test_perf_by_build_id(program, tmp_path):
    """
    Without a program here, the path is the guest's, and perf finds the program by its build id.
    """
    path, export = program
    export = shutil.copy(export, tmp_path)  # not beside the program, where legoprof would find it
    data = tmp_path / "perf.data"
    legoprof("perf-data", export, "-o", data, "--kernel", KERNEL)
    perf = "perf", "--buildid-dir", tmp_path / "buildid"
    for file in KERNEL, path:
        run(*perf, "buildid-cache", "-a", file)
    text = run(*perf, "report", "-i", data, "--stdio", "-g", "none", "--no-children")
    (share,) = re.findall(r"([\d.]+)% +hasher +hasher +\[\.\] hash$", text, re.MULTILINE)
    assert float(share) > 50
    text = run(*perf, "script", "-i", data)
    frames = re.findall(r"\t *\w+ (\w+)\+0x\w+ \(\S+/hasher\)\n", text)
    assert {"hash", "main"} <= set(frames)  # hash() makes no frame, so its caller is missing
    text = run(*perf, "annotate", "-i", data, "hash", "--stdio")
    assert "the hot line" in text and "Disassembly of section .text" in text
    ids = run(*perf, "buildid-list", "-i", data)
    assert build_id(path) in ids and build_id(KERNEL) in ids


def build_id(path) -> str:
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", path))[1]


def test_pprof_lists_lines(program, tmp_path):
    path, export = program
    legoprof("pprof", export, "-o", tmp_path / "pb.gz", "--kernel", KERNEL, "--program", path)
    text = run("go", "tool", "pprof", "-list", "^hash$", KERNEL, tmp_path / "pb.gz")
    assert "hasher.c" in text
    assert re.search(r"[\d.]+m?s +[\d.]+m?s +6:.*the hot line", text)


def test_other_build_is_refused(program):
    path, export = program
    wrong = path.with_name("wrong") / "hasher"
    wrong.parent.mkdir(exist_ok=True)
    wrong.with_suffix(".c").write_text(SOURCE.replace("31", "33"))
    run("gcc", "-static", wrong.with_suffix(".c"), "-o", wrong)
    command = [ROOT / "scripts/legoprof", "folded", export, "--program", wrong]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    few_lost = r"(legoprof: .*: \d of \d+ samples were lost .*\n)?"
    message = few_lost + r"legoprof: error: .* is not the program that ran: .*\n"
    assert re.fullmatch(message, done.stderr), done.stderr
