# SPDX-License-Identifier: BSD-2-Clause
"""Writes one HTML file that shows an export, or two to compare, in a browser without a network.

The code is in scripts/page/: plain JavaScript modules, which become one script here, and a style.
The data is JSON and columns of numbers, compressed, as text in base64. The file's own policy allows
this script and nothing else, and the script never makes HTML of a text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from pathlib import Path

from profiles import page_code, page_data, page_events, page_memory, page_path, stacks
from profiles.events import Trace
from profiles.export import Export, ExportError
from profiles.page_columns import Columns
from profiles.page_data import KINDS, OF_TREE, Strings, Tree
from profiles.stacks import Names
from profiles.table_names import TableNames


CODE = Path(__file__).resolve().parents[1] / "page"
MAIN = "main.js"
IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function|class|const|let)", re.MULTILINE)
LEVEL = 6


def read(name: str) -> str:
    try:
        return (CODE / name).read_text("utf-8")
    except OSError as error:
        raise ExportError(f"{CODE / name}: {error.strerror}") from error


def script(name: str = MAIN, seen: set[str] | None = None) -> str:
    """Returns a module behind those that it imports, as one text without imports and exports."""
    seen = set() if seen is None else seen
    seen.add(name)
    text = read(name)
    before = [script(other, seen) for other in IMPORT.findall(text) if other not in seen]
    return "".join(before) + EXPORT.sub("", IMPORT.sub("", text))


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def pack(data: dict, columns: Columns) -> bytes:
    """Returns the bytes of the JSON's length, the JSON and the columns, compressed, in base64."""
    head = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
    raw = len(head).to_bytes(4, "little") + head + columns.data
    return base64.b64encode(zlib.compress(raw, LEVEL))


def write(data: dict, columns: Columns) -> bytes:
    """Returns the page. The title is set by the script, so no text of an export is HTML."""
    code, style = script(), read("page.css")
    policy = f"default-src 'none'; script-src {digest(code)}; style-src {digest(style)}"
    page = read("page.html")
    for mark, text in ("POLICY", policy), ("STYLE", style), ("SCRIPT", code):
        page = page.replace(f"@{mark}@", text)
    before, _, after = page.partition("@DATA@")
    return before.encode() + pack(data, columns) + after.encode()


def read_run(export: Export, names: Names, tree: Tree, columns: Columns) -> dict:
    """Returns what a page shows of one export."""
    both = {"cpu": stacks.read(export, takes=True), "waits": stacks.read(export, waits=True)}
    named = TableNames(export, names, both["cpu"])
    found: dict = {
        "meta": page_data.meta(export),
        "lines": page_data.first_lines(export, named),
        "limits": page_data.limits(export, list(both.values())),
        "tables": page_data.tables(export, named),
        "code": page_code.write(both["cpu"], names, tree),
    }
    graphs = {name: page_data.graph(one, names, named, tree, columns) for name, one in both.items()}
    if segments := page_path.read(export, named):
        rows = page_path.rows(export, named)
        found["path"] = page_path.summary(rows, segments, both["waits"], names)
        found["limits"] = page_path.limits(rows) + found["limits"]
        graphs["path"] = page_path.graph(segments, rows, tree, columns)
    memory, damaged = page_memory.write(export, columns)
    return found | {"graphs": graphs, "memory": memory, "limits": damaged + found["limits"]}


def make(exports: list[Export], names: list[Names], trace: Trace | None) -> bytes:
    """
    Returns the page of an export, and of an older one that it is compared with, if given. trace:
    the events of the first one.
    """
    strings, columns = Strings(), Columns()
    tree = Tree(strings)
    runs = [read_run(export, named, tree, columns) for export, named in zip(exports, names)]
    events = page_events.write(trace, strings, columns) if trace else None
    runs[0]["limits"] = page_events.limits(events) + runs[0]["limits"]
    nodes, frames = tree.sort()
    for run in runs:
        run["code"] = {frames[frame]: code for frame, code in run["code"].items()}
        for graph in run["graphs"].values():
            graph["node"] = columns.add(nodes[node] for node in graph["node"])
            for key in OF_TREE[1:]:
                graph[key] = columns.add(frames[frame - 1] + 1 for frame in graph[key])
    changes = page_data.changes(exports[1], exports[0]) if len(exports) > 1 else None
    data = {"kinds": KINDS, "runs": runs, "changes": changes, "tree": tree.write(columns)}
    return write(data | {"events": events, "strings": strings.all()}, columns)
