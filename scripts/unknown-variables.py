#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Warns of unknown variables on make's command line, and suggests the nearest known name."""

import difflib
import re
import sys

CAPITALS = re.compile(r"[A-Z][A-Z0-9_]+")


def warnings(unknown: list[str], known: list[str]) -> list[str]:
    lines = []
    for name in sorted(filter(CAPITALS.fullmatch, unknown)):
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "make help lists the known ones"
        lines.append(f"make: warning: unknown variable {name}: {hint}")
    return lines


if __name__ == "__main__":
    for line in warnings(sys.argv[1].split(), sys.argv[2].split()):
        print(line, file=sys.stderr)
