# SPDX-License-Identifier: BSD-2-Clause
"""
A trace.dat that trace-cmd has recorded inside the guest is read on the host, by the host's
trace-cmd and kernelshark: what the guest copied to /host during the run, what it recorded there,
and what GET brought after the run.
"""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

import qemu
from conftest import BUILD, script_image
from test_events import check_kernelshark

KERNEL = BUILD / "variants/functions/vmlinux"  # made by `make functions-kernel`

# The host waits for the words that it echoes, which are not those that it is given.
SCRIPT = """\
trace-cmd record -o /tmp/x.dat -e sched -e raw_syscalls -F busybox ls / >/tmp/log 2>&1
trace-cmd report -i /tmp/x.dat >/tmp/x.txt
cp /tmp/x.txt /host/; cp /tmp/x.dat /host/copied.dat; echo cop''ied
read -r line
trace-cmd record -o /host/direct.dat -e sched -F busybox ls / >/tmp/log 2>&1
trace-cmd report -i /host/direct.dat >/tmp/direct.txt; echo recor''ded
"""


def wait_for(path: Path, guest: qemu.Guest) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end and guest.process.poll() is None, path
        guest._read(0.1)


def report(path: Path) -> list[str]:
    """Returns the lines of the host's trace-cmd, but for that which has the number of CPUs."""
    done = subprocess.run(
        ["trace-cmd", "report", "-i", path], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("cpus=")]


def event_lines(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    return [line for line in lines if not line.startswith("cpus=")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Returns where the files are. During the run, the copied one is read there."""
    directory = tmp_path_factory.mktemp("trace-files")
    out = directory / "out"
    options = qemu.Options(
        kernel=KERNEL,
        initrd=script_image(directory, SCRIPT, "trace-cmd"),
        append="profile.on_exit=none loglevel=4 stdin=/dev/ttyS0",
        icount=True,
        mem="1G",
        get=["/tmp"],
        get_folder=out,
        host="/host",
    )
    with qemu.Guest(options) as guest:
        guest.expect("copied")
        wait_for(out / "host/copied.dat", guest)
        (directory / "during").write_text("\n".join(report(out / "host/copied.dat")))
        guest.send("go on\n")
        guest.expect("recorded")
        result = guest.wait()
    assert result.ok and not result.get_problems, result.tail()
    return directory


def test_report_of_a_file_that_was_copied_during_the_run(folder):
    lines = event_lines(folder / "out/tmp/x.txt")
    assert len(lines) > 50 and any("sched_process_exec:" in line for line in lines)
    assert event_lines(folder / "during") == lines
    assert event_lines(folder / "out/host/x.txt") == lines


def test_report_of_a_file_that_get_brought(folder):
    assert report(folder / "out/tmp/x.dat") == event_lines(folder / "out/tmp/x.txt")
    copied = (folder / "out/host/copied.dat").read_bytes()
    assert (folder / "out/tmp/x.dat").read_bytes() == copied


def test_kernelshark_of_a_file_that_get_brought(folder, tmp_path):
    check_kernelshark(folder / "out/tmp/x.dat", tmp_path)


def test_report_of_a_file_that_was_recorded_in_host(folder):
    lines = event_lines(folder / "out/tmp/direct.txt")
    assert len(lines) >= 3 and all(re.search(r"\bsched_\w+:", line) for line in lines)
    assert report(folder / "out/host/direct.dat") == lines
