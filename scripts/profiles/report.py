# SPDX-License-Identifier: BSD-2-Clause
"""Prints the tables of an export as text, JSON or CSV, and counts samples by any of their keys."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable

from profiles.export import Export, ExportError, Table, printable
from profiles.stacks import Names, Stack, Stacks, frames

# Stacks, their symbols, and events: printed only on request.
STORES = ["samples.json", "waits_stacks.json", "memory_stacks.json", "symbols.json"]
STORES += ["kernel_stacks.json", "kernel_freed_stacks.json"]
STORES += ["trace_events.json", "trace_tasks.json", "trace_calls.json", "trace_pages.json"]
STORES += ["critical_path.json"]
FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # the full-width ones, too


def choose(
    export: Export, name: str | None, named: Callable[[str, list[Table]], list[Table]]
) -> list[Table]:
    """
    Returns the tables of one file. Without a name, returns all but stacks and events. named() gives
    the tables of a file names.
    """
    if not name:
        files = [file for file in export.files if file not in STORES]
        return [table for file in files for table in named(file, export.files[file])]
    file = f"{name.removesuffix('.json')}.json"
    if file not in export.files:
        names = ", ".join(file.removesuffix(".json") for file in export.files)
        raise ExportError(f"{export.path} has no {name}, but {names}")
    return named(file, export.files[file])


def image(stack: Stack, names: Names) -> str | None:
    """Returns the file of a stack's innermost function, None if it is unknown."""
    if stack.kernel:
        return "[kernel]"
    area = names.place(stack, stack.user[0]).area if stack.user else None
    return area.image.path if area and area.image else None


def view(stacks: Stacks, names: Names, keys: list[str]) -> Table:
    """Returns a table of samples, or of time waited, by keys such as task, pid or function."""
    readers = {
        "run": lambda stack: stack.run,
        "task": lambda stack: stack.comm,
        "pid": lambda stack: stack.pid,
        "tid": lambda stack: stack.tid,
        "cpu": lambda stack: stack.cpu,
        "syscall": lambda stack: stack.call,
        "class": lambda stack: stack.kind,
        "wait": lambda stack: stack.what,
        "truncated": lambda stack: stack.truncated,
        "function": lambda stack: frames(stack, names)[-1],
        "image": lambda stack: image(stack, names),
    }
    if unknown := [key for key in keys if key not in readers]:
        raise ExportError(f"stacks have no {unknown[0]!r}, but {', '.join(readers)}")
    found: Counter[tuple] = Counter()
    for stack in stacks.stacks:
        found[tuple(readers[key](stack) for key in keys)] += stack.weight
    unit = "ns" if stacks.unit == "nanoseconds" else stacks.unit
    total = found.total()
    rows = [
        {unit: nr, "percent": f"{100 * nr / total:.2f}" if total else None, **dict(zip(keys, row))}
        for row, nr in found.most_common()
    ]
    notes = [f"total: {total}", *filter(None, [str(stacks.losses)])]
    return Table(f"{unit} by {', '.join(keys)}", rows, notes)


def growth(old: tuple[Stacks, Names], new: tuple[Stacks, Names]) -> Table:
    """Returns a table of the call chains whose memory differs between two moments."""
    before: Counter[tuple[str, str]] = Counter()
    after: Counter[tuple[str, str]] = Counter()
    for (stacks, names), found in (old, before), (new, after):
        for stack in stacks.stacks:
            task, *chain = frames(stack, names)
            found[task, " < ".join(reversed(chain))] += stack.weight
    rows = [
        {
            "grown_bytes": after[key] - before[key],
            "old_bytes": before[key],
            "new_bytes": after[key],
            "task": key[0],
            "chain": key[1],
        }
        for key in sorted(before.keys() | after.keys(), key=lambda key: before[key] - after[key])
        if after[key] != before[key]
    ]
    total = f"total: {before.total()} bytes, then {after.total()}"
    lost = [str(stacks.losses) for stacks, _ in (old, new) if str(stacks.losses)]
    return Table("memory that has grown, by call chain", rows, [total, *lost])


def cell(value: object) -> str:
    """Returns a value on one line of text."""
    if value is None:
        return "-"
    if isinstance(value, dict):
        return printable(", ".join(f"{name} {nr}" for name, nr in value.items()))
    if isinstance(value, list):
        return printable(" ".join(map(str, value)))
    return printable(str(value))


def csv_cell(value: object) -> str:
    """Returns a value for CSV. Spreadsheets take a text that begins like a formula for one."""
    text = cell(value)
    is_text = value is not None and not isinstance(value, (int, float))
    return f"'{text}" if is_text and text.startswith(FORMULA) else text


def sort_value(value: object) -> tuple[bool, float, str]:
    """Returns a key that sorts numbers above texts. Integers above 2^53 are strings in exports."""
    try:
        return (True, float(str(value)), "")
    except ValueError:
        return (False, 0.0, str(value))


def columns(rows: list[dict]) -> list[str]:
    """Returns the keys of all rows. Rows of an older kernel may have fewer."""
    return list(dict.fromkeys(key for row in rows for key in row))


def print_text(table: Table, rows: list[dict]) -> None:
    keys = columns(rows)
    widths = [len(cell(key)) for key in keys]
    right = [True] * len(keys)
    for row in rows:
        for i, text in enumerate(cell(row.get(key)) for key in keys):
            widths[i] = max(widths[i], len(text))
            right[i] = right[i] and not text.strip("0123456789-.")
    print(f"\n{cell(table.title)}")
    for row in [dict(zip(keys, keys)), *rows]:
        padded = (
            text.rjust(width) if is_right else text.ljust(width)
            for text, width, is_right in zip((cell(row.get(key)) for key in keys), widths, right)
        )
        print("  ".join(padded).rstrip())
    for note in table.notes:
        print(cell(note))


def print_csv(rows: list[dict]) -> None:
    keys = columns(rows)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows([map(csv_cell, keys)] if rows else [])
    writer.writerows([csv_cell(row.get(key)) for key in keys] for row in rows)


def print_tables(tables: list[Table], form: str, sort: str | None, top: int | None) -> None:
    """Prints the first `top` rows of each table, largest first by the column `sort`."""
    keys = columns([row for table in tables for row in table.rows])
    if sort and sort not in keys:
        raise ExportError(f"no column is called {sort!r}, but {', '.join(keys)}")
    for table in tables:
        rows = table.rows
        if sort:
            rows = sorted(rows, key=lambda row: sort_value(row.get(sort)), reverse=True)
        rows = rows[:top]
        if form == "json":
            for row in rows:
                print(json.dumps(row))
        elif form == "csv":
            print_csv(rows)
        else:
            print_text(table, rows)
