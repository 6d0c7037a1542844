# SPDX-License-Identifier: BSD-2-Clause
"""Reads the critical path of an export for a page: one chain of segments that covers the wall time.

kernel/profile/formats.md describes critical_path.json, and critical_path_parts.json with the sums.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from profiles.export import Export, printable
from profiles.images import number
from profiles.page_columns import Columns
from profiles.page_data import OF_TREE, Tree, one_of, seconds
from profiles.stacks import Names, Stack, Stacks
from profiles.symbols import shortened
from profiles.table_names import TableNames

FILE, SUMS = "critical_path.json", "critical_path_parts.json"
MAX_PARTS = 8  # of the bar
NOT_RECORDED = "not recorded"  # a cause: events were lost
EARLIER = "earlier"  # the cause of all segments that an export has no room for
ASLEEP = ("timer", "device", "unknown", "ready")  # causes of time off a CPU
ENDS = ("exit of a thread", "proc->child_wait")  # ended by the end of a thread or process
UNTOLD = ("a CPU", "start")  # waits that say nothing about another thread's work
MAX_WAITERS, MAX_SAID, LEAST_SAID = 3, 3, 20  # the last one is a percentage
OF_CODE = ("user code", "page fault", "kernel")  # causes whose function is one
PLAIN_NAME = re.compile(r"[\w.:~@$]+")  # of a function, without arguments or a file
SHARE = re.compile(r"(.*) \((\d+) %\)")  # of a caller
# What a thread does, by cause, with its function and without one.
DOES = {
    "user code": "runs {}",
    "system call": "is in {}",
    "page fault": "has page faults in {}",
    "interrupt": "handles interrupts of the {}",
    "kernel": "returns to user mode, where signals are delivered, in {}",
    "timer": "sleeps in {} until a timer wakes it",
    "device": "waits in {} for a device",
    "kernel thread": "works in the kernel",
    "ready": "is ready, and waits for a CPU that thread {} has",
    "program start": "loads the program",
    "exit": "ends",
}
DOES_UNKNOWN = DOES | {
    "user code": "runs user code",
    "page fault": "has page faults",
    "kernel": "returns to user mode",
    "timer": "sleeps until a timer wakes it",
    "device": "waits for a device",
    "ready": "is ready, and its CPU is about to run it",
}


class Key(NamedTuple):
    cause: str
    function: str  # "-": none
    task: str


class Row(NamedTuple):
    key: Key
    ns: int
    part: str  # its name in the report's line, as the kernel writes it
    label: str  # that name as the page writes it; others may be equal
    caller: str  # the program's function that it is called from, and its share; "-": none


class Segment(NamedTuple):
    start: int  # ns since boot
    end: int
    cpu: int
    pid: int
    tid: int
    task: str
    cause: str
    function: str  # "-": none
    runs: bool  # on a CPU
    interrupts: int = 0  # ns of timer interrupts, which the table has in a row of their own

    @property
    def key(self) -> Key:
        return Key(self.cause, self.function, self.task)

    def chain(self, callers: dict[Key, str]) -> list[tuple[str, str]]:
        """Returns the frames of a flame graph. callers: those that are the only ones."""
        found = [("task", self.task)]
        if caller := callers.get(self.key):
            found.append(("user", caller))
        if self.cause in (NOT_RECORDED, EARLIER):
            return [("cut", f"[{self.cause}]")]
        if self.function == "-":
            return [*found, ("wait", f"[{self.cause}]")]
        if self.cause == "ready":
            return [*found, ("wait", "[ready]"), ("wait", self.function)]
        if self.cause == "page fault":
            kind = "call" if self.function.startswith("sys_") else "user"
            return [*found, (kind, self.function), ("kernel", "[page fault]")]
        if self.cause == "user code":
            return [*found, ("user", self.function)]
        if self.cause == "system call":
            return [*found, ("call", f"[{self.function}]")]
        if self.runs:
            return [*found, ("kernel", f"[{self.cause}]"), ("kernel", self.function)]
        return [*found, ("call", f"[{self.function}]"), ("wait", f"[{self.cause}]")]


def segment(row: dict) -> Segment:
    start, end = number(row["from_ns"], 53), number(row["to_ns"], 53)
    if end < start:
        raise ValueError(row)
    return Segment(
        start,
        end,
        number(row["cpu"] or 0, 32),
        number(row["pid"] or 0, 32),
        number(row["tid"] or 0, 32),
        str(row["task"] or "-"),
        str(row["cause"]),
        str(row["function"] or "-"),
        row["cpu"] is not None,
        number(row.get("interrupts_ns") or 0, 53),
    )


def read(export: Export, names: TableNames) -> list[Segment]:
    """Returns the segments, the earliest first."""
    found = []
    for table in names.tables(FILE, export.files.get(FILE, [])):
        for row in table.rows:
            try:
                found.append(segment(row))
            except (KeyError, TypeError, ValueError, OverflowError):
                continue
    return sorted(found)


def rows(export: Export, names: TableNames) -> list[Row]:
    """Returns the rows of the report's table, the longest first."""
    found = []
    tables = export.files.get(SUMS, [])
    for table, named in zip(tables, names.tables(SUMS, tables)):
        for raw, row in zip(table.rows, named.rows):
            try:
                key = Key(str(row["cause"]), str(row["function"] or "-"), str(row["task"] or "-"))
                label, caller = str(row["part"]), str(row["called_from"] or "-")
                ns = number(row["time_ns"], 62)
                found.append(Row(key, ns, str(raw["part"]), label, caller))
            except (KeyError, TypeError, ValueError, OverflowError):
                continue
    return sorted(found, key=lambda row: -row.ns)


def not_recorded(found: list[Row]) -> int:
    """Returns the time before the path is known, because events were lost."""
    return sum(row.ns for row in found if row.key.cause == NOT_RECORDED)


def parts(found: list[Row]) -> list[tuple[str, int]]:
    """
    Returns the parts of the path as the report's line calls them, the longest first, and the sum of
    the others.
    """
    sums: Counter[str] = Counter()
    for row in found:
        if row.key.cause != NOT_RECORDED:
            sums[row.part] += row.ns
    labels = {row.part: row.label for row in found}
    named = [(labels[part], ns) for part, ns in sums.most_common()]
    others = named[MAX_PARTS:]
    rest = [(f"{len(others)} others", sum(ns for _, ns in others))] if others else []
    return named[:MAX_PARTS] + rest


def called(function: str) -> str:
    """Returns a function's name so that it does not read as a word of the sentence."""
    function = shortened(function)
    return f"{function}()" if PLAIN_NAME.fullmatch(function) else function


def waits_for(task: str, least_ns: int, waits: Stacks, names: Names) -> list[str]:
    """
    Says which threads wait for a task, one for the other, the first one first, and the code that
    ends each wait.
    """
    sums: Counter[tuple[str, str, str]] = Counter()
    longest: dict[tuple[str, str, str], Stack] = {}
    for stack in waits.stacks:
        waker = stack.waker
        if waker and waker.comm != "interrupt" and stack.pid and stack.what not in UNTOLD:
            key = waker.comm, stack.comm, str(stack.what)
            sums[key] += stack.weight
            if key not in longest or stack.weight > longest[key].weight:
                longest[key] = stack
    found: list[str] = []
    seen, by = {task}, task
    for _ in range(MAX_WAITERS):
        known = [
            (ns, waiter, what)
            for (waker_name, waiter, what), ns in sums.items()
            if waker_name == by and ns >= least_ns and (waiter not in seen or waiter == task == by)
        ]
        if not known:
            break
        _, waiter, what = max(known)
        who = "another thread of this name" if waiter == by else f"thread {by}"
        waker = longest[by, waiter, what].waker
        place = names.waiting_functions(waker) if waker and what not in ENDS else ""
        place = f" in {place}" if place else ""
        found.insert(0, f"thread {waiter} waits for {what}, until {who} wakes it{place}")
        if waiter == by:
            break
        seen.add(waiter)
        by = waiter
    return found


def does(row: Row) -> str:
    cause, function, _ = row.key
    function = called(function) if cause in OF_CODE else function
    text = DOES[cause].format(function) if function != "-" else DOES_UNKNOWN.get(cause, cause)
    if row.caller == "-":
        return text
    match = SHARE.fullmatch(row.caller)
    caller = f"{called(match[1])} in {match[2]} % of this time" if match else called(row.caller)
    return f"{text}, called from {caller}"


def sentence(found: list[Row], waits: Stacks, names: Names) -> str:
    """Says in words what takes most of the time: who waits for whom, and what the last one does."""
    total = sum(row.ns for row in found)
    sums: Counter[str] = Counter()
    longest: dict[str, Row] = {}
    for row in found:
        if row.key.cause in DOES:
            sums[row.part] += row.ns
            longest.setdefault(row.part, row)
    # Interrupts come whatever runs, so they are told last.
    told = [part for part, ns in sums.most_common() if 100 * ns >= LEAST_SAID * total]
    told.sort(key=lambda part: longest[part].key.cause == "interrupt")
    said: list[str] = []
    for part in (told or [part for part, _ in sums.most_common(1)])[:MAX_SAID]:
        row, percent = longest[part], 100 * sums[part] // max(total, 1)
        links = [] if said else waits_for(row.key.task, row.ns // 4, waits, names)
        who = "that one" if links and "another thread" in links[-1] else f"thread {row.key.task}"
        chain = "; ".join([*links, f"{who} {does(row)}"])
        said.append(f"{percent} % of the wall time: {chain}")
    if lost := 100 * not_recorded(found) // max(total, 1):
        said.append(f"{lost} % of the wall time is not recorded")
    return ". ".join(said)


def note(found: list[Row], segments: list[Segment]) -> str:
    """Says how far the path is known, and whether its parts are all of that time."""
    known = timed(segments) or segments
    gap = sum(max(b.start - a.end, 0) for a, b in zip(segments, segments[1:]))
    threads = len({one.tid for one in known})
    unknown, start, end = not_recorded(found), segments[0].start, segments[-1].end
    text = f"One chain of {one_of(len(known), 'segment')} in {one_of(threads, 'thread')}, "
    text += f"{seconds(start + unknown)} s to {seconds(end)} s after boot"
    text += f"; {seconds(gap)} s of it are missing" if gap else ", without a gap"
    if any(one.cause == EARLIER for one in segments):
        text += f". Segments before {seconds(known[0].start)} s are only known as sums"
    if unknown:
        text += f". What the {seconds(unknown)} s before it went to is not known: the events of "
        text += "that time were lost. Shares are of the whole wall time"
    return text


def timed(segments: list[Segment]) -> list[Segment]:
    return [one for one in segments if one.cause not in (NOT_RECORDED, EARLIER)]


def untimed(found: list[Row], segments: list[Segment]) -> list[Segment]:
    """
    Returns what is not in the timed segments: what the table has of those that had no room, without
    their times, and what is not recorded.
    """
    rest = [one for one in segments if one.cause == NOT_RECORDED]
    total = sum(one.end - one.start for one in segments if one.cause == EARLIER)
    if not total:
        return rest
    sums: Counter[Key] = Counter()
    for row in found:
        sums[row.key] += row.ns
    for one in timed(segments) + rest:
        sums[one.key] -= one.end - one.start - one.interrupts
        sums[Key("interrupt", "timer", one.task)] -= one.interrupts
    for key, ns in sums.items():
        ns = min(ns, total)
        if ns > 0:
            runs = key.cause not in ASLEEP
            rest.append(Segment(0, ns, 0, 0, 0, key.task, key.cause, key.function, runs))
            total -= ns
    return rest + ([Segment(0, total, 0, 0, 0, "-", EARLIER, "-", False)] if total else [])


def graph(segments: list[Segment], found: list[Row], tree: Tree, columns: Columns) -> dict:
    """Returns the rows of a flame graph, those with times first, the earliest first."""
    callers = {row.key: row.caller for row in found if row.caller != "-" and "(" not in row.caller}
    first = timed(segments)
    both = first + untimed(found, segments)
    start = segments[0].start
    columns_of: dict = {
        "weight": columns.add(one.end - one.start for one in both),
        "start": columns.add((one.start for one in first), ascending=True),
        "runs": columns.add(int(one.runs) for one in both),
        "out": columns.add(0 for _ in both),
    }
    columns_of |= zip(OF_TREE, zip(*(tree.row(one.chain(callers)) for one in both)))
    for key in ("pid", "tid", "cpu"):
        columns_of[key] = columns.add(getattr(one, key) for one in both)
    total = sum(one.end - one.start for one in both)
    return columns_of | {"unit": "ns", "period": 1, "total": total, "lost": "", "from": start}


def summary(found: list[Row], segments: list[Segment], waits: Stacks, names: Names) -> dict:
    unknown, total = not_recorded(found), sum(row.ns for row in found)
    asleep = sum(row.ns for row in found if row.key.cause in ASLEEP)
    return {
        "total": total,
        "parts": parts(found),
        "unknown": unknown,
        "note": note(found, segments),
        "sentence": printable(sentence(found, waits, names)),
        "sleeps": asleep > (total - unknown) // 2,
    }


def limits(found: list[Row]) -> list[str]:
    """Says if events were lost that the path needs."""
    ns = not_recorded(found)
    lost = f"events of the first {seconds(ns)} s were lost, so the critical path begins after them"
    return [lost] if ns else []
