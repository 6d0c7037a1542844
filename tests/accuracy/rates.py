# SPDX-License-Identifier: BSD-2-Clause
"""Judges shares and numbers of samples for more workloads, with each source and at each rate.

`make accuracy` writes the table into results/rates.md. The controls must fail:
samples judged at a higher rate, samples without the lost ones, and inclusive shares of a kernel
with tail calls.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
sys.path.insert(0, str(Path(__file__).resolve().parent))
from accuracy import RATE_SLACK, SOURCES, Case, Rate, Run  # noqa: E402

RATES = (1_000, 10_000, 50_000, 100_000)
WORKLOADS = ("pingpong", "tmpfs", "pagefaults")
WRONG = 0.01  # the controls' rate is higher by this, or by more if there are too few samples
TAIL_CALLS_CASE = Case("syscalls", "nmi", 1, is_control=True)
TAIL_CALLS_NAME = "kernel with tail calls"
BY_RETURNS_NAME = "the same, compared with the truth by return addresses"
LOSING = Case("irqsoff", "timer", 1, is_control=True)  # also the control of table.py
HEAD = (
    "| workload | source | Hz | samples | distance | limit | inclusive | limit "
    "| due by the clock | taken | lost | |"
)
RATE_CONTROL_HEAD = "| control of the rate | due by the clock | taken | lost | |"
CONTROL_HEAD = "| control of inclusive shares | distance | limit | |"


def case(workload: str, source: str, hz: int) -> Case:
    """Returns a run of a quarter of a second. Its rate is exact, but its shares are rough."""
    return Case(workload, source, 1, hz=hz, is_control=True)


def cases() -> list[Case]:
    every = itertools.product(SOURCES, WORKLOADS, RATES)
    return [case(workload, source, hz) for source, workload, hz in every]


def percent(share: float) -> str:
    return f"{100 * share:.2f}"


def render_rate(rate: Rate) -> list[str]:
    low, high = rate.due
    return [f"{low:.1f} to {high:.1f}", str(rate.taken), str(rate.lost)]


def render_row(run: Run) -> str:
    verdict, rate = run.judge(), run.rate()
    is_ok = verdict.ok and verdict.inclusive_ok and rate.ok
    cells = [
        run.case.workload,
        run.case.source,
        str(run.case.hz),
        str(run.samples.nr),
        percent(verdict.distance),
        percent(verdict.limit),
        percent(verdict.inclusive),
        percent(verdict.inclusive_limit),
        *render_rate(rate),
        "agrees" if is_ok else "fails",
    ]
    return "| " + " | ".join(cells) + " |"


def controls(runs: dict[Case, Run]) -> list[tuple[str, Rate]]:
    """Returns the controls, which must fail: runs at a wrong rate, and one without its losses."""
    found = []
    for each in cases():
        if each.workload == WORKLOADS[0]:
            wrong = max(WRONG, (2 * RATE_SLACK + 1) / runs[each].rate().due[0])
            rate = runs[each].rate(round(each.hz * (1 + wrong)))
            name = f"{each.source} at {each.hz} Hz, judged at {100 * wrong:.0f} % more"
            found.append((name, rate))
    losing = runs[LOSING].rate()
    losing.lost = 0
    found.append(("timer on irqsoff, without the lost samples", losing))
    return found


def render_inclusive(tail_calls: Run) -> list[str]:
    lines = []
    for name, by_returns in ((TAIL_CALLS_NAME, False), (BY_RETURNS_NAME, True)):
        verdict = tail_calls.judge(by_returns=by_returns)
        word = "agrees" if verdict.inclusive_ok else "fails"
        distance, limit = percent(verdict.inclusive), percent(verdict.inclusive_limit)
        lines.append(f"| {name} | {distance} | {limit} | {word} |")
    return lines


def render(runs: dict[Case, Run], tail_calls: Run) -> str:
    lines = ["", HEAD, "|" + "---|" * HEAD.count(" | ") + "---|"]
    lines += [render_row(runs[each]) for each in cases()]
    lines += ["", RATE_CONTROL_HEAD, "|---|---|---|---|---|"]
    for name, rate in controls(runs):
        word = "agrees" if rate.ok else "fails"
        lines.append("| " + " | ".join([name, *render_rate(rate), word]) + " |")
    lines += ["", CONTROL_HEAD, "|---|---|---|---|", *render_inclusive(tail_calls)]
    return "\n".join(lines) + "\n\n"


def bad(runs: dict[Case, Run], tail_calls: Run) -> list[str]:
    """Returns the names of runs that fail, and of controls that do not."""
    names = [each.name for each in cases() if render_row(runs[each]).endswith("| fails |")]
    names += [name for name, rate in controls(runs) if rate.ok]
    names += [TAIL_CALLS_NAME] if tail_calls.judge().inclusive_ok else []
    return names + ([] if tail_calls.judge(by_returns=True).inclusive_ok else [BY_RETURNS_NAME])
