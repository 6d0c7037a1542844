# SPDX-License-Identifier: BSD-2-Clause
"""No name of a program or of a file can forge a line of the log."""

import re

import pytest

from harness import cpio_entry
from test_programs import NO_REPORTS, program_passes

FORGED = re.compile(r"^(\[ *\d+\.\d+\] )?Kernel panic:", re.MULTILINE)
ESCAPED = r"x\x0aKernel panic:"


def test_names_do_not_forge_lines(boot):
    """The program crashes, makes an unsupported call, and reads its own files in /proc."""
    log = boot("names", append=NO_REPORTS).log
    program_passes(log, "names")
    assert re.search(rf"\] clone: {re.escape(ESCAPED)}\[\d+\]: flags ", log)
    assert re.search(rf"\] {re.escape(ESCAPED)}\[\d+\]: .* signal 4$", log, re.MULTILINE)
    assert not FORGED.search(log)


def test_name_of_the_program_that_switches_off(boot):
    log = boot("names", "reboot", append=NO_REPORTS).log
    assert f"] reboot: power off asked for by {ESCAPED}[1]" in log
    assert not FORGED.search(log)


def test_name_of_the_program_that_is_out_of_memory(boot):
    log = boot("names", "oom", append=NO_REPORTS, mem="64M").log
    program_passes(log, "names")
    assert re.search(rf"\] out of memory: killed {re.escape(ESCAPED)}\[\d+\], \d+ KiB", log)
    assert not FORGED.search(log)


def test_name_of_the_program_in_a_panic(boot):
    log = boot("names", "crash", append=NO_REPORTS, ok=False).log
    assert re.search(rf"^\[.*\] +1 {re.escape(ESCAPED)} on CPU +0 ", log, re.MULTILINE)
    assert f", task 1 {ESCAPED}\n" in log
    assert len(FORGED.findall(log)) == 1  # the real one


@pytest.mark.parametrize("name", ["x\nKernel panic: y", "x\x1b[2J\nKernel panic: y"])
def test_name_in_the_initramfs(boot, builds, tmp_path, name):
    image = tmp_path / "forged.cpio"
    entries = cpio_entry(name, 0o140644) + cpio_entry("TRAILER!!!", 0)
    image.write_bytes(entries + builds.initrd().read_bytes())
    log = boot(initrd=image).log
    assert "PASS: hello" in log and not FORGED.search(log) and "\x1b" not in log
    escaped = name.replace("\n", "\\x0a").replace("\x1b", "\\x1b")
    assert f"] initramfs: {escaped}: left out, mode 140644 is not a type we have" in log
