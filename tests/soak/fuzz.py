#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Boots the fuzzer (tests/user/load/fuzz.c) again and again, and keeps a table in README.md here.

    make soak SOAK_ARGS='--fuzz --seconds 3600'

A seed stands for a boot: the kernel (normal or debug), the CPUs, the memory, the user, and whether
QEMU counts instructions, which makes the run exactly reproducible. The next seed is in the table,
so the next run goes on there. A boot that fails is listed below the table with its command line. A
seed that found a fault becomes a line of seeds.txt, which test_fuzz.py runs.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import qemu  # noqa: E402

BUILD = ROOT / os.environ.get("BUILD", "build")
IMAGE = BUILD / "fuzz.cpio"
README = ROOT / "tests/soak/README.md"
KERNELS = {"normal": BUILD / "vmlinux", "debug": BUILD / "variants/debug/vmlinux"}
SMPS = (1, 2, 4, 8, 16, 64)
MEMORIES = ("512M", "24M", "128M", "48M", "1G")
NR_THREADS = 8
KINDS = ("panics", "warnings", "resets", "hangs", "failed checks", "others")
HEADER = ("kernel", "CPUs", "boots", "calls", *KINDS)
NEXT = "The next seed is "
FAULTS = "## Boots that failed\n"

# What a small memory lets the fuzzer have: 64 CPUs need more for their stacks and stores.
MIN_MIB_A_CPU = 4


class Boot:
    """The boot that a seed stands for."""

    def __init__(self, seed: int, nr_calls: int = 4000):
        self.seed, self.nr_calls = seed, nr_calls
        self.kernel = "debug" if seed % 2 else "normal"
        self.smp = SMPS[seed // 2 % len(SMPS)]
        self.mem = MEMORIES[seed % len(MEMORIES)]
        if qemu_mib(self.mem) < MIN_MIB_A_CPU * self.smp:
            self.mem = MEMORIES[0]
        self.uid = 1000 * (seed // 3 % 2)
        self.icount = seed % 7 == 0
        if self.icount:
            self.nr_calls //= 8

    def append(self) -> str:
        program = f"{self.seed} {self.nr_calls} {NR_THREADS} {self.uid}"
        return f"profile.on_exit=none init=/bin/fuzz -- {program}"

    def command(self) -> str:
        words = ["scripts/qemu-run", "--kernel", str(KERNELS[self.kernel].relative_to(ROOT))]
        words += ["--initrd", str(IMAGE.relative_to(ROOT)), "--smp", str(self.smp)]
        words += ["--mem", self.mem, *["--icount"] * self.icount, "--append", self.append()]
        return shlex.join(words)

    def run(self) -> qemu.Result:
        options = qemu.Options(
            kernel=KERNELS[self.kernel],
            initrd=IMAGE,
            smp=self.smp,
            mem=self.mem,
            icount=self.icount,
            append=self.append(),
            timeout=900,
            silence=300,
        )
        with qemu.Guest(options) as guest:
            return guest.wait()


def qemu_mib(memory: str) -> int:
    return int(memory[:-1]) * (1024 if memory.endswith("G") else 1)


def make_all() -> None:
    """Builds both kernels, and an image that fits into little memory."""
    debug = [f"BUILD={BUILD}/variants/debug", "CONFIG=debug", "vmlinux"]
    for goals in (["vmlinux", IMAGE], debug):
        subprocess.run(["make", "-j2", *goals], cwd=ROOT, check=True)


def kind_of(result: qemu.Result) -> str | None:
    """Returns the kind of fault, one of KINDS, or None if the boot passed."""
    if result.verdict and result.verdict.panic:
        return "panics"
    if result.verdict and result.verdict.warnings:
        return "warnings"
    if "FAIL: " in result.log:
        return "failed checks"
    if result.ok and "PASS: fuzz" in result.log:
        return None
    if result.verdict:
        return "others"
    return "resets" if result.exit_code == 0 else "hangs"  # a triple fault ends QEMU


class Table:
    """The table in README.md. The text before it stays, as do the faults below."""

    def __init__(self, text: str):
        self.intro, _, rest = text.partition(NEXT)
        self.seed = int(re.match(r"\d+", rest)[0])
        table, _, self.faults = rest.partition(FAULTS)
        self.rows: dict[tuple[str, int], list[int]] = {}
        row = r"^\| (\w+) " + r"\| +(\d+) " * (3 + len(KINDS)) + r"\|$"
        for kernel, *numbers in re.findall(row, table, re.M):
            smp, *counts = map(int, numbers)
            self.rows[kernel, smp] = counts

    def add(self, boot: Boot, result: qemu.Result) -> None:
        row = self.rows.setdefault((boot.kernel, boot.smp), [0] * (2 + len(KINDS)))
        row[0] += 1
        row[1] += boot.nr_calls * NR_THREADS
        if kind := kind_of(result):
            row[2 + KINDS.index(kind)] += 1
            why = result.error or "see the log"
            self.faults += f"\n- {kind}: {why}\n\n      {boot.command()}\n"
        self.seed = boot.seed + 1

    def text(self) -> str:
        lines = [f"{NEXT}{self.seed}.\n", "| " + " | ".join(HEADER) + " |"]
        lines.append("|" + " --- |" * len(HEADER))
        for (kernel, smp), counts in sorted(self.rows.items()):
            lines.append(f"| {kernel} | " + " | ".join(map(str, (smp, *counts))) + " |")
        return self.intro + "\n".join(lines) + f"\n\n{FAULTS}{self.faults}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=900)
    parser.add_argument("--seed", type=int, help="run this one only, and leave the table alone")
    options = parser.parse_args()
    make_all()
    if options.seed is not None:
        boot = Boot(options.seed)
        print(boot.command())
        result = boot.run()
        print(result.log)
        return kind_of(result) is not None
    failed = 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        table = Table(README.read_text())
        boot = Boot(table.seed)
        result = boot.run()
        kind = kind_of(result)
        failed += kind is not None
        print(f"soak: seed {boot.seed}: {kind or 'passed'}, {result.seconds:.0f} s", flush=True)
        if kind:
            (BUILD / f"soak.{boot.seed}.log").write_text(result.log)
        table.add(boot, result)
        README.write_text(table.text())
    print(f"soak: FAIL: {failed} boots failed" if failed else "soak: PASS")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
