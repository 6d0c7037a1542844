# SPDX-License-Identifier: BSD-2-Clause
"""Reads the critical path: the line below a report's heading, and the table. Checks both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from report_lines import DASHES, SECONDS, TOP, Lines, ReportError, percent, to_ns

PATH_TITLE = re.compile(rf"^Critical path {TOP}$")
LINE = re.compile(r"^critical path(?:, known from (\d+\.\d+) s on)?: (\d+\.\d+) s(?: = (.*))?$")
PART = re.compile(r"^(\S.*) (\d+\.\d+)$")
HEADER = ["seconds", "%", "times", "cause", "function", "task", "called from"]
SCOPE = re.compile(
    r"^path: (\d+) parts; in (\d+\.\d{6}) s of them, the thread that comes next on the path "
    r"was ready$"
)
CAUSES = ["user code", "system call", "page fault", "interrupt", "program start", "exit"]
CAUSES += ["kernel thread", "kernel", "ready", "timer", "device", "unknown", "not recorded"]
ROW = re.compile(
    rf"^ *{SECONDS} +(\d+\.\d\d) +(\d+)  (?:({'|'.join(CAUSES)}) +(\S.*?) {{2,}}(\S.*?) {{2,}}"
    r"(\S.*)|(\[\d+ others?\]))$"
)
TOTAL = re.compile(rf"^ *{SECONDS} +(\d+\.\d\d) +(\d+)$")


@dataclass
class PathRow:
    ns: int
    percent: str
    nr: int
    cause: str
    function: str
    task: str
    caller: str


@dataclass
class Path:
    known_from: str | None = None
    whole: str = ""
    parts: dict[str, str] = field(default_factory=dict)  # of the line, in seconds
    nr_parts: int = 0
    rows: list[PathRow] = field(default_factory=list)
    total: PathRow | None = None

    def share(self, cause: str, function: str, task: str | None = None) -> float:
        """
        Returns which part of the path, without interrupts, the rows of this cause and function are.
        Interrupts come whatever runs and, where CPUs take turns, wait for a turn.
        """
        assert self.total is not None
        rows = [row for row in self.rows if (row.cause, row.function) == (cause, function)]
        whole_ns = self.total.ns - sum(row.ns for row in self.rows if row.cause == "interrupt")
        return sum(row.ns for row in rows if task in (None, row.task)) / whole_ns


def parse_path_line(line: str) -> Path | None:
    if not (match := LINE.match(line)):
        return None
    path = Path(match[1], match[2])
    for part in match[3].split(" + ") if match[3] else []:
        if not (found := PART.match(part)):
            raise ReportError(f"critical path: not a part: {part!r}")
        path.parts[found[1]] = found[2]
    return path


def parse_path(lines: Lines, path: Path) -> None:
    above = lines.skip_header("critical path", HEADER)
    scope = SCOPE.match(above[-1]) if above else None
    if not scope:
        raise ReportError(f"critical path: not what the table covers: {above!r}")
    path.nr_parts = int(scope[1])
    while not DASHES.match(line := lines.next("critical path: a row or dashes")):
        if not (match := ROW.match(line)):
            raise ReportError(f"critical path: not a row: {line!r}")
        names = match[4] or match[8], match[5] or "", match[6] or "", match[7] or ""
        path.rows.append(PathRow(to_ns(match[1]), match[2], int(match[3]), *names))
    if not (match := TOTAL.match(line := lines.next("critical path: the total"))):
        raise ReportError(f"critical path: not a total row: {line!r}")
    path.total = PathRow(to_ns(match[1]), match[2], int(match[3]), "", "", "", "")


def check_path(path: Path) -> list[str]:
    """The parts sum up to the whole, exactly."""
    if not path.total:
        return ["no table"]
    wrong = []
    total = path.total
    if (sum(row.ns for row in path.rows), sum(row.nr for row in path.rows)) != (total.ns, total.nr):
        wrong.append("the rows do not add up to the total")
    if total.nr != path.nr_parts:
        wrong.append("the total row has not all parts")
    for row in path.rows:
        if row.percent != percent(row.ns, total.ns):
            wrong.append(f"{row.percent} % of {total.ns} ns")
    shown = [row for row in path.rows if not row.cause.startswith("[")]
    if any(a.ns < b.ns for a, b in zip(shown, shown[1:])) or shown != path.rows[: len(shown)]:
        wrong.append("rows are not sorted by time, the rest last")
    units = [int(time.replace(".", "")) for time in path.parts.values()]
    if path.parts and sum(units) != int(path.whole.replace(".", "")):
        wrong.append("the parts of the line do not add up to the whole")
    known_ns = total.ns - sum(row.ns for row in path.rows if row.cause == "not recorded")
    digits = len(path.whole.partition(".")[2])
    if int(path.whole.replace(".", "")) != known_ns // 10 ** (9 - digits):
        wrong.append("the whole of the line is not that of the table")
    return wrong
