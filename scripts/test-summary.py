#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs test programs and pytest, and ends with one line `N passed, M failed`.

usage: test-summary.py --build DIR [--unit PROGRAM...] [--pytest PATH...] [--pytest-args ARGS]

Unit test programs are cmocka's; they report in TAP, and a program that dies before it has reported
everything it planned is a failure. The status is 0 only if tests ran and none failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def count_tap(text: str, status: int) -> Count:
    """Counts the results in the TAP output of a program that exited with status."""
    count = Count()
    planned = sum(int(n) for n in re.findall(r"^1\.\.(\d+)", text, re.M))
    for line in text.splitlines():
        # cmocka says `not ok 3 # SKIP name` for a test that skips itself.
        if re.match(r"(not )?ok\b.*# *SKIP\b", line):
            count.skipped += 1
        elif re.match(r"not ok\b", line):
            count.failed += 1
        elif re.match(r"ok\b", line):
            count.passed += 1
    reported = count.passed + count.failed + count.skipped
    if reported < planned:
        count.failed += planned - reported
    elif not count.failed and (status or not reported):
        count.failed = 1
    return count


def run_unit(program: Path) -> Count:
    env = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    result = subprocess.run(
        [program.resolve()], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    text = result.stdout.decode(errors="replace")
    count = count_tap(text, result.returncode)
    lines = [f"  UNIT    {program.name}: {count}"]
    if count.failed:
        lines += [text.rstrip("\n"), f"{program} exited with status {result.returncode}"]
    print("\n".join(lines), flush=True)  # at once: other programs run at the same time
    return count


def count_junit(path: Path, status: int) -> Count:
    """Counts the results in pytest's JUnit file. A missing file is one failure."""
    count = Count()
    if path.exists():
        for case in ElementTree.parse(path).iter("testcase"):
            tags = {child.tag for child in case}
            if tags & {"failure", "error"}:
                count.failed += 1
            elif "skipped" in tags:
                count.skipped += 1
            else:
                count.passed += 1
    if status and not count.failed:
        count.failed = 1
    return count


def run_pytest(paths: list[str], build: Path, extra: list[str]) -> Count:
    junit = build / "pytest.xml"
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-v", f"--junitxml={junit}"]
    command += ["-p", "no:cacheprovider", "--rootdir=."]
    if importlib.util.find_spec("xdist"):
        # One more than CPUs: tests often wait for the guest's clock.
        command += ["-n", str((os.cpu_count() or 1) + 1)]
    result = subprocess.run([*command, *extra, *paths], check=False)
    count = count_junit(junit, result.returncode)
    print(f"  PYTEST  {' '.join(paths)}: {count}", flush=True)
    return count


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--unit", type=Path, nargs="*", default=[])
    parser.add_argument("--pytest", nargs="*", default=[])
    parser.add_argument("--pytest-args", default="")
    args = parser.parse_args()

    total = Count()
    with ThreadPool() as pool:  # one thread for each CPU
        for count in pool.imap(run_unit, args.unit):
            total.add(count)
    if args.pytest:
        total.add(run_pytest(args.pytest, args.build, shlex.split(args.pytest_args)))
    if total.skipped:
        print(f"{total.skipped} skipped")
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 0 if total.passed and not total.failed else 1


if __name__ == "__main__":
    sys.exit(main())
