# SPDX-License-Identifier: BSD-2-Clause
"""Runs many programs in one boot, and judges each of them by itself.

tests/user/batch.c is init and runs one program after the other. Its lines divide the console log
into one section for each program. A program that takes the kernel down ends the boot: it is the one
whose section has no end. The programs after it run in another boot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

import harness
import qemu
import report

START = re.compile(r"^batch: start (\S+)\n", re.MULTILINE)
END = re.compile(r"^batch: end (\S+), status (0(?:x[0-9a-f]+)?)\n", re.MULTILINE)
SECONDS_EACH = 20.0  # besides the usual time of a run


@dataclass
class Section:
    """The part of a run that belongs to one program. wait_status: None if it never ended."""

    log: str
    wait_status: int | None
    nr_reports_before: int
    error: str | None = None  # of the whole run, if this program has to answer for it

    def complaints(self) -> list[str]:
        found = [line for line in self.log.splitlines() if harness.BAD.search(line)]
        found += report.check_log(self.log, self.nr_reports_before)
        if self.wait_status:
            found.append(f"ended with wait status {self.wait_status:#x}")
        return ([self.error] if self.error else []) + found


def sections(result: qemu.Result, words: list[str]) -> dict[str, Section]:
    """Returns the sections of the programs that were started, in order."""
    found: dict[str, Section] = {}
    starts = list(START.finditer(result.log))
    for word, start, following in zip(words, starts, [*starts[1:], None]):
        text = result.log[start.end() : following.start() if following else None]
        end = END.search(text)
        if start[1] != word or (end and end[1] != word) or (following and not end):
            raise ValueError(f"{word}: its lines in the log are not in order")
        status = int(end[2], 0) if end else None
        nr_before = len(report.BEGIN_ANYWHERE.findall(result.log, 0, start.start()))
        # What follows the last program's end is the power off.
        found[word] = Section(text[: end.start()] if end else text, status, nr_before)
    if result.error:
        unfinished = [each for each in found.values() if each.wait_status is None]
        for section in unfinished or found.values():
            section.error = result.error
    return found


def run(boot: harness.Booter, words: list[str], **options) -> dict[str, Section]:
    """Runs all programs (with their arguments after colons), and returns their sections."""
    done: dict[str, Section] = {}
    while left := words[len(done) :]:
        timeout = harness.RUN_TIMEOUT_S + SECONDS_EACH * len(left)
        result = boot("batch", *left, ok=False, check=False, timeout=timeout, **options)
        found = sections(result, left)
        if not found:
            pytest.fail(f"no program was started: {result.error}\n{result.tail()}", False)
        if not result.error and len(found) < len(left):
            pytest.fail(f"ended early, after {list(found)[-1]}\n{result.tail()}", False)
        done |= found
    return done
