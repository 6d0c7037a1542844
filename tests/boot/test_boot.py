# SPDX-License-Identifier: BSD-2-Clause
"""The kernel boots on any number of CPUs, starts init, and powers off with init's status."""

import re
import signal
import subprocess

import pytest

from harness import BUILD, ROOT, cpio_entry


@pytest.mark.parametrize("program", ["hello", "hello.musl", "hello-pie"])
@pytest.mark.parametrize("smp", [1, 2, 4, 8])
def test_hello(boot, smp, program):
    log = boot(program, "one", "two", smp=smp).log
    assert "hello from user space: [one] [two]" in log
    assert "PASS: hello" in log


@pytest.mark.parametrize("smp", [1, 2, 8, 32])
def test_all_cpus_come_up(boot, smp):
    log = boot(smp=smp).log
    assert f"smp: {smp} of {smp} CPUs online" in log
    offsets = {int(cpu) for cpu in re.findall(r"tsc: CPU(\d+) offset -?\d+ cycles", log)}
    assert set(range(1, smp)) <= offsets


@pytest.mark.parametrize(
    ("smp", "used", "icount"), [(2, 1, True), (7, 1, True), (7, 3, False), (66, 64, False)]
)
def test_nmis_also_reach_cpus_that_are_not_used(boot, smp, used, icount):
    """The interrupt of the timer goes to all CPUs. Those beyond nr_cpus= or 64 have no code."""
    limit = f"nr_cpus={used}" if used < 64 else ""
    options = dict(smp=smp, icount=icount, one_thread=not icount)
    log = boot("hello", append=f"{limit} profile.source=nmi", **options).log
    assert f"smp: {used} of {used} CPUs online" in log
    assert re.search(r"sampling: NMI", log) and "PASS: hello" in log


@pytest.mark.parametrize("smp", [32, 64])
def test_threads_on_many_cpus(boot, smp):
    options = dict(smp=smp, mem="1G", timeout=240, one_thread=True)
    assert "PASS: threads" in boot("threads", **options).log


def image_of(builds, path, *items):
    builds.initrd()
    make_image = [ROOT / "scripts" / "mkinitramfs", "-o", path, *items]
    subprocess.run(make_image, check=True)
    return path


@pytest.mark.parametrize("mem", ["64M", "3G", "6G"])
def test_memory_sizes(boot, builds, tmp_path, mem):
    """The image holds one program, as tests.cpio hardly fits into 64 MiB."""
    image = image_of(builds, tmp_path / "hello.cpio", BUILD / "user" / "hello")
    assert "PASS: hello" in boot(smp=2, mem=mem, initrd=image).log


@pytest.mark.parametrize("mem", ["8M", "12M", "16M", "17M", "18M", "20M"])
def test_small_machine(boot, builds, tmp_path, mem):
    image = image_of(builds, tmp_path / "hello.cpio", BUILD / "user" / "hello.musl")
    assert "PASS: hello" in boot("hello.musl", mem=mem, initrd=image).log


@pytest.mark.parametrize(
    "mem, data_bytes, why",
    [
        ("5M", 0, "not enough memory: it ends before the kernel's image does"),
        ("9M", 4 << 20, "not enough memory: the initramfs was loaded over the kernel"),
        ("9M", 2 << 20, "not enough memory for an initramfs of 2... KiB"),
    ],
)
def test_machine_that_is_too_small(boot, builds, tmp_path, mem, data_bytes, why):
    """A clear line is printed even before there is a UART driver."""
    (tmp_path / "data").write_bytes(bytes(data_bytes))
    items = [BUILD / "user" / "hello.musl", f"/data/={tmp_path / 'data'}"]
    image = image_of(builds, tmp_path / "hello.cpio", *items)
    with boot.start("hello.musl", mem=mem, initrd=image) as guest:
        guest.expect(rf"Kernel panic: {why}$")


def test_memory_start(boot):
    """Pages are allocated from the given address on; what comes before must fit below it."""
    free = r"mm: (\d+) MiB of RAM free"
    (usual,) = re.findall(free, boot("hello").log)
    (less,) = re.findall(free, boot("hello", append="memory_start=0x10000000").log)
    assert 230 < int(usual) - int(less) < 256
    with boot.start("hello", append="memory_start=0x300000") as guest:
        guest.expect(r"Kernel panic: not enough memory to boot: .* below memory_start$")
    assert "memory_start=0x1001" in boot("hello", append="memory_start=0x1001").log


def test_initramfs_of_many_files(boot, builds, tmp_path):
    """The limit that stops programs from making so many files does not apply to the initramfs."""
    image = tmp_path / "many.cpio"
    with image.open("wb") as file:
        for i in range(20000):
            file.write(cpio_entry(f"dir{i % 100}/file{i}", 0o100644, b"text"))
        file.write(cpio_entry("TRAILER!!!", 0))
        file.write(image_of(builds, tmp_path / "hello.cpio", BUILD / "user" / "hello").read_bytes())
    assert "PASS: hello" in boot(mem="128M", initrd=image).log


@pytest.mark.parametrize("status", [0, 1, 3, 42, 255])
def test_status_of_init(boot, status):
    result = boot("exit", status, ok=status == 0)
    assert result.status == status
    if status:
        assert result.exit_code == (status & 0x7F) << 1 | 1


def test_status_from_another_thread(boot):
    assert boot("exit", "thread", 7, smp=2, ok=False).status == 7


def test_init_lives_on_a_signal(boot):
    assert boot("exit", "kill", signal.SIGTERM, ok=False).status == 2


def fails_clearly(result, *words):
    """Asserts that the panic names the cause, and that QEMU's exit code shows the failure."""
    assert "Kernel panic" in result.error
    assert any(word in result.error for word in words), result.error
    assert result.exit_code not in (0, None)


def test_missing_init(boot):
    fails_clearly(boot("no-such-program", ok=False), "/bin/no-such-program")


def test_init_that_is_no_program(boot):
    fails_clearly(boot(None, append="init=/data/small", ok=False), "/data/small")


def test_no_initramfs(boot):
    fails_clearly(boot("hello", initrd=None, ok=False), "initramfs", "initrd")


@pytest.mark.parametrize(
    "parameter", ["profile.top=many", "profile.top=-1", "profile.nonsense=1", "profile.top="]
)
def test_malformed_parameter_warns(boot, parameter):
    log = boot(append=parameter).log
    name = re.escape(parameter.split("=")[0])
    assert re.search(rf"params: {name}=.*: (not valid, want {name}=\S|no such parameter)", log)
    assert "PASS: hello" in log
