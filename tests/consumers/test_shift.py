# SPDX-License-Identifier: BSD-2-Clause
"""If 2 % of the time moves from one function to another, all tools that compare runs report it."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from conftest import KERNEL, legoprof, run, symbols
from profiles import export, merge
from profiles.symbols import Symbols

FROM, TO = "inode_write", "page_alloc"
LONGER = 50  # all samples are multiplied by this, so that 2 % cannot be chance


def move(found: export.Export, nr: int) -> None:
    """Moves samples from FROM to TO, in the stacks and in the heatmap."""
    kernel = Symbols(KERNEL)
    table = {row["function"]: row for row in found.rows("heatmap.json")}
    for name, change in (FROM, -nr), (TO, nr):
        table[name]["samples"] += change
        for row in found.rows("samples.json"):
            if row["kernel"] and kernel.function(int(row["kernel"][0], 16))[1] == name:
                step = max(change, -row["samples"])
                row["samples"] += step
                change -= step
        assert not change


@pytest.fixture(scope="module")
def shifted(lego, tmp_path_factory) -> tuple[Path, Path, int, int]:
    """Returns (run before the shift, run after it, number of samples, number of moved ones)."""
    paths, directory = [], tmp_path_factory.mktemp("shift")
    for name in "old", "new":
        found = export.load(lego)
        found.meta["clock"] = "TSC"
        for row in found.rows("samples.json") + found.rows("heatmap.json"):
            row["samples"] *= LONGER
        total = sum(row["samples"] for row in found.rows("samples.json"))
        nr = round(total * 0.02)
        if name == "new":
            move(found, nr)
        paths.append(directory / f"{name}.lego")
        paths[-1].write_bytes(merge.write(found))
    return *paths, total, nr


def test_legoprof_diff(shifted):
    old, new, *_ = shifted
    lines = legoprof("diff", old, new).splitlines()
    found = re.compile(r"(\w+): [\d.]+ -> [\d.]+ % of samples \(([-+][\d.]+) \+-[\d.]+\)")
    assert [found.fullmatch(line).groups() for line in lines] == [(FROM, "-2.00"), (TO, "+2.00")]


def test_perf_diff(shifted, write, perf):
    paths = [write("perf-data", source=path) for path in shifted[:2]]
    text = perf("diff", "--sort", "symbol", *paths)
    lines = re.findall(r"^ +[\d.]+% +([-+][\d.]+)% +\[.\] (\w+)", text, re.MULTILINE)
    moved = {name: change for change, name in lines if change not in ("+0.00", "-0.00")}
    assert moved == {FROM: "-2.00", TO: "+2.00"}


def test_pprof_diff(shifted, write):
    old, new = (write("pprof", source=path) for path in shifted[:2])
    nr = shifted[3]
    options = "-sample_index=samples", "-top", "-diff_base", old
    text = run("go", "tool", "pprof", *options, KERNEL, new)
    lines = re.findall(r"^ *(-?\d+) +\S+ +\S+ +\S+ +\S+ +(\w+)$", text, re.MULTILINE)
    assert {name: int(change) for change, name in lines if int(change)} == {FROM: -nr, TO: nr}


def test_flame_graph_diff(shifted, tmp_path):
    """The titles of leaves have their change in percent of all time, which adds up to 2 %."""
    old, new, total, nr = shifted
    picture = tmp_path / "diff.svg"
    legoprof("flamegraph", old, new, "-o", picture, *symbols())
    found: Counter[str] = Counter()
    for name, change in re.findall(r"<title>(\w+) \([^)]*; ([-+][\d.]+)%\)", picture.read_text()):
        found[name] += float(change)
    assert found[FROM] == pytest.approx(-2, abs=0.05)
    assert found[TO] == pytest.approx(2, abs=0.05)


def test_difffolded(shifted, write):
    """difffolded.pl reads folded stacks from logs with CR LF, and prints no warning."""
    script = shutil.which("difffolded.pl")
    if not script:
        pytest.skip("no difffolded.pl in PATH: neither Debian nor npm has it")
    paths = []
    for path in shifted[:2]:
        log = path.with_suffix(".log")
        log.write_bytes(b"boot\r\n" + path.read_bytes().replace(b"\n", b"\r\n"))
        paths.append(write("folded", source=log))
    found: Counter[str] = Counter()
    for line in run("sh", "-c", 'exec perl "$0" "$@" 2>&1', script, *paths).splitlines():
        stack, old, new = line.rsplit(" ", 2)
        found[stack.rpartition(";")[2]] += int(new) - int(old)
    assert {name: change for name, change in found.items() if change} == {
        FROM: -shifted[3],
        TO: shifted[3],
    }
