# SPDX-License-Identifier: BSD-2-Clause
"""Programs that take much memory: the first lines say for what, the first row which code."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

import harness
import report

ON = "profile.memory_chains=on"
# By program: the first row of the table, as kind and place, and the largest part of `memory:`.
CAUSES = {
    "slow-leak": ("heap", "make_answer < (handle_request|main)", "heap"),
    "hog-cache": ("heap", "remember_answer < answer_request", "heap"),
    "hog-churn": ("anonymous", "decode_frame < main", None),
    "hog-file": ("files", "scan_log < main", "files"),
    "hog-peak": ("anonymous", "build_index < main", "anonymous"),
    "hog-threads": ("stacks", "sort_block < run_sorter", "stacks"),
}


def memory_of(log: str) -> report.Report:
    assert report.check_log(log) == []
    found = [one for one in report.parse(log) if one.memory]
    return found[-1]


@pytest.mark.parametrize("program", CAUSES)
def test_the_first_row_is_the_cause(boot, program):
    kind, place, part = CAUSES[program]
    found = memory_of(boot(program, icount=True, append=ON).log)
    row = found.memory.rows[0]
    assert row.kind == kind and re.fullmatch(place, row.place), found.memory.rows
    assert row.pages > 0.8 * found.memory.pages
    if part:
        assert next(iter(found.summary.peak_parts)) == part


def test_every_page_is_in_the_table(boot):
    """The table has a page for each fault that made one: with page tables, and what exec made."""
    found = memory_of(boot("slow-leak", icount=True, append=f"{ON} profile.top=all").log)
    pages = sum(row.pages for row in found.memory.rows if row.kind != "page tables")
    assert pages == sum(found.summary.fault_kinds[kind] for kind in ("anonymous", "file", "copied"))


def test_memory_at_the_peak(boot):
    """A peak that is gone is told, and what was mapped again and again counts once."""
    found = memory_of(boot("hog-peak", icount=True, append=ON).log)
    assert 11 < found.summary.peak_parts["anonymous"] < 12  # 3,000,000 numbers of 4 bytes
    found = memory_of(boot("hog-churn", icount=True, append=ON).log)
    assert found.memory.pages > 300 * 64 and found.summary.peak_mib < 1


def test_kernel_memory_at_the_peak(boot):
    """Each of 49 threads has a kernel stack of 16 KiB and a descriptor, though all have ended."""
    parts = memory_of(boot("hog-threads", icount=True, append=ON).log).summary.peak_parts
    assert 49 * 16 <= parts["kernel"] * 1024 + 51 < 49 * 24


def test_page_tables(boot):
    """One page in each 2 MiB is touched and dropped. Its table remains."""
    found = memory_of(boot("hog-sparse", icount=True, append=ON).log)
    assert next(iter(found.summary.peak_parts)) == "page tables"
    assert found.summary.peak_parts["page tables"] > 15
    rows = {row.kind: row for row in found.memory.rows[:2]}
    assert rows["page tables"].place == rows["anonymous"].place == "mark_block < main"
    assert rows["page tables"].pages >= 4000


def test_forks_of_a_large_process(boot):
    """The copies are of the children's function, and the tables of their parent's."""
    found = memory_of(boot("hog-fork", icount=True, append=f"{ON} profile.on_exit=run").log)
    copied, made = found.memory.rows[:2]
    assert (copied.kind, copied.place) == ("anonymous, copied", "change_prices < main")
    assert copied.pages >= 4 * 4096 * 0.99
    assert (made.kind, made.place) == ("anonymous", "load_prices < main")
    assert made.pages == pytest.approx(4096, abs=8)


SCRIPT = """\
echo on > /proc/profile/memory_chains
hog-cache
cat /proc/profile/memory_stacks
echo JSON
cat /proc/profile/memory_stacks.json
echo off > /proc/profile/memory_chains
cat /proc/profile/memory_chains
"""


def test_files(boot, tmp_path):
    """Folded stacks and records have the same bytes."""
    image = harness.script_image(tmp_path, SCRIPT, ("hog-cache",))
    log = boot(None, initrd=image, append="profile.on_exit=hog-cache").log
    lines = [line.strip() for line in log.splitlines()]
    folded = [line for line in lines if re.fullmatch(r"hog-cache;.*;\[heap\] \d+", line)]
    assert any("main;answer_request;remember_answer;" in line for line in folded)
    rows = [json.loads(line) for line in lines if line.startswith('{"cpu"')]
    rows = [row for row in rows if row["comm"] == "hog-cache" and row["kind"] == "heap"]
    assert rows and all(row["bytes"] == 4096 * row["pages"] for row in rows)
    assert sum(row["bytes"] for row in rows) == sum(int(line.split()[-1]) for line in folded)
    assert any(line.startswith("recording of touched memory is off since ") for line in lines)


LIVE = """\
mapped &
until [ -e /tmp/ready ]; do usleep 10000; done
usleep 100000
look() {
    echo LOOK
    for name in mapped sleep; do
        for pid in $(pidof $name); do echo STATM $pid $(cat /proc/$pid/statm); done
    done
    cat /proc/profile/memory_stacks.json
}
look
echo reset > /proc/profile/memory_chains
look
echo off > /proc/profile/memory_chains
kill -USR1 $!
until [ -e /tmp/more ]; do usleep 10000; done
look
killall mapped sleep
"""
ADDRESSES = tuple[str, ...]


def live_pages(text: str) -> dict[int, dict[tuple[str, int, ADDRESSES], int]]:
    """
    Returns what each program of the script has mapped by kind, whether it is copied, and the chain,
    after comparing the sum with the kernel's own count.
    """
    lines = [line.strip() for line in text.splitlines()]
    rows = [json.loads(line) for line in lines if line.startswith('{"cpu":null')]
    statm = [line.split()[1:] for line in lines if line.startswith("STATM")]
    assert len(statm) == 3
    found = {}
    for pid, _, resident, *_ in statm:
        own = [row for row in rows if row["pid"] == int(pid)]
        assert sum(row["live_pages"] for row in own) == int(resident), own
        assert all(row["live_bytes"] == 4096 * row["live_pages"] for row in own)
        keys = [(row["kind"], row["copied"], tuple(row["user"] or ())) for row in own]
        assert len(set(keys)) == len(keys)
        found[int(pid)] = dict(zip(keys, (row["live_pages"] for row in own)))
    return found


def test_live_pages(boot, tmp_path):
    """
    Live rows add up to the resident set of each process, by the chain that mapped each page: after
    munmap, madvise, mprotect, mremap, fork, copies on write and execve, through a reset, and off.
    """
    image = harness.script_image(tmp_path, LIVE, ("mapped",))
    log = boot(None, initrd=image, append=f"{ON} profile.on_exit=none").log
    first, reset, off = (live_pages(text) for text in log.split("LOOK")[1:])
    assert first == reset
    parent, child, sleep = sorted(first)

    def pages(pid: int, kind: str, copied: int = 0) -> list[int]:
        chains = first[pid].items()
        return sorted(nr for (k, c, _), nr in chains if (k, c) == (kind, copied) and nr > 2)

    assert pages(parent, "anonymous")[-1] == 70 - 3 and pages(parent, "anonymous", 1) == [3]
    assert pages(child, "anonymous")[-1] == 70 - 7 and pages(child, "anonymous", 1) == [7]
    assert pages(parent, "shared") == [8] and pages(child, "shared") == []
    chains = [{key[2] for key in first[pid]} for pid in (parent, child, sleep)]
    assert len(chains[0] & chains[1]) > 5 and not chains[0] & chains[2] - {()}
    assert off[child] == first[child] and off[parent]["-", 0, ()] == 12


GROWTH = """\
mapped &
until [ -e /tmp/ready ]; do usleep 10000; done
echo LOOK
cat /proc/profile/export
kill -USR1 $!
until [ -e /tmp/more ]; do usleep 10000; done
echo LOOK
cat /proc/profile/export
killall mapped sleep
"""


def test_growth_between_two_moments(boot, tmp_path):
    """The first row of legoprof's comparison is what was touched between two exports."""
    image = harness.script_image(tmp_path, GROWTH, ("mapped",))
    log = boot(None, initrd=image, append=f"{ON} profile.on_exit=none").log
    paths = [tmp_path / name for name in ("old.lego", "new.lego")]
    for path, text in zip(paths, log.split("LOOK")[1:]):
        path.write_text(text)
    command = [harness.ROOT / "scripts/legoprof", "diff", "--memory", "--comm", "mapped", *paths]
    text = subprocess.run(command, capture_output=True, text=True).stdout
    row = r"^ *49152 +0 +49152 +mapped +\[anonymous\] < touch_later < main"
    assert re.search(row, text, re.MULTILINE), text


def test_live_pages_when_a_process_ends(boot):
    """What is still mapped at the end is that of a leak, and nothing of a buffer that is gone."""
    found = memory_of(boot("slow-leak", icount=True, append=ON).log)
    row = found.memory.rows[0]
    assert row.live_bytes == row.nr_bytes and found.memory.live_pages * 4096 > 0.99 * row.nr_bytes
    row = memory_of(boot("hog-churn", icount=True, append=ON).log).memory.rows[0]
    assert row.live_bytes == 0


def test_panic(boot):
    """The report of a panic has the tables, with what the stopped programs have mapped."""
    append = f"{ON} profile.kernel_chains=on"
    with boot.start("spin", 60000, 4, smp=2, silence=30, append=append) as guest:
        guest.expect("^spin: started")
        guest.sysrq("c")
        result = boot.finish(guest.wait(), ok=False, check=True)
    found = memory_of(result.log).memory
    assert found.scope == "all processes"
    assert found.live_pages > 0.8 * found.pages and any(row.live_bytes for row in found.rows)
    for kind in ("pages", "kmalloc"):
        assert f"Kernel Memory: {kind} by call chain (top #4)" in result.log


def test_off_by_default(boot):
    (found,) = report.parse(boot("slow-leak", icount=True).log)
    assert not found.memory and found.summary.peak_parts["heap"] > 100
