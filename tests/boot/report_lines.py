# SPDX-License-Identifier: BSD-2-Clause
"""Helpers of report*.py: iterates over the lines of a console log, and computes with numbers."""

from __future__ import annotations

import re
from fractions import Fraction

PREFIX = re.compile(r"^\[ *\d+\.\d+\] ?")
END = re.compile(r"^profile: end of report (\d+)$")
DASHES = re.compile(r"^-[- ]*$")
# Parts of other expressions: a time, and the limit of a table's rows.
SECONDS = r"(\d+\.\d{9})"
TOP = r"\((?:top #(\d+)|all)\)"


class ReportError(Exception):
    """A report in the log is incomplete or malformed."""


def to_ns(seconds: str) -> int:
    return int(seconds.replace(".", ""))


def percent(part: int, total: int) -> str:
    """Returns the exact ratio as a percentage, rounded half up to two decimals."""
    if not total:
        return "0.00"
    hundredths = int(Fraction(part * 10000, total) + Fraction(1, 2))
    return f"{hundredths // 100}.{hundredths % 100:02}"


def ceil_div(a: int, b: int) -> int:
    return -(-a // b) if b else 0


def twice(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def is_rest(name: str) -> bool:
    """Returns whether a row sums up rows below the top, or samples that were not stored."""
    return bool(re.fullmatch(r"\[\d+ others?\]|\[dropped\]", name))


class Lines:
    """
    The kernel's lines of a log, without their time stamps. Lines without one are output of
    programs, and are left out.
    """

    def __init__(self, log: str):
        lines = (line.rstrip("\r") for line in log.splitlines())
        self.lines = [PREFIX.sub("", line) for line in lines if PREFIX.match(line)]
        self.at = 0
        self.has_more = False  # the last table's optional columns

    def peek(self) -> str | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def next(self, what: str) -> str:
        line = self.peek()
        if line is None:
            raise ReportError(f"the log ends in {what}")
        self.at += 1
        return line

    def skip_header(self, what: str, columns: list[str], more: list[str] = []) -> list[str]:
        """
        Skips to below the dashes under the column names, and returns the lines above the names.
        Sets has_more if the columns `more` follow the others.
        """
        above = []
        while True:
            line = self.next(f"{what}: no table")
            self.has_more = bool(more) and line.split() == " ".join(columns + more).split()
            if self.has_more or line.split() == " ".join(columns).split():
                break
            above.append(line)
            if len(above) > 12:
                raise ReportError(f"{what}: no line with the column names")
        if not DASHES.match(self.next(what)):
            raise ReportError(f"{what}: no dashes below the column names")
        return above
