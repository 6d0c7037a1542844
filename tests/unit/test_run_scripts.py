# SPDX-License-Identifier: BSD-2-Clause
"""make run reports programs, variables and KVM settings that cannot work."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

import kvm
import kvm_check
import mkinitramfs
import qemu
import terminal

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"


def elf(kind: int = 2, machine: int = 62, bits: bytes = b"\x02\x01") -> bytes:
    return b"\x7fELF" + bits + bytes(10) + struct.pack("<HH", kind, machine) + bytes(44)


PROGRAMS = {
    "lock.c": (b"int main(void)\n", "a source, not a program: gcc -static -O2 -o lock lock.c"),
    "lock.cc": (b"int main()\n", "a source, not a program: g++ -static -O2 -o lock lock.cc"),
    "lock": (b"words", "neither an ELF program nor a script that starts with #!"),
    "arm": (elf(machine=183), "for AArch64, not for x86-64"),
    "i386": (elf(machine=3, bits=b"\x01\x01"), "for 32-bit x86, not for x86-64"),
    "mips": (elf(machine=8), "not for x86-64"),
    "lock.o": (elf(kind=1), "an object file: link it, with -static"),
    "short": (b"\x7fELF\x02", "an ELF file that is cut off"),
    "script": (b"#! /bin/sh -e\n", "a script for /bin/sh, which is not in the image"),
    "empty-script": (b"#!\n", "a script for nothing, which is not in the image"),
}


def make_image(capsys, *arguments: str) -> tuple[int, str]:
    status = mkinitramfs.main(["-o", "out.cpio", *arguments])
    return status, capsys.readouterr().err


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_that_cannot_run_is_refused(name, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    data, why = PROGRAMS[name]
    Path(name).write_bytes(data)
    Path(name).chmod(0o755)
    assert make_image(capsys, "--program", name) == (1, f"mkinitramfs: error: {name}: {why}\n")


@pytest.mark.parametrize("nr_bytes", [100, 5000, -1])
def test_program_that_is_cut_off_is_refused(nr_bytes, tmp_path, monkeypatch, capsys) -> None:
    """Linux would run some of these files, and then kill them with SIGBUS."""
    monkeypatch.chdir(tmp_path)
    whole = Path("/bin/true").read_bytes()
    segments = [(at, size) for kind, at, size in mkinitramfs.elf_parts(whole) if kind == 1]
    end = max(at + size for at, size in segments)
    Path("cut").write_bytes(whole[: nr_bytes if nr_bytes > 0 else end + nr_bytes])
    Path("cut").chmod(0o755)
    why = "cut: an ELF file that is cut off"
    assert make_image(capsys, "--program", "cut") == (1, f"mkinitramfs: error: {why}\n")


def test_program_must_be_an_executable_file(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dir").mkdir()
    Path("plain").write_bytes(elf())
    Path("plain").chmod(0o644)
    for name, why in {
        "nope": "no such file",
        "dir": "a directory, not a program",
        "/dev/null": "not a regular file",
        "plain": "not executable: chmod +x plain",
    }.items():
        assert make_image(capsys, "--program", name) == (1, f"mkinitramfs: error: {name}: {why}\n")


def test_program_that_can_run_is_taken(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("static").write_bytes(elf())
    Path("script").write_bytes(b"#!/bin/static\n")
    for name in ("static", "script"):
        Path(name).chmod(0o755)
    assert make_image(capsys, "--program", "static", "--program", "script") == (0, "")


def dynamic_elf(interpreter: bytes) -> bytes:
    """Returns an ELF program that names an interpreter."""
    header = elf()[:32] + struct.pack("<QQIHHHHHH", 64, 0, 0, 64, 56, 1, 0, 0, 0)
    path = interpreter + b"\0"
    return header + struct.pack("<IIQQQQQQ", 3, 4, 120, 120, 120, len(path), len(path), 1) + path


def test_dynamic_program_brings_its_libraries(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert make_image(capsys, "--program", "/bin/true") == (0, "")
    image = Path("out.cpio").read_bytes()
    for name in (b"bin/true", b"lib64/ld-linux-x86-64.so.2", b"lib/x86_64-linux-gnu/libc.so.6"):
        assert name + b"\0" in image
    for interpreter, why in {
        b"/lib/ld-nope.so": "needs /lib/ld-nope.so, which is not on this machine: use -static",
        b"/bin/true": "needs /bin/true, which is not on this machine: use -static",
        b"/lib64/ld-linux-x86-64.so.2": "not on this machine: ",
    }.items():
        Path("dynamic").write_bytes(dynamic_elf(interpreter))
        Path("dynamic").chmod(0o755)
        status, said = make_image(capsys, "--program", "dynamic")
        assert status == 1 and said.startswith(f"mkinitramfs: error: dynamic: {why}")
        assert said.count("\n") == 1


def make(*arguments: str) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "-n", "help", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "hints"),
    [
        (["PROGAM=x"], {"PROGAM": "did you mean PROGRAM?"}),
        (["SMP=2", "CMD=XX=1 YY=2 ls", "V=1", "lower=1"], {}),
        (["QQQQQ=1", "ICONT=1"], {"QQQQQ": "make help ", "ICONT": "did you mean ICOUNT?"}),
    ],
)
def test_make_warns_of_unknown_variables(arguments, hints) -> None:
    done = make(*arguments)
    assert done.returncode == 0
    warnings = dict(re.findall(r"^make: warning: unknown variable (\w+): (.*)$", done.stderr, re.M))
    assert warnings.keys() == hints.keys() and done.stderr.count("\n") == len(hints)
    for name, hint in hints.items():
        assert warnings[name].startswith(hint)


def test_make_knows_all_variables_that_it_reads() -> None:
    """Each variable that the makefiles read, or that the help names, is in known-variables."""
    makefiles = [ROOT / "Makefile", *SCRIPTS.glob("*.mk")]
    text = "\n".join(path.read_text() for path in makefiles)
    used = set(re.findall(r"\$\((?:value )?([A-Z][A-Z0-9_]+)\)", text))
    used |= set(re.findall(r"\b([A-Z][A-Z0-9_]+)=", (SCRIPTS / "help.txt").read_text()))
    known = set(re.search(r"known-variables := ((?:.*\\\n)*.*)", text)[1].split())
    makes_own = {"CURDIR", "MAKE", "MAKECMDGOALS", "MAKELEVEL", "MAKEOVERRIDES", "VERSION"}
    assert {name for name in used if not name.startswith("CONFIG_")} - makes_own <= known


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"a\3\4\1\r", [b"a\3\4\1\r"]),
        (b"a\x1dBp", [b"a", terminal.BREAK, b"p"]),
        (b"\x1dx", [b"", terminal.QUIT, b""]),
        (b"\x1d\x1dx\x1dqy", [b"\x1dxy"]),
    ],
)
def test_keys_of_the_terminal(typed, keys) -> None:
    """All keys are the guest's, except the one after Ctrl-]. The terminal is restored."""
    master, slave = os.openpty()
    before = termios.tcgetattr(slave)
    with terminal.Keyboard(slave) as keyboard:
        os.write(master, typed)
        assert list(keyboard.read()) == keys
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)


def test_kvm_says_what_is_missing(tmp_path) -> None:
    device, cpuinfo = tmp_path / "kvm", tmp_path / "cpuinfo"
    assert f"{device} does not exist" in kvm.problem(device, cpuinfo)
    device.mkdir()
    assert f"cannot open {device}: Is a directory" in kvm.problem(device, cpuinfo)
    device.rmdir()
    device.touch()
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu sse svml\n")
    assert "neither VT-x nor AMD-V" in kvm.problem(device, cpuinfo)
    cpuinfo.write_text("flags\t\t: fpu vmx sse\n")
    assert kvm.problem(device, cpuinfo) is None
    cpuinfo.unlink()
    assert kvm.problem(device, cpuinfo) is None


def kvm_run(name: str, error: str | None, log: str = "", accel: str = "kvm"):
    return kvm_check.Run(name, accel, "host", log, error, 1.0, "")


def test_kvm_check_says_whether_kvm_runs_the_kernel() -> None:
    names = [name for name, _, _ in kvm_check.RUNS]
    passed = [kvm_run(name, None) for name in names]
    tests = "[    1.2]     ok 1 owners_nest\n[    1.3]     not ok 2 faults\n"
    assert kvm_check.conclusion([], "no KVM") == (2, ["KVM cannot run the kernel here:", "no KVM"])
    hung = kvm_run(names[0], "hang: nothing for 30 s", "[    0.0] Command line: x\n")
    assert kvm_check.conclusion([hung, *(kvm_run(n, None, accel="tcg") for n in names)], None) == (
        2,
        ["KVM cannot run the kernel here:", f"CPU host, {names[0]}: hang: nothing for 30 s"],
    )
    assert kvm_check.conclusion(passed, None) == (0, ["KVM runs the kernel: 3 runs passed"])
    failed = kvm_run(names[0], "init ended with status 1", tests)
    assert failed.verdict == "1 ok, 1 not ok; failed: init ended with status 1"
    status, text = kvm_check.conclusion([failed, *passed[1:]], None)
    assert status == 1 and text[0] == "KVM runs the kernel, but only 2 of 3 runs passed:"
    emulated = kvm_run(names[0], "Kernel panic", accel="tcg")
    assert kvm_check.conclusion([*passed, emulated], None)[0] == 1


def test_kvm_check_says_where_cpus_hang() -> None:
    where = "CPU#0\nRAX=1 RBX=2\nRIP=0000000000001010 RFL=2\nCPU#1\nRIP=0000000000000fff RFL=2\n"
    assert kvm_check.places(where, [(0x1000, "start"), (0x1020, "next")]) == [
        "CPU0: 0000000000001010 (start+0x10)",
        "CPU1: 0000000000000fff (not in the kernel)",
    ]
    vectors = "FCW=037f\nFPR0=0 FPR1=0\nXMM00=0 XMM01=0\n"
    assert kvm_check.VECTORS.sub("", f"EFER=d01\n{vectors}CPU#1\n") == "EFER=d01\nCPU#1\n"


def test_warnings_of_qemu_are_not_what_ended_it() -> None:
    warning = "qemu: warning: Number of SMP cpus requested (4) exceeds the recommended (2)"
    failure = "qemu: failed to initialize kvm: No such device"
    result = qemu.Result("", None, 1, 1.0, None)
    assert qemu.judge(result, f"{warning}\n{failure}") == f"QEMU: {failure}"
    assert qemu.judge(result, warning) == f"QEMU: {warning}"
    result = qemu.Result("text", None, 1, 1.0, None)
    assert qemu.judge(result, f"{warning}\n{failure}").endswith(f"exit code 1: {failure}")
    result = qemu.Result("text", None, -11, 1.0, None)
    assert qemu.judge(result, f"{warning}\n{failure}") == f"QEMU was killed by signal 11: {failure}"


FAKE_QEMU = """#!/bin/sh
echo 'reboot: power off, status 0'
echo '{verdict}'
for argument; do
	case $argument in file,id=verdict,path=*) printf '{verdict}' >"${{argument#*path=}}" ;; esac
done
"""
VERDICT = "verdict: status={} panic=0 bugs=0 warnings=0 reports_cut=0 console_lost=0"


@pytest.mark.parametrize(
    ("verdict", "status", "said"),
    [
        (VERDICT.format(0) + "\n", 0, ""),
        (VERDICT.format(3) + "\n", 3, "init ended with status 3"),
        (VERDICT.format(0), 1, "no verdict of the kernel: QEMU ended with exit code 0"),
        ("", 1, "no verdict of the kernel: QEMU ended with exit code 0"),
    ],
)
def test_only_a_whole_verdict_is_a_success(tmp_path, verdict, status, said) -> None:
    """The console says that all went well, in words that any program could have printed."""
    fake, kernel = tmp_path / "qemu", tmp_path / "vmlinux"
    fake.write_text(FAKE_QEMU.format(verdict=verdict.replace("\n", "\\n")))
    fake.chmod(0o755)
    kernel.touch()
    command = [SCRIPTS / "qemu-run", "--qemu", fake, "--kernel", kernel]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, f"qemu-run: error: {said}\n" if said else "")
    assert "reboot: power off, status 0" in done.stdout


@pytest.mark.parametrize("initrd_mib, mem", [(None, "512M"), (128, "512M"), (129, "516M")])
def test_memory_is_enough_for_the_image(tmp_path, initrd_mib, mem) -> None:
    initrd = tmp_path / "initrd"
    if initrd_mib:
        with initrd.open("wb") as file:
            file.truncate(initrd_mib << 20)
    assert qemu.Options(kernel=Path("vmlinux"), initrd=initrd).mem == mem
    assert qemu.Options(kernel=Path("vmlinux"), initrd=initrd, mem="1G").mem == "1G"


@pytest.mark.parametrize(
    "mem, initrd_bytes, fits",
    [("8M", 7 << 20, 1), ("8", 8 << 20, 0), ("8192k", 8 << 20, 0), ("1G", 9 << 20, 1)],
)
def test_initramfs_that_would_lie_over_the_kernel(tmp_path, mem, initrd_bytes, fits) -> None:
    kernel, initrd = tmp_path / "vmlinux", tmp_path / "initrd"
    kernel.write_bytes(bytes(1 << 20))
    initrd.write_bytes(bytes(initrd_bytes))
    options = qemu.Options(kernel=kernel, initrd=initrd, mem=mem)
    if fits:
        options.check()
    else:
        with pytest.raises(qemu.QemuError, match="need more than 9 MiB"):
            options.check()
