#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the format of every source file, or fixes it.

usage: format.py [--clang-format PROGRAM] [--fix]

C follows .clang-format. Every file begins with its licence and ends with one newline. Lines have at
most 100 columns, but for the rows of tables (.tbl), and no blanks at their ends.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

TOP = ("arch", "kernel", "include", "scripts", "tests")
SUFFIXES = {".c", ".h", ".S", ".py", ".sh", ".mk", ".tbl"}
NAMES = {"Kbuild", "Kconfig", "Makefile"}
MAX_COLUMNS = 100


def sources() -> list[Path]:
    files = [Path("Makefile"), Path("Kconfig")]
    for top in TOP:
        files += [p for p in Path(top).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return sorted(p for p in files if is_source(p))


def is_source(path: Path) -> bool:
    if path.suffix in SUFFIXES or path.name in NAMES:
        return True
    return not path.suffix and path.read_bytes()[:2] == b"#!"


def text_problems(path: Path) -> list[str]:
    """Returns the problems of a file, as `file:line: problem` lines."""
    text = path.read_text(errors="replace")
    lines = text.split("\n")
    out = []
    if not any("SPDX-License-Identifier: BSD-2-Clause" in line for line in lines[:2]):
        out.append(f"{path}:1: no SPDX-License-Identifier line")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            out.append(f"{path}:{number}: blank at the end of the line")
        is_row = path.suffix == ".tbl" and not line.startswith("#")
        if len(line.expandtabs(8)) > MAX_COLUMNS and not is_row:
            out.append(f"{path}:{number}: longer than {MAX_COLUMNS} columns")
    if not text.endswith("\n") or text.endswith("\n\n"):
        out.append(f"{path}:{len(lines)}: does not end with exactly one newline")
    return out


def c_problems(clang_format: str, c_files: list[str]) -> list[str]:
    """Returns the places that clang-format would change, as `file:line: problem` lines."""
    command = [clang_format, "--dry-run", *c_files]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    places = re.findall(r"^(\S+?:\d+):\d+: warning: .*clang-format", result.stderr, re.M)
    return [f"{place}: not as clang-format writes it" for place in dict.fromkeys(places)]


def mend_text(path: Path) -> None:
    text = path.read_text()
    mended = "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n") + "\n"
    if mended != text:
        path.write_text(mended)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clang-format", default="clang-format")
    parser.add_argument("--fix", action="store_true")
    args = parser.parse_args()

    files = sources()
    c_files = [str(p) for p in files if p.suffix in (".c", ".h")]
    problems = []
    if args.fix:
        subprocess.run([args.clang_format, "-i", *c_files], check=True)
    else:
        problems = c_problems(args.clang_format, c_files)
    for path in files:
        if args.fix:
            mend_text(path)
        problems += text_problems(path)
    print("\n".join([*problems, f"{len(files)} files checked"]))
    if problems:
        print("format: not clean; `make format` fixes all but long lines and licences")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
