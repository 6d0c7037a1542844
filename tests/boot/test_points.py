# SPDX-License-Identifier: BSD-2-Clause
"""Profile points: boot parameters, the wide report, exactness, and the code of disabled points."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path
from typing import Iterator, NamedTuple

import pytest

import ktap
import report
import report_points

NOP = bytes.fromhex("0f1f440000")


def points_of(result) -> report_points.Points:
    return report.parse(result.log)[-1].points


def names_of(result) -> set[str]:
    return {row.name for row in points_of(result).rows}


ALWAYS = {"context_switch", "exec", "futex_wait", "page_fault", "thread_create"}  # with `threads`
NEVER_SLEEP = {"context_switch", "flush_tlb_others", "kmalloc_slow"}


@pytest.mark.parametrize(
    "value, on, off",
    [
        ("futex_*,thread_create", {"futex_wait", "thread_create"}, None),
        ("-futex_*", ALWAYS - {"futex_wait"}, {"futex_wait"}),
        ("*,-*_fault,-exec", ALWAYS - {"page_fault", "exec"}, {"page_fault", "exec"}),
        ("-*,exec", {"exec"}, None),
        ("-*", set(), None),
        ("unordered", ALWAYS, set()),
        ("unordered,exec", {"exec"}, None),
    ],
)
def test_globs(boot, value, on, off):
    """off: names that must be missing; None: all but those in `on`."""
    result = boot("threads", smp=2, append=f"profile.points={value}")
    names = names_of(result)
    assert on <= names
    assert names == on if off is None else not off & names
    assert all(row.enabled for row in points_of(result).rows)
    assert points_of(result).empty_pair_ns[0] > 0


@pytest.mark.parametrize(
    "parameter",
    ["profile.points=", "profile.points=-", "profile.points=exec,-", "profile.report=broad"],
)
def test_malformed_value_warns_and_changes_nothing(boot, parameter):
    result = boot("threads", append=parameter)
    name = re.escape(parameter.split("=")[0])
    assert re.search(rf"params: {name}=.*: not valid, want {name}=\S", result.log)
    assert ALWAYS <= names_of(result)
    assert not points_of(result).is_wide


def test_unordered_counts_the_same(boot):
    """With -icount, a fence costs as much as the NOP in its place."""
    ordered, unordered = (
        points_of(boot("threads", icount=True, append=f"profile.points={order}"))
        for order in ("ordered", "unordered")
    )
    assert ordered.empty_pair_ns == unordered.empty_pair_ns
    assert [row.name for row in ordered.rows] == [row.name for row in unordered.rows]


@pytest.mark.parametrize("smp", [1, 4])
def test_wide(boot, smp):
    points = points_of(boot("threads", smp=smp, append="profile.report=wide"))
    assert points.is_wide and not points.buckets
    assert ALWAYS <= {row.name for row in points.rows}
    for row in points.rows:
        assert (row.wide["oncpu.ns"] is None) == (row.name in NEVER_SLEEP)
    sleeper = points.row("futex_wait")
    assert sleeper.wide["oncpu.ns"] < sleeper.avg_ns


def test_histogram(boot):
    points = points_of(boot("threads", smp=2, append="profile.report=histogram"))
    assert points.is_wide
    assert points.buckets.keys() == {row.name for row in points.rows}


def test_nothing_anomalous_is_seen(boot):
    """Correctly written points that stay on report no anomaly except migrations."""
    for smp in (1, 4):
        points = points_of(boot("threads", smp=smp))
        lines = [line for lines in points.anomalies.values() for line in lines]
        assert not [line for line in lines if "ended on another CPU" not in line]


def test_known_delays_are_exact(boot):
    result = boot(None, append="selftest=points.*", variant="functions", icount=True)
    assert all(test.ok for suite in ktap.parse(result.log) for test in suite.tests)
    line = r"(\d+) pairs: (\d+) cycles, with (\d+) nops more (\d+) cycles"
    nr, without, nr_nops, with_nops = map(int, re.search(line, result.log).groups())
    assert with_nops - without == nr * nr_nops
    assert without % nr == 0


@pytest.mark.parametrize("smp", [2, 64])
def test_suite_on_many_cpus(boot, smp):
    append = "selftest=points.*,profile.points*"
    options = dict(variant="functions", smp=smp, one_thread=smp > 2)
    result = boot(None, append=append, mem="1G", timeout=400, **options)
    assert all(test.ok for suite in ktap.parse(result.log) for test in suite.tests)


WIDE = """\
[    1.000000] profile: report 1: sysrq
[    1.000000] Kernel Profile Points
[    1.000000] all CPUs since boot (1.00 s)
[    1.000000]  status  name  total  nr  avg.ns  net.ns  oncpu.ns  min.ns  p50.ns  p99.ns  max.ns
[    1.000000] -------  ----
[    1.000000]      on  exec  0.000000100  10  10  4  -  2  <=  8  <= 30  30
[    1.000000]      on  futex_wait  0.000000100  10  10  4  7  2  <=  8  <= 30  30
[    1.000000] -------  ----
[    1.000000] overhead: 25 ns a pair, 6 ns of it inside total and avg.ns (not subtracted)
[    1.000000] exec: the clock went backwards in 2 pairs (not included)
[    1.000000] exec: 3 of 10 pairs ended on another CPU (included)
[    1.000000] futex_wait: 4 ends without a start (not included)
[    1.000000] no complete pair: fork, my_lookup,
[    1.000000]     tree_find
[    1.000000]     exec  2^1  cycles     4  ***
[    1.000000]     exec  2^12 cycles     6  ****
[    1.000000] profile: end of report 1
"""


def test_parser():
    (found,) = report.parse(WIDE)
    assert not report.check(found)
    points = found.points
    assert points.row("exec").wide["oncpu.ns"] is None
    assert points.row("futex_wait").wide["oncpu.ns"] == 7
    assert points.empty_pair_ns == (25, 6)
    assert {name: len(at) for name, at in points.anomalies.items()} == {"exec": 2, "futex_wait": 1}
    assert points.incomplete == ["fork", "my_lookup", "tree_find"]
    assert points.buckets == {"exec": {1: 4, 12: 6}}


@pytest.mark.parametrize(
    "old, new",
    [
        ("<=  8", "<= 31"),
        ("  10  4  -", "  10  11  -"),
        ("-  2  <=", "-  11  <="),
        ("30  30", "30  29"),
        ("4  ***", "5  ***"),
        (" max.ns", ""),
        ("  -  2  <=  8  <= 30  30", ""),
    ],
)
def test_parser_sees_damage(old, new):
    assert old in WIDE
    assert report.check_log(WIDE.replace(old, new, 1))


class Site(NamedTuple):
    code: int
    target: int
    key: int


class Instruction(NamedTuple):
    end: int
    text: str
    function: str


FUNCTION = re.compile(r"^[0-9a-f]{16} <(.*)>:$")
INSTRUCTION = re.compile(r"^([0-9a-f]{16}):\t((?:[0-9a-f]{2} )+) *\t(.*)$")
JUMP = re.compile(r"^j\w+ +([0-9a-f]{16}) ")


class Image:
    """A vmlinux: memory by address, symbols, disassembly."""

    def __init__(self, path: Path):
        self.path = path
        self.data = path.read_bytes()
        (offset,) = struct.unpack_from("<32xQ", self.data)
        size, nr = struct.unpack_from("<54xHH", self.data)
        self.segments = [
            struct.unpack_from("<IIQQQQ", self.data, offset + i * size) for i in range(nr)
        ]
        lines = (line.split() for line in self.run("nm", path).splitlines())
        self.symbols = {line[2]: int(line[0], 16) for line in lines if len(line) == 3}

    @staticmethod
    def run(*command: object) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def read(self, address: int, size: int) -> bytes:
        for kind, _, offset, start, _, file_size in self.segments:
            if kind == 1 and start <= address and address + size <= start + file_size:
                return self.data[offset + address - start :][:size]
        raise ValueError(f"{address:x} is not in the file")

    def static_key_sites(self) -> Iterator[Site]:
        start, stop = (self.symbols[f"__{end}_static_key_sites"] for end in ("start", "stop"))
        for at in range(start, stop, 16):
            code, target, key = struct.unpack("<iiq", self.read(at, 16))
            yield Site(at + code, at + 4 + target, at + 8 + key)

    def instructions(self) -> dict[int, Instruction]:
        """By address."""
        code, function = {}, ""
        for line in self.run("objdump", "-d", "-w", "-j", ".text", self.path).splitlines():
            if match := FUNCTION.match(line):
                function = match[1].removesuffix(".cold")
            elif match := INSTRUCTION.match(line):
                at = int(match[1], 16)
                code[at] = Instruction(at + len(match[2].split()), match[3], function)
        return code


@pytest.fixture(scope="module", params=[None, "llvm"])
def image(request, builds) -> Image:
    return Image(builds.kernel(request.param))


REAL_POINTS = ("flush_tlb_others", "kmalloc_slow", "page_fault")


def key_of(image: Image, point: str) -> range:
    start = image.symbols[f"__profile_point_{point}"]
    return range(start, start + 32)


def test_sites_are_nops(image):
    sites = list(image.static_key_sites())
    code = image.instructions()
    assert len({site.code for site in sites}) == len(sites) > 10
    for site in sites:
        assert image.read(site.code, 5) == NOP
        assert code[site.code].end == site.code + 5
        assert code[site.code].text.startswith("nopl ")
        assert code[site.target].function == code[site.code].function


def reachable(code: dict[int, Instruction], start: int) -> set[int]:
    """Returns the instructions of a function that can run after `start` if no site is patched."""
    seen: set[int] = set()
    todo = [start]
    while todo:
        at = todo.pop()
        if at in seen or at not in code or code[at].function != code[start].function:
            continue
        seen.add(at)
        if jump := JUMP.match(code[at].text):
            todo.append(int(jump[1], 16))
        if not re.match(r"jmp|ret|ud2", code[at].text):
            todo.append(code[at].end)
    return seen


@pytest.mark.parametrize("point", REAL_POINTS)
def test_off_is_nothing_but_nops(image, point):
    """While a point is off, no path from its NOPs executes an instruction of the point."""
    code = image.instructions()
    counters = image.symbols[f"__profile_point_cpu_{point}"]
    sites = [site for site in image.static_key_sites() if site.key in key_of(image, point)]
    assert len(sites) >= 2
    off = set().union(*(reachable(code, site.code) for site in sites))
    on = set().union(*(reachable(code, site.target) for site in sites))
    touches = re.compile(rf"rdtsc|lfence|profile_oncpu|{counters:x}|__profile_point_cpu_{point}\b")
    assert not [code[at].text for at in off if touches.search(code[at].text)]
    assert [code[at].text for at in on - off if touches.search(code[at].text)]
