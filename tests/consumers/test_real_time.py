# SPDX-License-Identifier: BSD-2-Clause
"""Debian's cyclictest, unmodified, runs inside the guest and measures latencies of its threads."""

from __future__ import annotations

import re

import pytest

from conftest import BUILD, run_sections

KERNEL = BUILD / "variants/functions/vmlinux"  # made by `make functions-kernel`
T = "/sys/kernel/tracing"

SCRIPT = f"""\
section two; cyclictest -q -l 200 -p 80 -t 2 -i 1000 -d 0 2>&1; echo "status $?"
section histogram; cyclictest -q -m -S -p 90 -l 100 -i 2000 -h 50000 2>&1; echo "status $?"
section events; echo 1 >{T}/events/sched/enable; cyclictest -q -p 70 -l 20 -i 1000 2>&1
echo 0 >{T}/events/sched/enable
grep 'cyclictest' {T}/trace
section round_robin; cyclictest -q --policy=rr -p 20 -l 50 2>&1; echo "status $?"
section busy; busybox sh -c 'while :; do :; done' &
loop=$!
cyclictest -q -p 80 -a 0 -l 300 -i 1000 2>&1; echo "status $?"; kill $loop
section user; su user -c 'cyclictest -q -p 80 -l 10' 2>&1
section end
"""


@pytest.fixture(scope="module", params=[1, 4])
def sections(request, tmp_path_factory) -> dict[str, str]:
    """Returns the output of each part of the script."""
    directory = tmp_path_factory.mktemp("real-time")
    found = run_sections(directory, SCRIPT, "rt-tests", kernel=KERNEL, smp=request.param)
    return {"cpus": str(request.param), **found}


THREAD = re.compile(r"T: *\d+ \( *\d+\) P: *(\d+) I:(\d+) C: *(\d+) Min: *(\d+) .* Max: *(\d+)")


def threads(text: str) -> list[tuple[int, ...]]:
    """Returns priority, interval, loops, shortest and longest latency (us) of each thread."""
    found = [tuple(int(word) for word in match.groups()) for match in THREAD.finditer(text)]
    assert found, text
    return found


def test_all_loops_are_done(sections):
    """Latencies under icount are those of the kernel: they need no quiet host."""
    for name, priority, nr_threads, loops in (("two", 80, 2, 200), ("round_robin", 20, 1, 50)):
        found = threads(sections[name])
        assert len(found) == nr_threads and "status 0" in sections[name]
        for got, _, done, shortest, longest in found:
            assert got == priority and abs(done - loops) <= 1
            assert 0 < shortest <= longest < 500


def test_histogram(sections):
    text, nr = sections["histogram"], int(sections["cpus"])
    assert "status 0" in text and f"# Total: {' '.join(['000000100'] * nr)}" in text
    rows = re.findall(r"^\d{6} ([\d\t ]+)$", text, re.M)
    assert sum(int(word) for row in rows for word in row.split()) == 100 * nr


def test_a_busy_thread_does_not_delay_it(sections):
    """A loop on the same CPU is preempted: else it would have a slice of 4 ms."""
    ((_, _, done, _, longest),) = threads(sections["busy"])
    assert done == 300 and longest < 3000


def test_events_have_its_priority(sections):
    """As in Linux: 99 - 70."""
    for event, word in (("sched_switch", "next_prio"), ("sched_wakeup", "prio")):
        lines = [line for line in sections["events"].splitlines() if f"{event}:" in line]
        found = re.findall(rf"{event}:.*cyclictest.*\b{word}=29\b", "\n".join(lines))
        assert len(found) >= 15, lines[:5]


def test_users_may_not(sections):
    assert not THREAD.search(sections["user"])
    assert "increase RLIMIT_RTPRIO" in sections["user"]
