# SPDX-License-Identifier: BSD-2-Clause
"""
The kernel survives random system calls while the profilers are switched and changed, and strace
counts as many calls as the program. For a longer run by hand, set FUZZ_CALLS=1000000 in the
environment.
"""

import os
import re

import pytest

import report
from harness import ROOT, RUN_TIMEOUT_S
from test_programs import program_passes

NR_CALLS = int(os.environ.get("FUZZ_CALLS", 20000))
NR_COMPARED = 3  # rounds
NR_COUNTED = 512  # the program counts calls with this number or more together


SEEDS = [line.split() for line in (ROOT / "tests/soak/seeds.txt").read_text().splitlines()]
SEEDS = [words for words in SEEDS if words and words[0] != "#"]


def call_table():
    lines = (ROOT / "arch/x86/entry/syscalls.tbl").read_text().splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def call_names():
    return {int(number): f"sys_{name}" for number, name, *_ in call_table()}


def implemented_calls():
    """Returns the numbers of the calls that the kernel has, but for those that end the run."""
    ends = ("exit_group", "reboot")
    return {int(nr) for nr, name, entry, *_ in call_table() if entry != "-" and name not in ends}


def compare_counts(made, rows):
    """Compares the program's counts, by number, with the rows of its report."""
    names = call_names()
    others = made.pop(NR_COUNTED, 0)
    known = {names.get(number, f"sys_{number}"): nr for number, nr in made.items()}
    counted = {row.name: row.nr_calls for row in rows}
    assert {name: counted.get(name) for name in known} == known
    beyond = [name for name in counted if name not in known]
    assert all(re.fullmatch(r"sys_\d+|\[.*\]", name) for name in beyond)
    assert sum(counted[name] for name in beyond) == others > 0


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("smp", [1, 4])
def test_fuzzed_calls(boot, smp, seed):
    uid = 1000 * ((smp + seed) % 2)
    timeout = RUN_TIMEOUT_S * max(1, NR_CALLS / 20000)
    append = "profile.on_exit=fuzz profile.top=all host=/"
    log = boot("fuzz", seed, NR_CALLS, 8, uid, smp=smp, append=append, timeout=timeout).log
    program_passes(log, "fuzz")
    missing = re.findall(r"syscall: .*\((\d+)\) is not implemented", log)
    assert missing and len(missing) == len(set(missing))

    tables = {found.strace.task[0]: found.strace for found in report.parse(log) if found.straces}
    rounds = re.findall(r"^fuzz: process (\d+) made (.*)$", log, re.MULTILINE)
    assert len(rounds) == NR_COMPARED
    all_made = {int(number) for _, counts in rounds for number in re.findall(r"(\d+):", counts)}
    assert implemented_calls() <= all_made
    for pid, counts in rounds:
        made = {int(number): int(nr) for number, nr in re.findall(r"(\d+):(\d+)", counts)}
        assert sum(made.values()) > NR_CALLS  # 8 threads make NR_CALLS each, in 4 rounds
        compare_counts(made, tables[int(pid)].rows)


@pytest.mark.parametrize("kernel, smp, mem, uid, seed, nr_calls", SEEDS)
def test_seeds(boot, kernel, smp, mem, uid, seed, nr_calls):
    """What each line of tests/soak/seeds.txt does is the same in each run."""
    options = dict(variant=None if kernel == "normal" else kernel, smp=int(smp), mem=mem)
    options |= dict(initrd="fuzz.cpio", icount=True, append="profile.on_exit=none")
    program_passes(boot("fuzz", seed, nr_calls, 4, uid, **options).log, "fuzz")


def test_fuzzed_calls_while_functions_are_traced(boot):
    """
    All events are on, and functions are counted and traced from time to time, on 8 CPUs. The trace
    must report each of its gaps. tests/soak/run --functions does the same for a minute.
    """
    append = "profile.on_exit=none"
    log = boot("fuzz", 1, 400, 8, 1000, "functions", smp=4, append=append, variant="functions").log
    program_passes(log, "fuzz")
    found = re.search(r"^fuzz: (\d+) flips, (\d+) traces read, (\d+) switches", log, re.MULTILINE)
    nr_flips, nr_read, nr_switches = map(int, found.groups())
    assert nr_flips >= 32 and nr_read >= 8 and nr_switches > 40
