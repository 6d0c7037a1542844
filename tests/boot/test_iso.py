# SPDX-License-Identifier: BSD-2-Clause
"""The kernel boots from a CD by GRUB, and finds the same machine as when QEMU starts it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import qemu
from harness import BUILD, ROOT, locked, make


@pytest.fixture
def boot_cd(boot, builds, tmp_path):
    """Returns a function that makes a CD with this command line and boots it."""

    def run(cmdline: str, ok: bool = True, initrd: Path | None = None, **options) -> qemu.Result:
        image = tmp_path / "test.iso"
        arguments = [image, builds.kernel(), initrd or builds.image(cmdline), cmdline]
        subprocess.run([ROOT / "scripts" / "mkiso", *arguments], check=True)
        options = qemu.Options(cdrom=image, timeout=240.0, silence=120.0, **options)
        return boot.finish(qemu.run(options), ok, True)

    return run


@pytest.mark.parametrize(("smp", "mem"), [(1, "128M"), (2, "512M"), (4, "5G")])
def test_hello(boot_cd, smp, mem):
    log = boot_cd("init=/bin/hello -- one $two 3", smp=smp, mem=mem).log
    assert "hello from user space: [one] [$two] [3]" in log
    assert "PASS: hello" in log
    assert "Loader: GRUB" in log
    assert f"smp: {smp} of {smp} CPUs online" in log
    assert "reboot: power off, status 0" in log


def test_same_machine_as_by_pvh(boot_cd, boot):
    def facts(log: str) -> tuple[str, ...]:
        usable = re.search(r"Memory: (\d+) KiB usable", log)
        regions = re.findall(r"Memory: \[0x[0-9a-f]{9}[1-9a-f][0-9a-f]{2}.*", log)
        size = re.search(r"Initramfs: 0x[0-9a-f]+, (\d+) KiB", log)
        acpi = re.search(r"acpi: \d+ CPUs, \d+ IOAPIC", log)
        return size[1], acpi[0], int(usable[1]) // 1024, *regions

    cd = boot_cd("init=/bin/hello", smp=3, mem="256M")
    pvh = boot("hello", smp=3, mem="256M")
    assert facts(cd.log) == facts(pvh.log)


def test_files_are_whole(boot_cd, builds):
    """
    GRUB puts the initramfs into memory that it reports as free. Until it is unpacked, memory must
    have room for it twice.
    """
    options = dict(initrd=builds.initrd(), smp=2, mem="224M")
    assert "PASS: files" in boot_cd("init=/bin/files", **options).log


def test_status(boot_cd):
    assert boot_cd("qemu_exit=0xf4 init=/bin/exit -- 3", ok=False).exit_code == 3 << 1 | 1
    result = boot_cd("init=/bin/exit -- 3", ok=False)
    assert (result.status, result.exit_code) == (3, 0)
    assert result.error == "init ended with status 3"


def test_long_command_line_is_cut_with_a_warning(boot_cd):
    log = boot_cd("init=/bin/hello " + "profile.top=5 " * 200).log
    assert "boot: the command line is cut to 2047 characters" in log
    assert "PASS: hello" in log


@pytest.mark.parametrize("cmdline", ["a'b", 'a"b', "a\\b", "a\nb"])
def test_mkiso_refuses_characters_that_grub_cannot_pass(cmdline, tmp_path):
    command = [ROOT / "scripts" / "mkiso", tmp_path / "x.iso", __file__, __file__, cmdline]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.fullmatch(r"mkiso: error: GRUB passes only .*\n", done.stderr)
    assert not list(tmp_path.iterdir())


def test_kernel_for_both_loaders(builds):
    for variant in (None, "llvm"):
        kernel = builds.kernel(variant)
        subprocess.run(["grub-file", "--is-x86-multiboot2", kernel], check=True)
        notes = subprocess.run(["readelf", "-n", kernel], capture_output=True, text=True).stdout
        assert "Xen" in notes


def test_make_iso(builds, boot):
    """The CD with the shell runs a command from the image, without a keyboard."""
    build = os.path.relpath(BUILD, ROOT)
    builds.kernel()
    with locked(BUILD / "test-locks" / "session"):
        make(f"BUILD={build}", "iso", "CMD=echo one CD | tr a-z A-Z", "APPEND=profile.top=3")
        options = qemu.Options(cdrom=BUILD / "lego.iso", smp=2, timeout=240.0, silence=120.0)
        result = boot.finish(qemu.run(options), True, True)
    assert "Command line: profile.on_exit=none profile.top=3" in result.log
    assert "\nONE CD\n" in result.log
    assert "profile: report" not in result.log
