# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's memory by call chain: sums, programs, what is left behind, and the switch."""

from __future__ import annotations

import bisect
import re
from collections import Counter

import pytest

import harness
from test_memory import ALLOCATORS, json_tables, observe_work, truth

ON = "profile.kernel_chains=on"
KINDS = ("pages", "kmalloc")
BEFORE = "[before switch-on]"
SCRIPT = """\
mkdir -p /tmp
head -c 1000000 /dev/zero > /tmp/left
head -c 400000 /dev/zero > /tmp/gone
rm /tmp/gone
cat /proc/profile/kernel_chains
echo STACKS
cat /proc/profile/kernel_stacks
echo FREED
cat /proc/profile/kernel_freed_stacks
echo JSON
cat /proc/profile/kernel_chains.json
cat /proc/profile/kernel_stacks.json
cat /proc/profile/kernel_freed_stacks.json
"""


@pytest.fixture
def files(boot, tmp_path):
    image = harness.script_image(tmp_path, SCRIPT)
    return boot(None, initrd=image, append=f"profile.on_exit=none {ON}").log


def test_rows(files):
    """Rows add up to the allocator's count. What was allocated before is a row, never negative."""
    found = re.findall(r"live in all: (\d+) bytes; the allocator counts (\d+)", files)
    assert len(found) == 4 and all(ours == theirs for ours, theirs in found)  # text and JSON
    tables = json_tables(files)
    for kind in KINDS:
        rows = tables[f"Kernel Memory: {kind} by call chain (all)"]
        (before,) = [row for row in rows if row["place"] == BEFORE]
        assert before["comm"] is None and before["live_bytes"] > 1 << 20
        live = [row["live_bytes"] for row in rows]
        assert live == sorted(live, reverse=True) and min(live) >= 0
        for row in rows:
            assert row["freed_bytes"] == row["allocated_bytes"] - row["live_bytes"] >= 0
            assert row["freed_objects"] == row["allocated_objects"] - row["live_objects"] >= 0
            if row != before:
                assert row["allocated_bytes"] == row["allocated_objects"] * row["size_bytes"]


def test_chain_and_program(files):
    """The file's pages are of the program that wrote it, with the callers of the allocator."""
    rows = json_tables(files)["Kernel Memory: pages by call chain (all)"]
    (row,) = [row for row in rows if row["comm"] == "head" and row["live_objects"] > 200]
    assert row["freed_objects"] == 98
    assert row["live_bytes"] == 245 * 4096
    place = r"fill_hole \(kernel/fs/data.c:\d+\) < \w+ < inode_write < transfer_at < rw_transfer"
    assert re.fullmatch(place, row["place"])
    folded = files.split("STACKS")[1].split("FREED")[0]
    chain = r"pages;head;\S*do_syscall_64;sys_write;rw_transfer;transfer_at;inode_write;\S+"
    assert re.search(rf"^{chain} {245 * 4096}\r?$", folded, re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_who_frees(files, kind):
    """What is freed is in a row of who frees it, or was freed while it was off."""
    tables = json_tables(files)
    freed = tables[f"Kernel Memory: {kind} freed by (all)"]
    allocated = tables[f"Kernel Memory: {kind} by call chain (all)"]
    # The table by chain is printed first, and printing frees nothing.
    assert sum(row["freed_bytes"] for row in freed) == sum(row["freed_bytes"] for row in allocated)
    rows = [row for row in freed if row["comm"]]
    assert all(row["freed_bytes"] == row["freed_objects"] * row["size_bytes"] for row in rows)
    assert {row["freed_in"] for row in freed if row not in rows} <= {"[while off]"}
    nr_bytes = [row["freed_bytes"] for row in rows]
    assert nr_bytes == sorted(nr_bytes, reverse=True) and len(nr_bytes) > 20


def test_who_frees_a_file(files):
    """The pages of a file are freed by rm, which removes it, and not by head, which wrote it."""
    freed = json_tables(files)["Kernel Memory: pages freed by (all)"]
    (row,) = [row for row in freed if row["place"] and row["place"].startswith("fill_hole")]
    assert (row["comm"], row["allocated_comm"], row["freed_objects"]) == ("rm", "head", 98)
    assert row["freed_in"].startswith("inode_free_data < inode_put < ")
    folded = files.split("FREED")[1].split("JSON")[0]
    chain = r"pages;rm;\w+;inode_put;inode_free_data;page_free;page_free_slow;fill_hole\S+"
    assert re.search(rf"^{chain} {98 * 4096}\r?$", folded, re.MULTILINE)
    assert re.search(r"401408 .*  98 +4096  rm  .*  head +fill_hole \(kernel/fs/data.c", files)


def test_stores_have_what_tables_have(files):
    tables = json_tables(files)
    rows = [row for kind in KINDS for row in tables[f"Kernel Memory: {kind} by call chain (all)"]]
    stored = tables["Kernel memory by call chain"]
    assert abs(len(stored) - len(rows)) < 20  # reading the first file allocates, too
    assert all((row["kernel"] is None) == (row["place"] == BEFORE) for row in stored)
    assert {row["allocator"] for row in stored} == set(KINDS)
    freed = [row for kind in KINDS for row in tables[f"Kernel Memory: {kind} freed by (all)"]]
    stored = tables["Kernel memory freed"]
    assert 0 <= len(stored) - len(freed) < 60  # reading the other files has freed, too
    assert all((row["kernel"] is None) == (row["comm"] is None) for row in stored)


def test_most_allocations_have_room(files):
    assert "no room for the call chains" not in files and "[no room]" not in files


def compare_with_plugin(tmp_path, name: str, stop: str, functions: tuple[str, ...]):
    """
    Returns two counters, by function of the allocators and its caller: what is in the rows of a
    file, and how often QEMU's plugin has seen the call, from switch-on until the file is read.
    """
    commands = {"begin": "echo on > /proc/profile/kernel_chains"}
    commands["end"] = f"rm -r /tmp/left /tmp/d1\ncat /proc/profile/{name}"
    counted, tables = observe_work(tmp_path, ("off_time_switch", stop), **commands)
    (rows,) = tables.values()
    symbols = truth.Symbols(harness.BUILD / "vmlinux")
    ours: Counter[tuple[str, str]] = Counter()
    for row in rows:
        pcs = [int(pc, 16) - 1 for pc in row["kernel"] or ()]
        chain = [symbols.names[bisect.bisect_right(symbols.starts, pc) - 1] for pc in pcs]
        kind, is_free = row["allocator"], "freed_in" in row
        inner = functions if kind == "kmalloc" else (functions[0], f"{functions[0]}_slow")
        caller = next((one for one in chain if one not in inner), None)
        if caller:
            nr = row["freed_objects" if is_free else "allocated_objects"]
            ours[kind, caller] += nr
    theirs: Counter[tuple[str, str]] = Counter()
    for (caller, called), nr in counted.calls.items():
        kind = "pages" if called == functions[0] else "kmalloc"
        if called in functions and (kind == "pages" or caller not in functions):
            theirs[kind, caller] += nr
    return ours, theirs


def test_allocations_are_those_of_a_plugin(tmp_path):
    """Every function that calls an allocator has as many allocations as calls."""
    functions = (*ALLOCATORS, "slab_alloc", "alloc_large")
    stop = "kernel_chains_make_view"
    ours, theirs = compare_with_plugin(tmp_path, "kernel_stacks.json", stop, functions)
    for counts in ours, theirs:
        del counts["kmalloc", "reserve_chunk"]  # of the file's text, between its two tables
    assert ours == theirs and len(ours) > 30 and sum(ours.values()) > 800


def test_frees_are_those_of_a_plugin(tmp_path):
    """
    No function has more frees than calls. Those that free no NULL pointer, and no page that has
    other users, have as many.
    """
    stop = "kernel_frees_make_view"
    functions = ("page_free", "kfree", "slab_free")
    ours, theirs = compare_with_plugin(tmp_path, "kernel_freed_stacks.json", stop, functions)
    assert all(nr <= theirs[key] for key, nr in ours.items())
    equal = {key: nr for key, nr in ours.items() if nr == theirs[key]}
    assert len(equal) > 20 and sum(equal.values()) > 500
    for caller in "vma_free_all", "files_put", "fs_info_put", "process_put", "task_put":
        assert equal["kmalloc", caller] >= 10, caller
    for caller in "inode_free_data", "pgd_free":
        assert equal["pages", caller] >= 10, caller
    assert equal["pages", "slab_free"] >= 3  # of objects beyond the largest class


def test_leak_of_the_kernel(boot, tmp_path):
    """The first row of what a run has left behind is the leak, with its caller and program."""
    script = "for i in $(seq 500); do echo > /proc/leak; done"
    image = harness.script_image(tmp_path, script)
    append = f"leak=4000 profile.on_exit=run {ON}"
    log = boot(None, initrd=image, append=append, variant="functions").log
    table = log.split("Kernel Memory: left behind (top #4)")[1].splitlines()
    numbers, program, place = re.split(r" {2,}(?=sh )|(?<=sh) {2,}", table[4].split("]", 1)[1])
    nr_bytes, _, nr, *_, size = map(float, numbers.split())
    assert (nr_bytes, nr, size, program) == (500 * 4096, 500, 4096, "sh")
    place = re.fullmatch(r"(\w+) \(tests/kernel/planted_leak.c:\d+\) < (\w+).* < \w+", place)
    assert place.groups() == ("forget_request", "proc_write")


PROCESSES = """\
sh -c 'for i in 1 2 3; do echo > /proc/leak; done; sleep 1; echo > /proc/leak' &
sh -c 'for i in 1 2 3 4 5; do echo > /proc/leak; done' &
wait
"""


def test_leaks_of_a_process(boot, tmp_path):
    """Each of two processes of a program, at the same time, has what it has left behind itself."""
    image = harness.script_image(tmp_path, PROCESSES)
    append = f"leak=4000 profile.on_exit=sh profile.kernel_leaks=x,s* {ON}"
    log = boot(None, initrd=image, append=append, variant="functions").log
    tables = log.split("Kernel Memory: left behind by this process")[1:]
    assert len(tables) == 3
    tables = [table.split("total")[0] for table in tables]
    for table, nr in zip(tables, (5, 4)):
        (row,) = re.findall(r"(\d+) +[\d.]+ +(\d+) .*forget_request", table)
        assert row == (str(nr * 4096), str(nr))
    assert "forget_request" not in tables[2]  # of the shell that has started them


SWITCHED = """\
echo on > /proc/profile/kernel_chains
mkdir -p /tmp
head -c 100000 /dev/zero > /tmp/one
echo off > /proc/profile/kernel_chains
head -c 200000 /dev/zero > /tmp/two
rm /tmp/one
cat /proc/profile/kernel_chains
"""


def test_switch(boot, tmp_path):
    """What was allocated while it was on stays known, also when it is freed later."""
    image = harness.script_image(tmp_path, SWITCHED)
    log = boot(None, initrd=image, append="profile.on_exit=none").log
    (row,) = re.findall(r"^.*4096  head +fill_hole .*$", log, re.MULTILINE)
    live_bytes, _, live, nr_bytes, *_ = row.split()
    assert (live_bytes, live, nr_bytes) == ("0", "0", str(25 * 4096))
    assert "recording of the kernel's call chains is off since " in log
    found = re.findall(r"live in all: (\d+) bytes; the allocator counts (\d+)", log)
    assert len(found) == 2 and all(ours == theirs for ours, theirs in found)


def test_who_frees_is_known_only_while_it_is_on(boot, tmp_path):
    """A file that is removed while it is off is in the row of all that is unknown."""
    image = harness.script_image(tmp_path, SWITCHED)
    log = boot(None, initrd=image, append="profile.on_exit=none").log
    table = log.split("pages freed by")[1].split("freed in all")[0]
    assert "fill_hole" not in table
    (off,) = re.findall(r"^ +(\d+) +- +\d+ +- +- +\[while off\]", table, re.MULTILINE)
    assert int(off) > 25 * 4096


def test_off_by_default(boot, tmp_path):
    image = harness.script_image(tmp_path, "cat /proc/profile/kernel_chains; echo DONE")
    log = boot(None, initrd=image, append="profile.report=wide profile.on_exit=run").log
    assert "DONE" in log and "by call chain" not in log and "left behind" not in log
    assert "freed by" not in log


def test_leaks_of_a_process_only_if_it_is_named(boot):
    assert "left behind by this" not in boot("hello", append=ON).log
    log = boot("hello", append=f"profile.kernel_leaks=hell {ON}").log
    assert "left behind by this" not in log
    assert "left behind by this" in boot("hello", append=f"profile.kernel_leaks=hello {ON}").log
