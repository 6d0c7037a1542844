# SPDX-License-Identifier: BSD-2-Clause
"""Compares call chains of samples with the truth, while functions are counted or traced.

The plugin records all chains of functions that were ever active. NMIs take samples at any
instruction. Each sampled chain must be one of the plugin's, from its first function to its last,
and none may be truncated inside the kernel. `make accuracy` writes the table into
results/chains.md.
"""

from __future__ import annotations

import bisect
import itertools
import json
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
sys.path.insert(0, str(Path(__file__).resolve().parent))
from truth import BUILD, Symbols, Truth, observe  # noqa: E402

COPY = "/tmp/chains"  # the program copies all call chains of samples to this file
COUNTING = "/proc/profile/function_calls"
TRACER = "/sys/kernel/tracing/current_tracer"
# For each state, the file, and the words that the program writes to it before and after its work.
# While functions are hooked, to copy the samples takes several times as long as the work.
STATES = {
    "left out": ("/proc/profile/heatmap", "on", "off"),
    "off": (COUNTING, "off", "off"),
    "counting": (COUNTING, "on", "off"),
    "function": (TRACER, "function", "nop"),
    "function_graph": (TRACER, "function_graph", "nop"),
}
WORKLOADS = ("syscalls", "faults", "sched", "irqsoff")
HZ = 100_000
CYCLES = 300_000_000
INTERRUPT = "do_vector"
# Ends when no more samples are taken. Before that, they can hit change_source() and source_apply().
WINDOW = ("sample_reset", "off_time_switch")
TRUNCATED = {"off the stack", "a return address that is none"}

Chain = tuple[str, ...]


def read_chains(log: str, symbols: Symbols) -> set[Chain]:
    """
    Returns the kernel's part of records of samples, outermost first, without entry code. Truncated
    chains begin with the reason.
    """
    chains = set()
    for line in log.splitlines():
        if not line.startswith('{"cpu":'):
            continue
        row = json.loads(line)
        chain = [row["truncated"]] if row["truncated"] in TRUNCATED else []
        for i, pc in reversed([*enumerate(row["kernel"] or [])]):
            name = symbols.names[bisect.bisect_right(symbols.starts, int(pc, 16) - (i > 0)) - 1]
            chain += [] if name in symbols.entry else [name]
        chains.add(tuple(chain))
    return chains - {()}


def is_true(chain: Chain, truth: Truth) -> bool:
    """
    Returns whether the plugin has seen the chain. An interrupt may hit the first instruction of a
    function, which is then not active yet for the plugin.
    """
    paths = [chain]
    for at, name in enumerate(chain):
        if at and name == INTERRUPT:
            paths += [path[: at - len(chain) - 1] + path[at - len(chain) :] for path in paths]
    return not truth.paths.isdisjoint(paths)


def kernel(state: str) -> Path:
    """Returns the kernel for a state. `make functions-kernel` builds the one for most states."""
    return BUILD / ("vmlinux" if state == "left out" else "variants/functions/vmlinux")


def compare(
    kernel: Path, initrd: Path, workload: str, state: str, cycles: int = CYCLES
) -> tuple[int, list[Chain]]:
    """Returns the number of different chains, and those that are wrong."""
    words = " ".join(STATES[state])
    append = (
        f"profile.source=nmi profile.hz={HZ} profile.seed=1 profile.samples=2097152 "
        f"profile.on_exit=none init=/bin/accuracy -- {workload} 1 {cycles} {words}"
    )
    with tempfile.TemporaryDirectory(prefix="chains-") as name:
        folder = Path(name)
        truth, _ = observe(kernel, initrd, "nmi", append, window=WINDOW, get=(COPY, folder))
        lines = (folder / COPY.lstrip("/")).read_text()
    symbols = Symbols(kernel)
    chains = read_chains(lines, symbols)
    return len(chains), [chain for chain in chains if not is_true(chain, truth)]


Case = tuple[str, str]  # a workload and a state


def cases() -> list[Case]:
    return list(itertools.product(WORKLOADS, STATES))


def render(results: dict[Case, tuple[int, list[Chain]]]) -> str:
    lines = ["", "| workload | functions | chains | wrong |", "|---|---|---|---|"]
    for workload, state in cases():
        nr, wrong = results[workload, state]
        lines.append(f"| {workload} | {state} | {nr} | {len(wrong)} |")
    return "\n".join(lines) + "\n\n"
