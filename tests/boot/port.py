# SPDX-License-Identifier: BSD-2-Clause
"""
Builds and boots tests/port/, a kernel of its own for three architectures, and checks its reports.
Its processes make known numbers of system calls, pairs and waits (tests/port/main.c).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import report
import report_points
import report_strace
from harness import BUILD, ROOT, locked, make

NR_CPUS = 4
STATUS = 16  # with which the kernel ends QEMU
EXIT_CODES = {"x86_64": STATUS << 1 | 1, "riscv64": STATUS, "aarch64": STATUS}
COMMANDS = {
    "x86_64": "qemu-system-x86_64 -machine q35,sata=off -cpu max -vga none"
    " -device isa-debug-exit,iobase=0xf4,iosize=4",
    "riscv64": "qemu-system-riscv64 -machine virt",
    "aarch64": "qemu-system-aarch64 -machine virt -cpu cortex-a53 -semihosting",
}
TIMEOUT_S = 120

CALLS = {
    "worker": {
        "sys_read": (60, 40),
        "sys_checksum": (50, 0),
        "sys_sleep": (50, 0),
        "sys_exit": (2, 0),
        "sys_6": (1, 1),
    },
    "sleeper": {"sys_sleep": (10, 0), "sys_exit": (1, 0)},
    "pipe": {
        "sys_put": (200, 0),
        "sys_get": (200, 0),
        "sys_checksum": (200, 0),
        "sys_exit": (2, 0),
    },
    "spinner": {"sys_exit": (6, 0)},
}
PAIRS = {
    "worker": {"checksum": 50, "sleep": 50},
    "sleeper": {"sleep": 10},
    "pipe": {"checksum": 200},
    "spinner": {},
}
ALL_PAIRS = {"checksum": 250, "sleep": 60}


def build(arch: str, name: str, *variables: str) -> Path:
    directory = BUILD / name
    with locked(BUILD / "test-locks" / name):
        words = [f"ARCH={arch}", f"BUILD={directory}", "DEBUG_INFO=-g0", *variables]
        make("-s", *words, cwd=ROOT / "tests/port")
    return directory / "kernel"


def keep_log(name: str, log: str) -> Path:
    path = BUILD / "test-logs" / f"port_{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(log)
    return path


def boot(arch: str, append: str = "", cpus: int = NR_CPUS) -> Path:
    """Boots the kernel in wall time. Returns the log, whose reports must add up."""
    kernel = build(arch, f"port-{arch}")
    # Each boot has a name of its own, as several run at once. QEMU loses no byte to a file.
    path = keep_log("_".join([arch, str(cpus), *re.findall(r"\w+", append)]), "")
    command = [
        *COMMANDS[arch].split(),
        *("-smp", str(cpus), "-m", "128M", "-display", "none", "-nodefaults", "-no-reboot"),
        *("-serial", f"file:{path}", "-kernel", str(kernel), "-append", append),
    ]
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    done = subprocess.run(command, timeout=TIMEOUT_S, errors="replace", **quiet)
    log = path.read_text(errors="replace").replace("\r\n", "\n")
    path.write_text(log)
    assert done.returncode == EXIT_CODES[arch], f"{log[-2000:]}{done.stderr}"
    assert report.check_log(log) == []
    return path


def calls(table: report_strace.Strace) -> dict[str, tuple[int, int]]:
    return {row.name: (row.nr_calls, row.nr_errors) for row in table.rows}


def pairs(points: report_points.Points) -> dict[str, int]:
    return {row.name: row.nr for row in points.rows}


def by_process(log: str) -> dict[str, report.Report]:
    """Returns the reports by the name of the process; that of the machine as `last`."""
    return {
        found[1] if (found := re.match(r"(\w+) \(pid \d\) exited after ", one.why)) else "last": one
        for one in report.parse(log)
    }


def check_counts(log: str) -> dict[str, report.Report]:
    """Checks what does not depend on time. Returns the reports."""
    found = by_process(log)
    assert found.keys() == {*CALLS, "last"}
    for name, wanted in CALLS.items():
        assert calls(found[name].strace) == wanted
        assert pairs(found[name].process_points) == PAIRS[name]
        assert found[name].heatmap.rows or name == "sleeper"
    assert pairs(found["last"].points) == ALL_PAIRS
    return found


def legoprof(command: str, log: Path, *arguments: object) -> str:
    """Runs legoprof on the export in a log, which has the kernel's names. Returns its output."""
    command_line = [ROOT / "scripts/legoprof", command, log, *arguments]
    done = subprocess.run([*map(str, command_line)], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout


def folded(text: str) -> dict[str, int]:
    return {chain: int(nr) for chain, nr in re.findall(r"^(.*) (\d+)$", text, re.MULTILINE)}


def check_all(arch: str) -> None:
    """
    Runs the kernel on four CPUs in wall time, with everything on. Checks what does not depend on
    the host: counts, chains, who waits for what and where, events, and that each CPU takes part.
    """
    path = boot(arch, "profile.export=console trace_event=sched,raw_syscalls profile.top=all")
    found = check_counts(path.read_text())

    busy = found["worker"].heatmap.rows[0]
    assert busy.name == "add_up_bytes"
    spin = found["spinner"].heatmap.rows[0]
    assert spin.name == "spin"
    assert found["last"].heatmap.split["idle"]
    waits = {(row.what, row.where): row for row in found["last"].waits.rows}
    assert waits["tick", "sys_sleep"].nr == 60
    assert waits["tick", "sys_sleep"].ns > 0.9e9
    assert waits["room", "sys_put"].waker == "wake_all (consumes)"
    assert waits["item", "sys_get"].waker == "wake_all (produces)"
    assert found["spinner"].summary.nr_involuntary

    for cpu in range(NR_CPUS):
        chains = folded(legoprof("folded", path, "--cpu", str(cpu)))
        loop = "start_cpu;idle_loop" if cpu else "start_kernel;idle_loop"
        assert any(chain.startswith("idle;") and chain.endswith(loop) for chain in chains), cpu
        assert any("idle" not in chain for chain in chains), cpu
    chains = folded(legoprof("folded", path))
    burn = chains["burns;[sys_checksum];task_start;burn;syscall;sys_checksum;add_up_bytes"]
    assert 0.9 * busy.nr <= burn <= busy.nr
    # A sample of the first instruction of spin() has no task_start().
    spins = sum(nr for chain, nr in chains.items() if re.fullmatch("spins;.*spin", chain))
    assert 0.9 * spin.nr <= chains["spins;task_start;spin"] <= spins == spin.nr
    chains = folded(legoprof("folded", path, "--waits"))
    assert chains["dozes;task_start;doze;syscall;sys_sleep;sleep_for;schedule;[tick]"] > 900_000_000
    assert "consumes;task_start;consume;syscall;sys_get;sleep_for;schedule;[item]" in chains
    assert any(re.fullmatch("spins;.*;tick;schedule;.a CPU.", chain) for chain in chains)

    with_file = legoprof("folded", path, "--kernel", BUILD / f"port-{arch}/kernel")
    assert folded(with_file) == folded(legoprof("folded", path))

    events = legoprof("ftrace", path)
    for name, (nr, _) in {"put": CALLS["pipe"]["sys_put"], "get": CALLS["pipe"]["sys_get"]}.items():
        number = ["exit", "read", "sleep", "checksum", "put", "get"].index(name)
        assert len(re.findall(rf"sys_enter: NR {number} ", events)) == nr
    assert {"put", "get"} <= set(re.findall(r'"name": ?"(\w+)"', legoprof("chrome", path)))
    switched = set(re.findall(r"\[(\d+)\] \S+ +\S+: sched_switch: prev_comm=spins", events))
    assert switched == {f"{cpu:03}" for cpu in range(NR_CPUS)}


def check_picture(arch: str) -> None:
    picture = legoprof("flamegraph", boot(arch, "profile.export=console"))
    assert picture.rstrip().endswith("</svg>")
    assert re.search(r"<title>add_up_bytes \(\d+ samples", picture)


def check_contracts(arch: str) -> None:
    """
    Runs the port's own check of its contracts. Only the rate of ticks may be wrong: a busy host
    does not run all of QEMU's CPUs in time.
    """
    log = boot(arch, "profile.selftest=on").read_text()
    lines = re.findall(r"\] port: (.*)", log)
    if len(lines) > 1:
        assert lines.pop() == "contracts that do not hold: 1; see os.h"
        assert re.match(r"profile_tick\(\) was called \d+ times in \d+ us, not 20 times", lines[0])
    else:
        assert lines == ["all contracts that were checked hold"]
