# SPDX-License-Identifier: BSD-2-Clause
"""With all profilers off, each table has the same cells as text and as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import report
import report_lines
import report_strace
from report_points import POINT_WIDE
from harness import Booter
from test_heatmap import CALL_ROW, CPU_ROW, FUNCTION_ROW, TASK_ROW, tables_in
from test_heatmap_chain import PLACE_ROW

PROCESS_ROW = re.compile(
    r"^ *(\d+\.\d\d) +(\d+\.\d{9}) +(\d+\.\d{9}) +(\d+) +(\d+) +(\d+) +(\d+|-) (\S.*)$"
)
STRETCH_HEAD = "ns  CPU     tid  task             turned on again at"
STRETCH_ROW = re.compile(r"^ *(\d+) +(\d+) +(\d+)  (.{15})  ([0-9a-f]{16})  (\S+)$")
NAMES = ["report", "strace", "function", "self", "waits", "wakers"]
JSON_NAMES = "strace processes heatmap functions calls tasks cpus points".split()
JSON_NAMES += "function irqs_off self waits waits_calls waits_tasks waits_locks".split()
Row = dict[str, Any]


class Files:
    """The files that the program printed: lines by file, and JSON rows by table."""

    def __init__(self, log: str):
        lines = [line.rstrip("\r") for line in log.splitlines()]
        self.texts = {
            name: [line[len(name) + 1 :] for line in lines if line.startswith(f"{name} ")]
            for name in NAMES + [f"{name}.json" for name in JSON_NAMES]
        }
        self.rows: dict[str, list[Row]] = {}
        self.notes: dict[str, list[str]] = {}
        self.titles: dict[str, str] = {}
        for name in JSON_NAMES:
            title, *objects = [json.loads(line) for line in self.texts[f"{name}.json"]]
            self.titles[name] = title["table"]
            self.notes[name] = [found["note"] for found in objects if "note" in found]
            self.rows[name] = [found for found in objects if "note" not in found]
            for row in self.rows[name]:
                assert row.keys() == self.rows[name][0].keys()
                for value in row.values():
                    assert isinstance(value, (int, str, dict, type(None)))
                    assert not isinstance(value, int) or abs(value) <= 1 << 53

    def report(self) -> report.Report:
        log = "\n".join(f"[0.0] {line}" for line in self.texts["report"])
        (found,) = report.parse_all(report_lines.Lines(log))
        return found


@pytest.fixture(scope="module")
def files(builds) -> Files:
    append = "profile.report=wide profile.top=all profile.on_exit=none"
    log = Booter(builds, "test_tables")("tables", smp=2, append=append, timeout=240).log
    assert "PASS: tables" in log
    return Files(log)


def printable(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text)


def address(text: str) -> str:
    return f"0x{text}"


def bound(ns: int | None) -> int | None:
    """Returns a bound as text tables print it: rounded up to at most four digits, or to seconds."""
    unit = 1
    while ns is not None and ns > 9999 and unit < 1_000_000_000:
        ns, unit = -(-ns // 1000), unit * 1000
    return None if ns is None else ns * unit


def test_titles_and_scopes(files):
    text = [line for name in NAMES for line in files.texts[name]]
    assert files.titles["irqs_off"] == "Longest stretches with interrupts off"
    for name in set(JSON_NAMES) - {"irqs_off"}:
        assert files.titles[name] in text
    assert "Calls of: all processes" in files.notes["strace"]
    assert any(note.startswith("samples: ") for note in files.notes["heatmap"])
    assert any(re.match("sampling is off since ", note) for note in files.notes["heatmap"])


def rows_below(lines: list[str], title: str) -> tuple[list[str], str]:
    """Returns the rows of a table, and its total."""
    rules = [i for i, line in enumerate(lines) if report_lines.DASHES.match(line)]
    begin, end = [i for i in rules if i > lines.index(title)][:2]
    return lines[begin + 1 : end], lines[end + 1]


@pytest.mark.parametrize("name", ["strace", "self"])
def test_strace(files, name):
    lines, total = rows_below(files.texts[name], "Kernel strace")
    rows = files.rows[name]
    sums = {key: sum(row[key] for row in rows) for key in ("time_ns", "calls", "errors", "cpu_ns")}
    found = report_strace.parse_strace_total(total, is_wide=True)
    assert found.ns == sums["time_ns"]
    assert (found.nr_calls, found.nr_errors) == (sums["calls"], sums["errors"])
    assert found.wide.cpu_ns == sums["cpu_ns"]
    assert len(lines) == len(rows) > 5
    for line, row in zip(lines, rows):
        match = report_strace.STRACE_ROW.match(line)
        text = report_strace.to_strace_row(match)
        report_strace.parse_wide_row(text)
        assert text.percent == report_lines.percent(row["time_ns"], sums["time_ns"])
        assert {
            "time_ns": text.ns,
            "us_per_call": text.usecs_per_call,
            "calls": text.nr_calls,
            "errors": text.nr_errors,
            "syscall": text.name,
            "cpu_ns": text.wide.cpu_ns,
            "p50_bound_ns": text.wide.p50_ns,
            "p99_bound_ns": text.wide.p99_ns,
            "max_ns": text.wide.max_ns,
            "in_flight": text.wide.nr_in_flight,
            "errors_by_name": text.wide.errors,
        } == {**row, **{key: bound(row[key]) for key in ("p50_bound_ns", "p99_bound_ns")}}
    by_name = {row["syscall"]: row for row in rows}
    assert list(by_name["sys_close"]["errors_by_name"]) == ["EBADF"]
    assert list(by_name["sys_access"]["errors_by_name"]) == ["ENOENT"]


def test_processes(files):
    lines, _ = rows_below(files.texts["strace"], "Kernel strace by process")
    rows = files.rows["processes"]
    total_ns = sum(row["time_ns"] for row in rows)
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows):
        share, seconds, cpu, *counts, pid, name = PROCESS_ROW.match(line).groups()
        assert share == report_lines.percent(row["time_ns"], total_ns)
        assert {
            "time_ns": report_lines.to_ns(seconds),
            "cpu_ns": report_lines.to_ns(cpu),
            **dict(zip(("calls", "errors", "threads"), map(int, counts))),
            "pid": None if pid == "-" else int(pid),
            "process": name,
        } == {**row, "process": printable(row["process"])}
    names = [row["process"] for row in rows]
    assert 'a"b\\c\n\x01\xe4;d' in names and "[gone]" in names


def test_heatmap(files):
    heatmap = files.report().heatmap
    assert sum(row["samples"] for row in files.rows["heatmap"]) == heatmap.total[0] > 100
    assert [
        {"address": address(row.address), "function": row.name, "samples": row.nr}
        for row in heatmap.rows
    ] == files.rows["heatmap"]


def test_functions(files):
    lines = tables_in(files.texts["report"])["function"]
    rows = [FUNCTION_ROW.match(line).groups() for line in lines]
    assert [
        {
            "address": address(row[0]),
            "function": row[1],
            "samples": int(row[2]),
            "inclusive_samples": int(row[4]),
            "irqs_off_samples": int(row[6]),
        }
        for row in rows
    ] == files.rows["functions"]
    assert len(rows) > 5


def test_calls(files):
    """JSON repeats the call in each row. The row with the sum of a call has no function."""
    lines = tables_in(files.texts["report"])["system call"]
    call, rows = None, []
    for line in lines:
        name, nr, _, of_call = CALL_ROW.match(line).groups()
        if line[:20].strip():
            call, nr_call, function = name, int(nr), None
        else:
            function = name
        assert of_call == report_lines.percent(int(nr), nr_call)
        rows.append({"syscall": call, "function": function, "samples": int(nr)})
    assert rows == files.rows["calls"]
    assert "sys_getppid" in {row["syscall"] for row in rows}


def test_tasks(files):
    keys = "pid tid name samples user_samples kernel_samples irq_samples idle_samples".split()
    rows = []
    for line in tables_in(files.texts["report"])["task"]:
        found = TASK_ROW.match(line).groups()
        cells = [value if i == 2 else int(value) for i, value in enumerate(found) if i != 4]
        rows.append(dict(zip(keys, cells)))
    assert rows == files.rows["tasks"]
    assert {row["samples"] for row in rows} and len(rows) > 1


def test_cpus(files):
    lines = tables_in(files.texts["report"])["CPU"]
    rows = [[int(cell) for cell in CPU_ROW.match(line).groups()] for line in lines]
    assert rows == [list(row.values()) for row in files.rows["cpus"]]
    assert [row["cpu"] for row in files.rows["cpus"]] == [0, 1]


def test_function(files):
    """The file shows the instructions of cpu_idle() by default."""
    lines, _ = rows_below([*files.texts["function"], ""], files.titles["function"])
    places = [PLACE_ROW.match(line).groups() for line in lines]
    assert [
        {
            "address": address(start),
            "place": f"+0x{offset}" if int(offset, 16) else "+0",
            "samples": int(nr),
            "irqs_off_samples": int(irqs_off),
        }
        for start, offset, nr, _, irqs_off in places
    ] == files.rows["function"]
    assert files.titles["function"].startswith("Kernel Heatmap of cpu_idle: ")
    assert sum(row["samples"] for row in files.rows["function"]) > 10


def test_irqs_off(files):
    """Stretches are found by late timer interrupts, so a fast machine may have none."""
    lines = files.texts["report"]
    begin = next((i for i, line in enumerate(lines) if line.strip() == STRETCH_HEAD), len(lines))
    end = begin + 1 + len(files.rows["irqs_off"])
    matches = [STRETCH_ROW.match(line) for line in lines[begin + 1 : end]]
    assert [
        {
            "at_least_ns": int(match[1]),
            "cpu": int(match[2]),
            "tid": int(match[3]),
            "task": match[4].rstrip(),
            "address": address(match[5]),
            "place": match[6],
        }
        for match in matches
    ] == [{**row, "task": printable(row["task"])} for row in files.rows["irqs_off"]]
    assert not any(map(STRETCH_ROW.match, lines[end:]))
    assert "lower bounds; idle left out" in files.notes["irqs_off"]
    assert any(note.startswith("sampling: APIC timer, ") for note in files.notes["irqs_off"])


def test_points(files):
    points = files.report().points
    rows = files.rows["points"]
    assert len(points.rows) == len(rows) > 0
    wide = dict(zip(POINT_WIDE, ("avg_net_ns", "avg_oncpu_ns", "min_ns", "p50_bound_ns")))
    wide |= {"p99.ns": "p99_bound_ns", "max.ns": "max_ns"}
    for text, row in zip(points.rows, rows):
        assert sum(row.pop("pairs_by_log2_cycles").values()) == row["pairs"]
        oncpu_ns = row.pop("oncpu_ns")
        assert oncpu_ns is None or -(-oncpu_ns // row["pairs"]) == row["avg_oncpu_ns"]
        assert {
            "status": "on" if text.enabled else "off",
            "point": text.name,
            "total_ns": text.ns,
            "pairs": text.nr,
            "avg_ns": text.avg_ns,
            **{key: text.wide[heading] for heading, key in wide.items()},
        } == row


def test_waits(files):
    table, rows = files.report().waits, files.rows["waits"]
    assert table.top is None and len(table.rows) == len(rows) > 3
    for text, row in zip(table.rows, rows):
        assert {
            "wait_ns": text.ns,
            "ready_ns": text.ready_ns,
            "waits": text.nr,
            "longest_ns": text.longest_ns,
            "in_flight": 0,
            "what": text.what,
            "function": text.where,
            "waker": printable(text.waker),
        } == {**row, "waker": printable(row["waker"])}
    assert sum(row["waits"] for row in rows) == table.nr


@pytest.mark.parametrize(
    "view, name, columns",
    [
        ("system call", "waits_calls", ["syscall"]),
        ("task", "waits_tasks", ["name", "pid"]),
        ("lock", "waits_locks", ["lock", "releaser"]),
    ],
)
def test_views_of_waits(files, view, name, columns):
    table, rows = files.report().wait_views[view], files.rows[name]
    assert table.top is None and len(table.rows) == len(rows)
    for text, row in zip(table.rows, rows):
        assert [row["wait_ns"], row["ready_ns"], row["waits"], row["longest_ns"]] == [
            text.ns,
            text.ready_ns,
            text.nr,
            text.longest_ns,
        ]
        texts = [text.what, text.waker][: len(columns)]
        assert texts == [printable(str(row[column])) for column in columns]
    assert sum(row["waits"] for row in rows) == table.nr
    if view != "lock":
        assert table.nr == files.report().waits.nr and len(rows) > 1


FOLDED = re.compile(r"^[^ ;]*(?:;[^;]+)* (\d+)$")


def test_folded_waits(files):
    """The nanoseconds of all call chains add up to the table's time."""
    total_ns = sum(row["wait_ns"] for row in files.rows["waits"])
    for name in ("waits", "wakers"):
        lines = files.texts[name]
        times = [int(FOLDED.match(line)[1]) for line in lines]
        assert len(times) > 3
        assert abs(sum(times) - total_ns) <= len(times) + len(files.rows["waits"])
    assert any(";--;" in line for line in files.texts["wakers"])
    assert not any(";--;" in line for line in files.texts["waits"])
