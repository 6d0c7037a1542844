#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes all runs of accuracy.py and writes their tables, and the verdicts on them.

`make accuracy` builds all that is needed and calls this. The 104 runs take some 28 minutes of CPU
time, one on each CPU at a time. Prints each verdict as it comes. Exits with 1 if a distance is
above its limit, a chain is wrong, or a control does not fail. --only makes one of the tables:
`seeds` (five runs of each workload), `rates` (rates.py), `chains` (chains.py) or `user_chains`
(user_chains.py). They are in results/; kernel/profile/measurements.md has one table of verdicts,
which is made from them.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
sys.path.insert(0, str(Path(__file__).resolve().parent))
import chains  # noqa: E402
import rates  # noqa: E402
import user_chains  # noqa: E402
from accuracy import (  # noqa: E402
    MOVED,
    SEEDS,
    SOURCES,
    TAIL_CALLS,
    Case,
    Run,
    Verdict,
    run,
    together,
)
from truth import BUILD, ROOT, AccuracyError, Truth  # noqa: E402

PAGE = ROOT / "kernel/profile/measurements.md"
RESULTS = ROOT / "tests/accuracy/results"
LINK = "../../tests/accuracy/results"
TITLES = {
    "seeds": "Samples and the truth, five seeds of each workload",
    "rates": "Shares and numbers of samples, by rate",
    "chains": "Call chains while functions are counted and traced",
    "user_chains": "Call chains of user code, by kind of program",
}
MADE_BY = "Made by `make accuracy`; [tests/accuracy/](../README.md#tables) explains it."
BEGIN = "<!-- made by `make accuracy` -->"
END = "<!-- end of what it made -->"
# The name, the case, and whether to compare only with what the timer can see.
CONTROLS = (
    ("timer on irqsoff, all instructions", Case("irqsoff", "timer", 1, is_control=True), False),
    ("timer on periodic, no jitter", Case("periodic", "timer", 1, False, True), True),
    ("nmi on periodic, no jitter", Case("periodic", "nmi", 1, False, True), False),
)
JITTER = (
    ("timer on periodic, jitter", Case("periodic", "timer", 1, is_control=True), True),
    ("nmi on periodic, jitter", Case("periodic", "nmi", 1, is_control=True), False),
)
MOVED_CASE = Case("syscalls", "nmi", 1)
MOVED_NAME = f"nmi on syscalls, {MOVED:.0%} of all samples moved from one function to another"


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f}"


def nr_below(verdicts: list[Verdict]) -> int:
    return sum(v.ok and v.inclusive_ok for v in verdicts)


def render_row(source: str, workload: str, runs: list[Run]) -> str:
    verdicts, every = [run.judge() for run in runs], together(runs).judge()
    cells = [
        workload,
        source,
        str(min(run.samples.nr for run in runs)),
        " ".join(percent(v.distance) for v in verdicts),
        percent(min(v.limit for v in verdicts)),
        " ".join(percent(v.inclusive) for v in verdicts),
        percent(min(v.inclusive_limit for v in verdicts)),
        f"{nr_below(verdicts)} of {len(verdicts)}",
        f"{percent(every.distance)} of {percent(every.limit)}",
        f"{percent(every.inclusive)} of {percent(every.inclusive_limit)}",
        percent(max(run.truth.sampler_share for run in runs)),
        percent(max(run.truth.nr_off / run.truth.total for run in runs), 0),
    ]
    return "| " + " | ".join(cells) + " |"


def render_control(name: str, verdict: Verdict) -> str:
    word = "agrees" if verdict.ok else "fails"
    return f"| {name} | {percent(verdict.distance)} | {percent(verdict.limit)} | {word} |"


def render_left_out(source: str, truth: Truth) -> str:
    parts = sorted(truth.sampler.items(), key=lambda item: (-item[1], item[0]))
    shown = [(name, nr) for name, nr in parts if nr >= truth.total / 1e5]
    listed = [f"`{name}` {percent(nr / truth.total, 3)}" for name, nr in shown]
    rest = sum(nr for _, nr in parts) - sum(nr for _, nr in shown)
    return f"- {source}: " + ", ".join(listed) + f", others {percent(rest / truth.total, 3)}"


def render(runs: dict[Case, Run]) -> str:
    lines = [
        "",
        "| workload | source | samples | distance, by seed | limit | inclusive | limit "
        "| below | all seeds | inclusive | left out | interrupts off |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for source, workloads in SOURCES.items():
        for workload in workloads:
            mine = [runs[Case(workload, source, seed)] for seed in SEEDS]
            lines.append(render_row(source, workload, mine))
    lines += ["", "| control | distance | limit | |", "|---|---|---|---|"]
    lines.append(render_control(MOVED_NAME, runs[MOVED_CASE].judge_moved()))
    for name, case, seen in CONTROLS + JITTER:
        lines.append(render_control(name, runs[case].judge(seen)))
    lines += ["", "Left out (of the system calls, seed 1), in % of all instructions:", ""]
    for source in SOURCES:
        lines.append(render_left_out(source, runs[Case("syscalls", source, 1)].truth))
    return "\n".join(lines) + "\n\n"


def rows(name: str) -> list[list[str]]:
    """Returns the cells of all rows of a file of results, headings included."""
    lines = (RESULTS / f"{name}.md").read_text().splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]


def render_verdicts() -> str:
    """Returns the table of verdicts, from the files of results."""
    seeds = [row for row in rows("seeds") if len(row) == 12 and " of " in row[7]]
    judged = [row for row in rows("seeds") + rows("rates") if row[-1] in ("agrees", "fails")]
    by_rate = [row[-1] for row in judged if len(row) == 12]
    controls = {row[0]: row[-1] for row in judged if len(row) < 12}
    sound = [rates.BY_RETURNS_NAME, *(name for name, _, _ in JITTER)]
    right = [controls.pop(name) for name in sound]
    wrong = list(controls.values())
    chain_rows = [row for row in rows("chains") if row[-1].isdecimal()]
    below, runs = (sum(nrs) for nrs in zip(*(map(int, row[7].split(" of ")) for row in seeds)))
    every = [[float(x) for x in cell.split(" of ")] for row in seeds for cell in row[8:10]]
    nr_within = sum(distance < limit for distance, limit in every)
    shares = {row[0]: row[2] for row in rows("user_chains") if row[2].endswith("%")}
    enough = [row for row, share in shares.items() if float(share[:-1]) >= 100 * user_chains.LEAST]
    nr_chains, nr_wrong = (sum(int(row[column]) for row in chain_rows) for column in (2, 3))
    table = (
        "| question | verdict | table |",
        "|---|---|---|",
        "| Do the samples of a run say where the time went? Seven workloads, five seeds each "
        f"| {below} of {runs} runs are within chance | [seeds]({LINK}/seeds.md) |",
        "| Is there a bias that the noise of one run hides? Five runs as one "
        f"| {nr_within} of {len(every)} distances are below their limits "
        f"| [seeds]({LINK}/seeds.md) |",
        "| Are there as many samples as the rate says, 1 to 100 kHz? "
        f"| {by_rate.count('agrees')} of {len(by_rate)} runs agree | [rates]({LINK}/rates.md) |",
        "| Are call chains right while functions are counted or traced? "
        f"| {nr_wrong} of {nr_chains} chains are wrong | [chains]({LINK}/chains.md) |",
        "| Are user call chains right and whole? Programs with at least "
        f"{user_chains.LEAST:.0%} of such samples | {len(enough)} of {len(shares)} kinds, not "
        f"{', '.join(kind for kind in shares if kind not in enough)} "
        f"| [user chains]({LINK}/user_chains.md) |",
        "| Does the comparison find errors? Controls with an error "
        f"| {wrong.count('fails')} of {len(wrong)} fail, as they must | seeds, rates |",
        "| Does it accept what is right? The same controls without the error "
        f"| {right.count('agrees')} of {len(right)} agree | seeds, rates |",
    )
    return "\n".join(["", *table]) + "\n\n"


def verdicts() -> str:
    """Returns the table of verdicts in measurements.md."""
    text = PAGE.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise AccuracyError(f"{PAGE}: there must be one {BEGIN} and one {END}")
    return text.split(BEGIN)[1].split(END)[0].removeprefix("\n")


def write(name: str, made: str) -> None:
    """Writes a file of results, and renews the verdicts."""
    head = f"# {TITLES[name]}\n\n{MADE_BY}\n"
    (RESULTS / f"{name}.md").write_text(head + made.rstrip("\n") + "\n")
    text = PAGE.read_text()
    old = verdicts()
    PAGE.write_text(text.replace(f"{BEGIN}\n{old}{END}", f"{BEGIN}\n{render_verdicts()}{END}"))


def seed_cases() -> list[Case]:
    cases = [Case(w, source, seed) for source in SOURCES for w in SOURCES[source] for seed in SEEDS]
    return cases + [case for _, case, _ in CONTROLS + JITTER]


def take_cpu(cpus: multiprocessing.Queue) -> None:
    os.sched_setaffinity(0, {cpus.get()})


def executor() -> concurrent.futures.Executor:
    """Returns an executor that makes one run at a time on each CPU."""
    cpus: multiprocessing.Queue = multiprocessing.Queue()
    usable = sorted(os.sched_getaffinity(0))
    for cpu in usable:
        cpus.put(cpu)
    return concurrent.futures.ProcessPoolExecutor(len(usable), None, take_cpu, (cpus,))


def run_all(cases: list[Case], kernel: Path, initrd: Path) -> dict[Case, Run]:
    done: dict[Case, Run] = {}
    with executor() as pool:
        futures = [pool.submit(run, case, kernel, initrd) for case in cases]
        for future in concurrent.futures.as_completed(futures):
            result = future.result()
            done[result.case] = result
            verdict = result.judge()
            print(
                f"accuracy: {result.case.name}: {result.samples.nr} samples, distance "
                f"{percent(verdict.distance)} % (limit {percent(verdict.limit)}), inclusive "
                f"{percent(verdict.inclusive)} % (limit {percent(verdict.inclusive_limit)})",
                flush=True,
            )
    return done


def make_chains(initrd: Path) -> list[str]:
    """Writes the table of call chains, and returns the cases in which a chain is wrong."""
    cases = chains.cases()
    with executor() as pool:
        futures = [
            pool.submit(chains.compare, chains.kernel(state), initrd, workload, state)
            for workload, state in cases
        ]
        results = {case: future.result() for case, future in zip(cases, futures)}
    made = chains.render(results)
    write("chains", made)
    print(made, end="")
    return [f"chains of {case}: {wrong}" for case, (_, wrong) in results.items() if wrong]


def make_user_chains(kernel: Path) -> list[str]:
    """Writes the table of user code's chains, and returns what is wrong."""
    names = [name for name, kind in user_chains.KINDS.items() if kind.is_possible]
    with executor() as pool:
        kinds = [user_chains.KINDS[name] for name in names]
        results = dict(zip(names, pool.map(user_chains.observe, kinds, [kernel] * len(kinds))))
    made = user_chains.render(results)
    write("user_chains", made)
    print(made, end="")
    return user_chains.bad(results)


def bad_seeds(runs: dict[Case, Run]) -> list[str]:
    bad = []
    for source, workload in ((s, w) for s, workloads in SOURCES.items() for w in workloads):
        mine = [runs[Case(workload, source, seed)] for seed in SEEDS]
        every = together(mine).judge()
        # One distance in 1,000 exceeds its limit by chance, and there are 70 here.
        if nr_below([run.judge() for run in mine]) < len(SEEDS) - 1:
            bad.append(f"{workload}-{source}: more than one seed")
        if not (every.ok and every.inclusive_ok):
            bad.append(f"{workload}-{source}: all seeds together")
    bad += [case.name for case in seed_cases() if case.jitter and not runs[case].rate().ok]
    bad += [name for name, case, seen in CONTROLS if runs[case].judge(seen).ok]
    bad += [name for name, case, seen in JITTER if not runs[case].judge(seen).ok]
    bad += [MOVED_NAME] if runs[MOVED_CASE].judge_moved().ok else []
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", type=Path, default=BUILD / "vmlinux")
    parser.add_argument("--initrd", type=Path, default=BUILD / "accuracy.cpio")
    parser.add_argument("--only", choices=TITLES)
    args = parser.parse_args()
    bad = []
    try:
        if args.only in (None, "seeds"):
            runs = run_all(seed_cases(), args.kernel, args.initrd)
            made = render(runs)
            write("seeds", made)
            print(made, end="")
            bad += bad_seeds(runs)
        if args.only in (None, "chains"):
            bad += make_chains(args.initrd)
        if args.only in (None, "user_chains"):
            bad += make_user_chains(args.kernel)
        if args.only in (None, "rates"):
            runs = run_all([*rates.cases(), rates.LOSING], args.kernel, args.initrd)
            tail_calls = run(rates.TAIL_CALLS_CASE, TAIL_CALLS, args.initrd)
            made = rates.render(runs, tail_calls)
            write("rates", made)
            print(made, end="")
            bad += rates.bad(runs, tail_calls)
    except AccuracyError as error:
        print(f"accuracy: error: {error}", file=sys.stderr)
        return 1
    for name in bad:
        print(f"accuracy: error: {name}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
