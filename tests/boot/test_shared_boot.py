# SPDX-License-Identifier: BSD-2-Clause
"""Programs that share a boot are judged one by one."""

import qemu
import shared_boot
from harness import Booter


def test_each_program_has_its_own_verdict(builds):
    """A program that fails, or takes the kernel down, leaves the others alone."""
    words = ["hello:one", "exit:3", "names:crash", "hello.musl"]
    boot = Booter(builds, "shared_boot")
    found = shared_boot.run(boot, words)
    assert list(found) == words and boot.nr_runs == 2
    hello, failed, crash, last = found.values()
    assert not hello.complaints() and "[one]" in hello.log
    assert failed.complaints() == ["ended with wait status 0x300"]
    assert crash.wait_status is None and crash.complaints()[0].startswith("Kernel panic: ")
    assert not last.complaints() and "PASS: hello" in last.log


LOG = """\
batch: start a
profile: report 1: a
FAIL: a

batch: end a, status 0
batch: start b
WARNING: kernel/x.c:1

batch: end b, status 0x100
"""


def test_what_belongs_to_none_belongs_to_all():
    why = "the console lost 3 bytes"
    found = shared_boot.sections(qemu.Result(LOG, 0, 0, 1.0, why), ["a", "b"])
    assert [section.error for section in found.values()] == [why, why]
    found = shared_boot.sections(qemu.Result(LOG, 0, 0, 1.0, None), ["a", "b"])
    assert found["b"].complaints() == ["WARNING: kernel/x.c:1", "ended with wait status 0x100"]
