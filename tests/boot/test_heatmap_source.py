# SPDX-License-Identifier: BSD-2-Clause
"""The sources of samples: what each one can see and reports as unseen, rates, determinism."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import ktap
import qemu
import report
import report_heatmap
import report_lines
from harness import run_until_equal
from test_heatmap import CPU_ROW, check_views, tables_of
from test_panic import PANIC_EXIT_CODE

# Lines of wide reports.
EXPECTED = re.compile(
    r"^expected: (\d+) samples by the clock and the rate = (\d+) taken \+ (\d+) lost \+ "
    r"(\d+) in the profiler$"
)
LOST = re.compile(r"^(\d+) of (\d+) expected samples lost: (.*)$")
BLIND_SPOT = re.compile(r"^blind spot: at least (\d+\.\d\d) % of busy time ran with interrupts ")
IRQS_OFF = re.compile(r"^interrupts were off in (\d+\.\d\d) % of samples \((\d+) of (\d+)\)$")
SELF = re.compile(r"^sampling cost: (\d+\.\d\d) % of CPU time, (\d+) ns a sample$")
WIDE = "profile.report=wide"
TSC_HZ = 1_000_000_000  # with -icount, an instruction takes one cycle
# A CPU's first sample after a start or a reset clears its store of 1 MiB, in this many cycles.
EMPTYING_CYCLES = 31_500
# Six walks of user stacks meet frames for the first time, and read their rules in 6,000 to 19,000
# cycles each, which is bounded by PROFILE_UNWIND_STEPS.
READING_CYCLES = 60_000
DEFAULT = "APIC timer, 997 per second and CPU at random moments (seed 1)"
STRETCH = re.compile(r"^\[.*\] +(\d+) +(\d+) +\d+  .{15}  [0-9a-f]{16}  (\S+)$", re.MULTILINE)


def note(heatmap: report_heatmap.Heatmap, pattern: re.Pattern[str]) -> re.Match[str]:
    (match,) = filter(None, map(pattern.match, heatmap.notes))
    return match


LOSS = re.compile(
    r"profile: (\d+) % of the samples were lost, so their shares are not exact: (.*)"
)


def expected(heatmap: report_heatmap.Heatmap) -> tuple[int, int, int, int]:
    """
    Returns the numbers of samples expected, taken, lost, and lost in the profiler itself. Asserts
    that they add up, that the table has all samples taken, and that a line has the number of lost
    ones.
    """
    nr, taken, lost, own = map(int, note(heatmap, EXPECTED).groups())
    assert nr == taken + lost + own
    assert heatmap.split["samples"] == taken
    warnings = list(filter(None, map(LOST.match, heatmap.notes)))
    if lost or own:
        assert (int(warnings[0][1]), int(warnings[0][2])) == (lost + own, nr)
    else:
        assert not warnings
    return nr, taken, lost, own


def source(heatmap: report_heatmap.Heatmap) -> str:
    (line,) = (line for line in heatmap.notes if line.startswith("sampling: "))
    return line.removeprefix("sampling: ")


def heatmap_of(log: str) -> report_heatmap.Heatmap:
    found = report.parse(log)[-1].heatmap
    assert found
    return found


def test_1200_ms_with_interrupts_off(boot):
    """tests/kernel/test_source.c does the same work with each source and prints a report."""
    tests = "source.nmi_samples_with_interrupts_off,source.timer_counts*"
    append = f"selftest={tests} {WIDE}"
    log = boot(None, append=append, variant="functions", icount=True, timeout=400).log
    assert all(test.ok for suite in ktap.parse(log) for test in suite.tests)
    found = {each.why: each.heatmap for each in report.parse(log)}

    nmi = found["source=nmi"]
    assert source(nmi) == "NMI by HPET, 1000 per second and CPU at random moments (seed 1)"
    nr, _, lost, _ = expected(nmi)
    assert 1195 <= nr <= 1205 and lost == 0
    assert nmi.rows[0].name == "burn_here" and nmi.rows[0].nr >= 0.95 * nr
    percent, irqs_off, of = note(nmi, IRQS_OFF).groups()
    assert nmi.rows[0].nr <= int(irqs_off) <= int(of) == nmi.total[0]
    assert percent == report_lines.percent(int(irqs_off), int(of))

    timer = found["source=timer"]
    nr, taken, lost, own = expected(timer)
    assert 1195 <= nr <= 1205 and taken < 10 and lost >= 0.95 * 1200 and own == 0
    assert float(note(timer, BLIND_SPOT)[1]) >= 95
    stretches = STRETCH.findall(log[log.index("source=timer") :])
    assert stretches and int(stretches[0][0]) > 1_190_000_000
    assert stretches[0][2].startswith("work_with_interrupts_off+")

    # The report that lost samples says so below its heading, and what to do.
    assert len(LOSS.findall(log)) == 1
    percent, advice = LOSS.search(log.split("source=timer\n")[1]).groups()
    assert int(percent) == 100 * lost // nr
    assert advice == "interrupts were off too long: profile.source=nmi samples such code"


@pytest.mark.parametrize("hz", [997, 90_000])
def test_loss_is_told_in_wall_time(boot, hz):
    """
    Whatever the host lets a run lose: more than a twentieth is told below the heading, and less is
    not. At 90 kHz, an emulated CPU loses samples on any host. The table counts a little later than
    the heading, and the host may lose some in between.
    """
    log = boot("wordcount", "-t", 4, "/data/small", append=f"{WIDE} profile.hz={hz}", smp=2).log
    nr, _, lost, own = expected(heatmap_of(log))
    told = LOSS.findall(log)
    percent = 100 * (lost + own) // nr
    if lost + own >= 20 and percent > 7:
        assert percent - 3 <= int(told[-1][0]) <= percent + 3
    elif percent < 5:
        assert not told


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
        append = f"profile.source={kind} profile.seed={seed} profile.top=all {WIDE}"
        heatmap = heatmap_of(boot("threads", icount=True, append=append, timeout=180).log)
        assert f"seed {seed}" in source(heatmap)
        nr, _, lost, _ = expected(heatmap)
        assert nr and not lost
        return [(row.address, row.nr) for row in heatmap.rows]

    assert rows(1) != rows(2)


@pytest.mark.parametrize("kind", ["timer", "nmi"])
@pytest.mark.parametrize("hz", [1, 997, 20000, 100000])
def test_rate_with_icount(boot, kind, hz):
    """Time is counted in instructions, so the number of samples is known."""
    append = f"profile.source={kind} profile.hz={hz} {WIDE}"
    log = boot("spin", 300, icount=True, append=append, timeout=240).log
    heatmap = heatmap_of(log)
    assert f" {hz} per second and CPU " in source(heatmap)
    nr, taken, lost, own = expected(heatmap)
    # NMIs are lost only while one of them clears the store or reads rules, and after clearing for
    # as long, so that NMIs do not take all of the time. An incomplete period may lose one more.
    emptying, reading = (cycles * hz // TSC_HZ for cycles in (EMPTYING_CYCLES, READING_CYCLES))
    most = 2 * emptying + reading + (emptying > 0)
    assert lost <= (nr // 1000 if kind == "timer" else most)
    assert own <= nr * hz * 2e-6
    if hz > 1:
        # The samples cover the time from the program's start, within a period, to its report.
        assert 0.3 * hz - 1 <= nr <= 0.5 * hz
        assert heatmap.split["user"] > 0.5 * heatmap.split["samples"]
        # The share of CPU time agrees with the cost of a sample.
        share, ns = map(float, note(heatmap, SELF).groups())
        most, least = ((ns + d) * taken * hz / nr * 1e-7 for d in (1, -1))
        assert 100 <= ns <= 2000 and least - 0.01 <= share <= most + 0.01


@pytest.mark.parametrize(
    "qemu_args, name",
    [
        (["-no-hpet"], "PIT"),
        (["-no-hpet", "-machine", "pit=off"], "CPU 0's APIC timer"),
    ],
)
def test_other_sources_of_nmis(boot, qemu_args, name):
    append = f"profile.source=nmi {WIDE}"
    options = boot.options("spin", 300, smp=2, icount=True, append=append, timeout=240)
    result = boot.finish(qemu.run(replace(options, extra=qemu_args)), ok=True, check=True)
    heatmap = heatmap_of(result.log)
    assert source(heatmap).startswith(f"NMI by {name}, 997 per second and CPU ")
    nr, taken, _, _ = expected(heatmap)
    assert nr > 2 * 0.3 * 997 and taken > 0.5 * nr
    assert heatmap.split["user"] > 100


STORM_HZ = 20000
STORM = f"profile.source=nmi profile.hz={STORM_HZ}"


def check_storm(log: str, ms: int) -> None:
    """The number of NMIs is right, lost ones are reported, and each CPU's counts add up."""
    assert "nobody asked for it" not in log
    heatmap = heatmap_of(log)
    how = f"{STORM_HZ} per second and CPU at random moments (seed 1)"
    assert source(heatmap) == f"NMI by HPET, {how}"
    nr, taken, lost, _ = expected(heatmap)
    assert nr >= 8 * STORM_HZ * ms // 1000 and taken > ms // 8 and lost > 0
    lines = re.findall(r"^\[.*\]   CPU +(\d+): (\d+) of (\d+)$", log, re.MULTILINE)
    by_cpu = {int(cpu): (int(nr), int(of)) for cpu, nr, of in lines}
    assert len(by_cpu) == len(lines) == 8
    assert sum(nr for nr, _ in by_cpu.values()) == lost
    assert sum(of for _, of in by_cpu.values()) == nr
    for row in tables_of(log)["CPU"]:
        cpu, *_, attempts, stored, dropped, _, _ = map(int, CPU_ROW.match(row).groups())
        nr, of = by_cpu[cpu]
        assert attempts == stored + dropped == of - nr


def test_storm_of_nmis(boot):
    """Each of 8 busy CPUs should get 20,000 NMIs a second, for 3 seconds."""
    append = f"{STORM} {WIDE} profile.top=all"
    log = boot("spin", 3000, 8, smp=8, append=append, timeout=400).log
    check_storm(log, 3000)
    check_views(log)


def test_storm_of_nmis_and_work(boot):
    """The same while processes fork, exec, send signals, fault and exit."""
    append = f"{STORM} {WIDE} profile.heatmap=cpus profile.on_exit=none"
    with boot.start("stress", "all", 1.2, 4, smp=8, append=append, timeout=600) as guest:
        # The modes after mmap run long enough for a report.
        guest.expect("^PASS: stress mmap")
        guest.sysrq("p")
        guest.expect("end of report")
        result = boot.finish(guest.wait(), ok=True, check=True)
    assert "FAIL" not in result.log
    check_storm(result.log, 1000)


@pytest.mark.parametrize("mode", ["console", "lists-lock", "nmi-printk"])
def test_panic_while_nmis_come(boot, mode):
    append = f"{STORM} crash={mode}"
    options = {"smp": 4, "append": append, "variant": "functions", "silence": 30}
    result = boot("spin", 60000, 8, ok=False, **options)
    assert result.exit_code == PANIC_EXIT_CODE
    assert result.log.count("Kernel panic") == 1
    assert "do not stop" not in result.log and "nobody asked for it" not in result.log


@pytest.mark.parametrize("smp, icount", [(1, True), (4, False)])
def test_changes_by_file(boot, smp, icount):
    result = boot("heatmap", smp=smp, icount=icount, append=WIDE, timeout=240)
    assert "PASS: heatmap" in result.log
    heatmap = heatmap_of(result.log)
    assert source(heatmap) == DEFAULT
    assert expected(heatmap)[0] < 4 * 997 * 20  # earlier samples, at other rates, are not added


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
    assert source(heatmap_of(log)) == DEFAULT
