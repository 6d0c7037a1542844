# SPDX-License-Identifier: BSD-2-Clause
"""
Reports, resets, switches and calls that concern many threads do not stop the machine: even with
1,000 threads or processes (calls: 8,000), none keeps interrupts off for long. A QEMU plugin counts
the instructions (tests/accuracy/).
"""

import re
import sys

import pytest

from harness import ROOT

sys.path[:0] = [str(ROOT / "tests/accuracy"), str(ROOT / "tests/bench")]
import sweep  # noqa: E402
import truth  # noqa: E402

LIMIT = 50_000  # instructions
NR_CALLS = 8000
TIMEOUT_S = 600  # for a report of 1,000 processes


def press_keys(guest):
    guest.expect("^crowd: waits")
    guest.sysrq("p")
    guest.expect("profile: end of report", timeout=TIMEOUT_S)
    guest.sysrq("z")
    guest.expect("sysrq: reset")
    guest.sysrq("h")  # handled after the reset
    guest.expect("sysrq: z  ")
    guest.sysrq("t")
    guest.expect("pid comm", timeout=TIMEOUT_S)
    guest.sysrq("h")  # handled after the list of tasks
    guest.expect("sysrq: z  ", timeout=TIMEOUT_S)
    guest.send("\n")


CASES = [(crowd, how) for how in ("files", "keys", "calls") for crowd in ("threads", "processes")]


@pytest.mark.parametrize("crowd, how", [*CASES, ("waiters", "calls"), ("parents", "calls")])
def test_stretches_with_interrupts_off(builds, crowd, how):
    talk = {"talk": press_keys} if how == "keys" else {}
    nr = NR_CALLS if how == "calls" else 1000
    check_stretches(builds, "crowd", f"{crowd} {nr} {how if how != 'files' else ''}", **talk)


def test_wake_ups_of_many(builds):
    """Threads that all wait for the same event."""
    check_stretches(builds, "herds", NR_CALLS)


def check_stretches(builds, program, words, **talk):
    builds.tools("truth.so")
    append = "profile.source=nmi profile.hz=100 profile.on_exit=none"
    append += f" init=/bin/{program} -- {words}"
    # The program switches points on when all threads sleep, and sampling off when it is done.
    window = ("points_begin", "source_apply")
    image = builds.initrd("accuracy.cpio")
    options = {"window": window, "timeout": TIMEOUT_S, "mem": "4G", **talk}
    counted, result = truth.observe(builds.kernel(), image, "nmi", append, **options)
    assert f"PASS: {program}" in result.log
    shown = "\n".join(f"{s.nr} {' '.join(s.chain[-6:])}" for s in counted.stretches[:12])
    assert counted.stretches[0].nr <= LIMIT, shown
    assert counted.stretches[0].nr > 100, "the plugin has found no stretch with interrupts off"


@pytest.mark.parametrize("runs", sweep.CROWDS, ids=lambda runs: runs[0].split(" {}")[0])
def test_the_sweep_makes_these_calls(boot, runs):
    made = set()
    for words in runs:
        program, _, args = words.format(20).partition(" -- ")
        log = boot(program, *args.split(), append="profile.top=all").log
        made |= set(re.findall(r" \d+\.\d\d +[\d.]+ .* sys_(\w+)$", log, re.MULTILINE))
    missing = set(sweep.CROWDS[runs].split()) - made
    assert not missing
