# SPDX-License-Identifier: BSD-2-Clause
"""Reads exports of the profiler. kernel/profile/formats.md describes them."""

from __future__ import annotations

import json
import math
import mmap
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from profiles import console, progress
from profiles.console import Data

VERSION = 1
START = re.compile(rb'^\{"export":', re.MULTILINE)
END = re.compile(
    rb'\{"end":(\d+),"bytes":(\d+),"crc32":"([0-9a-f]{8})","lost_lines":(\d+)\}(?:\n|\Z)'
)


# Larger files are mapped. If one is truncated while it is read, SIGBUS kills the program.
MAX_READ_BYTES = 64 << 20
CHUNK_BYTES = 1 << 23  # of a mapped file: whole pages

# An export is a guest's, so what it makes legoprof do is bounded by its bytes. The kernel's lines
# and tables are far from these limits; a line beyond them is damaged.
MAX_LINE_BYTES = 2 << 20
MAX_COLUMNS = 64
MAX_WARNINGS = MAX_HOST_PATHS = 100
# Bytes that a value, and a value in a list, have at least in the kernel's exports, on average.
VALUE_BYTES, ITEM_BYTES, TABLE_BYTES = 6, 18, 60
FEW_VALUES = 100_000  # which are no burden


class ExportError(Exception):
    """An export is missing or invalid; the message is one line."""


@dataclass
class Table:
    """Rows are dicts, with the units in the keys. Notes are the lines around the table."""

    title: str
    rows: list[dict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    columns: dict[str, None] = field(default_factory=dict)  # the keys of all rows

    def add(self, row: dict) -> bool:
        """Adds a row, unless the table would have too many columns."""
        if not row.keys() <= self.columns.keys():
            if len(self.columns.keys() | row.keys()) > MAX_COLUMNS:
                return False
            self.columns |= dict.fromkeys(row)
        self.rows.append(row)
        return True


@dataclass
class Export:
    path: str
    meta: dict  # the first line
    run: dict  # the host's data on the run: QEMU's version and options
    files: dict[str, list[Table]]  # by file, for example "strace.json"
    warnings: list[str]
    functions: dict = field(default_factory=dict)  # profiles.operations.functions()
    host_paths: list[str] = field(default_factory=list)  # what the guest was made of
    paths: list[str] = field(default_factory=list)  # the files of a merged export

    def runs(self) -> dict[str | None, dict]:
        """Returns the first lines of all runs, by label. A single run has the label None."""
        runs = self.meta.get("runs")
        if not isinstance(runs, dict):
            return {None: self.meta}
        return {label: meta for label, meta in runs.items() if isinstance(meta, dict)}

    def rows(self, file: str) -> list[dict]:
        tables = self.files.get(file)
        return tables[0].rows if tables else []


def taken(rows: list[dict]) -> Iterator[dict]:
    """Yields the rows, and removes each, so that what is made of them can take their memory."""
    rows.reverse()
    while rows:
        yield rows.pop()


def printable(text: str) -> str:
    """
    Returns a guest's text without control characters, which could forge lines of output or change
    a terminal. Each format that is not JSON applies it to all names, in one place.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "?" for c in text)


def list_of(value: object) -> list:
    return value if isinstance(value, list) else []


def finite(text: str) -> float:
    """Returns a number that JSON has: Python's parser and printer also know Infinity and NaN."""
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


DECODER = json.JSONDecoder(parse_float=finite, parse_constant=finite)


def parse_line(line: bytes) -> dict:
    if len(line) > MAX_LINE_BYTES:
        return {}
    try:
        value = DECODER.decode(line.decode())
        if b"\\u" in line:
            json.dumps(value, ensure_ascii=False).encode()  # raises for a lone surrogate
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


NESTED: frozenset[type] = frozenset((list, dict))


def row_bytes(row: dict) -> int:
    """
    Returns the bytes that a row of the kernel with so many values would have at least. Raises
    ValueError for lists in lists, which no row has.
    """
    found = VALUE_BYTES * (1 + len(row))
    for value in row.values():
        if isinstance(value, list):
            found += VALUE_BYTES + ITEM_BYTES * len(value)
            items = value
        elif isinstance(value, dict):
            found += VALUE_BYTES * (1 + len(value))
            items = list(value.values())
        else:
            continue
        if not NESTED.isdisjoint(map(type, items)):
            raise ValueError(row)
    return found


class Budget:
    """Bounds the memory that tables take by the size of the text that they are read from."""

    def __init__(self, nr_bytes: int):
        self.left = VALUE_BYTES * FEW_VALUES + nr_bytes

    def take(self, nr_bytes: int) -> None:
        self.left -= nr_bytes
        if self.left < 0:
            raise ExportError("the lines have more values than the kernel writes into so few bytes")


def is_of_table(row: dict, tables: list[Table], nr_missing: int) -> bool:
    """
    Returns whether a row after missing lines belongs to the last table. Two missing lines may have
    begun another table, whose rows have other keys.
    """
    rows = tables[-1].rows if tables else []
    return row.keys() == rows[0].keys() if rows else nr_missing < 2


class Reader:
    """Reads rows. They share what is equal: keys, names, and the addresses of call chains."""

    def __init__(self) -> None:
        self.keys: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.texts: dict[str, str] = {}

    def read(self, line: bytes) -> tuple[dict, int]:
        """Returns the object in a line, {} if it is damaged, and its bytes for the budget."""
        row = parse_line(line)
        try:
            nr_bytes = row_bytes(row)
        except ValueError:
            return {}, 0
        share = self.texts.setdefault
        for key, value in row.items():
            if isinstance(value, str):
                row[key] = share(value, value)
            elif isinstance(value, list) and {str}.issuperset(map(type, value)):
                row[key] = list(map(share, value, value))
        keys = tuple(row)
        return dict(zip(self.keys.setdefault(keys, keys), row.values())), nr_bytes


def lines_of(data: Data, at: int, stop: int) -> Iterator[bytes]:
    """Yields the lines. Takes those before them out of memory, if the data is a mapped file."""
    in_memory = 0
    while at < stop:
        end = data.find(b"\n", at, stop)
        end = end if end >= 0 else stop
        yield data[at:end]
        at = end + 1
        if at - in_memory > 2 * CHUNK_BYTES and isinstance(data, mmap.mmap):
            data.madvise(mmap.MADV_DONTNEED, in_memory, CHUNK_BYTES)
            in_memory += CHUNK_BYTES


def add_lines(data: Data, stop: int, path: str | Path) -> tuple[dict[str, list[Table]], int]:
    """
    Returns the tables by file in the first `stop` bytes, and how many lines could not be read or
    assigned to a table. Does not read the first line.
    """
    files: dict[str, list[Table]] = {}
    tables: list[Table] | None = None  # None: the file is unknown until the next one begins
    nr_damaged = nr_missing = 0  # nr_missing: since the last line whose table is known
    budget = Budget(stop)
    reader = Reader()
    lines = lines_of(data, data.find(b"\n") + 1 or stop, stop)
    for line in progress.over_some(lines, f"reading {path}", stop, len):
        value, nr_bytes = reader.read(line)
        budget.take(nr_bytes)
        is_table, is_note = value.keys() == {"table"}, value.keys() == {"note"}
        is_file = value.keys() == {"file"}  # a row may have a column of that name, with others
        if is_table or is_file:
            budget.take(TABLE_BYTES)
        if is_file and isinstance(value["file"], str):
            tables, nr_missing = files.setdefault(value["file"], []), 0
            continue
        if nr_missing and (is_table or (value and not is_note)):
            if is_table or not is_of_table(value, tables or [], nr_missing):
                tables = None
            else:
                nr_missing = 0
        if not value:
            nr_missing += 1
        if not value or tables is None or (is_note and nr_missing > 1):
            nr_damaged += 1
        elif is_table:
            tables.append(Table(str(value["table"])))
        elif not tables:
            tables.append(Table(""))
            nr_damaged += not is_note
        elif is_note:
            tables[-1].notes.append(str(value["note"]))
        elif not tables[-1].add(value):
            nr_damaged += 1
    return files, nr_damaged


def last_in_log(data: Data) -> Data:
    """Returns the last export in a console's log, without the other lines between its own."""
    starts = [match.start() for match in START.finditer(data)]
    if not starts or not starts[0]:
        return data
    lines = data[starts[-1] :].splitlines(keepends=True)
    return b"".join(line for line in lines if line.startswith(b"{"))


def check(data: Data, end: re.Match[bytes] | None) -> str | None:
    """Returns what is wrong with an export's text, by its last line, or None."""
    if not end:
        return "has no end: its last lines are missing"
    if int(end[2]) != end.start():
        return f"is damaged: it has {end.start()} bytes, not {int(end[2])}"
    if int(end[3], 16) != zlib.crc32(memoryview(data)[: end.start()]):
        return "is damaged: its checksum is wrong"
    return None


def is_digest(value: object) -> bool:
    return isinstance(value, list) and [type(one) for one in value] == [int, int]


def read_rest(rest: bytes, files: dict[str, list[Table]]) -> tuple[dict, dict, list[str]]:
    """Adds the table that the host has written. Returns its data on the run, functions, paths."""
    found: dict = {}
    for line in rest.splitlines():
        found |= parse_line(line)
    if rows := [row for row in list_of(found.get("operations")) if isinstance(row, dict)]:
        files["operations.json"] = [Table("Operations", rows)]
    run, functions = found.get("run"), found.get("functions")
    if not isinstance(functions, dict) or not all(map(is_digest, functions.values())):
        functions = {}
    paths = [path for path in list_of(found.get("host_paths")) if isinstance(path, str)]
    return run if isinstance(run, dict) else {}, functions, paths[:MAX_HOST_PATHS]


def first_line(data: Data, path: str | Path) -> dict:
    meta = parse_line(next(lines_of(data, 0, len(data)), b""))
    if "export" not in meta:
        raise ExportError(f"{path} is not an export of the profiler")
    if meta["export"] != VERSION:
        version = meta["export"]
        raise ExportError(f"{path} is an export of version {version}: this tool knows {VERSION}")
    return meta


def contents(path: str | Path) -> Data:
    """Returns what is in a file: mapped, so that it takes no memory, if it is large."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_READ_BYTES:
            data: Data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        else:
            data = file.read()
    return data if data.find(b"\r\n") < 0 else data[:].replace(b"\r\n", b"\n")


def load(path: str | Path, damaged: bool = False) -> Export:
    """
    Reads an export: a file with one export, or the last export in the log of a console, printed by
    the kernel or read there from /proc/profile/export. Refuses another version, and a truncated or
    damaged export. With `damaged`, reads the rest of it, with warnings.
    """
    try:
        data = contents(path)
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}") from error
    try:
        on_console = console.last_export(data)
    except console.MarkError as error:
        raise ExportError(f"{path} has {error}") from error
    data = on_console[0] if on_console else last_in_log(data)
    if on_console and not START.match(data):
        what = "; ".join(on_console[1]) or "its export does not begin with a line of an export"
        raise ExportError(f"{path}: {what}")
    meta = first_line(data, path)
    # A merged export has the warnings of its parts.
    warnings = [str(one) for one in list_of(meta.get("warnings"))[:MAX_WARNINGS]]
    warnings += on_console[1] if on_console else []
    end = END.search(data)
    if wrong := check(data, end):
        # If the kernel printed the export, each line has a checksum, so the lines read are right.
        rest = "its rows are right" if on_console else "numbers may be wrong"
        if not damaged:
            wrong = "; ".join([wrong, *(on_console[1] if on_console else [])])
            raise ExportError(f"{path} {wrong}. --damaged reads the rest: {rest}")
        warnings.append(f"the export {wrong}. This is the rest: {rest}")
    if end and int(end[4]):
        warnings.append(f"{int(end[4])} lines had no room: raise profile.export=")
    try:
        files, nr_damaged = add_lines(data, end.start() if end else len(data), path)
    except ExportError as error:
        raise ExportError(f"{path}: {error}") from error
    if nr_damaged:
        warnings.append(f"{nr_damaged} damaged lines are left out")
    run, functions, host_paths = read_rest(data[end.end() :] if end else b"", files)
    return Export(str(path), meta, run, files, warnings, functions, host_paths, [str(path)])
