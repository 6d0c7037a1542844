# SPDX-License-Identifier: BSD-2-Clause
"""Sums of events in the kernel: counts and histograms are what the ring has, to the unit."""

from __future__ import annotations

import json
import re
from collections import Counter

import harness
from test_trace import events, sections

T = "/sys/kernel/tracing"

# Only events of threads named busybox count: so it does not matter when which file is written to.
SCRIPT = f"""\
section() {{ echo "== $1"; }}
cd {T}
enter=events/raw_syscalls/sys_enter kmalloc=events/kmem/kmalloc
echo 4096 >buffer_size_kb
for e in $enter $kmalloc; do echo 'comm == busybox' >$e/filter; echo 1 >$e/count; done
echo 'hist:keys=id.syscall:sort=hitcount.descending if comm == busybox' >$enter/trigger
echo 'hist:keys=id,common_pid.execname if comm == busybox' >>$enter/trigger
echo 'hist:keys=call_site.hex:vals=bytes_req,bytes_alloc if comm == busybox' >$kmalloc/trigger
echo raw_syscalls:sys_enter kmem:kmalloc >set_event
busybox ls -lR /proc >/dev/null 2>&1; busybox sync; busybox sync; busybox ls /bin >/dev/null
echo >set_event
section ring; cat trace
section lost; cat per_cpu/cpu*/stats
section counts; cat $enter/count $kmalloc/count
section calls; cat $enter/hist
section sites; cat $kmalloc/hist
section tables; cat /proc/profile/trace_counts.json /proc/profile/trace_hists.json
section triggers; cat $enter/trigger
echo '!hist:keys=id.syscall:sort=hitcount.descending' >>$enter/trigger; cat $enter/trigger
echo 'hist:keys=id,common_pid.execname:pause if comm == busybox' >>$enter/trigger
busybox sync; cat $enter/trigger; grep Hits $enter/hist
section stacks; echo '!hist:keys=id,common_pid.execname' >$enter/trigger || echo refused
cat $enter/trigger
echo 'hist:keys=common_stacktrace:vals=bytes_req if comm == busybox' >$kmalloc/trigger
busybox ls /bin >/dev/null; cat $kmalloc/hist
section wrong; echo 'hist:keys=call_site.sym:vals=nosuch' >>$kmalloc/trigger; cat error_log
mkdir -p /etc; echo nobody:x:99:99::/:/bin/sh >/etc/passwd
section user; for file in count hist trigger; do
busybox su nobody -s /bin/sh -c "cat {T}/$kmalloc/$file" 2>&1; done
section end
"""


def rows(lines: list[str]) -> list[str]:
    return [line for line in lines if "} hitcount:" in line]


def total(lines: list[str], name: str) -> int:
    return sum(int(line.split(":")[1]) for line in lines if line.startswith(f"    {name}: "))


def check_calls(found: list[str], recorded: Counter) -> None:
    """The second histogram, by call alone, and the first one, by call and thread."""
    by_thread, by_call = "\n".join(found).split("\n\n\n")
    row = r"\{ id: (\S+) +\[ *(\d+)\] \} hitcount: +(\d+)"
    calls = re.findall(row, by_call)
    assert {int(nr): int(hits) for _, nr, hits in calls} == recorded
    assert ("sys_sync", "162", "2") in calls
    assert [int(hits) for _, _, hits in calls] == sorted(recorded.values(), reverse=True)
    row = r"\{ id: +(\d+), common_pid: (\S+) +\[ *(\d+)\] \} hitcount: +(\d+)"
    threads = re.findall(row, by_thread)
    summed: Counter = Counter()
    for nr, comm, _, hits in threads:
        summed[int(nr)] += int(hits)
        assert comm == "busybox"
    assert summed == recorded and len({tid for _, _, tid, _ in threads}) == 4


def check_sites(found: list[str], lines: list[dict[str, str]]) -> None:
    sums: dict[int, list[int]] = {}
    values = r"call_site=(\S+) .*bytes_req=(\d+) bytes_alloc=(\d+)"
    for line in lines:
        site, asked, given = re.search(values, line["text"]).groups()
        entry = sums.setdefault(site.split("+")[0], [0, 0, 0])
        for i, value in enumerate((1, int(asked), int(given))):
            entry[i] += value
    row = r"\{ call_site: (\S+) \} hitcount: +(\d+) +bytes_req: +(\d+) +bytes_alloc: +(\d+)"
    by_site = [list(map(int, match[1:])) for match in re.findall(row, "\n".join(found))]
    assert len(by_site) == len(rows(found)) >= len(sums) > 5
    assert [sum(column) for column in zip(*by_site)] == [sum(c) for c in zip(*sums.values())]
    hits = [hits for hits, *_ in by_site]
    assert hits == sorted(hits)


def check_tables(lines: list[str], found: dict[str, list[str]]) -> None:
    """The tables of exports have what the files of tracefs have, events with most first."""
    tables: dict[str, list[dict]] = {}
    for row in map(json.loads, lines):
        if "table" in row:
            tables[row["table"]] = []
        elif "note" not in row:
            list(tables.values())[-1].append(row)
    counts = {row["event"]: row["events"] for row in tables["Event Counts (all)"]}
    names = ["raw_syscalls:sys_enter", "kmem:kmalloc"]
    assert counts == dict(zip(names, map(int, found["counts"])))
    hists = tables["Event Histograms"]
    assert {row["filter"] for row in hists} == {"comm == busybox"}
    by_call = [row for row in hists if row["keys"] == "id.syscall"]
    row = r"\{ id: (\S+) +\[ *\d+\] \} hitcount: +(\d+)"
    expected = re.findall(row, "\n".join(found["calls"]))
    assert [(row["key_1"], str(row["events"])) for row in by_call] == expected
    sites = [row for row in hists if row["event"] == "kmem:kmalloc"]
    row = r"\{ call_site: (\S+) \} hitcount: +(\d+) +bytes_req: +(\d+) +bytes_alloc: +(\d+)"
    keys = ("events", "value_1", "value_2")
    assert sorted((row["key_1"], *(int(row[key]) for key in keys)) for row in sites) == sorted(
        (f"0x{site}", *map(int, numbers))
        for site, *numbers in re.findall(row, "\n".join(found["sites"]))
    )
    assert {row["values"] for row in sites} == {"bytes_req,bytes_alloc"}
    by_thread = [row["key_2"] for row in hists if row["keys"] == "id,common_pid.execname"]
    assert by_thread and all(re.fullmatch(r"busybox \[\d+\]", key) for key in by_thread)


def test_tables_of_a_report(boot, tmp_path):
    """The report of a run has them, with most events first."""
    script = f"""\
cd {T}/events/kmem/kmalloc
echo 'hist:keys=call_site.sym:vals=bytes_req' >trigger
echo 1 >count
busybox ls /bin >/dev/null
"""
    append = "profile.on_exit=run"
    image = harness.script_image(tmp_path, script)
    log = boot(None, initrd=image, append=append, icount=True).log
    log = re.sub(r"^\[ *[\d.]+\] ", "", log, flags=re.MULTILINE)
    run = log[log.index("profile: report 1: run of ") : log.index("profile: end of report 1")]
    (count,) = re.findall(r"(\d+)  kmem:kmalloc", run)
    table = run[run.index("Event Histogram (top #4)\n") :]
    assert "\nkmem:kmalloc by call_site.sym\n" in table
    head = re.search(r"^ +events +% +bytes_req  call_site$", table, re.MULTILINE)
    rows = re.findall(r"^ +(\d+) +\d+\.\d\d +\d+  \w+$", table, re.MULTILINE)
    (others,) = re.findall(r"^\d+ others, with (\d+) events$", table, re.MULTILINE)
    assert head and len(rows) == 4 and rows == sorted(rows, key=int, reverse=True)
    # The histogram begins earlier, and is printed later.
    assert int(count) <= sum(map(int, rows)) + int(others) <= int(count) + 40


def test_sums_are_those_of_the_ring(boot, tmp_path):
    image = harness.script_image(tmp_path, SCRIPT)
    log = boot(None, initrd=image, append="profile.on_exit=none", smp=2, icount=True).log
    found = sections(log)
    assert not re.findall(r"(?:overrun|dropped events): [1-9]", "\n".join(found["lost"]))
    lines = events(found["ring"])
    calls = [line for line in lines if line["event"] == "sys_enter"]
    allocations = [line for line in lines if line["event"] == "kmalloc"]
    assert list(map(int, found["counts"])) == [len(calls), len(allocations)]
    assert len(calls) > 500 and len(allocations) > 100
    recorded = Counter(int(line["text"].split()[1]) for line in calls)
    check_calls(found["calls"], recorded)
    assert total(found["calls"], "Hits") == 2 * len(calls)
    assert total(found["sites"], "Hits") == len(allocations)
    assert total(found["calls"], "Dropped") == total(found["sites"], "Dropped") == 0
    check_sites(found["sites"], allocations)
    check_tables(found["tables"], found)

    both, one, paused = found["triggers"][:2], found["triggers"][2:3], found["triggers"][3:]
    assert "keys=id.syscall:vals=hitcount:sort=hitcount.descending:size=2048 if" in both[1]
    assert one == both[:1] and one[0].endswith("[active]")
    assert paused[0] == one[0].replace("[active]", "[paused]")
    assert int(paused[1].split()[1]) == len(calls)

    assert found["stacks"][:2] == ["# Available triggers:", "# hist"]
    chains = re.findall(r"common_stacktrace:\n((?: {9}\S+\n)+)\} hit", "\n".join(found["stacks"]))
    assert len(chains) == len(rows(found["stacks"])) > 5
    assert all(chain.split()[0] in ("alloc_large", "slab_alloc") for chain in chains)
    assert any("sys_" in chain for chain in chains)
    assert "hist:kmem:kmalloc: error: no such field" in "\n".join(found["wrong"])
    assert sum("Permission denied" in line for line in found["user"]) == 3
