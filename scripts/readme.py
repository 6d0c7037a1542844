#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shortens the first report in a console log, and puts it into README.md as the first example.

Leaves out the table of memory, since a front page has little room.

usage: readme.py LOG README
"""

import re
import sys
from pathlib import Path

PREFIX = re.compile(r"^\[ *\d+\.\d+\] ?")
BEGIN, END = "profile: report 1:", "profile: end of report 1"
EXAMPLE = re.compile(rf"^    {BEGIN}.*?^    {END}\n", re.MULTILINE | re.DOTALL)
RULE = re.compile(r"-[- ]*")
MOST_ROWS = 1
LEFT_OUT = "Memory (top #4)"


def shorten_table(lines: list[str]) -> list[str]:
    """Returns a table without what is below its first rows."""
    rules = [nr for nr, line in enumerate(lines) if RULE.fullmatch(line)]
    end = rules[0] + 1 + MOST_ROWS if rules else 1 + MOST_ROWS
    if len(rules) > 1 and rules[1] <= end:
        end = rules[1]
    return lines[:end] + ["..."] if end < len(lines) else lines


def example(log: str) -> str:
    """Returns the first report of a log, shortened and indented."""
    lines = [PREFIX.sub("", line) for line in log.splitlines()]
    begin = next(nr for nr, line in enumerate(lines) if line.startswith(BEGIN))
    end = lines.index(END, begin)
    first, *tables = "\n".join(lines[begin:end]).split("\n\n")
    tables = [table for table in tables if not table.startswith(LEFT_OUT)]
    parts = [first] + ["\n".join(shorten_table(table.split("\n"))) for table in tables]
    text = "\n\n".join(parts) + "\n" + END + "\n"
    return re.sub(r"^(?=.)", "    ", text, flags=re.MULTILINE)


def find_example(readme: str) -> str:
    match = EXAMPLE.search(readme)
    if not match:
        raise SystemExit("readme.py: README.md has no example of a report")
    return match[0]


def main(argv: list[str]) -> None:
    if len(argv) != 3:
        sys.exit(__doc__)
    log, path = Path(argv[1]).read_text(), Path(argv[2])
    readme = path.read_text()
    path.write_text(readme.replace(find_example(readme), example(log), 1))


if __name__ == "__main__":
    main(sys.argv)
