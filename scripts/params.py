#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints all boot parameters, as the page kernel/parameters.md (`make help-params`).

usage: params.py

They are read from the sources: BOOT_PARAM() and OS_BOOT_PARAM() have the name and the values, and
the comment above is the help. A parameter with two definitions, for kernels with and without a
feature, has its help at one of them.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARAM = re.compile(
    r"(?:^/\*(?P<help>(?:[^*]|\*(?!/))*)\*/\n)?"
    r'^(?:OS_)?BOOT_PARAM\(\w+, "(?P<name>[^"]+)",\s*(?P<form>\w+|"[^"]*"),\s*\w+\);$',
    re.MULTILINE,
)
USE = re.compile(r"^(?:OS_)?BOOT_PARAM\(", re.MULTILINE)
MACRO = r'^#define {}\s+(?:\\\n\s*)?"([^"]*)"$'
HEAD = """\
# Boot parameters

`make help-params` prints this page from the sources. Add parameters to a run with
`make run APPEND='profile.top=all profile.report=wide'`. The kernel answers a wrong value with the
values that it accepts, and goes on with the default.
"""
# The title, and the folders whose parameters it has.
SECTIONS: tuple[tuple[str, str | tuple[str, ...]], ...] = (
    ("The profilers", "kernel/profile/"),
    ("The kernel", ("kernel/", "arch/")),
    ("The kernel with tests (`CONFIG=selftest`)", "tests/kernel/"),
)


class ParamError(Exception):
    """A parameter in the sources cannot be shown."""


@dataclass
class Param:
    name: str
    form: str
    help: str
    path: str  # of the source, from the top of the tree


def resolve(form: str, texts: list[str], path: str) -> str:
    """Returns the text of a string, or of a macro that one of the files defines as a string."""
    if form.startswith('"'):
        return form[1:-1]
    for text in texts:
        if match := re.search(MACRO.format(form), text, re.MULTILINE):
            return match[1]
    raise ParamError(f"{path}: no string {form}")


def find(root: Path = ROOT) -> list[Param]:
    """Returns all parameters, sorted by name."""
    found: dict[str, Param] = {}
    headers = [path.read_text() for path in sorted(root.glob("kernel/profile/*.h"))]
    folders = ("arch", "kernel", "tests/kernel")
    for source in sorted(path for top in folders for path in root.glob(f"{top}/**/*.c")):
        text, path = source.read_text(), str(source.relative_to(root))
        matches = list(PARAM.finditer(text))
        if len(matches) != len(USE.findall(text)):
            raise ParamError(f"{path}: a BOOT_PARAM() that is not written as elsewhere")
        for match in matches:
            words = " ".join(re.sub(r"^ \*", "", match["help"] or "", flags=re.MULTILINE).split())
            new = Param(match["name"], resolve(match["form"], [text, *headers], path), words, path)
            old = found.setdefault(new.name, new)
            if old.form != new.form or (old is not new and old.help and new.help):
                raise ParamError(f"{path}: {new.name} is described in {old.path}, too")
            if new.help:
                found[new.name] = new
    for param in found.values():
        if not param.help:
            raise ParamError(f"{param.path}: no comment above the definition of {param.name}")
    return sorted(found.values(), key=lambda param: param.name)


def render(params: list[Param]) -> str:
    """Returns the page. Each parameter is in the first section that has its folder."""
    text, rest = HEAD, params
    for title, folders in SECTIONS:
        mine = [param for param in rest if param.path.startswith(folders)]
        rest = [param for param in rest if param not in mine]
        text += f"\n## {title}\n\n"
        for param in mine:
            text += f"- `{param.name}={param.form}`\n  {param.help}\n"
    return text


def main() -> int:
    try:
        print(render(find()), end="")
    except ParamError as error:
        print(f"params.py: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
