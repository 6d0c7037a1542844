# SPDX-License-Identifier: BSD-2-Clause
"""Reads profiler reports out of a console log and checks their arithmetic.

parse(log) returns all reports in the log. check(report) returns a list of errors, which is empty if
all numbers are right. Nothing here trusts the kernel: sums, percentages, averages and the order of
rows are computed again from the printed rows. Each table has a module of its own, which reads its
lines, and yields what is wrong with it: report_strace, files, heatmap, points and waits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator

from report_files import FILES_TITLE, Files, check_files, parse_files
from report_heatmap import (
    HEAT_TITLE,
    USER_TITLE,
    Heatmap,
    UserRow,
    check_heatmap,
    check_user_functions,
    parse_heatmap,
    parse_user_functions,
)
from report_lines import END, PREFIX, Lines, ReportError
from report_memory import MEMORY_TITLE, Memory, check_memory, parse_memory
from report_path import PATH_TITLE, Path, check_path, parse_path, parse_path_line
from report_points import Points, check_points, parse_points
from report_strace import Strace, check_strace, parse_strace
from report_waits import (
    SPINLOCK_TITLE,
    WAIT_TITLE,
    WAIT_VIEW_TITLE,
    SpinlockRow,
    Summary,
    Waits,
    check_summary,
    check_waits,
    parse_spinlocks,
    parse_summary,
    parse_wait_view,
    parse_waits,
)

BEGIN = re.compile(r"^profile: report (\d+): (.*)$")
BEGIN_ANYWHERE = re.compile(r"^\[.*\] profile: report \d+: .*$", re.MULTILINE)
END_ANYWHERE = re.compile(r"^\[.*\] profile: end of report \d+\r?$", re.MULTILINE)


@dataclass
class Report:
    number: int
    why: str
    straces: list[Strace] = field(default_factory=list)
    files: Files | None = None
    path: Path | None = None
    memory: Memory | None = None
    heatmap: Heatmap | None = None
    user_functions: list[UserRow] = field(default_factory=list)
    machine: Heatmap | None = None  # of the whole machine, in a process's report
    summary: Summary | None = None
    waits: Waits | None = None
    wait_views: dict[str, Waits] = field(default_factory=dict)  # system call, task, lock
    spinlocks: list[SpinlockRow] | None = None
    points: Points | None = None  # of all CPUs, or of the process if the report has only those
    process_points: Points | None = None

    @property
    def strace(self) -> Strace:
        if len(self.straces) != 1:
            raise ReportError(f"expected one strace table, there are {len(self.straces)}")
        return self.straces[0]

    @property
    def parts(self) -> set[str]:
        return (
            ({"strace"} if self.straces else set())
            | ({"heatmap"} if self.heatmap else set())
            | ({"points"} if self.points else set())
        )


def parse_report(lines: Lines, begin: re.Match[str]) -> Report:
    found = Report(int(begin[1]), begin[2])
    while not (end := END.match(line := lines.next(f"report {found.number}"))):
        if BEGIN.match(line):
            raise ReportError(f"report {found.number} has no end")
        if line == "Kernel strace":
            found.straces.append(parse_strace(lines))
        elif FILES_TITLE.match(line):
            found.files = parse_files(lines)
        elif title := HEAT_TITLE.match(line):
            heatmap = parse_heatmap(lines, title)
            if not found.heatmap:
                found.heatmap = heatmap
            elif found.machine or heatmap.process or not found.heatmap.process:
                raise ReportError("a heatmap too many in a report")
            else:
                found.machine = heatmap
        elif MEMORY_TITLE.match(line):
            found.memory = parse_memory(lines)
        elif path := parse_path_line(line):
            found.path = path
        elif PATH_TITLE.match(line):
            if not found.path:
                raise ReportError("a critical path without its line")
            parse_path(lines, found.path)
        elif USER_TITLE.match(line):
            found.user_functions = parse_user_functions(lines)
        elif summary := parse_summary(lines, line):
            found.summary = summary
        elif title := WAIT_TITLE.match(line):
            found.waits = parse_waits(lines, title)
        elif title := WAIT_VIEW_TITLE.match(line):
            found.wait_views[title[1]] = parse_wait_view(lines, title)
        elif line == SPINLOCK_TITLE:
            found.spinlocks = parse_spinlocks(lines)
        elif line == "Kernel Profile Points":
            if found.points and not found.points.of_process:
                raise ReportError("a second table of points after that of all CPUs")
            found.points = parse_points(lines)
            if found.points.of_process:
                found.process_points = found.points
    if int(end[1]) != found.number:
        raise ReportError(f"report {found.number} ends as {end[1]}")
    return found


def parse_all(lines: Lines) -> list[Report]:
    reports: list[Report] = []
    while lines.peek() is not None:
        line = lines.next("the log")
        if begin := BEGIN.match(line):
            reports.append(parse_report(lines, begin))
        elif line in ("Kernel strace", "Kernel Profile Points") or HEAT_TITLE.match(line):
            raise ReportError(f"outside a report: {line!r}")
    return reports


def parse(log: str, nr_before: int = 0) -> list[Report]:
    """
    Returns all reports in the log, in order. Each must be complete, except the one during which
    the kernel panicked. That one is left out. nr_before: earlier reports, if the log is a part.
    Each report has the next number, but what reads /proc/profile/report takes one, too, and the
    fuzzer does so by chance.
    """
    before, panic, after = log.partition("Kernel panic")
    begins = list(BEGIN_ANYWHERE.finditer(before))
    cut = None
    if panic and len(begins) == len(END_ANYWHERE.findall(before)) + 1:
        cut = len(begins)
        before = before[: begins[-1].start()]
    reports = parse_all(Lines(before)) + parse_all(Lines(panic + after))
    numbers = [found.number for found in reports]
    nr_all = len(numbers) + (cut is not None)
    if re.search(r"^fuzz: process \d+ made", log, re.MULTILINE):
        if numbers != sorted(set(numbers)):
            raise ReportError(f"the reports are numbered {numbers}")
    elif numbers != [nr_before + number for number in range(1, nr_all + 1) if number != cut]:
        raise ReportError(f"the reports are numbered {numbers}")
    return reports


def parse_whole(log: str) -> tuple[list[Report], list[str]]:
    """Returns the complete reports, and for each incomplete report a line about its fault."""
    begins = list(BEGIN_ANYWHERE.finditer(log))
    reports: list[Report] = []
    wrong: list[str] = []
    for begin, after in zip(begins, [*begins[1:], None]):
        try:
            reports += parse_all(Lines(log[begin.start() : after.start() if after else None]))
        except ReportError as error:
            wrong.append(f"{PREFIX.sub('', begin[0].rstrip())}: {error}")
    return reports, wrong


def check(report: Report) -> list[str]:
    found: list[tuple[str, Iterator[str]]] = []
    found += (("strace", check_strace(table)) for table in report.straces)
    if report.files:
        found.append(("files", check_files(report.files)))
    if report.memory:
        found.append(("memory", check_memory(report.memory)))
    if report.path:
        found.append(("critical path", check_path(report.path)))
    for heatmap in filter(None, (report.heatmap, report.machine)):
        found.append(("heatmap", check_heatmap(heatmap)))
    if report.heatmap:
        functions = check_user_functions(report.user_functions, report.heatmap)
        found.append(("user functions", functions))
    if report.points:
        found.append(("points", check_points(report.points)))
    for waits in filter(None, (report.waits, *report.wait_views.values())):
        found.append(("waits", check_waits(waits)))
    if report.summary:
        found.append(("summary", check_summary(report.summary, report.waits)))
    return [f"{name}: {text}" for name, texts in found for text in texts]


def check_log(log: str, nr_before: int = 0) -> list[str]:
    """Returns all errors in the reports of a log. An incomplete report is an error."""
    try:
        return [text for report in parse(log, nr_before) for text in check(report)]
    except ReportError as error:
        return [str(error)]
