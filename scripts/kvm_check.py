#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the kernel under KVM and, for comparison, emulated; writes what happened to one file.

usage: kvm-check BUILD

`make kvm-check` builds what is needed and calls this. Each of the two runs the tests in the kernel
and the demo, sampled by the timer and by NMIs. The file BUILD/kvm-check.txt is for people who
develop the kernel on machines without KVM: facts about the CPU, the TSC and KVM, a verdict on each
run, how the kernel calibrated its clocks, and all console logs. It has no name of the host or of a
user. A run under KVM that does not go on is ended, and the file says where its CPUs were.

Exits with 0 if all runs passed, 1 if KVM runs the kernel but a run failed, 2 if KVM cannot run it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
import kvm
import qemu

DEMO = "profile.on_exit=run init=/bin/wordcount -- -t 46 /data/text"
# The name, the kernel's folder below BUILD, and the command line.
RUNS = (
    ("tests in the kernel", "variants/functions", "selftest=all"),
    ("demo, timer", "", f"profile.source=timer {DEMO}"),
    ("demo, NMIs", "", f"profile.source=nmi {DEMO}"),
)
# For KVM, the host's CPU; else one that asks the host for no model-specific registers.
CPUS = {"kvm": ("host", "qemu64"), "tcg": ("max",)}
# Seconds: for a run, and without any output. Emulation shares slow hosts with others.
LIMITS = {"kvm": (180.0, 30.0), "tcg": (600.0, 120.0)}
FLAGS = (
    "vmx svm hypervisor constant_tsc nonstop_tsc tsc_known_freq tsc_deadline_timer tsc_adjust "
    "rdtscp apic x2apic arat"
).split()
FACTS = (
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/module/kvm/parameters/*",
    "/sys/module/kvm_intel/parameters/*",
    "/sys/module/kvm_amd/parameters/*",
)
CALIBRATION = re.compile(r"\] ((?:tsc|apic|hpet|acpi|smp|profile): .*)")
SOURCE_NOTE = re.compile(r"\] (sampling: .*|\S.*(?:blind spot|samples lost|not sampled).*)")
TEST = re.compile(r"^\[ *[\d.]+\] +(not ok|ok) \d+ (.*)$", re.MULTILINE)
PC = re.compile(r"^CPU#(\d+)|^RIP=(\w+)", re.MULTILINE)
VECTORS = re.compile(r"^(?:FCW|FPR|Opmask|[XYZ]MM).*\n?", re.MULTILINE)


class Guest(qemu.Guest):
    """A guest that is asked for its registers when it hangs."""

    where = ""

    def ask_hung_guest(self) -> None:
        try:
            command = {"command-line": "info registers -a"}
            text = str(self.qmp("human-monitor-command", **command))
            self.where = VECTORS.sub("", text.replace("\r", ""))
        except (qemu.QemuError, OSError) as error:
            self.where = f"no registers: {error}"
        super().ask_hung_guest()


@dataclass
class Run:
    name: str
    accel: str
    cpu: str
    log: str
    error: str | None  # None: passed
    seconds: float
    where: str  # registers of a guest that did not go on

    @property
    def verdict(self) -> str:
        tests = [word for word, _ in TEST.findall(self.log)]
        counts = f"{tests.count('ok')} ok, {tests.count('not ok')} not ok; " if tests else ""
        return counts + (f"failed: {self.error}" if self.error else "passed")


def run(build: Path, what: tuple[str, str, str], accel: str, cpu: str, smp: int) -> Run:
    name, folder, append = what
    timeout, silence = LIMITS[accel]
    options = qemu.Options(
        kernel=build / folder / "vmlinux",
        initrd=build / "initramfs.cpio",
        smp=smp,
        append=append,
        cpu=cpu,
        accel=accel,
        any_kvm=True,
        timeout=timeout,
        silence=silence,
    )
    print(f"kvm-check: {accel}, CPU {cpu}: {name} (at most {timeout:g} s)", flush=True)
    with Guest(options) as guest:
        result = guest.wait()
        done = Run(name, accel, cpu, result.log, result.error, result.seconds, guest.where)
    print(f"kvm-check: {done.verdict}", flush=True)
    return done


def run_all(build: Path, accel: str, smp: int) -> list[Run]:
    """Makes all runs; if the first one shows nothing that the kernel did, only that one."""
    runs: list[Run] = []
    for cpu in CPUS[accel]:
        runs.append(run(build, RUNS[0], accel, cpu, smp))
        if runs[-1].log:
            break
    if runs[-1].error and not TEST.search(runs[-1].log):
        return runs
    return runs + [run(build, what, accel, runs[-1].cpu, smp) for what in RUNS[1:]]


def command_line(*command: str) -> str:
    """Returns the first line that a command prints, or why there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return str(error)
    return (done.stdout.splitlines() or [""])[0]


def host_facts() -> list[str]:
    cpuinfo = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    fields = dict(re.findall(r"^(.*?)\s*: (.*)$", cpuinfo, re.MULTILINE))
    names = "model name", "cpu family", "model", "stepping", "microcode", "cpu MHz"
    facts = [f"{name}: {fields.get(name, 'unknown')}" for name in names]
    has = [flag for flag in FLAGS if flag in fields.get("flags", "").split()]
    facts.append(f"flags: {' '.join(has)}; not: {' '.join(f for f in FLAGS if f not in has)}")
    facts.append(f"CPUs: {os.cpu_count()}, for this run {len(os.sched_getaffinity(0))}")
    facts.append(f"kernel: {command_line('uname', '-srm')}")
    facts.append(f"QEMU: {command_line(qemu.Options().qemu_path(), '--version')}")
    for pattern in FACTS:
        for path in sorted(Path("/").glob(pattern[1:])):
            try:
                facts.append(f"{'/'.join(path.parts[-3:])}: {path.read_text().strip()}")
            except OSError:
                pass
    return facts


def symbols_of(build: Path, name: str) -> list[tuple[int, str]]:
    """Returns the functions of a run's kernel, by address."""
    folder = next(folder for run_name, folder, _ in RUNS if run_name == name)
    command = ["nm", "-n", str(build / folder / "vmlinux")]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return [(int(words[0], 16), words[2]) for words in map(str.split, lines) if len(words) == 3]


def places(where: str, symbols: list[tuple[int, str]]) -> list[str]:
    """Returns the address at which each CPU was, and its function."""
    found, cpu = [], "0"
    for number, pc in PC.findall(where):
        cpu = number or cpu
        if pc:
            address = int(pc, 16)
            below = [(start, name) for start, name in symbols if start <= address]
            at = f"{below[-1][1]}+{address - below[-1][0]:#x}" if below else "not in the kernel"
            found.append(f"CPU{cpu}: {pc} ({at})")
    return found


def conclusion(runs: list[Run], problem: str | None) -> tuple[int, list[str]]:
    """Returns the exit status, and the result in one line, with reasons below."""
    here = [r for r in runs if r.accel == "kvm"]
    passed = [r for r in here if not r.error]
    emulated = [f"emulated, {r.name}: {r.error}" for r in runs if r.accel == "tcg" and r.error]
    errors = [f"CPU {r.cpu}, {r.name}: {r.error}" for r in here if r.error]
    if not passed and not any(TEST.search(r.log) for r in here):
        reasons = [problem] if problem else []
        return 2, ["KVM cannot run the kernel here:", *reasons, *errors, *emulated]
    if passed and len({r.name for r in passed}) == len(RUNS):
        return bool(emulated), [f"KVM runs the kernel: {len(passed)} runs passed", *emulated]
    text = f"KVM runs the kernel, but only {len(passed)} of {len(RUNS)} runs passed:"
    return 1, [text, *errors, *emulated]


def section(title: str, lines: list[str]) -> str:
    return "\n".join([f"== {title}", *(lines or ["none"]), "", ""])


def write(build: Path, runs: list[Run], result: list[str]) -> Path:
    version = command_line("git", "describe", "--always", "--dirty")
    text = section("kvm-check", [f"commit: {version}", *result])
    text += section("host", host_facts())
    names = [f"{r.accel}, CPU {r.cpu}, {r.name}" for r in runs]
    rows = [f"{name}: {r.verdict} ({r.seconds:.1f} s)" for name, r in zip(names, runs)]
    text += section("verdicts", rows)
    for name, r in zip(names, runs):
        lines = CALIBRATION.findall(r.log) + SOURCE_NOTE.findall(r.log)
        text += section(f"clocks and samples: {name}", lines)
        if r.where:
            at = places(r.where, symbols_of(build, r.name))
            text += section(f"where it hung: {name}", [*at, r.where])
    for name, r in zip(names, runs):
        text += section(f"log: {name}", r.log.splitlines())
    path = build / "kvm-check.txt"
    path.write_text(text)
    return path


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        sys.exit(__doc__)
    build = Path(argv[1])
    smp = min(4, max(2, len(os.sched_getaffinity(0))))
    runs: list[Run] = []
    try:
        problem = kvm.device_problem()
        if not problem:
            problem = kvm.cpu_problem()
            runs += run_all(build, "kvm", smp)
        runs += run_all(build, "tcg", smp)
    except (qemu.QemuError, KeyboardInterrupt) as error:
        print(f"kvm-check: error: {error or 'interrupted'}", file=sys.stderr)
        return 1
    status, text = conclusion(runs, problem)
    path = write(build, runs, text)
    print("kvm-check: " + "\n    ".join(text))
    print(f"kvm-check: {path} has everything: please send it with an issue")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv))
