# SPDX-License-Identifier: BSD-2-Clause
"""Compares the heatmap with the truth.

A run boots the kernel with -icount and one CPU, and runs tests/user/profile/accuracy.c. The heatmap
profiles this program and prints all its rows. Meanwhile a QEMU plugin (truth.c) counts every
executed instruction, by function and call chain. The distance between the two is half the sum, over
all functions, of the differences of their shares (total variation distance). It must be below the
limit: of 1,000 random draws of as many samples from the truth, 999 have a smaller distance
(draws.c).

Neither side includes cpu_idle(), which executes hlt. The truth does not include the sampling
interrupt, which cannot sample itself. The tables give its share. User code is one row.

With profile.source=nmi, the truth is all other instructions. The timer cannot sample code that runs
with interrupts off. So its truth is what it can see: the time of such code counts for the
instruction at which interrupts come on again.

Inclusive shares are compared in the same way. In the truth, a function has all instructions that
are executed while it is active: from its first instruction until the return to the address that is
then on the stack. The entry code is left out, because no call chain has it. For a sample in the
entry code, only its address is known.

The rate is compared with the clock. The program reads the TSC around its work, which gives the
number of samples due. It must equal the samples in the report plus the lost ones, within one for
each CPU and each time that sampling is switched on or off. The plugin must have seen as many
samples as the report has.

table.py makes all runs and writes their table. tests/boot/test_accuracy.py makes some of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "boot")]
sys.path[:0] = [str(Path(__file__).resolve().parent)]
import report  # noqa: E402
from truth import BUILD, IDLE, AccuracyError, Counts, Truth, observe  # noqa: E402

TAIL_CALLS = BUILD / "variants/tail-calls/vmlinux"  # made by `make tail-call-kernel`
SEEDS = (1, 2, 3, 4, 5)
SOURCES = {
    "nmi": ("syscalls", "faults", "sched", "irqsoff"),
    "timer": ("syscalls", "faults", "sched"),
}
HZ = 50_000  # gives many samples; at twice this rate, the sampler takes much of the time
TSC_HZ = 1_000_000_000  # with -icount shift=0, an instruction takes one cycle and one nanosecond
MIN_SAMPLES = 50_000
CYCLES = 1_040_000_000
CONTROL_CYCLES = 260_000_000
NR_DRAWS = 1000
QUANTILE = 0.999
RATE_SLACK = 2  # one for the CPU, one for switching sampling off
MOVED = 0.02  # of all samples: if they move to another function, the comparison must notice it


@dataclass(frozen=True)
class Case:
    workload: str
    source: str
    seed: int
    jitter: bool = True
    is_control: bool = False  # a short run with few samples
    hz: int = HZ
    more: str = ""  # boot parameters

    @property
    def name(self) -> str:
        seed = self.seed if self.jitter else "none"
        return f"{self.workload}-{self.source}-{self.hz}-{seed}"

    @property
    def cycles(self) -> int:
        return CONTROL_CYCLES if self.is_control else CYCLES

    @property
    def min_samples(self) -> int:
        return 0 if self.is_control else MIN_SAMPLES * self.hz // HZ

    def append(self) -> str:
        words = [
            f"profile.source={self.source} profile.hz={self.hz} profile.top=all",
            f"profile.seed={self.seed if self.jitter else 'none'}",
            "profile.heatmap=functions profile.samples=2097152 profile.on_exit=none",
            f"{self.more} init=/bin/accuracy --",
            f"{self.workload} {self.seed} {self.cycles}",
        ]
        if self.workload == "periodic":
            words.append(str(round(TSC_HZ / self.hz)))
        return " ".join(words)


FUNCTION_ROW = re.compile(
    r"^(?:\[ *\d+\.\d+\] )?([0-9a-f]{16}) +(\S+) +(\d+) +\d+\.\d\d +(\d+) +\d+\.\d\d +\d+\r?$", re.M
)


# The report's line about lost samples.
LOST = re.compile(r"^(\d+) of \d+ expected samples lost: ")
CLOCK = re.compile(r"^clock (\d+) (\d+)\r?$", re.MULTILINE)


@dataclass
class Samples:
    own: Counts
    inclusive: Counts
    notes: list[str]
    nr_idle: int
    nr_lost: int = 0
    clock: tuple[int, int] = (0, 0)  # TSC cycles of sampling, at least and at most

    @property
    def nr(self) -> int:
        return sum(self.own.values())


def read_samples(log: str) -> Samples:
    reports = report.parse(log)
    if len(reports) != 1 or not reports[0].heatmap:
        raise AccuracyError("the log must have exactly one report, with a heatmap")
    heatmap = reports[0].heatmap
    wrong = report.check(reports[0])
    if wrong:
        raise AccuracyError("; ".join(wrong))
    own: Counts = defaultdict(int)
    inclusive: Counts = defaultdict(int)
    for _, name, nr, nr_inclusive in FUNCTION_ROW.findall(log):
        own[name] += int(nr)
        inclusive[name] += int(nr_inclusive)
    nr_idle = own.pop(IDLE, 0)
    inclusive.pop(IDLE, None)
    nr_lost = sum(int(match[1]) for match in map(LOST.match, heatmap.notes) if match)
    clocks = CLOCK.findall(log)
    if len(clocks) != 1:
        raise AccuracyError("the program has not printed how long it was sampled")
    clock = int(clocks[0][0]), int(clocks[0][1])
    return Samples(dict(own), dict(inclusive), heatmap.notes, nr_idle, nr_lost, clock)


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


@dataclass
class Rate:
    """Numbers of samples on one CPU, after sampling was switched off once."""

    due: tuple[float, float]  # by the clock, at least and at most
    taken: int
    lost: int
    seen: int  # by the plugin

    @property
    def ok(self) -> bool:
        low, high = self.due[0] - RATE_SLACK, self.due[1] + RATE_SLACK
        return low <= self.taken + self.lost <= high and abs(self.taken - self.seen) <= 1


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


def judge(
    truth: Truth, samples: Samples, seen: bool, seed: int = 1, by_returns: bool = False
) -> Verdict:
    """
    seen: the truth is what a sampler sees that cannot interrupt code with interrupts off.
    by_returns: inclusive shares only count functions that a return address leads to.
    """
    chains = [
        (
            chain.nr_seen if seen else chain.nr,
            chain.own,
            chain.returned_to if by_returns else chain.callers,
        )
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
    kernel: Path
    truth: Truth
    samples: Samples

    def judge(self, seen: bool | None = None, by_returns: bool = False) -> Verdict:
        seen = self.case.source == "timer" if seen is None else seen
        return judge(self.truth, self.samples, seen, self.case.seed, by_returns)

    def rate(self, hz: int | None = None) -> Rate:
        """hz: the rate to compare with, if not the run's own."""
        low, high = ((hz or self.case.hz) * cycles / TSC_HZ for cycles in self.samples.clock)
        taken = self.samples.nr + self.samples.nr_idle
        return Rate((low, high), taken, self.samples.nr_lost, self.truth.cpus[0].nr_samples)

    def judge_moved(self) -> Verdict:
        """Judges the samples after moving some from the most frequent function to the second."""
        own = dict(self.samples.own)
        first, second = sorted(own, key=own.__getitem__)[:-3:-1]
        nr = round(MOVED * self.samples.nr)
        own[first] -= nr
        own[second] += nr
        moved = Samples(own, {}, [], 0)
        return judge(self.truth, moved, self.case.source == "timer", self.case.seed)


def together(runs: list[Run]) -> Run:
    """Joins samples and truth of several runs to those of one, in which chance has less effect."""
    own: Counts = defaultdict(int)
    inclusive: Counts = defaultdict(int)
    for each in runs:
        for name, nr in each.samples.own.items():
            own[name] += nr
        for name, nr in each.samples.inclusive.items():
            inclusive[name] += nr
    chains = [chain for each in runs for chain in each.truth.chains]
    nr_idle = sum(each.samples.nr_idle for each in runs)
    return Run(runs[0].case, runs[0].kernel, Truth(chains), Samples(own, inclusive, [], nr_idle))


def run(case: Case, kernel: Path, initrd: Path) -> Run:
    truth, result = observe(kernel, initrd, case.source, case.append())
    log = BUILD / "test-logs" / f"accuracy.{case.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(result.log)
    done = Run(case, kernel, truth, read_samples(result.log))
    if done.samples.nr < case.min_samples:
        raise AccuracyError(f"{case.name}: {done.samples.nr} samples are too few")
    if not done.samples.inclusive:
        raise AccuracyError(f"{case.name}: no table by function in the log")
    return done
