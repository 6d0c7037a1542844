# SPDX-License-Identifier: BSD-2-Clause
"""Boots a kernel with the plugin (truth.c), and reads its counts.

README.md in this folder describes the counts.
"""

from __future__ import annotations

import bisect
import functools
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

sys.dont_write_bytecode = not sys.pycache_prefix
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]
import kallsyms  # noqa: E402
import qemu  # noqa: E402

BUILD = ROOT / os.environ.get("BUILD", "build")
USER = "[user]"
IDLE = "cpu_idle"
OTHER = "[other]"
WINDOW = ("sample_reset", "source_apply")  # called when a program writes to /proc/profile/
# The other work of a timer interrupt; not every kernel has all of these functions.
WORK = ("account_tick", "sched_tick", "timer_tick", "timer_run")
LAST_OF_ENTRY_SECTION = "machine_check_entry"
RETURNS = ("function_return", "function_graph_return")

Counts = dict[str, int]


class AccuracyError(Exception):
    """A run that cannot be judged; the message is the reason."""


class Symbols:
    """A kernel's functions, with the same names as in its reports."""

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


def plugin_argument(
    source: str, window: tuple[str, str], symbols: Symbols, functions: Path, out: Path
) -> str:
    lines = [f"{addr:x}" for addr in [*symbols.starts, symbols.end]]
    functions.write_text("\n".join(lines) + "\n")
    at = {
        "start": window[0],
        "stop": window[1],
        "stubs": "entry_stubs",
        "syscall": "syscall_entry",
        "nmi": "nmi_entry",
        "thread": "thread_entry",
        "switch": "switch_stack",
        "idle": IDLE,
        "sample": "sample_take",
        "schedule": "cputime_clock",
    }
    words = [f"{word}={symbols.addr[name]:#x}" for word, name in at.items()]
    words += [f"work={symbols.addr[name]:#x}" for name in WORK if name in symbols.addr]
    words += [f"timer={header_number('vectors.h', 'VECTOR_TIMER')}", f"sampler={source}"]
    words += [f"functions={functions}", f"out={out}"]
    return ",".join([str(BUILD / "accuracy/truth.so"), *words])


@dataclass
class Chain:
    own: str
    callers: frozenset[str]  # the other active functions
    returned_to: frozenset[str]  # the callers that a return address on the stack leads to
    nr: int
    nr_seen: int


@dataclass
class Interrupts:
    """Sampling interrupts of one kind; their instructions count from the first to the iretq."""

    nr: int = 0
    nr_instructions: int = 0


@dataclass
class Cpu:
    """The instructions of a CPU. Those of its sampling interrupts are separate, by kind."""

    nr_busy: int
    nr_busy_off: int  # with interrupts off
    nr_idle: int
    nr_idle_off: int
    sample_only: Interrupts = field(default_factory=Interrupts)
    sample_and_work: Interrupts = field(default_factory=Interrupts)
    without_sample: Interrupts = field(default_factory=Interrupts)

    @property
    def nr_samples(self) -> int:
        return self.sample_only.nr + self.sample_and_work.nr


KINDS = {"only": "sample_only", "work": "sample_and_work", "none": "without_sample"}


@dataclass
class Stretch:
    """The longest stretch with interrupts off that ended in this chain."""

    nr: int  # instructions
    chain: tuple[str, ...]  # outermost first


@dataclass
class Waits:
    """The waits of threads that were switched out in this chain."""

    chain: tuple[str, ...]  # outermost first
    nr: int
    cycles: int  # by the clock that schedule() reads
    switch_cycles: int  # from switch to switch


@dataclass
class Truth:
    chains: list[Chain] = field(default_factory=list)
    sampler: Counts = field(default_factory=dict)
    cpus: dict[int, Cpu] = field(default_factory=dict)
    odd: Counts = field(default_factory=dict)
    stretches: list[Stretch] = field(default_factory=list)
    waits: list[Waits] = field(default_factory=list)  # right only if no CPU was ever idle
    calls: dict[tuple[str, str], int] = field(default_factory=dict)  # by caller and function
    edges: set[tuple[str, str]] = field(default_factory=set)  # these pairs without the entry code
    paths: set[tuple[str, ...]] = field(default_factory=set)  # see paths_of()

    @property
    def nr_off(self) -> int:
        return sum(cpu.nr_busy_off + cpu.nr_idle_off for cpu in self.cpus.values())

    @property
    def total(self) -> int:
        return sum(chain.nr for chain in self.chains) + sum(self.sampler.values())

    @property
    def sampler_share(self) -> float:
        return sum(self.sampler.values()) / self.total


@dataclass
class Node:
    """A function in a chain of active functions."""

    parent: int  # the caller, or the function that jumped to it; 0: none
    name: str
    is_jumped_to: bool
    nr: int
    nr_seen: int


Nodes = dict[int, Node]


def check_addresses(lines: list[str], nodes: Nodes, symbols: Symbols) -> None:
    """Checks that the plugin's counts by address and by chain give the same functions."""
    by_function: Counts = defaultdict(int)
    for line in lines:
        if line.startswith("address "):
            _, addr, nr, _ = line.split()
            number = bisect.bisect_right(symbols.starts, int(addr, 16)) - 1
            by_function[symbols.names[number]] += int(nr)
    by_chain: Counts = defaultdict(int)
    for node in nodes.values():
        if node.nr and node.name not in (USER, OTHER):
            by_chain[node.name] += node.nr
    if by_function != by_chain:
        raise AccuracyError("the plugin counts differently by address and by call chain")


def chain_names(number: int, nodes: Nodes) -> tuple[str, ...]:
    return (*chain_names(nodes[number].parent, nodes), nodes[number].name) if number else ()


def chains_of(nodes: Nodes, symbols: Symbols) -> list[Chain]:
    """Returns all chains. Functions of the entry code are left out, because samples lack them."""
    active: dict[int, frozenset[str]] = {0: frozenset()}
    returned_to: dict[int, frozenset[str]] = {0: frozenset()}

    def add(number: int) -> None:
        if number in active:
            return
        node = nodes[number]
        own = frozenset() if node.name in symbols.entry else frozenset((node.name,))
        add(node.parent)
        active[number] = active[node.parent] | own
        # The return address on the stack belongs to the call before the tail calls.
        below = number
        while nodes[below].is_jumped_to:
            below = nodes[below].parent
        returned_to[number] = returned_to[nodes[below].parent] | own

    chains = []
    for number, node in nodes.items():
        if not node.nr and not node.nr_seen:
            continue
        add(number)
        # A sample in the entry code has only its address.
        callers = [frozenset(), frozenset()]
        if node.name not in symbols.entry:
            callers = [each[number] - {node.name} for each in (active, returned_to)]
        chains.append(Chain(node.name, *callers, node.nr, node.nr_seen))
    return chains


def paths_of(nodes: Nodes, symbols: Symbols) -> set[tuple[str, ...]]:
    """
    Returns all chains of kernel functions that were ever active, outermost first. As in a walk by
    return addresses, they lack functions that ended in a tail call. (RETURNS are not jumped to: a
    function returns to them instead of its caller, and they stand for the function that has ended.)
    """
    left_out = symbols.entry | {USER, OTHER}

    @functools.cache
    def path(number: int) -> tuple[str, ...]:
        below = number
        while nodes[below].is_jumped_to and nodes[below].name not in RETURNS:
            below = nodes[below].parent
        outer = path(nodes[below].parent) if nodes[below].parent else ()
        name = nodes[number].name
        return outer if name in left_out else (*outer, name)

    return {path(number) for number in nodes}


def read_truth(path: Path, symbols: Symbols) -> Truth:
    truth = Truth()
    nodes: Nodes = {}
    stretches: dict[int, int] = {}
    waits: dict[int, list[int]] = {}
    calls: dict[int, int] = {}
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines or lines[-1] != "end":
        raise AccuracyError("the plugin has written no counts: the window did not end")
    for line in lines[:-1]:
        word, *fields = line.split()
        if word == "node":
            number, parent, function, jumped, nr, nr_seen = map(int, fields)
            nodes[number] = Node(parent, symbols.names[function], bool(jumped), nr, nr_seen)
        elif word == "stretch":
            stretches[int(fields[0])] = int(fields[1])
        elif word == "calls":
            calls[int(fields[0])] = int(fields[1])
        elif word == "waits":
            node, *numbers = map(int, fields)
            waits[node] = numbers
        elif word == "sampler":
            truth.sampler[symbols.names[int(fields[0])]] = int(fields[1])
        elif word == "cpu":
            truth.cpus[int(fields[0])] = Cpu(*map(int, fields[1:]))
        elif word == "interrupts":
            index, kind, nr, nr_instructions = fields
            interrupts = Interrupts(int(nr), int(nr_instructions))
            setattr(truth.cpus[int(index)], KINDS[kind], interrupts)
        elif word.startswith("odd_"):
            truth.odd[word] = int(fields[0])
    check_addresses(lines, nodes, symbols)
    truth.chains = chains_of(nodes, symbols)
    truth.stretches = [Stretch(nr, chain_names(node, nodes)) for node, nr in stretches.items()]
    truth.waits = [Waits(chain_names(node, nodes), *numbers) for node, numbers in waits.items()]
    truth.calls = defaultdict(int)
    for number, nr in calls.items():
        parent = nodes[number].parent
        truth.calls[nodes[parent].name if parent else "", nodes[number].name] += nr
    truth.paths = paths_of(nodes, symbols)
    truth.edges = {path[-2:] for path in truth.paths if len(path) > 1}
    truth.stretches.sort(key=lambda stretch: -stretch.nr)
    return truth


def observe(
    kernel: Path,
    initrd: Path,
    source: str,
    append: str,
    smp: int = 1,
    window: tuple[str, str] = WINDOW,
    timeout: int = 400,
    talk: Callable[[qemu.Guest], None] = lambda guest: None,
    mem: str = "512M",
    get: tuple[str, Path] | None = None,
) -> tuple[Truth, qemu.Result]:
    """
    Boots with -icount, and returns the counts of the last window, which begins and ends with calls
    of these two functions. source: the interrupt that takes samples, `timer` or `nmi`. talk: sends
    keys to the guest. get: a file of the guest, and the folder where its copy goes, because each
    byte on the console takes 3 us of the host.
    """
    symbols = Symbols(kernel)
    with tempfile.TemporaryDirectory(prefix="accuracy-") as name:
        directory = Path(name)
        counts = directory / "counts"
        plugin = plugin_argument(source, window, symbols, directory / "functions", counts)
        options = qemu.Options(
            kernel=kernel,
            initrd=initrd,
            icount=True,
            smp=smp,
            mem=mem,
            append=append,
            extra=["-plugin", plugin],
            timeout=timeout,
        )
        if get:
            options.get, options.get_folder = [get[0]], get[1]
        with qemu.Guest(options) as guest:
            talk(guest)
            result = guest.wait()
        if not result.ok:
            raise AccuracyError(f"{result.error}\n{result.tail()}")
        truth = read_truth(counts, symbols)
    if any(truth.odd.values()):
        raise AccuracyError(f"the plugin could not follow the calls: {truth.odd}")
    return truth, result
