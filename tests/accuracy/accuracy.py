# SPDX-License-Identifier: BSD-2-Clause
"""Compares the heatmap with the truth.

A run boots the kernel under -icount with one CPU and the program tests/user/accuracy.c. The heatmap
profiles it and prints all its rows; meanwhile a plugin of QEMU (truth.c) counts every executed
instruction, by function and call chain. The distance of the two is half the sum over functions of
the differences of their shares (total variation distance). It must be below the limit: the distance
that 999 of 1,000 draws of as many samples from the truth have by chance (draws.c).

Left out on both sides is idle, the function that executes hlt; in the truth also what runs in the
sampling interrupt, which cannot sample itself: its share is told. User code is one row.

With profile.source=nmi the truth is all other instructions. The timer cannot see code that runs
with interrupts off, so what it must agree with is "seen": the time of such code charged to the
instruction at which a pending interrupt finds them on again.

Inclusive shares are compared in the same way: the chains' functions, each once, less the entry
code, which no chain shows; of a sample in the entry code only its address is known.

table.py makes all runs and their table; tests/boot/test_accuracy.py some of them.
"""

from __future__ import annotations

import bisect
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests/boot")]
import kallsyms  # noqa: E402
import qemu  # noqa: E402
import report  # noqa: E402

BUILD = ROOT / os.environ.get("BUILD", "build")
SEEDS = (1, 2, 3, 4, 5)
SOURCES = {
    "nmi": ("syscalls", "faults", "sched", "irqsoff"),
    "timer": ("syscalls", "faults", "sched"),
}
HZ = 50_000  # at twice of it the sampler takes so much time that it distorts what it finds
TSC_HZ = 1_000_000_000  # under -icount shift=0: one cycle, one instruction, one nanosecond
MIN_SAMPLES = 50_000
CYCLES = 1_040_000_000
CONTROL_CYCLES = 260_000_000
NR_DRAWS = 1000
QUANTILE = 0.999
MOVED = 0.02  # of all samples, from one function to another: must be seen

USER = "[user]"
IDLE = "cpu_idle"
OTHER = "[other]"
WINDOW = ("sample_reset", "source_apply")  # called by what is written to /proc/profile/
FIRST_OF_ENTRY_SECTION = "_stext"
LAST_OF_ENTRY_SECTION = "machine_check_entry"

Counts = dict[str, int]


class AccuracyError(Exception):
    """A run that says nothing about accuracy; the message tells why."""


@dataclass(frozen=True)
class Case:
    workload: str
    source: str
    seed: int
    jitter: bool = True
    is_control: bool = False

    @property
    def name(self) -> str:
        return f"{self.workload}-{self.source}-{self.seed if self.jitter else 'none'}"

    @property
    def cycles(self) -> int:
        return CONTROL_CYCLES if self.is_control else CYCLES

    @property
    def min_samples(self) -> int:
        return 0 if self.is_control else MIN_SAMPLES

    def append(self) -> str:
        words = [
            f"profile.source={self.source} profile.hz={HZ} profile.top=all",
            f"profile.seed={self.seed if self.jitter else 'none'}",
            "profile.heatmap=functions profile.samples=2097152 profile.on_exit=none",
            "init=/bin/accuracy --",
            f"{self.workload} {self.seed} {self.cycles}",
        ]
        if self.workload == "periodic":
            words.append(str(round(TSC_HZ / HZ)))
        return " ".join(words)


class Symbols:
    """A kernel's functions, named as its own report does."""

    def __init__(self, kernel: Path):
        nm = os.environ.get("NM", "nm")
        done = subprocess.run([nm, "-ap", str(kernel)], capture_output=True, text=True, check=True)
        lines = kallsyms.parse_nm(done.stdout.splitlines())
        table = kallsyms.text_symbols(lines)
        self.addr = {symbol.name: symbol.addr for symbol in lines}
        self.starts = [symbol.addr for symbol in table]
        self.end = self.addr["_etext"]
        self.names = [symbol.name for symbol in table] + [USER, OTHER]
        last = self.addr[LAST_OF_ENTRY_SECTION]
        self.entry = {symbol.name for symbol in table if symbol.addr <= last}


def header_number(header: str, name: str) -> int:
    text = (ROOT / "arch/x86/include/asm" / header).read_text()
    return int(re.search(rf"^#define {name}\s+(\w+)", text, re.MULTILINE)[1], 0)


def plugin_argument(case: Case, symbols: Symbols, functions: Path, out: Path) -> str:
    lines = [f"{addr:x}" for addr in [*symbols.starts, symbols.end]]
    functions.write_text("\n".join(lines) + "\n")
    at = {
        "start": WINDOW[0],
        "stop": WINDOW[1],
        "stubs": "entry_stubs",
        "syscall": "syscall_entry",
        "nmi": "nmi_entry",
        "thread": "thread_entry",
        "switch": "switch_stack",
    }
    words = [f"{word}={symbols.addr[name]:#x}" for word, name in at.items()]
    words += [f"timer={header_number('vectors.h', 'VECTOR_TIMER')}", f"sampler={case.source}"]
    words += [f"functions={functions}", f"out={out}"]
    return ",".join([str(BUILD / "accuracy/truth.so"), *words])


@dataclass
class Chain:
    own: str
    callers: frozenset[str]
    nr: int
    nr_seen: int


@dataclass
class Truth:
    chains: list[Chain] = field(default_factory=list)
    sampler: Counts = field(default_factory=dict)
    nr_off: int = 0
    odd: Counts = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(chain.nr for chain in self.chains) + sum(self.sampler.values())

    @property
    def sampler_share(self) -> float:
        return sum(self.sampler.values()) / self.total


def check_addresses(lines: list[str], nodes: dict, symbols: Symbols) -> None:
    """What the plugin has counted by address makes the same functions as what it has by chain."""
    by_function: Counts = defaultdict(int)
    for line in lines:
        if line.startswith("address "):
            _, addr, nr, _ = line.split()
            number = bisect.bisect_right(symbols.starts, int(addr, 16)) - 1
            by_function[symbols.names[number]] += int(nr)
    by_chain: Counts = defaultdict(int)
    for _, name, nr, _ in nodes.values():
        if nr and name not in (USER, OTHER):
            by_chain[name] += nr
    if by_function != by_chain:
        raise AccuracyError("the plugin counts differently by address and by call chain")


def read_truth(path: Path, symbols: Symbols) -> Truth:
    truth = Truth()
    nodes: dict[int, tuple[int, str, int, int]] = {}
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines or lines[-1] != "end":
        raise AccuracyError("the plugin has written no counts: the window did not end")
    for line in lines[:-1]:
        word, *fields = line.split()
        if word == "node":
            node, parent, function, nr, nr_seen = map(int, fields)
            nodes[node] = parent, symbols.names[function], nr, nr_seen
        elif word == "sampler":
            truth.sampler[symbols.names[int(fields[0])]] = int(fields[1])
        elif word == "interrupts_off":
            truth.nr_off = int(fields[0])
        elif word.startswith("odd_"):
            truth.odd[word] = int(fields[0])
    check_addresses(lines, nodes, symbols)
    callers: dict[int, frozenset[str]] = {0: frozenset()}

    def callers_of(node: int) -> frozenset[str]:
        """The functions of a whole chain, without those of the entry code, which no chain shows."""
        if node not in callers:
            parent, name, _, _ = nodes[node]
            own = frozenset() if name in symbols.entry else frozenset((name,))
            callers[node] = callers_of(parent) | own
        return callers[node]

    for parent, name, nr, nr_seen in nodes.values():
        # Of a sample in the entry code only the address is kept.
        callers_seen = frozenset() if name in symbols.entry else callers_of(parent) - {name}
        if nr or nr_seen:
            truth.chains.append(Chain(name, callers_seen, nr, nr_seen))
    return truth


FUNCTION_ROW = re.compile(
    r"^(?:\[ *\d+\.\d+\] )?([0-9a-f]{16}) +(\S+) +(\d+) +\d+\.\d\d +(\d+) +\d+\.\d\d +\d+\r?$", re.M
)


@dataclass
class Samples:
    own: Counts
    inclusive: Counts
    notes: list[str]
    nr_idle: int

    @property
    def nr(self) -> int:
        return sum(self.own.values())


def read_samples(log: str) -> Samples:
    reports = report.parse(log)
    if len(reports) != 1 or not reports[0].heatmap:
        raise AccuracyError("there is not one report with a heatmap in the log")
    heatmap = reports[0].heatmap
    wrong = report.check(reports[0])
    if wrong:
        raise AccuracyError("; ".join(wrong))
    own: Counts = defaultdict(int)
    for row in heatmap.rows:
        own[row.name] += row.nr
    inclusive: Counts = defaultdict(int)
    for _, name, _, nr_inclusive in FUNCTION_ROW.findall(log):
        inclusive[name] += int(nr_inclusive)
    nr_idle = own.pop(IDLE, 0)
    inclusive.pop(IDLE, None)
    return Samples(dict(own), dict(inclusive), heatmap.notes, nr_idle)


@dataclass
class Verdict:
    distance: float
    limit: float
    inclusive: float | None = None
    inclusive_limit: float = 0.0

    @property
    def ok(self) -> bool:
        return self.distance < self.limit

    @property
    def inclusive_ok(self) -> bool:
        return self.inclusive is None or self.inclusive < self.inclusive_limit


def shares(counts: Counts) -> dict[str, float]:
    total = sum(counts.values())
    return {name: nr / total for name, nr in counts.items()}


def distance(a: dict[str, float], b: dict[str, float]) -> float:
    return sum(abs(a.get(name, 0.0) - b.get(name, 0.0)) for name in a.keys() | b.keys()) / 2


def quantile(values: list[float]) -> float:
    return sorted(values)[round(QUANTILE * len(values)) - 1]


def draw(truth: list[tuple[int, str, frozenset[str]]], nr: int, seed: int) -> list[list[float]]:
    number: dict[str, int] = {}
    lines = []
    for weight, own, callers in truth:
        names = [own, *sorted(callers)]
        numbers = [number.setdefault(name, len(number)) for name in names]
        lines.append(" ".join(map(str, [weight, *numbers])))
    argv = [str(BUILD / "accuracy/draws"), str(nr), str(NR_DRAWS), str(seed)]
    done = subprocess.run(argv, input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode:
        raise AccuracyError(done.stderr.strip())
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def judge(truth: Truth, samples: Samples, seen: bool, seed: int = 1) -> Verdict:
    """seen: the truth as a sampler finds it that has to wait for interrupts to be on."""
    chains = [
        (chain.nr_seen if seen else chain.nr, chain.own, chain.callers)
        for chain in truth.chains
        if chain.own != IDLE
    ]
    chains = [chain for chain in chains if chain[0]]
    own: Counts = defaultdict(int)
    inclusive: Counts = defaultdict(int)
    for nr, name, callers in chains:
        own[name] += nr
        for caller in callers | {name}:
            inclusive[caller] += nr
    draws = draw(chains, samples.nr, seed)
    verdict = Verdict(distance(shares(own), shares(samples.own)), quantile([d[0] for d in draws]))
    if samples.inclusive:
        total = sum(own.values())
        true_shares = {name: nr / total for name, nr in inclusive.items()}
        got = {name: nr / samples.nr for name, nr in samples.inclusive.items()}
        verdict.inclusive = distance(true_shares, got)
        verdict.inclusive_limit = quantile([d[1] for d in draws])
    return verdict


@dataclass
class Run:
    case: Case
    truth: Truth
    samples: Samples

    def judge(self, seen: bool | None = None) -> Verdict:
        seen = self.case.source == "timer" if seen is None else seen
        return judge(self.truth, self.samples, seen, self.case.seed)

    def judge_moved(self) -> Verdict:
        """The same samples, some of them moved from the function that has most to the next."""
        own = dict(self.samples.own)
        first, second = sorted(own, key=own.__getitem__)[:-3:-1]
        nr = round(MOVED * self.samples.nr)
        own[first] -= nr
        own[second] += nr
        moved = Samples(own, {}, [], 0)
        return judge(self.truth, moved, self.case.source == "timer", self.case.seed)


def run(case: Case, kernel: Path, initrd: Path) -> Run:
    symbols = Symbols(kernel)
    with tempfile.TemporaryDirectory(prefix="accuracy-") as name:
        directory = Path(name)
        counts = directory / "counts"
        plugin = plugin_argument(case, symbols, directory / "functions", counts)
        options = qemu.Options(
            kernel=kernel,
            initrd=initrd,
            icount=True,
            append=case.append(),
            extra=["-plugin", plugin],
            timeout=400,
        )
        result = qemu.run(options)
        log = BUILD / "test-logs" / f"accuracy.{case.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(result.log)
        if not result.ok:
            raise AccuracyError(f"{case.name}: {result.error}\n{result.tail()}")
        done = Run(case, read_truth(counts, symbols), read_samples(result.log))
    if any(done.truth.odd.values()):
        raise AccuracyError(f"{case.name}: the plugin has lost its way: {done.truth.odd}")
    if done.samples.nr < case.min_samples:
        raise AccuracyError(f"{case.name}: {done.samples.nr} samples are too few")
    if not done.samples.inclusive:
        raise AccuracyError(f"{case.name}: no table by function in the log")
    return done
