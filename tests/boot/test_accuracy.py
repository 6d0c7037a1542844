# SPDX-License-Identifier: BSD-2-Clause
"""Compares the heatmap with a count of all instructions: one seed of each workload, and controls.

tests/accuracy/ explains the method.
"""

import dataclasses
import re
import sys

import pytest

from harness import ROOT

sys.path.insert(0, str(ROOT / "tests/accuracy"))
import accuracy  # noqa: E402
import rates  # noqa: E402
import table  # noqa: E402


@pytest.fixture
def run(builds):
    builds.tools("truth.so", "draws")
    default, initrd = builds.kernel(), builds.initrd("accuracy.cpio")
    return lambda case, kernel=default: accuracy.run(case, kernel, initrd)


ANOTHER_SEED = 100


def must_agree(run, result: accuracy.Run, **how) -> None:
    """
    One run in 1,000 exceeds its limit by chance, and there are many runs here. So a run may exceed
    it if a run with another seed does not.
    """
    verdict = result.judge(**how)
    if not (verdict.ok and verdict.inclusive_ok):
        case = dataclasses.replace(result.case, seed=ANOTHER_SEED)
        verdict = run(case, result.kernel).judge(**how)
    assert verdict.ok, verdict
    assert verdict.inclusive_ok, verdict


def names(controls):
    return [name for name, _, _ in controls]


@pytest.mark.parametrize("workload", accuracy.SOURCES["nmi"])
def test_nmi(run, workload):
    result = run(accuracy.Case(workload, "nmi", 1))
    assert result.samples.nr >= accuracy.MIN_SAMPLES
    must_agree(run, result)
    assert result.rate().ok, result.rate()
    if result.case == table.MOVED_CASE:
        assert not result.judge_moved().ok


COST = re.compile(r"^sampling cost: \d+\.\d\d % of CPU time, (\d+) ns a sample$")
BLIND_SPOT = re.compile(r"^blind spot: at least (\d+\.\d\d) % of busy time ran with interrupts off")


def note(result: accuracy.Run, pattern: re.Pattern[str]) -> float:
    (match,) = filter(None, map(pattern.match, result.samples.notes))
    return float(match[1])


def test_another_seed_and_the_cost_of_nmis(run):
    """
    Another seed gives other samples (test_heatmap_source.py) and the same verdict. The reported
    cost of a sample agrees with the plugin's count within 5 %.
    """
    result = run(accuracy.Case("syscalls", "nmi", 2, is_control=True))
    must_agree(run, result)
    truth = sum(result.truth.sampler.values()) / (result.samples.nr + result.samples.nr_idle)
    assert abs(note(result, COST) - truth) <= 0.05 * truth


def test_cost_and_blind_spot_of_the_timer(run):
    """
    The plugin counts every timer interrupt as the sampler's. One in 50 takes no sample here, so the
    plugin may count a little more.
    """
    result = run(accuracy.Case("syscalls", "timer", 1))
    truth = sum(result.truth.sampler.values())
    nr_off = result.truth.nr_off / (result.truth.total - truth)
    truth /= result.samples.nr + result.samples.nr_idle
    assert 0.92 * truth <= note(result, COST) <= 1.02 * truth
    assert abs(note(result, BLIND_SPOT) - 100 * nr_off) <= 0.05 * 100 * nr_off


def test_timer(run):
    """Timer samples agree with the code that runs with interrupts on, and not with all code."""
    result = run(accuracy.Case("sched", "timer", 1))
    must_agree(run, result, seen=True)
    assert not result.judge(seen=False).ok
    assert result.rate().ok, result.rate()


@pytest.mark.parametrize(
    "workload, source, hz",
    [
        ("pingpong", "nmi", 10_000),
        ("pagefaults", "nmi", 100_000),
        ("tmpfs", "timer", 100_000),
    ],
)
def test_other_rates(run, workload, source, hz):
    result = run(rates.case(workload, source, hz))
    must_agree(run, result)
    assert result.rate().ok, result.rate()
    assert not result.rate(round(hz * rates.WRONG)).ok


@pytest.mark.parametrize(
    "control", table.CONTROLS, ids=names(table.CONTROLS)
)
def test_control_fails(run, control):
    """In one of them many samples are lost: the rate is right only if the lost ones are added."""
    _, case, seen = control
    result = run(case)
    verdict = result.judge(seen)
    assert verdict.distance > 2 * verdict.limit
    if case == rates.LOSING:
        rate = result.rate()
        assert rate.lost > 100 and rate.ok
        rate.lost = 0
        assert not rate.ok


def test_control_tail_calls_fail(run, builds):
    """
    A function that ends in a jump stays active until the return, but its return address is no
    longer on the stack.
    """
    result = run(rates.TAIL_CALLS_CASE, builds.kernel("tail-calls"))
    verdict = result.judge()
    assert not verdict.inclusive_ok
    must_agree(run, result, by_returns=True)


@pytest.mark.parametrize("control", table.JITTER, ids=names(table.JITTER))
def test_jitter_mends_it(run, control):
    _, case, seen = control
    must_agree(run, run(case), seen=seen)


def test_verdicts_are_those_of_the_results():
    assert table.verdicts() == table.render_verdicts()


def test_table_of_seeds():
    """The numbers in the table change with the kernel's code, but the verdicts must not."""
    rows = table.rows("seeds")
    runs = {(row[0], row[1]): row for row in rows if len(row) == 12 and row[0] != "workload"}
    expected = {(w, source) for source, names in accuracy.SOURCES.items() for w in names}
    assert set(runs) == expected
    for row in runs.values():
        assert int(row[2]) >= accuracy.MIN_SAMPLES
        assert len(row[3].split()) == len(row[5].split()) == len(accuracy.SEEDS)
        assert int(row[7].split(" of ")[0]) >= len(accuracy.SEEDS) - 1
        for together in row[8:10]:
            distance, limit = map(float, together.split(" of "))
            assert distance < limit
    controls = {row[0]: row[3] for row in rows if len(row) == 4 and row[0] != "control"}
    fails = {table.MOVED_NAME, *names(table.CONTROLS)}
    assert controls == {name: "fails" if name in fails else "agrees" for name in controls}
    assert set(controls) == fails | set(names(table.JITTER))


def test_table_of_rates():
    rows = table.rows("rates")
    runs = [row for row in rows if len(row) == 12 and row[0] != "workload"]
    cases = [(case.workload, case.source, str(case.hz)) for case in rates.cases()]
    assert [tuple(row[:3]) for row in runs] == cases
    assert {row[11] for row in runs} == {"agrees"}
    controls = {row[0]: row[-1] for row in rows if len(row) in (4, 5) and "control" not in row[0]}
    assert controls.pop(rates.BY_RETURNS_NAME) == "agrees"
    assert rates.TAIL_CALLS_NAME in controls and len(controls) > 3
    assert set(controls.values()) == {"fails"}
