# SPDX-License-Identifier: BSD-2-Clause
"""Collects what a page shows of an export: stacks as a tree, tables, what was lost.

Names are numbers of one list, without control characters, so that each is in the page once. The
nodes of a tree are the frames of stacks; a node comes after its caller. A row of a graph is what
has the same frames, thread and CPU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from profiles import diff, losses, progress, report
from profiles.export import Export, ExportError, Table, printable
from profiles.page_columns import Columns
from profiles.stacks import Names, Stacks, kinds_of_frames, other_rate_ns
from profiles.table_names import TableNames

IDLE, OF_REPORT = 1, 2  # samples that a page leaves out by default
KINDS = ["task", "cut", "user", "call", "kernel", "wait"]
NONE = 0  # the number of the empty text
SMALL = 1 << 53
# Notes of tables that say what is missing or a bound.
LIMITS = re.compile(
    r"lost|no room|not in |not included|lower bound|cut chains|take turns|backwards|another rate|"
    r"\boff (for|since)|given up|have not ended|ended on another|further|overhead|cost"
)


class Strings:
    """Texts by number. One place makes all of them printable."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": NONE}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(printable(text), len(self.numbers))

    def all(self) -> list[str]:
        return list(self.numbers)


class Tree:
    def __init__(self, strings: Strings):
        self.strings = strings
        self.frames: dict[tuple[str, str], int] = {}
        self.nodes: dict[tuple[int, int], int] = {}

    def frame(self, kind: str, name: str) -> int:
        return self.frames.setdefault((kind, printable(name)), len(self.frames))

    def add(self, chain: Iterable[tuple[str, str]]) -> int:
        """Returns the node of a stack. Nodes are numbered from 1; 0 is the caller of the first."""
        node = 0
        for frame in chain:
            key = node, self.frame(*frame)
            node = self.nodes.setdefault(key, len(self.nodes) + 1)
        return node

    def write(self, columns: Columns) -> dict:
        return {
            "kinds": columns.add(KINDS.index(kind) for kind, _ in self.frames),
            "names": columns.add(self.strings.number(name) for _, name in self.frames),
            # The distance to the caller is small, so it compresses well.
            "up": columns.add(i - caller for i, (caller, _) in enumerate(self.nodes, 1)),
            "frame": columns.add(frame for _, frame in self.nodes),
        }


def graph(
    stacks: Stacks, names: Names, table_names: TableNames, tree: Tree, columns: Columns
) -> dict:
    """
    Returns the rows of a flame graph: what has the same frames, thread, CPU and waker is one row.
    Locks have the names that the tables have.
    """
    found: Counter[tuple[int, ...]] = Counter()
    locks: dict[tuple[str | None, str], str] = {}
    for stack in progress.over(stacks.stacks, "naming functions"):
        if stack.what:
            of_lock = f" {stack.address:#x} (pid {stack.pid})" if stack.address else ""
            place = stack.run, stack.what + of_lock
            if place not in locks:
                locks[place] = table_names.text(table_names.lock(*place))
            stack.what = locks[place]
        waker = tree.add(kinds_of_frames(stack.waker, names)) if stack.waker else 0
        node = tree.add(kinds_of_frames(stack, names))
        out = IDLE if stack.is_idle else OF_REPORT if stack.is_of_report else 0
        found[node, stack.pid, stack.tid, stack.cpu, out, waker] += stack.weight
    rows = list(found.items())
    keys = "node", "pid", "tid", "cpu", "out", "waker"
    result: dict = {key: columns.add(int(row[i]) for row, _ in rows) for i, key in enumerate(keys)}
    result["weight"] = columns.add(weight for _, weight in rows)
    return result | {
        "unit": "samples" if stacks.unit == "samples" else "ns",
        "period": stacks.period_ns,
        "total": sum(found.values()),
        "lost": printable(str(stacks.losses)),
    }


def cell(value: object) -> object:
    """Returns a value for the page: a number, or a text on one line."""
    if isinstance(value, bool) or value is None:
        return None if value is None else str(value)
    if isinstance(value, int) and abs(value) < SMALL:
        return value
    return report.cell(value)


def table(one: Table, file: str) -> dict:
    """Returns a table, by column names and rows. A histogram stays a dict of numbers."""
    keys = report.columns(one.rows)
    rows = [
        [
            {str(k): v for k, v in value.items() if isinstance(v, int)}
            if key == "pairs_by_log2_cycles" and isinstance(value := row.get(key), dict)
            else cell(row.get(key))
            for key in keys
        ]
        for row in one.rows
    ]
    return {
        "file": file.removesuffix(".json"),
        "title": printable(one.title),
        "keys": list(map(printable, keys)),
        "rows": rows,
        "notes": list(map(printable, one.notes)),
    }


def tables(export: Export, named: TableNames) -> list[dict]:
    files = [file for file in export.files if file not in report.STORES and file not in SHOWN]
    return [
        table(one, printable(file))
        for file in files
        for one in named.tables(file, export.files[file])
        if one.rows or one.notes
    ]


FIRST_LINES = "first_lines.json"
SHOWN = {FIRST_LINES, "critical_path.json"}  # in a view of their own, not as tables


def first_lines(export: Export, named: TableNames) -> list[str]:
    """Returns the lines that the report of the run began with, the heading first."""
    tables_ = named.tables(FIRST_LINES, export.files.get(FIRST_LINES, []))
    return [printable(str(row.get("line"))) for one in tables_ for row in one.rows]


def limits(export: Export, stacks: list[Stacks]) -> list[str]:
    """Returns, in words, what was lost and what is not exact. Losses come first."""
    found = [str(one.losses) for one in stacks]
    found += [f"{one.nr_damaged} damaged rows are left out" for one in stacks if one.nr_damaged]
    found.append(str(losses.of_calls(export)))
    found += export.warnings
    if ns := other_rate_ns(export):
        found.append(f"for {ns / 1e9:.3f} s samples were taken at another rate, by profile")
    for file, in_file in export.files.items():
        for one in in_file:
            found += [f"{one.title}: {note}" for note in one.notes if LIMITS.search(note)]
    return list(dict.fromkeys(printable(text) for text in found if text))


def changes(old: Export, new: Export) -> dict:
    """Returns what has changed since the old run, in the words of legoprof diff."""
    is_exact = new.meta.get("clock") == "instructions" == old.meta.get("clock")
    try:
        found = diff.differences(diff.summary(old), diff.summary(new))
    except ExportError as error:
        return {"lines": [printable(str(error))], "exact": False}
    return {"lines": [printable(one.text) for one in found] or ["no difference"], "exact": is_exact}


def one_of(nr: int, what: str) -> str:
    return f"{nr} {what}" if nr == 1 else f"{nr} {what}s"


def seconds(ns: int) -> str:
    return f"{ns // 10**9}.{ns % 10**9:09d}"


def meta(export: Export) -> dict:
    keys = "clock", "cpus", "end_ns", "tsc_hz", "build_id", "compiler", "why"
    found = {key: cell(export.meta.get(key)) for key in keys}
    return found | {"path": printable(export.path), "append": cell(export.run.get("append"))}
