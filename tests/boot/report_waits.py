# SPDX-License-Identifier: BSD-2-Clause
"""Reads the tables of waits and the first lines of a process's report, and checks them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Iterator

from report_lines import DASHES, END, TOP, Lines, ReportError, to_ns

# A time, in microseconds or, in wide tables, nanoseconds.
SECONDS = r"(\d+\.\d{6}(?:\d{3})?)"

CPU_TIME = re.compile(r"^CPU time: (\d+\.\d{6}) s, (\d+) threads?(?: = (.*))?$")
PARENT = re.compile(
    r"^CPU time: (\d+\.\d{6}) s, (\d+) threads?; "
    r"waited for children: (\d+\.\d{6}) of (\d+\.\d{6}) s$"
)
WAITED = re.compile(r"^waited: (\d+\.\d{6}) s = (.*)$")
PART = re.compile(r"(\S.*?) (\d+\.\d{6})(?: \+ |$)")
EVENTS = re.compile(
    r"^events: (?:(\d+) system calls, )?(\d+) page faults(?: \((\d.*?)\))?"
    r"(?:, (\d+) context switches(?: \((\d.*?)\))?)?"
    r"(?:, (\d+) signals? \((\d.*)\) = (\S.*))?$"
)
MEMORY = re.compile(r"^memory: peak (\d+(?:\.\d)?) (KiB|MiB)(?: in a process)? = (.*)$")
MEMORY_PART = re.compile(r"([a-z][a-z ]*) (\d+(?:\.\d)?)(?: \+ |$)")
WAIT_TITLE = re.compile(rf"^Kernel Waits {TOP}$")
WAIT_SCOPE = re.compile(
    r"^waits: (\d+) of (all threads|this process's threads|the run's threads) = "
    r"asleep (\d+\.\d{3}) s \+ ready without a CPU (\d+\.\d{3}) s"
    r"(?:; (\d+) of them ha(?:s|ve) not ended)?$"
)
WAIT_VIEW_TITLE = re.compile(rf"^Kernel Waits by (system call|task|lock) {TOP}$")
TIMES = rf"^ *{SECONDS} +{SECONDS} +(\d+)"
WAIT_VIEW_ROW = re.compile(rf"{TIMES} +{SECONDS}  (\S.*?)(?:  +(\S.*))?$")
WAIT_HEADER = ["seconds", "for.a.CPU", "times", "longest", "waits.for", "where", "woken.by"]
WAIT_ROW = re.compile(rf"{TIMES} +{SECONDS}  (\S.*?)  +(\S+)  +(\S.*)$")
WAIT_TOTAL = re.compile(rf"{TIMES}$")
WAIT_OTHERS = re.compile(r"^(\d+) others?, with (\d+) waits$")


SPINLOCK_TITLE = "Kernel Spinlocks: time that CPUs have spun"
SPINLOCK_HEADER = ["seconds", "times", "longest", "spinlock", "where"]
SPINLOCK_ROW = re.compile(rf"^ *{SECONDS} +(\d+) +{SECONDS}  (\S.*?)  +(\S+)$")
SPINLOCK_TOTAL = re.compile(rf"^ *{SECONDS} +(\d+)$")


@dataclass
class Summary:
    """
    Times in microseconds, as printed. A process that mostly waited for its children has a short
    summary: waited_us is the time it waited for them, and the times have no parts.
    """

    cpu_us: int
    nr_threads: int
    cpu_parts: Counter[str] = field(default_factory=Counter)
    waited_us: int = 0
    parts: Counter[str] = field(default_factory=Counter)
    nr_calls: int | None = None  # None: not counted all the time
    nr_switches: int | None = None
    fault_kinds: Counter[str] = field(default_factory=Counter)
    peak_mib: float | None = None
    peak_parts: dict[str, float] = field(default_factory=dict)  # as printed
    nr_involuntary: int | None = None
    nr_migrations: int | None = None
    nr_faults: int = 0
    signals: Counter[str] = field(default_factory=Counter)
    signal_fates: Counter[str] = field(default_factory=Counter)
    parent_us: int | None = None  # in a short summary: the lifetime of the process's threads


@dataclass
class SpinlockRow:
    ns: int
    nr: int
    longest_ns: int
    name: str
    where: str


@dataclass
class WaitRow:
    ns: int
    ready_ns: int
    nr: int
    longest_ns: int
    what: str
    where: str
    waker: str


@dataclass
class Waits:
    """A table of waits. In views, `where` is empty, and `waker` has the last column, if any."""

    top: int | None  # None: all
    nr: int = 0
    nr_in_flight: int = 0
    of_process: bool = False
    rows: list[WaitRow] = field(default_factory=list)
    total: tuple[int, int, int] = (0, 0, 0)  # ns, ready_ns, nr
    nr_others: int = 0  # waits in rows that are not printed
    notes: list[str] = field(default_factory=list)
    unit_ns: int = 1  # of the last digit of its times


def parts_of(text: str | None) -> Counter[str]:
    """Returns the parts of a line. Those of which there is nothing are not printed: they are 0."""
    return Counter({name: to_ns(seconds) for name, seconds in PART.findall(text or "")})


def time_ns(seconds: str) -> int:
    return to_ns(seconds.ljust(seconds.index(".") + 10, "0"))


def kinds_of(text: str | None) -> Counter[str]:
    return Counter({kind: int(nr) for nr, kind in re.findall(r"(\d+) ([\w-]+)", text or "")})


def fates_of(text: str) -> Counter[str]:
    return Counter({fate: int(nr) for fate, nr in re.findall(r"([a-z][a-z ]*) (\d+)", text)})


def parse_summary(lines: Lines, first: str) -> Summary | None:
    """Returns the summary that begins with this line, or None if none does."""
    if parent := PARENT.match(first):
        summary = Summary(to_ns(parent[1]), int(parent[2]), waited_us=to_ns(parent[3]))
        summary.parent_us = to_ns(parent[4])
        return summary
    if not (cpu := CPU_TIME.match(first)):
        return None
    summary = Summary(to_ns(cpu[1]), int(cpu[2]))
    summary.cpu_parts = parts_of(cpu[3])
    if waited := WAITED.match(lines.peek() or ""):
        lines.at += 1
        summary.waited_us = to_ns(waited[1])
        summary.parts = parts_of(waited[2])
    events = EVENTS.match(line := lines.next("the summary"))
    if not events:
        raise ReportError(f"summary: not the events: {line!r}")
    numbers = [None if nr is None else int(nr) for nr in events.group(1, 2, 4)]
    summary.nr_calls, summary.nr_faults, summary.nr_switches = numbers
    summary.fault_kinds = kinds_of(events[3])
    if summary.nr_switches is not None:
        kinds = kinds_of(events[5])
        summary.nr_involuntary, summary.nr_migrations = kinds["involuntary"], kinds["migrations"]
    if events[6]:
        summary.signals = kinds_of(events[7])
        summary.signal_fates = fates_of(events[8])
        sums = [sum(kinds.values()) for kinds in (summary.signals, summary.signal_fates)]
        if sums != [int(events[6])] * 2:
            raise ReportError(f"summary: signals do not add up: {line!r}")
    if (line := lines.peek()) and (memory := MEMORY.match(line)):
        lines.next("the memory")
        total, unit, parts = memory.groups()
        summary.peak_mib = float(total) / (1024 if unit == "KiB" else 1)
        sizes = {name: float(size) for name, size in MEMORY_PART.findall(parts)}
        summary.peak_parts = sizes
        in_order = list(sizes.values()) == sorted(sizes.values(), reverse=True)
        if not in_order or round(sum(sizes.values()), 1) != float(total) or 0 in sizes.values():
            raise ReportError(f"summary: memory does not add up: {memory[0]!r}")
    return summary


def parse_waits(lines: Lines, title: re.Match[str]) -> Waits:
    return parse_wait_table(lines, Waits(top=int(title[1]) if title[1] else None), WAIT_HEADER)


def parse_wait_table(lines: Lines, waits: Waits, header: list[str]) -> Waits:
    above = lines.skip_header("waits", header)
    scope = WAIT_SCOPE.match(above[0]) if len(above) == 1 else None
    if not scope:
        raise ReportError(f"waits: not what the table covers: {above!r}")
    waits.nr, waits.of_process = int(scope[1]), scope[2] == "this process's threads"
    waits.nr_in_flight = int(scope[5] or 0)
    while not DASHES.match(line := lines.next("waits: a row or dashes")):
        match = (WAIT_ROW if header is WAIT_HEADER else WAIT_VIEW_ROW).match(line)
        if not match:
            raise ReportError(f"waits: not a row: {line!r}")
        numbers = time_ns(match[1]), time_ns(match[2]), int(match[3]), time_ns(match[4])
        texts = match.groups()[4:] if header is WAIT_HEADER else (match[5], "", match[6] or "")
        waits.rows.append(WaitRow(*numbers, *texts))
        waits.unit_ns = 10 ** (9 - len(match[1].partition(".")[2]))
    match = WAIT_TOTAL.match(line := lines.next("waits: the total"))
    if not match:
        raise ReportError(f"waits: not a total row: {line!r}")
    waits.total = time_ns(match[1]), time_ns(match[2]), int(match[3])
    while (line := lines.peek()) and not END.match(line):
        if others := WAIT_OTHERS.match(line):
            waits.nr_others = int(others[2])
        waits.notes.append(lines.next("waits: the notes"))
    return waits


def parse_spinlocks(lines: Lines) -> list[SpinlockRow]:
    """Returns the rows. Raises ReportError if they do not add up to the total row."""
    lines.skip_header("spinlocks", SPINLOCK_HEADER)
    rows = []
    while not DASHES.match(line := lines.next("spinlocks: a row or dashes")):
        if not (match := SPINLOCK_ROW.match(line)):
            raise ReportError(f"spinlocks: not a row: {line!r}")
        numbers = time_ns(match[1]), int(match[2]), time_ns(match[3])
        rows.append(SpinlockRow(*numbers, match[4], match[5]))
    total = SPINLOCK_TOTAL.match(line := lines.next("spinlocks: the total"))
    sums = sum(row.ns for row in rows), sum(row.nr for row in rows)
    if not total or (time_ns(total[1]), int(total[2])) != sums:
        raise ReportError(f"spinlocks: the rows make {sums}, not {line!r}")
    while (line := lines.peek()) and not END.match(line):
        lines.next("spinlocks: the notes")
    return rows


WAIT_VIEW_HEADERS = {
    "system call": ["system.call"],
    "task": ["name", "pid"],
    "lock": ["lock", "released.by"],
}


def parse_wait_view(lines: Lines, title: re.Match[str]) -> Waits:
    header = WAIT_HEADER[:4] + WAIT_VIEW_HEADERS[title[1]]
    return parse_wait_table(lines, Waits(top=int(title[2]) if title[2] else None), header)


def check_waits(waits: Waits) -> Iterator[str]:
    sums = tuple(sum(each) for each in zip(*[(row.ns, row.ready_ns, row.nr) for row in waits.rows]))
    if (sums or (0, 0, 0)) != waits.total:
        yield f"the rows make {sums}, the total row says {waits.total}"
    if waits.total[2] + waits.nr_others != waits.nr and not any("room" in n for n in waits.notes):
        yield f"{waits.total[2]} and {waits.nr_others} others of {waits.nr}"
    for row in waits.rows:
        # Times are rounded separately, so `longest` may exceed the sum by one, of the last digit.
        if row.ready_ns > row.ns or row.longest_ns > row.ns + waits.unit_ns or not row.nr:
            yield f"not possible: {row}"
    if [row.ns for row in waits.rows] != sorted((row.ns for row in waits.rows), reverse=True):
        yield "rows are not sorted by time"
    if waits.top is not None and len(waits.rows) > waits.top:
        yield f"{len(waits.rows)} rows, but top #{waits.top}"


def check_summary(summary: Summary, waits: Waits | None) -> Iterator[str]:
    # Each row is the sum of two times, asleep and ready, of which the line leaves out what is below
    # a microsecond, and may be rounded up.
    if waits and not summary.waited_us and waits.total[0] >= 1000 * (2 * len(waits.rows) + 1):
        yield f"no time waited, but the table has {waits.total[0]} ns"
    if summary.parent_us is not None:
        if not summary.parent_us / 2 <= summary.waited_us <= summary.parent_us:
            yield f"short, but the process did not mostly wait: {summary}"
        return
    sums = [(summary.parts, summary.waited_us)]
    if summary.cpu_parts:  # a kernel without accounts does not divide CPU time
        sums.append((summary.cpu_parts, summary.cpu_us))
    for parts, total in sums:
        if sum(parts.values()) != total:
            yield f"{parts} do not make {total} us"
    if summary.fault_kinds and sum(summary.fault_kinds.values()) != summary.nr_faults:
        yield f"{summary.fault_kinds} do not make {summary.nr_faults} page faults"
    nr_most = max(summary.nr_involuntary or 0, summary.nr_migrations or 0)
    if nr_most > (summary.nr_switches or 0):
        yield f"not possible: {summary}"
