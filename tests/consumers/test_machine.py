# SPDX-License-Identifier: BSD-2-Clause
"""
Debian's vmstat, slabtop, lscpu and perf bench, unmodified, read the files about the machine inside
the guest.
"""

from __future__ import annotations

import re

import pytest

from conftest import run_sections

PACKAGES = ("procps", "linux-perf", "util-linux", "coreutils")
SCRIPT = """\
section vmstat; vmstat 1 2
section sums; vmstat -s
section slabtop; slabtop -o -s o 2>&1
section slabs; cat /proc/slabinfo
section nproc; nproc --all
section lscpu; lscpu
section messaging; perf bench sched messaging -g 2 -l 20 2>&1
section pipe; perf bench sched pipe -l 200 2>&1
section lock; perf bench futex lock-pi -t 4 -r 1 2>&1
section multi; perf bench futex lock-pi -M -t 4 -r 1 2>&1
section epoll; perf bench epoll wait -t 2 -r 1 2>&1
section user; busybox su user -c 'slabtop -o; vmstat' 2>&1
section end
"""


@pytest.fixture(scope="module")
def sections(tmp_path_factory) -> dict[str, str]:
    """Returns the output of each part of the script."""
    return run_sections(tmp_path_factory.mktemp("machine"), SCRIPT, *PACKAGES, smp=2)


def test_vmstat(sections):
    *_, names, _, last = sections["vmstat"].splitlines()
    row = dict(zip(names.split(), map(int, last.split())))
    assert row["free"] > 100_000 and row["in"] > 500  # 1,000 ticks a second on each CPU
    assert row["us"] + row["sy"] + row["id"] in range(98, 103)
    assert row["si"] == row["so"] == row["bi"] == row["bo"] == row["swpd"] == 0
    sums = {name: int(nr) for nr, name in re.findall(r"^ *(\d+) (.*)$", sections["sums"], re.M)}
    assert sums["interrupts"] > 2000 and sums["CPU context switches"] > 10
    assert sums["pages swapped in"] == sums["pages swapped out"] == 0


def test_slabtop(sections):
    """slabtop's rows are those of /proc/slabinfo, which has a little more by then."""
    rows = re.findall(
        r"^ *(\d+) +(\d+) +\d+% +[\d.]+K +(\d+) +(\d+) +\d+K (\S+) *$", sections["slabtop"], re.M
    )
    shown = {name: (int(nr), int(live), int(per)) for nr, live, _, per, name in rows}
    files = re.findall(r"^(kmalloc-\d+) +(\d+) +(\d+) +\d+ +(\d+) ", sections["slabs"], re.M)
    assert len(shown) == len(files) == 17
    for name, live, nr, per_slab in files:
        assert shown[name][2] == int(per_slab)
        assert abs(shown[name][0] - int(nr)) <= 4 * int(per_slab)
        assert abs(shown[name][1] - int(live)) <= 100
    assert "slabtop" in sections["user"] and "ermission denied" in sections["user"]
    assert re.search(r"^ r +b +swpd", sections["user"], re.M)  # vmstat is for all


def test_cpus(sections):
    assert sections["nproc"] == "2\n"
    found = dict(re.findall(r"^ *([^:]+): +(\S+)$", sections["lscpu"], re.M))
    assert found["CPU(s)"] == "2" and found["On-line CPU(s) list"] == "0,1"
    sockets, cores = int(found["Socket(s)"]), int(found["Core(s) per socket"])
    assert sockets * cores * int(found["Thread(s) per core"]) == 2


@pytest.mark.parametrize("bench", ["messaging", "pipe", "lock", "multi", "epoll"])
def test_benchmarks(sections, bench):
    text = sections[bench]
    assert not re.search("ot supported|not implemented|rror|ailed", text), text
    result = {
        "messaging": r"Total time: \d+\.\d+ \[sec\]",
        "pipe": r"\d+ ops/sec",
        "lock": r"Averaged \d+ operations/sec",
        "multi": r"Averaged \d+ operations/sec",
        "epoll": r"Averaged \d+ operations/sec",
    }
    assert re.search(result[bench], text), text
