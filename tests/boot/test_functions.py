# SPDX-License-Identifier: BSD-2-Clause
"""The function profiler: its counts against the plugin's, and call chains while it counts."""

import json
import re
import struct
import sys
from collections import defaultdict

import pytest

import harness
from harness import ROOT

sys.path.insert(0, str(ROOT / "tests/accuracy"))
import chains  # noqa: E402
import table  # noqa: E402
import truth  # noqa: E402

SECTION = "__patchable_function_entries"
NOP = b"\x0f\x1f\x44\x00\x00"

WORK = """\
echo on > /proc/profile/function_calls
ls -l /bin /proc > /dev/null
busybox true
cat /proc/profile/stacks > /dev/null
echo off > /proc/profile/function_calls
cat /proc/profile/function_calls.json
cat /proc/profile/function_calls
"""


@pytest.fixture(scope="module")
def kernel(builds):
    builds.tools("truth.so")
    return builds.kernel("functions")


def places(kernel) -> list[int]:
    """Returns the table of addresses at which functions can be hooked, from the kernel's file."""
    at = truth.Symbols(kernel).addr
    elf = truth.kallsyms.Elf(kernel.read_bytes())
    start, stop = at[f"__start_{SECTION}"], at[f"__stop_{SECTION}"]
    return list(struct.unpack_from(f"<{(stop - start) // 8}Q", elf.data, elf.offset(start)))


def rows(log: str) -> list[dict]:
    lines = [line for line in log.splitlines() if line.startswith('{"calls":')]
    return [json.loads(line) for line in lines]


def test_places_are_one_nop(kernel):
    table = places(kernel)
    elf = truth.kallsyms.Elf(kernel.read_bytes())
    assert len(table) > 1000 and table == sorted(table)
    assert {elf.data[elf.offset(at) : elf.offset(at) + 5] for at in table} == {NOP}


@pytest.fixture(scope="module")
def counted(kernel, tmp_path_factory):
    image = harness.script_image(tmp_path_factory.mktemp("functions"), WORK)
    window = ("functions_start", "functions_stop")
    append = "profile.on_exit=none init=/init"
    return truth.observe(kernel, image, "timer", append, window=window)


def test_calls_are_exact(kernel, counted):
    """The counts are exact for each pair of caller and function."""
    observed, result = counted
    symbols = truth.Symbols(kernel)
    names = dict(zip(symbols.starts, symbols.names))
    placed = {names[at] for at in places(kernel)}
    expected = {pair: nr for pair, nr in observed.calls.items() if pair[1] in placed}
    reported = defaultdict(int)
    for row in rows(result.log):
        reported[row["caller"], row["function"]] += row["calls"]
    assert len(expected) > 400
    assert reported == expected


def test_times_add_up(counted):
    """
    Total time minus self time is at most the time of callees and interrupts. It can be less: when
    counting ends, a callee may have returned, and its caller not yet.
    """
    _, result = counted
    table = rows(result.log)
    own, total, called = defaultdict(int), defaultdict(int), defaultdict(int)
    for row in table:
        assert row["self_cycles"] <= row["total_cycles"] < 1 << 40
        own[row["function"]] += row["self_cycles"]
        total[row["function"]] += row["total_cycles"]
        called[row["caller"]] += row["total_cycles"]
    in_interrupts = called["do_vector"]
    leaves = [name for name in total if name not in called]
    assert len(leaves) > 50
    assert sum(total[name] - own[name] for name in leaves) <= in_interrupts
    assert all(total[name] - own[name] <= called[name] + in_interrupts for name in total)


def test_switching_off_is_in_no_row(counted):
    """The last call that is counted switches counting off: patching all functions takes long."""
    _, result = counted
    (last,) = (row for row in rows(result.log) if row["function"] == "functions_count")
    assert last["calls"] == 1
    assert 0 < last["total_cycles"] < 20_000


COUNTING = ("function_call", "function_enter", "profile_function_enter")
COUNTING += ("function_return", "function_exit", "profile_function_exit")


def test_cost_of_a_call(counted):
    """The cost is as README.md says. Calls that need a new row are included."""
    observed, _ = counted
    nr_calls = sum(nr for (_, name), nr in observed.calls.items() if name == "function_call")
    nr = sum(chain.nr for chain in observed.chains if chain.own in COUNTING)
    assert 150 < nr / nr_calls < 215


def test_text_has_the_same_rows(counted):
    _, result = counted
    row = r"^ *(\d+) +(\d+\.\d{9}) +(\d+\.\d{9}) +\d+ +(\S+) +(\S+)\r?$"
    text = re.findall(row, result.log, re.MULTILINE)
    table = rows(result.log)
    assert [(int(nr), name, caller) for nr, _, _, name, caller in text] == [
        (row["calls"], row["function"], row["caller"]) for row in table
    ]
    total = re.search(r"^ *(\d+) +- +(\d+\.\d{9}) +- +total\r?$", result.log, re.MULTILINE)
    assert int(total[1]) == sum(row["calls"] for row in table)


STAT = """\
cd /sys/kernel/tracing
cat function_profile_enabled
echo 1 > function_profile_enabled
ls -l /bin > /dev/null
busybox true
cat function_profile_enabled
echo 0 > function_profile_enabled
echo 2 > function_profile_enabled
cat trace_stat/function0
cat trace_stat/function1
echo == first
cat /proc/profile/function_calls.json
echo 1 > function_profile_enabled
echo 0 > function_profile_enabled
echo == again
cat /proc/profile/function_calls.json
"""


def test_trace_stat(boot, tmp_path):
    """Linux's files have the same counts, by CPU, and begin at zero each time."""
    image = harness.script_image(tmp_path, STAT)
    options = dict(append="profile.on_exit=none", variant="functions", smp=2, icount=True)
    log = boot(None, initrd=image, **options).log
    assert re.findall(r"^([01])\r?$", log, re.MULTILINE) == ["0", "1"]
    assert '"2" is not valid; accepted: 0|1' in log
    stat, first, again = re.split(r"^== \w+\r?$", log, flags=re.MULTILINE)
    line = r"^  (\S+) +(\d+) +([\d.]+) us +([\d.]+) us *\r?$"
    parts = re.split(r"^  -{8} .*$", stat, flags=re.MULTILINE)
    found = [re.findall(line, part, re.MULTILINE) for part in parts]
    assert len(found) == 3 and not found[0]
    few, many = sorted(map(len, found[1:]))  # the shell runs on one of the CPUs
    assert few > 5 and many > 300
    hits: dict[str, int] = defaultdict(int)
    for name, nr, total, average in found[1] + found[2]:
        hits[name] += int(nr)
        assert abs(float(total) - int(nr) * float(average)) <= 0.01 * float(total) + 0.001 * int(nr)
    for part in found[1:]:
        times = [float(total) for _, _, total, _ in part]
        assert times == sorted(times, reverse=True)
    expected: dict[str, int] = defaultdict(int)
    for row in rows(first):
        expected[row["function"][:30]] += row["calls"]
    assert hits == expected
    assert 0 < sum(row["calls"] for row in rows(again)) < sum(expected.values()) / 2


SWITCHED = """\
stress all 0.5 4 &
for i in 1 2; do
echo on > /proc/profile/function_calls
echo off > /proc/profile/function_calls
echo on > /proc/profile/function_calls
cat /proc/profile/stacks > /dev/null
done
wait
cat /proc/profile/function_calls.json
echo off > /proc/profile/function_calls
echo perhaps > /proc/profile/function_calls
echo reset > /proc/profile/function_calls
echo function > /sys/kernel/tracing/current_tracer
cat /proc/profile/stacks > /dev/null
echo nop > /sys/kernel/tracing/current_tracer
echo == traced
cat /proc/profile/function_calls
"""


def test_switching_while_cpus_work(boot, tmp_path):
    """The hooks of all functions are patched while 4 CPUs run them and NMIs walk the stacks."""
    image = harness.script_image(tmp_path, SWITCHED, ("stress",))
    append = "profile.source=nmi profile.hz=2000 profile.on_exit=none init=/init"
    result = boot(None, initrd=image, append=append, variant="functions", smp=4)
    assert result.log.count("PASS: stress") == 7
    table = rows(result.log)
    assert len(table) > 400 and all(row["self_cycles"] < 1 << 40 for row in table)
    assert '"perhaps" is not valid; accepted: on|off|reset' in result.log
    # While only a tracer has functions hooked, no call is missing from the counts.
    traced = result.log.partition("== traced")[2]
    assert "Kernel Function Calls" in traced and "in NMIs" not in traced


@pytest.mark.parametrize("workload", ("syscalls", "faults"))
@pytest.mark.parametrize("state", chains.STATES)
def test_chains_are_true(builds, kernel, workload, state):
    """Every function of each chain is right, for samples at any instruction, even in the hooks."""
    builds.kernel()
    image = builds.initrd("accuracy.cpio")
    nr, wrong = chains.compare(chains.kernel(state), image, workload, state, chains.CYCLES // 4)
    assert nr > (100 if state in ("off", "left out") else 250) and not wrong


def test_table_of_chains():
    rows = table.rows("chains")
    assert [tuple(row[:2]) for row in rows[1:]] == chains.cases()
    assert all(int(row[2]) > 10 and row[3] == "0" for row in rows[1:])
