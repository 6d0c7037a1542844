# SPDX-License-Identifier: BSD-2-Clause
"""A kernel that panics prints one complete report, and ends with a status that QEMU returns."""

import re

import pytest

import report

PANIC_EXIT_CODE = 127 << 1 | 1

# The crashes of tests/kernel/crash.c, and the reasons that the panic prints.
CRASHES = {
    "console": "crash with the console lock",
    "console-elsewhere": "crash in a timer interrupt",
    "lists-lock": "crash with the lock of the process lists",
    "page-lock": r"page fault at \w+",
    "nmi": "crash in an NMI",
    "nmi-printk": "crash in an NMI",
    "timer": "crash in a timer interrupt",
    "bug-interrupt": r"BUG: \S+crash\.c:\d+ in_irq\(\)",
    "together": "crash of 3 CPUs at once",
    "printk": r"page fault at \w+",
    "stack": r"kernel stack overflow at recurse",
}


@pytest.mark.parametrize("smp", [1, 2, 4, 8])
def test_crash_under_load(boot, smp):
    with boot.start("spin", 60000, 2 * smp, smp=smp, silence=30) as guest:
        guest.expect("^spin: started")
        guest.sysrq("c")
        result = boot.finish(guest.wait(), ok=False, check=True)
    assert_panic(result)


@pytest.mark.parametrize("program", ["threads", "memory", "futexpp"])
def test_crash_under_kernel_load(boot, program):
    """The crash comes at a random moment while CPUs run kernel code and hold locks."""
    with boot.start(program, smp=4, silence=30) as guest:
        guest.expect(r"CPUs online")
        guest.sysrq("c")
        result = guest.wait()
        boot.finish(result, ok=False, check=True)
    if not result.status == 0:  # the program may have been faster
        assert_panic(result, sampled=False)


def crash(boot, mode, smp, check=True):
    options = dict(smp=smp, variant="functions", append=f"crash={mode}", silence=30)
    return boot("spin", 60000, 2 * smp, ok=False, check=check, **options)


@pytest.mark.parametrize("mode", CRASHES)
def test_every_crash_is_reported(boot, mode):
    result = crash(boot, mode, smp=4)
    assert_panic(result)
    assert re.search(f"Kernel panic: {CRASHES[mode]}", result.log)
    assert "do not stop" not in result.log


@pytest.mark.parametrize("mode", ["nmi-printk", "page-lock", "stack"])
def test_crash_on_the_only_cpu(boot, mode):
    assert_panic(crash(boot, mode, smp=1))


def test_crash_in_the_report_ends(boot):
    """A fault in the panic's report prints one more line and ends. No report starts again."""
    result = crash(boot, "report", smp=4, check=False)
    assert result.exit_code == PANIC_EXIT_CODE
    assert result.log.count("Kernel panic") == 1
    assert result.log.count("report 1: panic") == 1
    assert result.verdict.panic and result.verdict.reports_cut == 1
    assert result.log.endswith(
        "\npanic: a second one inside the first: giving up\nreboot: panic, status 127\n"
    )


def assert_panic(result, sampled=True):
    """sampled: the machine has run long enough to have samples on any host."""
    verdict = result.verdict
    assert verdict and verdict.panic and verdict.status == 127 and verdict.warnings == 0
    assert f"\nKernel panic: {verdict.why}\n" in re.sub(r"^\[.*?\] ", "", result.log, flags=re.M)
    assert result.error == f"Kernel panic: {verdict.why}"
    assert verdict.bugs == verdict.why.startswith("BUG: ")
    assert verdict.console_lost == 0
    assert result.exit_code == PANIC_EXIT_CODE
    assert len(re.findall("Kernel panic", result.log)) == 1
    assert len(re.findall(r"reboot: panic, status 127$", result.log, re.MULTILINE)) == 1
    (found,) = report.parse(result.log)
    assert found.heatmap and found.points
    assert found.heatmap.total[0] > 0 or not sampled
    # The report comes after the reason and before the end.
    panic, table = result.log.index("Kernel panic"), result.log.index("Kernel Heatmap")
    assert panic < table < result.log.index("reboot: panic")


def test_registers_are_printed(boot):
    with boot.start("spin", 60000, smp=2, silence=30) as guest:
        guest.expect("^spin: started")
        guest.sysrq("c")
        result = boot.finish(guest.wait(), ok=False, check=True)
    assert re.search(r"Kernel panic: \S", result.log)
    assert re.search(r"(?i)\brip\b.*[0-9a-f]{16}", result.log)
