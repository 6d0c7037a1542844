# SPDX-License-Identifier: BSD-2-Clause
"""Joins several exports into one, in which each row has the label of its run."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from profiles.export import VERSION, Export, ExportError, Table


def labels(arguments: list[str]) -> list[tuple[str, str]]:
    """Splits arguments of the form label=path. The label of a mere path is its stem."""
    found: list[tuple[str, str]] = []
    for argument in arguments:
        label, equals, path = argument.partition("=")
        if not equals or Path(argument).exists():
            label, path = Path(argument).stem, argument
        if not label or label in (other for other, _ in found):
            raise ExportError(f"the label {label!r} is not unique: write label=path")
        found.append((label, path))
    return found


def add_tables(merged: list[Table], label: str, tables: list[Table]) -> None:
    for i, table in enumerate(tables):
        if i == len(merged):
            merged.append(Table(table.title))
        merged[i].notes += [f"{label}: {note}" for note in table.notes]
        merged[i].rows += [{"run": label} | row for row in table.rows]


def merge(exports: dict[str, Export]) -> Export:
    """
    Returns one export made of several, which are given by label. Its first line has the values that
    are the same in all of them, and their first lines as `runs`.
    """
    runs: dict[str, dict] = {}
    files: dict[str, list[Table]] = {}
    warnings: list[str] = []
    for label, export in exports.items():
        if "runs" in export.meta:
            raise ExportError(f"{export.path} is merged already: merge the single exports")
        runs[label] = export.meta | {"host": export.run}
        warnings += [f"{label}: {warning}" for warning in export.warnings]
        for name, tables in export.files.items():
            add_tables(files.setdefault(name, []), label, tables)
    first, *others = (export.meta for export in exports.values())
    same = {key: first[key] for key in first if all(m.get(key) == first[key] for m in others)}
    meta = {"export": VERSION} | same | {"runs": runs, "warnings": warnings}
    host_paths = [path for export in exports.values() for path in export.host_paths]
    paths = [path for export in exports.values() for path in export.paths]
    return Export(" ".join(exports), meta, {}, files, warnings, {}, host_paths, paths)


def write(export: Export) -> bytes:
    """Returns the text of an export, as the kernel writes it."""
    lines: list[dict] = [export.meta]
    for name, tables in export.files.items():
        lines.append({"file": name})
        for table in tables:
            lines += [{"table": table.title}, *table.rows]
            lines += [{"note": note} for note in table.notes]
    body = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    end = {"end": 1, "bytes": len(body), "crc32": f"{zlib.crc32(body):08x}", "lost_lines": 0}
    return body + json.dumps(end, separators=(",", ":")).encode() + b"\n"
