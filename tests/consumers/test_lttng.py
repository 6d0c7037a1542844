# SPDX-License-Identifier: BSD-2-Clause
"""babeltrace2 and lttng-analyses read the events as LTTng's. They agree with tables and perf."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from conftest import ROOT, run
from profiles import events, export
from test_events import NOT_BACK, SYMBOLS, boot, ns_of, perf_data, timehist

READS = (0, 17, 19)  # read, pread64, readv


@pytest.fixture(scope="module")
def traced(tmp_path_factory) -> Path:
    """Returns the export of a demo that loses no event."""
    return boot(tmp_path_factory.mktemp("lttng") / "run.lego", "-t 4 /bin/wordcount")


@pytest.fixture(scope="module")
def ctf(traced) -> Path:
    path = traced.with_name("ctf")
    run(ROOT / "scripts/legoprof", "ctf", traced, *SYMBOLS, "-o", path)
    return path


def analyse(name: str, ctf: Path, *options: str) -> str:
    return run(f"lttng-{name}", "--no-progress", "--gmt", *options, ctf)


def returned(traced: Path) -> Counter[str]:
    """Returns the calls that have returned, by name."""
    rows = export.load(traced).rows("strace.json")
    found = {row["syscall"].removeprefix("sys_"): row["calls"] - row["in_flight"] for row in rows}
    found["execve"] -= 1  # the kernel's own, of the first program
    return +Counter({name: nr for name, nr in found.items() if name not in NOT_BACK})


def test_babeltrace_reads_all_events(traced, ctf):
    text = run("babeltrace2", ctf)
    found = re.findall(r"^\[([\d:.]+)\] \([^)]*\) (\w+): ", text, re.M)
    known = [(ns_of(at), name) for at, name in found if not name.startswith("lttng_statedump")]
    trace = events.read(export.load(traced))
    expected = [(event.ns, trace.format(event).name) for event in trace.in_order()]
    assert Counter(ns for ns, _ in known) == Counter(ns for ns, _ in expected)
    for prefix, name in ("syscall_entry_", "sys_enter"), ("syscall_exit_", "sys_exit"):
        nr = sum(1 for _, one in known if one.startswith(prefix))
        assert nr == sum(1 for _, one in expected if one == name) > 50


def test_calls(traced, ctf):
    """lttng-syscallstats counts the calls of the table. It names some as Linux's functions."""
    text = analyse("syscallstats", ctf)
    calls: Counter[str] = Counter()
    for name, nr in re.findall(r"^ - (\w+) +(\d+) +[\d.]+ ", text, re.M):
        calls[re.sub("^new(?=[fl]?stat$|uname$)", "", name)] += int(nr)
    expected = returned(traced)
    expected.pop("execve", None)  # no event says which thread runs before the first switch
    calls.pop("execve", None)
    assert calls == expected and calls.total() > 50


def test_cpu_time(traced, ctf, perf):
    """lttng-cputop has the shares that perf sched timehist computes."""
    text = analyse("cputop", ctf, "--limit", "1000")
    begin, end = map(ns_of, re.findall(r"Timerange: \[\S+ ([\d:.]+), \S+ ([\d:.]+)\]", text)[0])
    rows = re.findall(r" ([\d.]+) % +\S+ \((\d+)\)", text)
    shares = {int(tid): float(share) for share, tid in rows}
    assert "Total CPU Usage: 100.00%" in text
    for tid in 2, 3, 4:  # they begin and end within the trace
        run_ns = timehist(traced, perf)[tid]["run"]
        assert shares[tid] == pytest.approx(100 * run_ns / (end - begin), abs=0.05) and run_ns > 0


def test_bytes_read(traced, ctf):
    text = analyse("iousagetop", ctf)
    (part,) = re.findall(r"Per-file I/O Read.*\n#+\n((?:.+\n)+)", text)
    shown = sum(float(kib) for kib in re.findall(r" ([\d.]+) KiB", part))
    trace = events.read(export.load(traced))
    nr_bytes = 0
    for event in trace.in_order():
        if trace.format(event).name == "sys_exit":
            values = trace.format(event).values(event.data)
            nr_bytes += max(values["ret"], 0) * (values["id"] in READS)
    assert shown == pytest.approx(nr_bytes / 1024, abs=0.01) and shown > 100


def test_wakeups(traced, ctf, perf):
    """lttng-schedtop finds the delays after wakeups that perf does, which rounds to 1 us."""
    text = analyse("schedtop", ctf, "--limit", "1000")
    row = r"^\[.*\] +([\d.]+) +(?:\d+|Unknown.*?) +\d+ +\S+ \((\d+)\) "
    delays: Counter[int] = Counter()
    for delay, tid in re.findall(row, text, re.M):
        delays[int(tid)] += round(float(delay) * 1000)
    text = perf("sched", "timehist", "-i", perf_data(traced))
    found: Counter[int] = Counter()
    row = r"^ +[\d.]+ \[\d+\] +\S+\[(\d+)[/\d]*\] +[\d.]+ +([\d.]+) "
    for tid, delay in re.findall(row, text, re.M):
        found[int(tid)] += round(float(delay) * 1e6)
    for tid in 2, 3, 4:
        assert delays[tid] == pytest.approx(found[tid], abs=5000) and found[tid] > 10_000
