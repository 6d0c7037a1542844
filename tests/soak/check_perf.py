#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Makes each change of tests/boot/perf_changes.py by itself in a copy of the tree, and checks that
make check-perf finds each instruction and each function, and nothing in dead code and data.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "boot"))
import perf_changes  # noqa: E402

EXACT = r"\+1(\.0\d)?"


def check(tree: Path, base: Path) -> tuple[int, str]:
    command = ["scripts/check-perf", base, "-j2", "BUILD=build", "CONFIG="]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    if done.returncode == 125:
        sys.exit(f"check-perf: {done.stdout}{done.stderr}")
    return done.returncode, done.stdout


def main(tree: Path) -> int:
    base = tree / "base.lego"
    skip = shutil.ignore_patterns(".git", "build")
    shutil.copytree(ROOT, tree, ignore=skip, symlinks=True, dirs_exist_ok=True)
    make = ["make", "-s", "-j2", "BUILD=build", "CONFIG=", "perf-base", f"BASE={base}"]
    subprocess.run(make, cwd=tree, check=True)
    nr_failed = 0
    for name, change in (perf_changes.DEAD | perf_changes.CALLS | perf_changes.PATHS).items():
        with perf_changes.applied(tree, [change]):
            status, output = check(tree, base)
        if isinstance(change, perf_changes.Dead):
            wrong = [] if (status, output.splitlines()[-1]) == (0, "no difference") else [output]
        else:
            wrong = change.missing(output, EXACT)
            wrong += [] if status == 1 else [f"exit status {status}"]
        nr_failed += bool(wrong)
        print(f"{name}: {'ok' if not wrong else wrong}", flush=True)
    return 1 if nr_failed else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        sys.exit(main(Path(directory)))
