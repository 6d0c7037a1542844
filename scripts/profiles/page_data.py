# SPDX-License-Identifier: BSD-2-Clause
"""Collects what a page shows of an export: stacks as a tree, tables, what was lost.

Names are numbers of one list, without control characters, so that each is in the page once. The
nodes of a tree are the frames of stacks, in the order of their depth. A row of a graph is what has
the same frames, thread and CPU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from profiles import diff, losses, progress, report
from profiles.export import Export, ExportError, Table, printable
from profiles.page_columns import Columns
from profiles.stacks import Names, Stacks, kinds_of_frames, other_rate_ns
from profiles.table_names import TableNames

Chain = Sequence[tuple[str, str]]  # kinds and names of frames, the outermost first
IDLE, OF_REPORT = 1, 2  # samples that a page leaves out by default
KINDS = ["task", "cut", "user", "call", "kernel", "wait"]
# Columns of a graph: nodes, and frames of the task, the call, and the task that wakes (0: none).
OF_TREE = "node", "task", "call", "waker"
NONE = 0  # the number of the empty text
FRAME_BITS = 32
NO_FRAME = (1 << FRAME_BITS) - 1
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
        self.numbers: dict[tuple[str, str], int] = {}  # by names as they come
        self.nodes = {NO_FRAME: 0}  # by caller << FRAME_BITS | frame, which takes less memory
        self.nested: set[int] = set()  # nodes below one of the same frame

    def frame(self, kind: str, name: str) -> int:
        number = self.numbers.get((kind, name))
        if number is None:
            number = self.frames.setdefault((kind, printable(name)), len(self.frames))
            self.numbers[kind, name] = number
        return number

    def add(self, chain: Chain) -> int:
        """Returns the node of a stack. Node 0 is the root, the caller of the first frame."""
        nodes, node = self.nodes, 0
        frames = [self.frame(*one) for one in chain]
        is_recursive = len(set(frames)) < len(frames)
        for i, frame in enumerate(frames):
            node = nodes.setdefault(node << FRAME_BITS | frame, len(nodes))
            if is_recursive and frame in frames[:i]:
                self.nested.add(node)
        return node

    def row(self, chain: Chain, waker: Chain = ()) -> tuple[int, ...]:
        """Returns the values of a row in the columns of OF_TREE."""
        own, other = dict(chain), dict(waker)
        named = ("task", own.get("task")), ("call", own.get("call")), ("task", other.get("task"))
        frames = (0 if name is None else self.frame(kind, name) + 1 for kind, name in named)
        return self.add(chain), *frames

    def sort(self) -> tuple[list[int], dict[int, int]]:
        """
        Numbers nodes by depth, and by caller in each depth; and frames by their first node. So
        callers ascend and frames are near to each other, which compresses well. Returns the new
        numbers of nodes and of frames.
        """
        callers = [key >> FRAME_BITS for key in self.nodes]
        frames_of = [key & NO_FRAME for key in self.nodes]
        frames_of[0] = -1
        levels: list[list[int]] = []
        depths = [0] * len(callers)
        for node, caller in enumerate(callers):
            depths[node] = depth = depths[caller] + 1 if node else 0
            if depth == len(levels):
                levels.append([])
            levels[depth].append(node)
        nodes = [0] * len(callers)
        order: list[int] = []
        for level in levels:
            level.sort(key=lambda node: nodes[callers[node]])
            for number, node in enumerate(level, len(order)):
                nodes[node] = number
            order += level
        used = dict.fromkeys(frames_of[node] for node in order)
        used |= dict.fromkeys(range(len(self.frames)))
        frames = {frame: number for number, frame in enumerate(used, -1)}  # the root has -1
        names = list(self.frames)
        self.frames = {names[frame]: number for frame, number in frames.items() if number >= 0}
        self.callers = [nodes[callers[node]] for node in order]
        self.frames_of = [0, *(frames[frames_of[node]] for node in order[1:])]
        self.nested = {nodes[node] for node in self.nested}
        return nodes, frames

    def write(self, columns: Columns) -> dict:
        """Writes the sorted tree."""
        nested = bytearray(len(self.callers))
        for node in self.nested:
            nested[node] = 1
        return {
            "kinds": columns.add(KINDS.index(kind) for kind, _ in self.frames),
            "names": columns.add(self.strings.number(name) for _, name in self.frames),
            "caller": columns.add(self.callers, ascending=True),
            "frame": columns.add(self.frames_of),
            "nested": columns.add(nested),
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
        waker = kinds_of_frames(stack.waker, names) if stack.waker else []
        out = IDLE if stack.is_idle else OF_REPORT if stack.is_of_report else 0
        row = *tree.row(kinds_of_frames(stack, names), waker), stack.pid, stack.tid, stack.cpu, out
        found[row] += stack.weight
    keys = *OF_TREE, "pid", "tid", "cpu", "out"
    rows = dict(zip(keys, zip(*found))) if found else dict.fromkeys(keys, ())
    result: dict = {key: rows[key] if key in OF_TREE else columns.add(rows[key]) for key in keys}
    result["weight"] = columns.add(found.values())
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
# In a view of their own, not as tables.
SHOWN = {FIRST_LINES, "critical_path.json", "working_set_history.json"}


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
