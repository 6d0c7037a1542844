# SPDX-License-Identifier: BSD-2-Clause
"""Reads profiler reports out of a console log and checks their arithmetic.

parse(log) returns all reports in the log. check(report) returns a list of errors, which is empty if
all numbers are right. Nothing here trusts the kernel: sums, percentages, averages and the order of
rows are computed again from the printed rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from report_lines import (
    DASHES,
    END,
    PREFIX,
    SECONDS,
    TOP,
    Lines,
    ReportError,
    ceil_div,
    percent,
    to_ns,
    twice,
)
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
TASK = re.compile(r"^Task: (\d+):(\d+) nr_accumulated_threads: (\d+)(?: \((.*)\))?$")
STRACE_ROW = re.compile(rf"^ *(\d+\.\d\d) +{SECONDS} +(\d+|-) +(\d+) +(\d+) (\S.*)$")
STRACE_TOTAL = re.compile(rf"^ *(\d+\.\d\d) +{SECONDS} +(\d+) +(\d+) total$")
# Below a table: the calls before the execve, and the sum with the children.
STRACE_SUM = re.compile(
    r"^(not in this table|including children that were waited for \(\d+\)): (\d+) calls"
    rf"(?: before execve)?, (\d+) errors, {SECONDS} s(?: of CPU time)?$"
)
# A row and the total with the columns of profile.report=wide.
STRACE_ROW_WIDE = re.compile(
    r"^(.*?\S) +(\d+\.\d{9}|-) +(?:<= (\d+[num]?s)|-) +(?:<= (\d+[num]?s)|-) +(\d+\.\d{9}|-) +"
    r"(\d+|-)(?:  (\S.*))?$"
)
STRACE_TOTAL_WIDE = re.compile(
    r"^ *(\d+\.\d\d) +(\d+\.\d{9}) +(\d+) +(\d+) total +(\d+\.\d{9}|-) +(\d+|-)$"
)
HEAT_TITLE = re.compile(rf"^Kernel Heatmap(?: {TOP})?$")
USER_TITLE = re.compile(rf"^Kernel Heatmap of user functions(?: {TOP})?$")
USER_ROW = re.compile(r"^([0-9a-f]{16}) +(\S+) +(\d+) +(\d+\.\d\d)(?:  (\S.*))?$")
SAMPLES_IN_NO_ROW = re.compile(
    r"^(?:\d+ others?, with (\d+) samples|no room for (\d+) samples' rows)$"
)
HEAT_ROW = re.compile(r"^([0-9a-f]{16}) +(\S.*?) +(\d+) +(\d+\.\d\d)$")
HEAT_TOTAL = re.compile(r"^ +(\d+) +(\d+\.\d\d)$")
POINT_ROW = re.compile(
    rf"^ *(on|off) +(\S+) +{SECONDS} +(\d+) +(\d+)"
    r"(?: +(\d+) +(\d+|-) +(\d+) +<= *(\d+) +<= *(\d+) +(\d+))?$"
)
OVERHEAD = re.compile(
    r"^overhead: (\d+) ns a pair, (\d+) ns of it inside total and avg\.ns \(not subtracted\)$"
)
POINT_SCOPE = re.compile(
    r"^(?:(of this process) since its (?:start|execve)|(?:of this process|all CPUs) since the last "
    r"reset|all CPUs since boot) \(\d+\.\d\d s\)$"
)
POINT_ANOMALY = re.compile(
    r"^(\S+): (?:the clock went backwards in \d+ pairs \(not included\)"
    r"|\d+ of \d+ pairs ended on another CPU \(included\)"
    r"|\d+ ends without a start \(not included\))$"
)
INCOMPLETE = re.compile(r"^(?:no complete pair:|   )((?: [\w.]+,)*(?: [\w.]+))(,?)$")
BUCKET = re.compile(r"^ *(\S+)  2\^(\d+) +cycles +(\d+)  (\*+)$")
SAMPLES = re.compile(
    r"^samples: (\d+), all CPUs since (?:boot|the last reset) \(\d+\.\d\d s\)(?: = (.*))?$"
)
OF_PROCESS = re.compile(
    r"^of (?:this process|the run, without idle CPUs and reports): (\d+)(?: = (.*))?$"
)
LOST = re.compile(r"^(\d+) of (\d+) expected samples lost: ")
# Samples that are in no class, so that the classes do not add up to the samples taken.
WITHOUT_CLASS = ("while another was taken", "while they were counted")
SPLIT_WORDS = ("samples", "user", "kernel", "interrupt", "idle")
RETURN_TO_USER = "[return to user]"  # no call, but waits after calls
STRACE_HEADER = ["% time", "seconds", "usecs/call", "calls", "errors", "syscall"]
STRACE_WIDE = ["cpu seconds", "p50", "p99", "max seconds", "in flight", "errors by name"]
HEAT_HEADER = ["Address", "Function", "NR", "%"]
USER_HEADER = [*HEAT_HEADER, "File"]
POINT_HEADER = ["status", "name", "total", "nr", "avg.ns"]
POINT_WIDE = ["net.ns", "oncpu.ns", "min.ns", "p50.ns", "p99.ns", "max.ns"]


@dataclass
class StraceWide:
    """The columns of wide reports. None stands for "-"."""

    cpu_ns: int | None
    p50_ns: int | None = None  # an upper bound, rounded up, as p99_ns
    p99_ns: int | None = None
    max_ns: int | None = None
    nr_in_flight: int | None = None
    errors: dict[str, int] = field(default_factory=dict)


@dataclass
class StraceRow:
    percent: str
    ns: int
    usecs_per_call: int | None  # None stands for "-": a row without calls
    nr_calls: int
    nr_errors: int
    name: str
    wide: StraceWide | None = None


@dataclass
class Strace:
    task: tuple[int, int] = (0, 0)
    nr_threads: int = 0
    name: str = ""  # of the process; empty in a report of an exit
    rows: list[StraceRow] = field(default_factory=list)
    total: StraceRow | None = None
    sums: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # calls, errors, ns
    notes: list[str] = field(default_factory=list)

    def row(self, name: str) -> StraceRow | None:
        """Returns the row of a call, or None. The table must have all rows (profile.top=all)."""
        if any(is_rest(row) for row in self.rows):
            raise ReportError(f"the table lacks rows, so it cannot tell about {name}")
        return next((row for row in self.rows if row.name == f"sys_{name}"), None)


@dataclass
class HeatRow:
    address: str
    name: str
    nr: int
    percent: str


@dataclass
class Heatmap:
    """split: samples of the machine by class. process: those of the report's process, if any."""

    top: int | None = None  # None: all
    split: dict[str, int] = field(default_factory=dict)
    process: dict[str, int] = field(default_factory=dict)
    rows: list[HeatRow] = field(default_factory=list)
    total: tuple[int, str] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def scope(self) -> dict[str, int]:
        return self.process or self.split


@dataclass
class UserRow:
    address: str  # in the ELF file
    name: str
    nr: int
    percent: str
    file: str


@dataclass
class PointRow:
    enabled: bool
    name: str
    ns: int
    nr: int
    avg_ns: int
    wide: dict[str, int | None] = field(default_factory=dict)  # by column; None: "-"


@dataclass
class Points:
    is_wide: bool = False
    rows: list[PointRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    of_process: bool = False  # pairs of the report's process; False: of all CPUs
    empty_pair_ns: tuple[int, int] | None = None  # its cost, and the part of it inside `total`
    anomalies: dict[str, list[str]] = field(default_factory=dict)  # lines, by point
    incomplete: list[str] = field(default_factory=list)  # points that have no complete pair
    buckets: dict[str, dict[int, int]] = field(default_factory=dict)  # by point, by log2

    def row(self, name: str) -> PointRow | None:
        return next((row for row in self.rows if row.name == name), None)


@dataclass
class Report:
    number: int
    why: str
    straces: list[Strace] = field(default_factory=list)
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


def to_bound_ns(text: str | None) -> int | None:
    if text is None:
        return None
    number, unit = re.fullmatch(r"(\d+)([num]?s)", text).groups()
    return int(number) * {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit]


def to_strace_row(match: re.Match[str]) -> StraceRow:
    usecs = None if match[3] == "-" else int(match[3])
    return StraceRow(match[1], to_ns(match[2]), usecs, int(match[4]), int(match[5]), match[6])


def parse_wide_row(row: StraceRow) -> None:
    """Splits the wide columns off the row's name."""
    match = STRACE_ROW_WIDE.match(row.name)
    if not match:
        raise ReportError(f"strace: not a wide row: {row.name!r}")
    row.name = match[1]
    cpu, longest, flying = (None if match[i] == "-" else match[i] for i in (2, 5, 6))
    errors = [word.rpartition(" ") for word in match[7].split(", ")] if match[7] else []
    row.wide = StraceWide(
        cpu_ns=to_ns(cpu) if cpu else None,
        p50_ns=to_bound_ns(match[3]),
        p99_ns=to_bound_ns(match[4]),
        max_ns=to_ns(longest) if longest else None,
        nr_in_flight=int(flying) if flying else None,
        errors={name: int(nr) for name, _, nr in errors},
    )


def parse_strace_total(line: str, is_wide: bool) -> StraceRow:
    match = (STRACE_TOTAL_WIDE if is_wide else STRACE_TOTAL).match(line)
    if not match:
        raise ReportError(f"strace: not a total row: {line!r}")
    total = StraceRow(match[1], to_ns(match[2]), 0, int(match[3]), int(match[4]), "total")
    if is_wide:
        cpu, flying = (None if match[i] == "-" else match[i] for i in (5, 6))
        total.wide = StraceWide(to_ns(cpu) if cpu else None)
        total.wide.nr_in_flight = int(flying) if flying else None
    return total


def parse_strace(lines: Lines) -> Strace:
    table = Strace()
    seen_task = False
    for line in lines.skip_header("strace", STRACE_HEADER, STRACE_WIDE):
        match = TASK.match(line)
        if match:
            table.task = (int(match[1]), int(match[2]))
            table.nr_threads = int(match[3])
            table.name = match[4] or ""
            seen_task = True
        elif line == "Calls of: all processes":
            seen_task = True
        else:
            table.notes.append(line)
    if not seen_task:
        raise ReportError("strace: no Task line")
    is_wide = lines.has_more
    while not DASHES.match(line := lines.next("strace: a row or dashes")):
        match = STRACE_ROW.match(line)
        if not match:
            raise ReportError(f"strace: not a row: {line!r}")
        table.rows.append(to_strace_row(match))
        if is_wide:
            parse_wide_row(table.rows[-1])
    table.total = parse_strace_total(lines.next("strace: the total"), is_wide)
    while match := STRACE_SUM.match(lines.peek() or ""):
        table.sums[match[1]] = (int(match[2]), int(match[3]), to_ns(match[4]))
        lines.at += 1
    return table


def to_split(match: re.Match[str]) -> dict[str, int]:
    """Classes that are not printed have no sample. Raises ReportError for an unknown class."""
    parts = [part.split(" ") for part in (match[2] or "").split(" + ") if part]
    split = dict.fromkeys(SPLIT_WORDS, 0) | {word: int(nr) for word, nr in parts}
    if len(split) > len(SPLIT_WORDS) or any(nr == "0" for _, nr in parts):
        raise ReportError(f"heatmap: not classes of samples: {match[0]!r}")
    return split | {"samples": int(match[1])}


def parse_heatmap(lines: Lines, title: re.Match[str]) -> Heatmap:
    heatmap = Heatmap(top=int(title[1]) if title[1] else None)
    above = lines.skip_header("heatmap", HEAT_HEADER)
    split = SAMPLES.match(above.pop(0)) if above else None
    if not split:
        raise ReportError("heatmap: no line with all samples below its heading")
    heatmap.split = to_split(split)
    if above and (process := OF_PROCESS.match(above[0])):
        is_all = not process[2] and int(process[1]) == heatmap.split["samples"]
        heatmap.process = dict(heatmap.split) if is_all else to_split(process)
        above.pop(0)
    heatmap.notes = above
    while not DASHES.match(line := lines.next("heatmap: a row or dashes")):
        match = HEAT_ROW.match(line)
        if not match:
            raise ReportError(f"heatmap: not a row: {line!r}")
        heatmap.rows.append(HeatRow(match[1], match[2], int(match[3]), match[4]))
    match = HEAT_TOTAL.match(line := lines.next("heatmap: the total"))
    if not match:
        raise ReportError(f"heatmap: not a total row: {line!r}")
    heatmap.total = (int(match[1]), match[2])
    while (line := lines.peek()) and not END.match(line):
        heatmap.notes.append(lines.next("heatmap: the notes"))
    return heatmap


def parse_user_functions(lines: Lines) -> list[UserRow]:
    """Samples in no row are a row without a name."""
    if lines.skip_header("user functions", USER_HEADER):
        raise ReportError("user functions: lines above the heading")
    rows = []
    while not DASHES.match(line := lines.next("user functions: a row or dashes")):
        if not (match := USER_ROW.match(line)):
            raise ReportError(f"user functions: not a row: {line!r}")
        rows.append(UserRow(match[1], match[2], int(match[3]), match[4], match[5] or ""))
    while (line := lines.peek()) and (match := SAMPLES_IN_NO_ROW.match(line)):
        lines.next("user functions: the others")
        rows.append(UserRow("", "", int(match[1] or match[2]), "", ""))
    return rows


def parse_points(lines: Lines) -> Points:
    points = Points(notes=lines.skip_header("points", POINT_HEADER, POINT_WIDE))
    points.is_wide = lines.has_more
    if len(points.notes) != 1 or not POINT_SCOPE.match(points.notes[0]):
        raise ReportError(f"points: does not say what it covers: {points.notes!r}")
    points.of_process = points.notes[0].startswith("of this process ")
    while not DASHES.match(line := lines.next("points: a row or dashes")):
        match = POINT_ROW.match(line)
        if not match:
            raise ReportError(f"points: not a row: {line!r}")
        numbers = to_ns(match[3]), int(match[4]), int(match[5])
        if bool(match[6]) != points.is_wide:
            raise ReportError(f"points: the columns are not those of the heading: {line!r}")
        wide = (None if nr in (None, "-") else int(nr) for nr in match.groups()[5:])
        row = PointRow(match[1] == "on", match[2], *numbers)
        row.wide = dict(zip(POINT_WIDE, wide)) if points.is_wide else {}
        points.rows.append(row)
    match = OVERHEAD.match(line := lines.next("points: the empty pair"))
    if not match:
        raise ReportError(f"points: not the cost of an empty pair: {line!r}")
    points.empty_pair_ns = int(match[1]), int(match[2])
    parse_below_points(lines, points)
    return points


def parse_below_points(lines: Lines, points: Points) -> None:
    goes_on = False  # the list of points without a pair continues on the next line
    while (line := lines.peek()) is not None:
        if match := POINT_ANOMALY.match(line):
            points.anomalies.setdefault(match[1], []).append(line)
        elif (match := INCOMPLETE.match(line)) and line.startswith("no") != goes_on:
            points.incomplete += match[1].replace(",", "").split()
            goes_on = bool(match[2])
        elif match := BUCKET.match(line):
            points.buckets.setdefault(match[1], {})[int(match[2])] = int(match[3])
        else:
            return
        lines.at += 1


def parse_report(lines: Lines, begin: re.Match[str]) -> Report:
    found = Report(int(begin[1]), begin[2])
    while not (end := END.match(line := lines.next(f"report {found.number}"))):
        if BEGIN.match(line):
            raise ReportError(f"report {found.number} has no end")
        if line == "Kernel strace":
            found.straces.append(parse_strace(lines))
        elif title := HEAT_TITLE.match(line):
            heatmap = parse_heatmap(lines, title)
            if not found.heatmap:
                found.heatmap = heatmap
            elif found.machine or heatmap.process or not found.heatmap.process:
                raise ReportError("a heatmap too many in a report")
            else:
                found.machine = heatmap
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
    if numbers != [nr_before + number for number in range(1, nr_all + 1) if number != cut]:
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


def check_wide_strace(row: StraceRow) -> list[str]:
    wrong, wide = [], row.wide
    if sum(wide.errors.values()) != row.nr_errors:
        wrong.append(f"strace: {row.name}: {wide.errors} are not {row.nr_errors} errors")
    if wide.cpu_ns is None:
        return wrong
    if wide.cpu_ns > row.ns:
        wrong.append(f"strace: {row.name}: {wide.cpu_ns} ns on a CPU in {row.ns} ns")
    if wide.nr_in_flight > row.nr_calls:
        wrong.append(f"strace: {row.name}: {wide.nr_in_flight} of {row.nr_calls} in flight")
    if (wide.p50_ns or 0) > (wide.p99_ns or 0):
        wrong.append(f"strace: {row.name}: p50 {wide.p50_ns} ns, p99 {wide.p99_ns} ns")
    # p99 is rounded up to its unit.
    if (wide.p99_ns or 0) > wide.max_ns + max(wide.max_ns // 9, 1):
        wrong.append(f"strace: {row.name}: p99 {wide.p99_ns} ns, the longest {wide.max_ns} ns")
    return wrong


def check_strace(table: Strace) -> list[str]:
    wrong = []
    total = table.total
    assert total is not None
    sums = {
        "seconds": (sum(row.ns for row in table.rows), total.ns),
        "calls": (sum(row.nr_calls for row in table.rows), total.nr_calls),
        "errors": (sum(row.nr_errors for row in table.rows), total.nr_errors),
    }
    if total.wide and total.wide.cpu_ns is not None:
        wides = [row.wide for row in table.rows]
        sums["cpu seconds"] = (sum(wide.cpu_ns for wide in wides), total.wide.cpu_ns)
        flying = sum(wide.nr_in_flight for wide in wides)
        sums["in flight"] = (flying, total.wide.nr_in_flight)
    wrong += [text for row in table.rows if row.wide for text in check_wide_strace(row)]
    for what, (rows, printed) in sums.items():
        if rows != printed:
            wrong.append(f"strace: {what}: the rows make {rows}, the total row says {printed}")
    if total.percent != percent(total.ns, total.ns):
        wrong.append(f"strace: the total row says {total.percent} %")
    for row in table.rows:
        if row.percent != percent(row.ns, total.ns):
            right = percent(row.ns, total.ns)
            wrong.append(f"strace: {row.name}: {row.percent} %, its ratio is {right} %")
        right = ceil_div(row.ns, row.nr_calls * 1000) if row.nr_calls else None
        if row.usecs_per_call != right:
            wrong.append(f"strace: {row.name}: {row.usecs_per_call} usecs/call, should be {right}")
        if not row.nr_calls and row.name != RETURN_TO_USER:
            wrong.append(f"strace: {row.name}: a row without a call")
        if row.nr_errors > row.nr_calls:
            wrong.append(f"strace: {row.name}: more errors than calls")
    shown = [row for row in table.rows if not is_rest(row)]
    if any(a.ns < b.ns for a, b in zip(shown, shown[1:])):
        wrong.append("strace: rows are not sorted by time")
    if len(table.rows) > len(shown) + 1 or shown != table.rows[: len(shown)]:
        wrong.append("strace: the others are not the last row")
    names = [row.name for row in table.rows]
    wrong += [f"strace: two rows for {name}" for name in twice(names)]
    return wrong


def is_rest(row: HeatRow | StraceRow) -> bool:
    """Returns whether a row sums up rows below the top, or samples that were not stored."""
    return bool(re.fullmatch(r"\[\d+ others?\]|\[dropped\]", row.name))


def check_losses(heatmap: Heatmap) -> list[str]:
    """Samples that were expected and not lost have been taken."""
    taken = heatmap.split["samples"]
    wrong = [f"heatmap: does not add up: {note}" for note in heatmap.notes if "left over" in note]
    if any(word in note for note in heatmap.notes for word in WITHOUT_CLASS):
        return wrong
    for lost in filter(None, map(LOST.match, heatmap.notes)):
        if int(lost[2]) - int(lost[1]) != taken:
            wrong.append(f"heatmap: {taken} samples were taken, but {lost[0]}")
    return wrong


def check_heatmap(heatmap: Heatmap) -> list[str]:
    wrong = check_losses(heatmap)
    assert heatmap.total is not None
    total, total_percent = heatmap.total
    nr_rows = sum(row.nr for row in heatmap.rows)
    if nr_rows != total:
        wrong.append(f"heatmap: the rows make {nr_rows}, the total row says {total}")
    if total_percent != percent(total, total):
        wrong.append(f"heatmap: the total row says {total_percent} %")
    for split in filter(None, (heatmap.split, heatmap.process)):
        parts = sum(nr for word, nr in split.items() if word != "samples")
        if parts != split["samples"]:
            wrong.append(f"heatmap: the classes make {parts} of {split['samples']} samples")
    if total != heatmap.scope["samples"]:
        wrong.append(f"heatmap: {heatmap.scope} samples, but the total row says {total}")
    for word, nr in heatmap.process.items():
        if nr > heatmap.split[word]:
            wrong.append(f"heatmap: {word}: the process has {nr} of {heatmap.split[word]}")
    for row in heatmap.rows:
        if row.percent != percent(row.nr, total):
            right = percent(row.nr, total)
            wrong.append(f"heatmap: {row.name}: {row.percent} %, its ratio is {right} %")
        if not row.nr:
            wrong.append(f"heatmap: {row.name}: a row without a sample")
    shown = [row for row in heatmap.rows if not is_rest(row)]
    if any(a.nr < b.nr for a, b in zip(shown, shown[1:])):
        wrong.append("heatmap: rows are not sorted by samples")
    if heatmap.top is not None and len(shown) > heatmap.top:
        wrong.append(f"heatmap: {len(shown)} rows, but top #{heatmap.top}")
    keys = [f"{row.address} {row.name}" for row in heatmap.rows]
    wrong += [f"heatmap: two rows for {key}" for key in twice(keys)]
    return wrong


def check_user_functions(found: Report) -> list[str]:
    rows, nr_user = found.user_functions, found.heatmap.scope.get("user", 0)
    wrong = []
    if sum(row.nr for row in rows) != nr_user:
        wrong.append(f"user functions: {rows}, but there are {nr_user} samples")
    for row in filter(lambda row: row.address, rows):
        if row.percent != percent(row.nr, nr_user):
            wrong.append(f"user functions: {row}, not {percent(row.nr, nr_user)} %")
    keys = [f"{row.address} {row.file}" for row in rows]
    return wrong + [f"user functions: two rows for {key}" for key in twice(keys)]


def check_wide_point(row: PointRow) -> list[str]:
    at = row.wide
    in_order = at["min.ns"] <= at["p50.ns"] <= at["p99.ns"] <= at["max.ns"]
    wrong = [] if in_order else [f"points: {row.name}: {at} are not in order"]
    # One CPU may have added a pair's time, but not yet counted the pair.
    if not at["min.ns"] <= row.avg_ns <= at["max.ns"] + 1 + row.avg_ns // row.nr:
        wrong.append(f"points: {row.name}: {row.avg_ns} ns is no average of {at}")
    if at["net.ns"] > row.avg_ns:
        wrong.append(f"points: {row.name}: net {at['net.ns']} ns is more than {row.avg_ns} ns")
    return wrong


def check_points(points: Points) -> list[str]:
    wrong = []
    for row in points.rows:
        if not row.nr:
            wrong.append(f"points: {row.name}: a row without a pair")
        elif row.avg_ns != ceil_div(row.ns, row.nr):
            right = ceil_div(row.ns, row.nr)
            wrong.append(f"points: {row.name}: {row.avg_ns} ns on average, should be {right}")
        elif points.is_wide:
            wrong += check_wide_point(row)
        buckets = points.buckets.get(row.name)
        if buckets and sum(buckets.values()) != row.nr:
            wrong.append(f"points: {row.name}: its histogram makes {sum(buckets.values())} pairs")
    names = [row.name for row in points.rows]
    if names != sorted(names):
        wrong.append("points: rows are not sorted by name")
    return wrong


def check(report: Report) -> list[str]:
    wrong = [text for table in report.straces for text in check_strace(table)]
    for heatmap in filter(None, (report.heatmap, report.machine)):
        wrong += check_heatmap(heatmap)
    if report.heatmap:
        wrong += check_user_functions(report)
    if report.points:
        wrong += check_points(report.points)
    for waits in filter(None, (report.waits, *report.wait_views.values())):
        wrong += check_waits(waits)
    if report.summary:
        wrong += check_summary(report.summary, report.waits)
    return wrong


def check_log(log: str, nr_before: int = 0) -> list[str]:
    """Returns all errors in the reports of a log. An incomplete report is an error."""
    try:
        return [text for report in parse(log, nr_before) for text in check(report)]
    except ReportError as error:
        return [str(error)]
