# SPDX-License-Identifier: BSD-2-Clause
"""Measures what legoprof takes to convert page.py's export of 50,000 stacks and a million events.

Memory is a multiple of the export's size. The CPU time of a conversion is compared with that of the
program that reads the result, perf script or trace-cmd report, which runs right after it. So both
have limits that do not depend on the machine. Another load can slow down one of two such programs,
so the lowest ratio of some runs counts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEMORY_LIMIT = 2.2  # times the export
# These have an edge or a node for each place in a tree of stacks: here 24 for most stacks.
TREES = {"callgrind": 3.0, "page": 5.5}
FORMATS = "report folded stacks perf-data pprof speedscope callgrind page trace-dat ftrace chrome"
# By result: how legoprof makes it, what reads it, and how much longer the former may take.
READERS = {
    "perf_events": (["perf-data", "--events"], ["perf", "script", "-i"], 5.0),
    "trace_dat": (["trace-dat"], ["trace-cmd", "report", "-i"], 3.0),
}
NR_RUNS = 3
Row = tuple[str, float, str, float | None, str, float]


def usage(command: list) -> tuple[float, int]:
    """
    Runs a command. Returns its CPU time in seconds, and its peak memory in bytes. The command is
    started by a small process, this file's main(): on Linux, ru_maxrss is at least what the process
    that started it had.
    """
    words = [sys.executable, __file__, *map(str, command)]
    seconds, peak = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout.split()
    return float(seconds), int(peak)


def main(command: list[str]) -> int:
    """Runs the command, and prints its usage. Returns its exit status."""
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss << 10)
    return process.returncode


def convert(words: list[str], path: Path, output: Path) -> tuple[float, int]:
    to = [] if words == ["report"] else ["-o", output]
    return usage([ROOT / "scripts/legoprof", *words, path, *to])


def measure(build: Path) -> Iterator[Row]:
    """
    Yields name, value, unit, reference, note and limit of each row. With a reference, the limit is
    of the ratio. Without perf or trace-cmd, their rows are missing.
    """
    path, output = build / "bench/page.lego", build / "bench/converted"
    for name in FORMATS.split():
        _, peak = convert([name], path, output)
        limit = TREES.get(name, MEMORY_LIMIT)
        row = f"memory_{name.replace('-', '_')}"
        yield row, peak / path.stat().st_size, "exports", None, "peak memory of legoprof", limit
    for name, (words, reader, limit) in READERS.items():
        if shutil.which(reader[0]):
            runs = [
                (convert(words, path, output)[0], usage([*reader, output])[0])
                for _ in range(NR_RUNS)
            ]
            taken, read = min(runs, key=lambda run: run[0] / run[1])
            yield f"time_{name}", taken, "seconds", read, " ".join(reader[:2]), limit
    output.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
