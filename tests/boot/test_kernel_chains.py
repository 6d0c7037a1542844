# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's memory by call chain: sums, programs, what is left behind, and the switch."""

from __future__ import annotations

import re

import pytest

import harness
from test_memory import json_tables

ON = "profile.kernel_chains=on"
KINDS = ("pages", "kmalloc")
BEFORE = "[before switch-on]"
SCRIPT = """\
mkdir -p /tmp
head -c 1000000 /dev/zero > /tmp/left
cat /proc/profile/kernel_chains
echo STACKS
cat /proc/profile/kernel_stacks
echo JSON
cat /proc/profile/kernel_chains.json
cat /proc/profile/kernel_stacks.json
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
    assert row["live_bytes"] == 245 * 4096
    place = r"fill_hole \(kernel/fs/data.c:\d+\) < \w+ < inode_write < transfer_at < rw_transfer"
    assert re.fullmatch(place, row["place"])
    folded = files.split("STACKS")[1].split("JSON")[0]
    chain = r"pages;head;\S*do_syscall_64;sys_write;rw_transfer;transfer_at;inode_write;\S+"
    assert re.search(rf"^{chain} {245 * 4096}\r?$", folded, re.MULTILINE)


def test_stores_have_what_tables_have(files):
    tables = json_tables(files)
    rows = [row for kind in KINDS for row in tables[f"Kernel Memory: {kind} by call chain (all)"]]
    stored = tables["Kernel memory by call chain"]
    assert abs(len(stored) - len(rows)) < 20  # reading the first file allocates, too
    assert all((row["kernel"] is None) == (row["place"] == BEFORE) for row in stored)
    assert {row["allocator"] for row in stored} == set(KINDS)


def test_most_allocations_have_room(files):
    assert "no room for the call chains" not in files


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


def test_off_by_default(boot, tmp_path):
    image = harness.script_image(tmp_path, "cat /proc/profile/kernel_chains; echo DONE")
    log = boot(None, initrd=image, append="profile.report=wide profile.on_exit=run").log
    assert "DONE" in log and "by call chain" not in log and "left behind" not in log
