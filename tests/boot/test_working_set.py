# SPDX-License-Identifier: BSD-2-Clause
"""
How much of its memory a program uses. worksets has 64 MiB, of which it writes 8 and reads another 4
again and again; each number is a time in ms, and for each further one the written part moves on.
With `+` before the last one, it uses only 16 pages of another area. It resets the sampling when it
has touched all, unless the first word is `=`.
"""

from __future__ import annotations

import json
import re
import struct
import sys
from dataclasses import dataclass

import harness
import pytest
import qemu
import report
from harness import BUILD, ROOT
from profiles import export

sys.path.insert(0, str(ROOT / "tests/accuracy"))
from truth import Symbols  # noqa: E402

ON = "profile.working_set=on"
MIB = 1 << 20
PLACE = 0x200000000000
READ = (PLACE + 40 * MIB, PLACE + 44 * MIB)
OTHERS = 0.4  # MiB of the program besides these 64


def written(phase: int) -> tuple[int, int]:
    start = PLACE + phase * 16 * MIB
    return start, start + 8 * MIB


@dataclass
class Row:
    resident: int
    accessed: float
    written: float
    idle: float | None
    kind: str
    start: int
    end: int

    def overlap(self, part: tuple[int, int]) -> int:
        return max(0, min(self.end, part[1]) - max(self.start, part[0]))


SUMMARY = re.compile(
    r"(\S+) \(pid (\d+)\) has used ([\d.]+) MiB of its ([\d.]+) MiB in the last 10 s,"
    r" ([\d.]+) MiB in the last second$",
    re.MULTILINE,
)
ROW = re.compile(
    r"^ *(\d+) +([\d.]+) +([\d.]+) +([\d.]+|-) +\d+  ([a-z ]+?) +([0-9a-f]{16})  ([0-9a-f]{16})$",
    re.MULTILINE,
)
COST = re.compile(r"is sampled every ([\d.]+) ms, which takes ([\d.]+) % of a CPU; (\d+) samples")


def rows_of(text: str) -> list[Row]:
    return [
        Row(
            int(found[1]), float(found[2]), float(found[3]),
            None if found[4] == "-" else float(found[4]),
            found[5], int(found[6], 16), int(found[7], 16),
        )
        for found in ROW.finditer(text)
    ]  # fmt: skip


def plain(log: str) -> str:
    return re.sub(r"^\[ *\d+\.\d+\] ", "", log, flags=re.MULTILINE)


def run(boot, *times: int, **options) -> str:
    options = {"icount": True, "smp": 1, "append": f"{ON} profile.top=all"} | options
    log = boot("worksets", *times, **options).log
    assert report.check_log(log) == []
    return plain(log)


def test_hot_part_is_found(boot):
    """Sizes within 5 %, and rows of the known parts say how these are used."""
    text = run(boot, 2500)
    (name, _, long, resident, short) = SUMMARY.search(text).groups()
    assert name == "worksets" and float(resident) == pytest.approx(64 + OTHERS, abs=OTHERS)
    assert float(short) == pytest.approx(12 + OTHERS, rel=0.05)
    assert 12 <= float(long) < 12 * 1.3
    rows = rows_of(text)
    for part, is_written in ((written(1), True), (READ, False)):
        inside = [row for row in rows if row.overlap(part) > 0.9 * (row.end - row.start)]
        assert sum(row.overlap(part) for row in inside) > 0.9 * (part[1] - part[0])
        for row in inside:
            if row.overlap(part) == row.end - row.start and row.resident > MIB:
                assert row.accessed > 99 and row.written == pytest.approx(100 * is_written, abs=6)
    # What dominates comes first.
    assert rows[0].overlap(written(1)) > 0.95 * (rows[0].end - rows[0].start)
    unused = [row for row in rows if not row.overlap(written(1)) and not row.overlap(READ)]
    assert sum(row.resident for row in unused if row.accessed == 0) > 45 * MIB
    assert sum(row.resident for row in rows) == int(re.search(r"^ +(\d+) +total$", text, re.M)[1])


def test_cost_is_bounded(boot):
    """Under icount, time is instructions, so the cost is exact. More samples are not taken."""
    sleep, percent, nr = COST.search(run(boot, 1500)).groups()
    assert 5 <= float(sleep) < 20 and 0 < float(percent) <= 1
    # Each time at least 10 regions, and at most 128.
    assert 10 < int(nr) / (1500 / float(sleep)) < 128


def test_phases(boot):
    """The part before is idle: in the working set of 10 s, no longer in that of one second."""
    text = run(boot, 2500, 2500)
    long, short = (float(SUMMARY.search(text)[i]) for i in (3, 5))
    assert short == pytest.approx(12 + OTHERS, rel=0.05)
    assert 20 * 0.8 < long < 20 * 1.3
    rows = rows_of(text)
    before = [row for row in rows if row.overlap(written(1)) > 0.8 * (row.end - row.start)]
    assert before and all(row.accessed == 0 for row in before)
    idle = [row.idle for row in before if row.idle is not None and row.resident > MIB]
    assert idle and all(2 < seconds < 3.5 for seconds in idle)


def test_idle_program(boot):
    """A sleeping program uses nothing."""
    text = run(boot, 1000, 0, 0)
    assert float(SUMMARY.search(text)[5]) < 1 < 12 <= float(SUMMARY.search(text)[3])


def test_first_touches_of_a_program_are_uses(builds, tmp_path):
    """What a program has touched before its first sample is in its working set: a plugin agrees."""
    found, _ = observe(builds, tmp_path, "=", 400, 0, 0)
    lines = [line.split() for line in (tmp_path / "pages").read_text().splitlines()]
    used = set()
    for _, *numbers in lines:
        for first, nr, use in zip(*[map(int, numbers)] * 3, strict=True):
            used |= set(range(first, first + nr)) if use else set()
    (process,) = found.rows("working_set.json")
    assert len(used) == 64 * MIB // 4096
    assert process["used_10s_bytes"] == pytest.approx(len(used) * 4096 + OTHERS * MIB, rel=0.01)
    assert process["used_1s_bytes"] < MIB


def test_two_runs_are_equal(boot):
    first, second = (run(boot, 700) for _ in range(2))
    assert rows_of(first) == rows_of(second) != []


def test_several_cpus(boot):
    """TLBs of other CPUs are flushed. Where the host lets them answer in time, sizes are right."""
    text = run(boot, 3000, icount=False, smp=2)
    cost, found = COST.search(text), SUMMARY.search(text)
    assert cost or "what sampling costs is not known yet" in text
    assert found or "too short: not sampled 20 times" in text
    if cost:
        assert float(cost[2]) <= 1.01
    # On an idle host there are 8,000 to 12,000; with 5,000, regions are found only roughly.
    if cost and int(cost[3]) > 8000:
        assert 11 < float(found[5]) < 20


SCRIPT = """\
cat /proc/profile/working_set
echo on > /proc/profile/working_set
worksets 3000
cat /proc/profile/working_set
echo JSON
cat /proc/profile/working_set.json
cat /proc/profile/working_set_regions.json
cat /proc/profile/working_set_history.json
cat /proc/profile/working_set_memory.json
echo END
cat /proc/self/smaps > /dev/null
echo off > /proc/profile/working_set
echo reset > /proc/profile/working_set
cat /proc/profile/working_set
"""


def test_files(boot, tmp_path):
    """A program that has ended is still there; text and JSON agree; a reset forgets."""
    image = harness.script_image(tmp_path, SCRIPT, ("worksets",))
    text = plain(boot(None, initrd=image, icount=True, smp=1, append="profile.on_exit=none").log)
    before, rest = text.split("JSON\n")
    data, after = rest.split("END\n")
    assert before.count("no process was sampled") == after.count("no process was sampled") == 1
    assert "sampling of used memory is off since" in after
    objects = [json.loads(line) for line in data.splitlines() if line.startswith("{")]
    processes = [one for one in objects if "program" in one and "used_1s_bytes" in one]
    (process,) = [one for one in processes if one["program"] == "worksets"]
    (found,) = [one for one in SUMMARY.finditer(before) if one[1] == "worksets"]
    assert process["pid"] == int(found[2])
    for key, i in (("used_10s_bytes", 3), ("resident_bytes", 4), ("used_1s_bytes", 5)):
        assert process[key] / MIB == pytest.approx(float(found[i]), abs=0.05)
    regions = [one for one in objects if "accessed_hundredths" in one]
    regions = [one for one in regions if one["pid"] == process["pid"]]
    assert sum(one["resident_bytes"] for one in regions) == process["resident_bytes"]
    blocks = [one for one in objects if "ram_bytes" in one]
    assert 100 * MIB < sum(one["ram_bytes"] for one in blocks) <= 512 * MIB
    assert {one["node"] for one in blocks} == {None}
    assert before.count("Working Set: physical memory") == 1 and "node" not in before
    history = [one for one in objects if "accessed_percent" in one and one["pid"] == process["pid"]]
    times = sorted({one["ns"] for one in history})
    assert len(times) >= 10 and times[-1] - times[0] > 1e9
    # At each moment of the last third, most of the hot part is seen as used, and little else.
    for now in times[len(times) * 2 // 3 :]:
        cells = [Row(0, c["accessed_percent"], c["written_percent"], None, "", int(c["start"], 16),
                     int(c["end"], 16)) for c in history if c["ns"] == now]  # fmt: skip
        hot = sum(c.overlap(written(1)) for c in cells if c.written > 50)
        assert 5 * MIB < hot and sum(c.end - c.start for c in cells if c.written > 50) < 12 * MIB


MEMORY = re.compile(
    r"(?:at [\d.]+ s, of the machine's|node (\d+), with) ([\d.]+) MiB: programs have ([\d.]+) MiB,"
    r" and have used ([\d.]+) MiB in the last 10 s, ([\d.]+) MiB in the last second"
)
BLOCK = re.compile(r"^ *(\d+)" + r" +(\d+)" * 4 + r"  ([0-9a-f]{16})  ([0-9a-f]{16})$", re.M)
# The kernel's image and the initramfs are in the first node, all that is allocated in the other.
SPLIT = 240 * MIB
TWO_NODES = ["-object", f"memory-backend-ram,id=a,size={SPLIT}"]
TWO_NODES += ["-object", f"memory-backend-ram,id=b,size={512 * MIB - SPLIT}"]
TWO_NODES += ["-numa", "node,nodeid=0,memdev=a,cpus=0", "-numa", "node,nodeid=1,memdev=b"]
TWO_PROGRAMS = """\
echo on > /proc/profile/working_set
worksets 2600 &
worksets 0 0 0 &
sleep 2.6
cat /proc/profile/working_set
echo JSON
cat /proc/profile/working_set_memory.json
cat /proc/profile/working_set.json
echo END
"""


def run_script(tmp_path, script: str, *extra: str, append: str = "") -> str:
    """Runs a script on a machine with other devices. Returns the console's text."""
    options = qemu.Options(
        kernel=BUILD / "vmlinux",
        initrd=harness.script_image(tmp_path, script, ("worksets",)),
        icount=True,
        append=f"profile.on_exit=none {append}",
        extra=list(extra),
        mem="512M",
        timeout=200,
    )
    result = qemu.run(options)
    assert result.ok, result.error
    return plain(result.log)


def test_nodes(tmp_path):
    """Memory is in the node that it was allocated in; pages of two programs are counted once."""
    text = run_script(tmp_path, TWO_PROGRAMS, *TWO_NODES, append=f"memory_start={SPLIT:#x}")
    before, data = text.split("JSON\n")
    of_all, first, second = MEMORY.findall(before)
    assert (first[0], second[0]) == ("0", "1")
    assert float(first[1]) == pytest.approx(SPLIT / MIB, abs=1)
    assert float(of_all[1]) == pytest.approx(float(first[1]) + float(second[1]), abs=0.11)
    # A few pages of the kernel's image may be mapped, too.
    assert float(first[2]) < 0.2 and of_all[3:] == second[3:]
    assert 128 < float(second[2]) < 131 and 12 <= float(second[4]) < 20
    rows = [tuple(map(int, one[:5])) + tuple(int(n, 16) for n in one[5:])
            for one in BLOCK.findall(before)]  # fmt: skip
    assert rows and all(row[0] == (row[5] >= SPLIT) for row in rows)
    assert all(row[1] <= row[2] <= row[3] <= row[4] == row[6] - row[5] for row in rows)
    objects = [json.loads(line) for line in data.splitlines() if line.startswith("{")]
    blocks = [one for one in objects if "ram_bytes" in one]
    assert {one["node"] for one in blocks} == {0, 1} and len(blocks) < 25
    for i, key in enumerate(("used_1s_bytes", "used_10s_bytes", "resident_bytes"), 1):
        assert sum(one[key] for one in blocks) == sum(row[i] for row in rows)
    # Both programs have the same file, so their sum is larger than what is there.
    resident = sum(one["resident_bytes"] for one in objects
                   if "used_1s_bytes" in one and one.get("program") == "worksets")  # fmt: skip
    total = sum(one["resident_bytes"] for one in blocks)
    assert 128 * MIB < total and resident < total + 3 * MIB


def test_damaged_srat(tmp_path):
    """A table that ends in an entry is read up to there."""
    header = bytes(12)
    entry = struct.pack("<BBIHQQIIQ", 1, 40, 5, 0, 0, SPLIT, 0, 1, 0)
    (tmp_path / "srat").write_bytes(header + entry + b"\x01\x28\x00")
    text = run_script(tmp_path, "true\n", "-acpitable", f"sig=SRAT,data={tmp_path / 'srat'}")
    assert text.count("acpi: SRAT is damaged at byte 88: the rest is skipped") == 1


END = PLACE + 66 * MIB  # with another area, of which 16 pages stay in the TLB
NR_PAGES = (END - PLACE) // 4096
PERIOD_READS = 19  # of each region in a period, and one more if its page was chosen before


@dataclass
class Period:
    """For each sample of a period, how each page was used before it: 0 not, 1 read, 2 written."""

    samples: list[bytes]

    def shares(self, cell: Row, use: int) -> tuple[float, float, float]:
        """The smallest, expected and largest share of samples that find pages used like this."""
        pages = slice((cell.start - PLACE) // 4096, (cell.end - PLACE) // 4096)
        used = [[one >= use for one in sample[pages]] for sample in self.samples]
        every, some = ([test(one) for one in used] for test in (all, any))
        lowest = min(sum(every[1:]) / PERIOD_READS, sum(every) / len(every))
        highest = max(sum(some[1:]) / PERIOD_READS, sum(some) / len(some))
        return lowest, sum(map(sum, used)) / len(used) / len(used[0]), highest


def periods_of(text: str) -> list[Period]:
    periods = []
    for line in text.splitlines():
        word, *numbers = line.split()
        uses = bytearray(NR_PAGES)
        for first, nr, use in zip(*[map(int, numbers)] * 3, strict=True):
            uses[first : first + nr] = bytes([use]) * nr
        if word == "period":
            periods.append(Period([]))
        if periods:
            periods[-1].samples.append(bytes(uses))
    return periods


def observe(builds, tmp_path, *times: object) -> tuple[export.Export, list[Period]]:
    """Runs worksets with the plugin. Returns the export and the periods of its history."""
    builds.tools("pages.so")
    kernel = builds.kernel()
    addr = Symbols(kernel).addr
    words = [f"start={PLACE:#x}", f"end={END:#x}", f"out={tmp_path / 'pages'}"]
    words += [f"period={addr['mm_get_ranges']:#x}", f"sample={addr['mm_begin_accessed']:#x}"]
    init = "init=/bin/worksets"
    options = qemu.Options(
        kernel=kernel,
        initrd=builds.initrd(builds.image(init)),
        icount=True,
        append=f"{ON} profile.on_exit=none {init} -- {' '.join(map(str, times))}",
        export=tmp_path / "export",
        extra=["-plugin", ",".join([str(BUILD / "accuracy/pages.so"), *words])],
        timeout=200,
    )
    result = qemu.run(options)
    assert result.ok, result.error
    # The last one had no end.
    return export.load(options.export), periods_of((tmp_path / "pages").read_text())[:-1]


def test_samples_are_those_of_a_plugin(builds, tmp_path):
    """
    A plugin of QEMU notes all loads and stores between two samples. Where all pages of a region
    were used, each sample has to say so; where none was, none may. In between, sums of many samples
    are as random choice of pages makes them, within five standard deviations.
    """
    found, periods = observe(builds, tmp_path, 800, 1000, "+300")
    history = found.rows("working_set_history.json")
    times = sorted({cell["ns"] for cell in history})
    assert len(times) > 10
    nr_certain = nr_between = 0
    distance, variance = [0.0, 0.0], [0.0, 0.0]
    periods = periods[-len(times) :]
    for now, period in zip(times, periods, strict=True):
        assert len(period.samples) == PERIOD_READS + 1
        cells = [Row(0, c["accessed_percent"], c["written_percent"], None, "", int(c["start"], 16),
                     int(c["end"], 16)) for c in history if c["ns"] == now]  # fmt: skip
        for cell in cells:
            if cell.start < PLACE or cell.end > END:
                continue
            for use, percent in ((1, cell.accessed), (2, cell.written)):
                low, mean, high = period.shares(cell, use)
                # The kernel rounds down, twice if it has merged regions.
                assert 100 * low - 2 < percent <= 100 * high + 0.01, (now, cell, use, low, high)
                nr_certain += low == high
                nr_between += low < high
                nr = (cell.end - cell.start) / 4096
                distance[use - 1] += nr * (percent / 100 - mean)
                variance[use - 1] += nr * nr * mean * (1 - mean) / PERIOD_READS
    assert nr_certain > 100 and nr_between > 20
    for off, square in zip(distance, variance, strict=True):
        assert abs(off) < 5 * square**0.5
    # The working sets, with what else the program has. The first sample is from before the reset.
    (process,) = found.rows("working_set.json")
    for key, ns, tolerance in (("used_1s_bytes", 1e9, 0.05), ("used_10s_bytes", 1e10, 0.4)):
        recent = [period for now, period in zip(times, periods, strict=True)
                  if process["sampled_ns"] - now < ns]  # fmt: skip
        samples = [sample for period in recent for sample in period.samples[1:]]
        used = {page for sample in samples for page, use in enumerate(sample) if use}
        assert process[key] == pytest.approx(len(used) * 4096 + OTHERS * MIB, rel=tolerance)


def test_off_by_default(boot):
    assert "Working Set" not in boot("worksets", 300, icount=True, smp=1).log
