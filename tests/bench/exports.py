# SPDX-License-Identifier: BSD-2-Clause
"""Measures how long it takes to export some 50,000 stacks, in each way, and to convert the export.

These rows depend on the machine and have no limits.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import qemu  # noqa: E402
from profiles import export  # noqa: E402

HZ = 100_000
CPUS = 4  # of many_places.c
STORE_BYTES = 2 << 20  # for samples of a CPU: the maximum
EXPORT_BYTES = 64 << 20
SCRIPT = """many-places
echo off >/proc/profile/source
echo "<ram"; echo e >/proc/sysrq-trigger; echo "ram>"
echo "<file"; cat /proc/profile/export >/tmp/export; echo "file>"
echo "<console"; cat /proc/profile/export; echo; echo "console>"
"""
WAYS = {
    "ram": "written to memory, for the host to read",
    "file": "/proc/profile/export, copied to a file in the guest",
    "console": "/proc/profile/export on the serial line",
}
COMMANDS = {
    "report": ["report"],
    "report_by": ["report", "--by", "task,function"],
    "folded": ["folded"],
    "stacks": ["stacks"],
    "perf_data": ["perf-data"],
    "pprof": ["pprof"],
    "speedscope": ["speedscope"],
    "callgrind": ["callgrind"],
}


def make_image(directory: Path, build: Path) -> tuple[Path, Path]:
    """Returns the program and an initramfs with a shell that runs SCRIPT."""
    root, image = directory / "root", directory / "exports.cpio"
    program = root / "bin/many-places"
    program.parent.mkdir(parents=True, exist_ok=True)
    flags = "-O1 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -static -o".split()
    source = ROOT / "tests/bench/many_places.c"
    subprocess.run(["gcc", *flags, program, source], check=True)
    (root / "command").write_text(SCRIPT)
    items = [f"--dir=/{name}" for name in ("dev", "proc", "root", "tmp")]
    items += [str(ROOT / "scripts/shell"), str(root), f"--cache={build / 'packages'}"]
    command = [ROOT / "scripts/mkinitramfs", "-o", image, "--busybox", *items]
    subprocess.run(command, check=True)
    return program, image


class Clock:
    """Records when the console showed each mark. Searches only new output, as there is much."""

    def __init__(self) -> None:
        self.text = b""
        self.seen: dict[str, float] = {}

    def show(self, data: bytes) -> None:
        self.text = self.text[-100:] + data
        for mark in re.findall(rb"^(?:<\w+|\w+>)\r?$", self.text, re.MULTILINE):
            self.seen.setdefault(mark.decode().strip(), time.monotonic())


def time_ways_out(options: qemu.Options) -> dict[str, float]:
    """Runs the guest, and returns the seconds of each way to export, by the host's clock."""
    clock = Clock()
    with qemu.Guest(options, clock.show) as guest:
        result = guest.wait()
    if not result.ok or result.export_error:
        raise qemu.QemuError(f"exports: {result.error or result.export_error}\n{result.tail()}")
    return {way: clock.seen[f"{way}>"] - clock.seen[f"<{way}"] for way in WAYS}


def time_commands(path: Path, kernel: Path, program: Path) -> dict[str, float]:
    """Returns how many seconds each command of legoprof takes."""
    symbols, output = ["--kernel", kernel, "--program", program], path.with_suffix(".out")
    commands = {name: [*words, path, *symbols] for name, words in COMMANDS.items()}
    for name in set(commands) - {"report", "report_by"}:
        commands[name] += ["-o", output]
    commands["diff"] = ["diff", path, path]
    commands["merge"] = ["merge", f"a={path}", f"b={path}", "-o", output]
    seconds = {}
    for name, words in commands.items():
        start = time.monotonic()
        command = [ROOT / "scripts/legoprof", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds[name] = time.monotonic() - start
    output.unlink()
    return seconds


def measure(build: Path) -> list[tuple[str, float, str, str]]:
    """Returns name, value, unit and note of each row."""
    directory = build / "bench"
    directory.mkdir(exist_ok=True)
    program, image = make_image(directory, build)
    kernel, path = build / "vmlinux", directory / "many.lego"
    sizes = f"profile.samples={STORE_BYTES} profile.export={EXPORT_BYTES}"
    append = f"profile.hz={HZ} {sizes} profile.on_exit=none init=/init"
    files = {"kernel": kernel, "initrd": image, "export": path}
    seconds = time_ways_out(qemu.Options(**files, smp=CPUS, mem="2G", icount=True, append=append))
    nr_stacks, size = len(export.load(path).rows("samples.json")), path.stat().st_size
    rows = [("export_size", size, "bytes", f"an export of {nr_stacks} stacks")]
    rows += [(f"export_{way}", seconds[way], "seconds", note) for way, note in WAYS.items()]
    for name, taken in time_commands(path, kernel, program).items():
        nr_bytes = 2 * size if name in ("diff", "merge") else size
        rows.append((f"legoprof_{name}", nr_bytes / taken / 1e6, "MB/s", "of that export"))
    return rows


if __name__ == "__main__":
    for row in measure(ROOT / "build"):
        print(*row)
