# SPDX-License-Identifier: BSD-2-Clause
"""The heatmap against the truth: one seed of each workload, and the controls (tests/accuracy/)."""

import sys

import pytest

from harness import BUILD, ROOT, make

sys.path.insert(0, str(ROOT / "tests/accuracy"))
import accuracy  # noqa: E402
import table  # noqa: E402


@pytest.fixture
def run(builds):
    build = BUILD.relative_to(ROOT)
    make(f"BUILD={build}", f"{build}/accuracy/truth.so", f"{build}/accuracy/draws")
    kernel, initrd = builds.kernel(), builds.initrd()
    return lambda case: accuracy.run(case, kernel, initrd)


def must_agree(verdict: accuracy.Verdict) -> None:
    assert verdict.distance < verdict.limit
    assert verdict.inclusive_ok, (verdict.inclusive, verdict.inclusive_limit)


def names(controls):
    return [name for name, _, _ in controls]


@pytest.mark.parametrize("workload", accuracy.SOURCES["nmi"])
def test_nmi(run, workload):
    result = run(accuracy.Case(workload, "nmi", 1))
    assert result.samples.nr >= accuracy.MIN_SAMPLES
    must_agree(result.judge())
    if result.case == table.MOVED_CASE:
        assert not result.judge_moved().ok


def test_another_seed(run):
    """Other samples (test_heatmap_source.py), the same verdict."""
    must_agree(run(accuracy.Case("syscalls", "nmi", 2, is_control=True)).judge())


def test_timer(run):
    """It agrees with what can be seen with interrupts on, and with that only."""
    result = run(accuracy.Case("sched", "timer", 1))
    must_agree(result.judge(seen=True))
    assert not result.judge(seen=False).ok


@pytest.mark.parametrize(
    "control", table.CONTROLS, ids=names(table.CONTROLS)
)
def test_control_fails(run, control):
    _, case, seen = control
    verdict = run(case).judge(seen)
    assert verdict.distance > 2 * verdict.limit


@pytest.mark.parametrize("control", table.JITTER, ids=names(table.JITTER))
def test_jitter_mends_it(run, control):
    _, case, seen = control
    assert run(case).judge(seen).ok


def test_table_in_readme():
    """Its figures change with the kernel's code; what they say must not."""
    block = table.block(table.README.read_text())
    rows = [line.strip("| ").split(" | ") for line in block.splitlines() if line.startswith("| ")]
    runs = {(row[0], row[1]): row for row in rows if len(row) == 10 and row[0] != "workload"}
    expected = {(w, source) for source, names in accuracy.SOURCES.items() for w in names}
    assert set(runs) == expected
    for row in runs.values():
        assert int(row[2]) >= accuracy.MIN_SAMPLES
        assert len(row[3].split()) == len(row[5].split()) == len(accuracy.SEEDS)
        assert row[7] == f"{len(accuracy.SEEDS)} of {len(accuracy.SEEDS)}"
    controls = {row[0]: row[3] for row in rows if len(row) == 4 and row[0] != "control"}
    fails = {table.MOVED_NAME, *names(table.CONTROLS)}
    assert controls == {name: "fails" if name in fails else "agrees" for name in controls}
    assert set(controls) == fails | set(names(table.JITTER))
