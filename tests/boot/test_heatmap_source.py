# SPDX-License-Identifier: BSD-2-Clause
"""Where samples come from: what each source sees, and says it cannot see; rates; determinism."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import ktap
import qemu
import report
from harness import run_until_equal
from test_heatmap import CPU_ROW, check_views, tables_of
from test_panic import PANIC_EXIT_CODE

DUE = re.compile(r"^due: (\d+) = taken (\d+) \+ missed (\d+) \+ own (\d+)$")
UNSEEN = re.compile(r"^unseen: (\d+\.\d\d) % of CPU time \((\d+) of (\d+) came over (\d+) ns late")
IRQS_OFF = re.compile(r"^interrupts off: (\d+\.\d\d) % of samples \((\d+) of (\d+)\)$")
SELF = re.compile(r"^sampling took (\d+) ns a sample, (\d+\.\d\d) % of all CPUs' time$")
STRETCH = re.compile(r"^\[.*\] +(\d+) +(\d+) +\d+  .{15}  [0-9a-f]{16}  (\S+)$", re.MULTILINE)


def note(heatmap: report.Heatmap, pattern: re.Pattern[str]) -> re.Match[str]:
    (match,) = filter(None, map(pattern.match, heatmap.notes))
    return match


def due(heatmap: report.Heatmap, nr_late: int = 100) -> tuple[int, int, int, int]:
    """
    Due, taken, missed, own: they add up, and every sample that was taken is in the table, but for
    those that came while the report began.
    """
    nr_due, taken, missed, own = map(int, note(heatmap, DUE).groups())
    assert nr_due == taken + missed + own
    assert heatmap.total[0] <= taken <= heatmap.total[0] + nr_late
    return nr_due, taken, missed, own


def source(heatmap: report.Heatmap) -> str:
    (line,) = (line for line in heatmap.notes if line.startswith("source: "))
    return line.removeprefix("source: ")


def heatmap_of(log: str) -> report.Heatmap:
    found = report.parse(log)[-1].heatmap
    assert found
    return found


def test_900_ms_with_interrupts_off(boot):
    """tests/kernel/test_source.c prints one report for each source, of the same work."""
    tests = "source.nmi_sees_it,source.timer_tells*"
    log = boot(None, append=f"selftest={tests}", variant="selftest", icount=True, timeout=400).log
    assert all(test.ok for suite in ktap.parse(log) for test in suite.tests)
    found = {each.why: each.heatmap for each in report.parse(log)}

    nmi = found["source=nmi"]
    assert source(nmi) == "nmi by HPET, 1000 Hz, seed 1"
    nr_due, _, missed, _ = due(nmi)
    assert 895 <= nr_due <= 905 and missed == 0
    assert nmi.rows[0].name == "burn_here" and nmi.rows[0].nr >= 0.95 * nr_due
    percent, irqs_off, of = note(nmi, IRQS_OFF).groups()
    assert nmi.rows[0].nr <= int(irqs_off) <= int(of) == nr_due
    assert percent == report.percent(int(irqs_off), int(of))

    timer = found["source=timer"]
    nr_due, taken, missed, own = due(timer)
    assert 895 <= nr_due <= 905 and taken < 10 and missed >= 0.95 * 900 and own == 0
    percent, unseen, of, _ = note(timer, UNSEEN).groups()
    assert int(of) == nr_due and missed < int(unseen) <= missed + taken
    assert percent == report.percent(int(unseen), int(of)) and float(percent) >= 95
    stretches = STRETCH.findall(log[log.index("source=timer") :])
    assert stretches and int(stretches[0][0]) > 890_000_000
    assert stretches[0][2].startswith("work_with_interrupts_off+")


@pytest.mark.parametrize(
    "parameters",
    ["", "profile.source=nmi", "profile.seed=none profile.hz=100", "profile.hz=20000"],
)
@pytest.mark.parametrize("program, smp", [("threads", 1), ("hello", 4)])
def test_two_runs_are_equal(boot, program, smp, parameters):
    options = {"smp": smp, "icount": True, "append": parameters, "timeout": 240}
    run_until_equal(lambda: boot(program, **options).log)


@pytest.mark.parametrize("kind", ["timer", "nmi"])
def test_seed_changes_the_samples(boot, kind):
    def rows(seed: object) -> list[tuple[str, int]]:
        append = f"profile.source={kind} profile.seed={seed} profile.top=all"
        heatmap = heatmap_of(boot("threads", icount=True, append=append, timeout=180).log)
        assert f"seed {seed}" in source(heatmap)
        nr_due, _, missed, _ = due(heatmap)
        assert nr_due and not missed
        return [(row.address, row.nr) for row in heatmap.rows]

    assert rows(1) != rows(2)


@pytest.mark.parametrize("kind", ["timer", "nmi"])
@pytest.mark.parametrize("hz", [1, 997, 20000, 100000])
def test_rate_with_icount(boot, kind, hz):
    """Time is instructions: there are as many as there must be; two may meet interrupts off."""
    append = f"profile.source={kind} profile.hz={hz}"
    log = boot("spin", 300, icount=True, append=append, timeout=240).log
    heatmap = heatmap_of(log)
    assert f"{hz} Hz" in source(heatmap)
    nr_due, taken, missed, own = due(heatmap)
    assert missed <= (nr_due // 1000 if kind == "timer" else 0)
    assert own <= nr_due * hz * 2e-6
    if hz > 1:
        # From the program's start to the report's.
        assert 0.3 * hz <= nr_due <= 0.5 * hz
        assert heatmap.split["user"] > 0.5 * heatmap.split["ticks"]
        # What the sampler says that it took, of the time in which so many were due.
        ns, share = map(float, note(heatmap, SELF).groups())
        most, least = ((ns + d) * taken * hz / nr_due * 1e-7 for d in (1, -1))
        assert 100 <= ns <= 2000 and least - 0.01 <= share <= most + 0.01


@pytest.mark.parametrize(
    "qemu_args, name",
    [
        (["-no-hpet"], "PIT"),
        (["-no-hpet", "-machine", "pit=off"], "IPI of CPU 0's timer"),
    ],
)
def test_other_sources_of_nmis(boot, qemu_args, name):
    append = "profile.source=nmi"
    options = boot.options("spin", 300, smp=2, icount=True, append=append, timeout=240)
    result = boot.finish(qemu.run(replace(options, extra=qemu_args)), ok=True, check=True)
    heatmap = heatmap_of(result.log)
    assert source(heatmap).startswith(f"nmi by {name}, 997 Hz")
    nr_due, taken, missed, _ = due(heatmap)
    assert nr_due > 2 * 0.3 * 997 and taken > 0.5 * nr_due
    assert heatmap.split["user"] > 100


STORM_HZ = 20000
STORM = f"profile.source=nmi profile.hz={STORM_HZ}"


def check_storm(log: str, ms: int) -> None:
    """So many NMIs were due, those missed are told, and each CPU's books close."""
    assert "nobody asked for it" not in log
    heatmap = heatmap_of(log)
    assert source(heatmap) == f"nmi by HPET, {STORM_HZ} Hz, seed 1"
    nr_due, taken, missed, _ = due(heatmap, nr_late=8 * STORM_HZ // 10)
    assert nr_due >= 8 * STORM_HZ * ms // 1000 and taken > 1000 and missed > 0
    lines = re.findall(r"^\[.*\]   CPU +(\d+): (\d+) of (\d+)$", log, re.MULTILINE)
    by_cpu = {int(cpu): (int(nr), int(of)) for cpu, nr, of in lines}
    assert len(by_cpu) == len(lines) == 8
    assert sum(nr for nr, _ in by_cpu.values()) == missed
    assert sum(of for _, of in by_cpu.values()) == nr_due
    for row in tables_of(log)["CPU"]:
        cpu, *_, attempts, stored, dropped, _, _ = map(int, CPU_ROW.match(row).groups())
        nr, of = by_cpu[cpu]
        assert attempts == stored + dropped and 0 <= of - nr - attempts <= STORM_HZ // 10


def test_storm_of_nmis(boot):
    """20,000 a second asked for on each of 8 CPUs that compute, for 20 seconds."""
    append = f"{STORM} profile.report=wide profile.top=all"
    log = boot("spin", 20000, 8, smp=8, append=append, timeout=400).log
    check_storm(log, 20000)
    check_views(log)


def test_storm_of_nmis_and_work(boot):
    """The same while processes fork, exec, send, fault and die."""
    append = f"{STORM} profile.heatmap=cpus profile.on_exit=none"
    with boot.start("stress", "all", 2, 4, smp=8, append=append, timeout=600) as guest:
        # What is left goes on long enough for a report.
        guest.expect("^PASS: stress mmap")
        guest.sysrq("p")
        guest.expect("end of report")
        result = boot.finish(guest.wait(), ok=True, check=True)
    assert "FAIL" not in result.log
    check_storm(result.log, 1000)


@pytest.mark.parametrize("mode", ["console", "strace-lock", "nmi-printk"])
def test_panic_while_nmis_come(boot, mode):
    append = f"{STORM} crash={mode}"
    options = {"smp": 4, "append": append, "variant": "selftest", "silence": 30}
    result = boot("spin", 60000, 8, ok=False, **options)
    assert result.exit_code == PANIC_EXIT_CODE
    assert result.log.count("Kernel panic") == 1
    assert "do not stop" not in result.log and "nobody asked for it" not in result.log


@pytest.mark.parametrize("smp, icount", [(1, True), (4, False)])
def test_changes_by_file(boot, smp, icount):
    result = boot("heatmap", smp=smp, icount=icount, timeout=240)
    assert "PASS: heatmap" in result.log
    heatmap = heatmap_of(result.log)
    assert source(heatmap).startswith("timer, 997 Hz, seed 1;")
    assert due(heatmap)[0] < 4 * 997 * 20  # what came before was not added


@pytest.mark.parametrize(
    "bad, form",
    [
        ("profile.source=hpet", "timer|nmi"),
        ("profile.hz=0", "1 to 100000"),
        ("profile.hz=100001", "1 to 100000"),
        ("profile.seed=x", "<number>|none"),
    ],
)
def test_bad_parameters(boot, bad, form):
    log = boot(append=bad).log
    assert bad.split("=")[0] in log and form in log
    assert source(heatmap_of(log)).startswith("timer, 997 Hz, seed 1;")
