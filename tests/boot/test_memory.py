# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's memory by the code that allocated it: tables, their sums, and where they are."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter

import pytest

import harness

sys.path.insert(0, str(harness.ROOT / "tests/accuracy"))
import truth  # noqa: E402

SCRIPT = """\
cat /proc/profile/memory
echo JSON
cat /proc/profile/memory.json
"""
KINDS = ("pages", "kmalloc")
PLACE = re.compile(r"\w+ \(((?:kernel|arch|include)/[\w/.]+\.[ch]):(\d+)\)")


@pytest.fixture
def files(boot, tmp_path):
    image = harness.script_image(tmp_path, SCRIPT)
    return boot(None, initrd=image, append="profile.on_exit=none").log


def tables_of(lines) -> dict[str, list[dict]]:
    """Returns the rows of a JSON file by the titles of their tables."""
    tables: dict[str, list[dict]] = {}
    for line in lines:
        row = json.loads(line)
        if "table" in row:
            rows = tables.setdefault(row["table"], [])
        elif "note" not in row:
            rows.append(row)
    return tables


def json_tables(log: str) -> dict[str, list[dict]]:
    lines = log.split("JSON")[1].splitlines()
    return tables_of(line.strip() for line in lines if line.strip().startswith("{"))


@pytest.mark.parametrize("kind", KINDS)
def test_tables(files, kind):
    """Totals are the sums of the rows, and of the sizes; places are lines of the source."""
    tables = json_tables(files)
    rows, sizes = tables[f"Kernel Memory: {kind} (all)"], tables[f"Kernel Memory: {kind} by size"]
    for key in ("live_bytes", "live_objects", "allocated_bytes", "allocated_objects"):
        assert sum(row[key] for row in rows) > 0
    for key in ("allocated_objects", "allocated_bytes"):
        # The file's own tables allocate while they are printed: the two are snapshots of a moment.
        assert sum(row[key] for row in rows) == sum(row[key] for row in sizes)
    assert [row["live_bytes"] for row in rows] == sorted(
        (row["live_bytes"] for row in rows), reverse=True
    )
    for row in rows:
        path, line = re.fullmatch(PLACE, row["place"]).groups()
        text = (harness.ROOT / path).read_text().splitlines()
        near = " ".join(text[int(line) - 1 : int(line) + 3])
        assert re.search(r"page_alloc|kmalloc|kzalloc|kstrdup|os_z?alloc", near), row["place"]
    for row in sizes:
        assert row["live_bytes"] == row["live_objects"] * row["size_bytes"]
        assert row["allocated_bytes"] == row["allocated_objects"] * row["size_bytes"]


def test_text_has_the_allocators_counts(files):
    """On one CPU, reading the file allocates nothing between the sum and the allocator's count."""
    found = re.findall(r"live in all: (\d+) bytes; the allocator counts (\d+)", files)
    assert len(found) == 4 and all(ours == theirs for ours, theirs in found)


GROWTH = """\
mkdir -p /tmp
echo mark > /proc/profile/memory_growth
head -c 1000000 /dev/zero > /tmp/left
cat /proc/profile/memory_growth
echo JSON
echo mark > /proc/profile/memory_growth
cat /proc/profile/memory_growth.json
"""


def test_growth_since_the_mark(boot, tmp_path):
    """The first row is what a program has left behind: a file. A new mark forgets it."""
    image = harness.script_image(tmp_path, GROWTH)
    log = boot(None, initrd=image, append="profile.on_exit=none").log
    before, after = log.split("JSON")[:2]
    table = before.split("Kernel Memory: pages since the mark")[1].splitlines()
    nr_bytes, _, nr, *_, place, _ = table[3].split()
    assert place == "fill_hole" and int(nr_bytes) == 4096 * int(nr)
    assert 1_000_000 <= int(nr_bytes) < 1_100_000
    rows = tables_of(line.strip() for line in after.splitlines() if line.strip().startswith("{"))
    assert "Kernel Memory: kmalloc since the mark" in rows
    left = rows["Kernel Memory: pages since the mark"]
    assert sum(row["live_bytes"] for row in left if row["place"].startswith("fill_hole")) < 100_000


def test_report_of_the_machine(boot, tmp_path):
    image = harness.script_image(tmp_path, "cat /proc/profile/report")
    log = boot(None, initrd=image, append="profile.on_exit=none").log
    assert all(f"Kernel Memory: {kind} (top #4)" in log for kind in KINDS)
    assert "by size" not in log


def test_report_of_a_process_has_it_only_if_wide(boot):
    assert "Kernel Memory" not in boot("hello").log
    assert "Kernel Memory" not in boot("hog-threads").log  # a part of what the program takes
    log = boot("hello", append="profile.report=wide").log
    assert all(f"Kernel Memory: {kind} by size" in log for kind in KINDS)


GROWTH_ROW = re.compile(r"\[.*\] +(\d+) +(\d+\.\d\d) +(\d+) +(\d+) +(\d+)  (\w+) \(([\w/.]+):\d+\)")


def first_growth(log: str) -> tuple[str, int, int]:
    """Returns of the first row the place, and the bytes at the peak and now."""
    table = log.split("Kernel Memory: growth (top #4)")[1].splitlines()
    peak, _, live, _, _, function, path = GROWTH_ROW.fullmatch(table[4]).groups()
    return f"{function} {path}", int(peak), int(live)


def test_growth_that_is_gone(boot):
    """200 full pipes: 61,000 bytes in 15 pages each, and a part of one. They are closed again."""
    place, peak, live = first_growth(boot("hog-pipes", icount=True).log)
    assert place == "put_in kernel/fs/pipe.c" and live == 0
    assert 0.9 * 200 * 61000 < peak <= 200 * 16 * 4096


def test_growth_in_files(boot):
    """What a program leaves behind in the file system is a row, beside its own memory."""
    place, peak, live = first_growth(boot("hog-file", icount=True).log)
    assert place == "fill_hole kernel/fs/data.c" and live >= peak > 0.9 * (24 << 20)


def test_growth_by_page_tables(boot):
    place, peak, _ = first_growth(boot("hog-sparse", icount=True).log)
    assert place == "table_alloc arch/x86/mm/pgtable.c" and peak > 14 << 20


def test_leak_of_the_kernel(boot, tmp_path):
    script = "for i in $(seq 500); do echo > /proc/leak; done"
    image = harness.script_image(tmp_path, script)
    append = "leak=4000 profile.on_exit=run"
    log = boot(None, initrd=image, append=append, variant="functions").log
    place, peak, live = first_growth(log)
    assert place == "forget_request tests/kernel/planted_leak.c"
    assert live == 500 * 4096 and live - (1 << 20) <= peak <= live


WORK = """\
mkdir -p /tmp
mkfifo /tmp/pipe
exec 3<>/tmp/pipe
{begin}
head -c 1000000 /dev/zero > /tmp/left
head -c 50000 /dev/zero >&3
for i in 1 2 3 4 5 6 7 8; do mkdir /tmp/d$i; echo > /tmp/d$i/file; done
{end}
"""
ALLOCATORS = ("page_alloc", "kmalloc", "kzalloc", "kstrdup")


def observe_work(tmp_path, window: tuple[str, str], **commands: str):
    """
    Runs commands that allocate, between a first and a last one that prints JSON. Returns what
    QEMU's plugin has counted between two functions of the kernel, and the tables.
    """
    image = harness.script_image(tmp_path, WORK.format(**commands))
    append = "profile.on_exit=none init=/init"
    kernel = harness.BUILD / "vmlinux"
    counted, result = truth.observe(kernel, image, "timer", append, window=window)
    lines = (line.strip() for line in result.log.splitlines())
    return counted, tables_of(line for line in lines if re.match(r'{"(live|freed|table)', line))


def test_counts_are_those_of_a_plugin(tmp_path):
    """
    QEMU's plugin counts calls of the allocators' entry points by caller. Each place that has grown
    since the mark has as many allocations, unless the compiler has inlined its function: of the two
    places with most pages, the caller is known.
    """
    commands = {"begin": "echo mark > /proc/profile/memory_growth"}
    commands["end"] = "cat /proc/profile/memory_growth.json"
    counted, tables = observe_work(tmp_path, ("memory_mark", "memory_growth"), **commands)
    found: Counter[str] = Counter()
    paths: dict[str, set[str]] = {}
    for row in (row for rows in tables.values() for row in rows):
        function, place = row["place"].split()
        found[function] += row["allocated_objects"]
        paths.setdefault(function, set()).add(place.split(":")[0])
    calls: Counter[str] = Counter()
    for (caller, name), nr in counted.calls.items():
        calls[caller] += nr if name in ALLOCATORS else 0
    for place, caller in ("fill_hole", "get_page"), ("user_page_alloc", "mm_fault"):
        theirs = sum(counted.calls[one, "page_alloc"] for one in (place, caller))
        assert found[place] == theirs > 100, place
    compared = {
        place: (nr, calls[place])
        for place, nr in found.items()
        if calls[place] and len(paths[place]) == 1  # two functions may have the same name
    }
    assert len(compared) >= 5
    assert all(ours == theirs for ours, theirs in compared.values()), compared
