#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check-points.py FILE...

PROFILE_POINT(name) { ... } of <lego/profile.h> hides a loop, so `break` and `continue` that stand
directly in its block would leave that block only, not the loop or switch around it. This rejects
them. What a loop (or, for break, a switch) inside the block catches is right, and so are return and
goto. A macro whose name has for_each in it is a loop.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

POINT = "PROFILE_POINT"
NOT_CODE = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
TOKEN = re.compile(r"\n|[A-Za-z_]\w*|\d\w*|[^\s\w]")
WORD = re.compile(r"[A-Za-z_]")
OPENING = {"(": ")", "[": "]"}


class Token(NamedTuple):
    text: str
    line: int


class Caught(NamedTuple):
    """The point whose block a break or a continue would leave here; "" when it is not a point's."""

    break_: str = ""
    continue_: str = ""


LOOP = Caught()


def blank(match: re.Match[str]) -> str:
    lines = "\n" * match[0].count("\n")
    return f"0{lines}" if match[0][0] in "\"'" else f" {lines}"


def tokens(text: str) -> Iterator[Token]:
    line = 1
    for match in TOKEN.finditer(DIRECTIVE.sub(blank, NOT_CODE.sub(blank, text))):
        if match[0] == "\n":
            line += 1
        else:
            yield Token(match[0], line)


class Checker:
    """
    Reads a file as a list of statements. Every pair of braces is taken for a block of statements,
    which does no harm where it holds values or members.
    """

    def __init__(self, file: str, text: str):
        self.file = file
        self.tokens = list(tokens(text))
        self.at = 0
        self.errors: list[str] = []

    def text(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def run(self) -> list[str]:
        while self.text():
            if self.text() == "}":  # of an #else, perhaps
                self.at += 1
            else:
                self.statement(LOOP)
        return self.errors

    def group(self, caught: Caught) -> None:
        """From an opening bracket to behind its closing one."""
        end = OPENING[self.text()]
        self.at += 1
        while self.text() and self.text() != end:
            self.brackets_or_word(caught)
        self.at += 1

    def brackets_or_word(self, caught: Caught) -> None:
        if self.text() == "{":
            self.block(caught)
        elif self.text() in OPENING:
            self.group(caught)
        else:
            self.at += 1

    def block(self, caught: Caught) -> None:
        self.at += 1
        while self.text() and self.text() != "}":
            self.statement(caught)
        self.at += 1

    def head(self, caught: Caught = LOOP) -> None:
        """A keyword or name and the parentheses behind it."""
        self.at += 1
        if self.text() == "(":
            self.group(caught)

    def label(self) -> bool:
        if self.text() in ("case", "default"):
            while self.text() and self.text() != ":":
                self.brackets_or_word(LOOP)
            self.at += 1
            return True
        if WORD.match(self.text()) and self.text(1) == ":":
            self.at += 2
            return True
        return False

    def statement(self, caught: Caught) -> None:
        while self.label():
            pass
        word = self.text()
        if word == "{":
            self.block(caught)
        elif word in ("break", "continue"):
            self.jump(caught)
        elif word == POINT and self.text(1) == "(":
            name = self.text(2)
            self.head()
            self.statement(Caught(name, name))
        elif word in ("for", "while") or ("for_each" in word and self.text(1) == "("):
            self.head()
            self.statement(LOOP)
        elif word == "do":
            self.at += 1
            self.statement(LOOP)
            if self.text() == "while":
                self.head()
        elif word == "switch":
            self.head(caught)
            self.statement(Caught("", caught.continue_))
        elif word == "if":
            self.head(caught)
            self.statement(caught)
            if self.text() == "else":
                self.at += 1
                self.statement(caught)
        else:
            self.expression(caught)

    def jump(self, caught: Caught) -> None:
        token = self.tokens[self.at]
        name = caught.break_ if token.text == "break" else caught.continue_
        if name:
            self.errors.append(
                f"{self.file}:{token.line}: {token.text} would only leave {POINT}({name})"
            )
        self.at += 1
        if self.text() == ";":
            self.at += 1

    def expression(self, caught: Caught) -> None:
        """To a semicolon, or to the end of a block behind parentheses: a function's, for one."""
        while self.text() and self.text() not in (";", "}"):
            before = self.text(-1)
            block = self.text() == "{"
            self.brackets_or_word(caught)
            if block and before == ")":
                return
        if self.text() == ";":
            self.at += 1


def check(file: str, text: str) -> list[str]:
    return Checker(file, text).run() if POINT in text else []


def main(argv: list[str]) -> int:
    if len(argv) < 2:
        sys.exit(f"usage: {__doc__.splitlines()[0]}")
    errors = [error for file in argv[1:] for error in check(file, Path(file).read_text())]
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
