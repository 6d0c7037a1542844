# SPDX-License-Identifier: BSD-2-Clause
"""A dying kernel still prints its report, once and whole, and tells the outside."""

import re

import pytest

import report

PANIC_EXIT_CODE = 127 << 1 | 1


@pytest.mark.parametrize("smp", [1, 2, 4, 8])
def test_crash_under_load(boot, smp):
    with boot.start("spin", 60000, 2 * smp, smp=smp, silence=30) as guest:
        guest.expect("^spin: started")
        guest.sysrq("c")
        result = boot.finish(guest.wait(), ok=False, check=True)
    assert_panic(result)


@pytest.mark.parametrize("program", ["threads", "memory", "futexpp"])
def test_crash_under_kernel_load(boot, program):
    """CPUs are inside the kernel, with locks held, at whatever moment it is."""
    with boot.start(program, smp=4, silence=30) as guest:
        guest.expect(r"init")
        guest.sysrq("c")
        result = guest.wait()
        boot.finish(result, ok=False, check=True)
    if not result.status == 0:  # the program may have been faster
        assert_panic(result)


def assert_panic(result):
    assert result.error and result.error.startswith("Kernel panic")
    assert result.exit_code == PANIC_EXIT_CODE
    assert len(re.findall("Kernel panic", result.log)) == 1
    assert len(re.findall(r"reboot: panic, status 127$", result.log, re.MULTILINE)) == 1
    (found,) = report.parse(result.log)
    assert found.heatmap and found.points and found.heatmap.total[0] > 0
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
