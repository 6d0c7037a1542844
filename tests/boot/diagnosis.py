# SPDX-License-Identifier: BSD-2-Clause
"""What the default report must say, and must not say, of programs in tests/diagnosis/.

tables_of() makes short texts of the rows of a report, such as `sys_poll, 257417 calls`, largest
first. Rows of less than 5 % of their table, and waits of less than 5 % of the run, are left out:
they are no cause of anything. Each case has patterns for these texts.

The tables are those of the report, and these:

    run       the CPU time of the process's threads, as a share of the run's time
    cpu       the parts of the CPU time, from the summary
    user      the samples of each user function, as a share of the process's samples
    programs  how many processes ended, by program
    signals   the signals, by kind
    chains    the call chains of the first waits; these are notes, and all count
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable

import report
import report_lines
from harness import ROOT
from report_waits import WaitRow

FIRST = 3  # rows
LEAST_PERCENT = 5

# One thread runs all the time. No wait is a cause.
ONE_CPU = r"CPU time, (9[89]|10[0-2]) %"
ANY_WAIT = "futex|sleep|pipe|proc|mm|a CPU"
KERNEL = "system calls|page faults|interrupts"


@dataclass(frozen=True)
class Case:
    """
    rows: by table, patterns that must match one of its first three rows. never: by table, a
    pattern that must match no row.
    """

    program: str
    rows: dict[str, tuple[str, ...]]
    never: dict[str, str] = field(default_factory=dict)
    smp: int = 1
    needs_shell: bool = False
    link: str = "static"
    append: str = ""

    def __str__(self) -> str:
        return self.program if self.link == "static" else f"{self.program}-{self.link}"


CASES = (
    # Only user code. The server of slow-spin sleeps, but nobody waits for that without the CPU.
    Case(
        "slow-spin",
        {"run": (ONE_CPU,), "user": (r"wait_for_answer, (9\d|100) %",)},
        {"waits": "futex|pipe|mm", "cpu": KERNEL},
    ),
    Case(
        "slow-search",
        {"run": (ONE_CPU,), "user": (r"find_customer, (9\d|100) %",)},
        {"waits": ANY_WAIT, "cpu": KERNEL},
    ),
    Case(
        "slow-recursion",
        {"run": (ONE_CPU,), "user": (r"visit_tree, (9\d|100) %",)},
        {"waits": ANY_WAIT, "cpu": KERNEL},
    ),
    # Too many system calls. The time of each call is small, so the numbers are the cause.
    Case(
        "slow-fsync",
        {"run": (ONE_CPU,), "strace": ("sys_write, 50000 calls", "sys_fsync, 50000 calls")},
        {"waits": ANY_WAIT, "cpu": "page faults|interrupts"},
    ),
    Case(
        "slow-mmap",
        {
            "run": (ONE_CPU,),
            "cpu": (r"system calls, [67]\d %", r"page faults, \d\d %"),
            "strace": ("sys_munmap, 20480 calls", "sys_mmap, 20480 calls"),
        },
        {"waits": ANY_WAIT, "cpu": "interrupts"},
    ),
    Case(
        "slow-poll",
        {
            "run": (ONE_CPU,),
            "cpu": (r"system calls, 8\d %",),
            "strace": (r"sys_poll, \d{6} calls",),
        },
        {"waits": "futex|pipe|mm", "cpu": "page faults|interrupts"},
    ),
    Case(
        "slow-signals",
        {"run": (ONE_CPU,), "strace": ("sys_kill, 50000 calls", "sys_rt_sigreturn, 50000 calls")},
        {"waits": ANY_WAIT, "cpu": "page faults|interrupts"},
    ),
    Case(
        "slow-open",
        {
            "run": (ONE_CPU,),
            "strace": ("sys_openat, 30000 calls",),
            "files": (r"/etc/foo\.conf, 30000 calls, 30000 ENOENT",),
        },
        {"waits": ANY_WAIT, "cpu": "page faults|interrupts"},
        append="profile.files=on",
    ),
    Case(
        "slow-storm",
        {"run": (ONE_CPU,), "cpu": (r"interrupts, [45]\d %",), "signals": (r"SIGALRM, 100 %",)},
        {"waits": "futex|sleep|pipe|proc|mm"},
    ),
    Case(
        "slow-scan",
        {
            "run": (ONE_CPU,),
            "cpu": (r"system calls, [789]\d %",),
            "strace": ("sys_getdents64, 1000 calls",),
        },
        {"waits": ANY_WAIT, "cpu": "page faults|interrupts", "strace": "sys_(openat|close)"},
    ),
    Case(
        "slow-proc",
        {
            "run": (ONE_CPU,),
            "cpu": (r"system calls, [67]\d %",),
            "strace": ("sys_read, 5000 calls", "sys_openat, 5000 calls"),
            "heatmap": ("vsnprintf",),
        },
        {"waits": ANY_WAIT, "cpu": "page faults|interrupts"},
    ),
    # Memory.
    Case(
        "slow-leak",
        {
            "run": (ONE_CPU,),
            "cpu": (r"page faults, [45]\d %",),
            "strace": (r"sys_brk, \d{3} calls",),
            "points": (r"page_fault, \d{5} times",),
        },
        {"waits": ANY_WAIT, "cpu": r"system calls, [2-9]\d|interrupts"},
    ),
    Case(
        "slow-fork",
        {
            "cpu": (r"system calls, [45]\d %",),
            "strace": ("sys_wait4, 60 calls", "sys_clone, 60 calls"),
            "points": (r"fork, 60 times, \d{4} us",),
            "programs": ("slow-fork, 61 processes",),
        },
        {"waits": "futex|sleep|pipe|mm", "cpu": "interrupts"},
    ),
    Case(
        "slow-system",
        {"strace": ("sys_clone3, 60 calls",), "programs": ("rm, 60 processes",)},
        {"run": r"CPU time, [2-9]\d", "waits": "futex|sleep|pipe|mm"},
        needs_shell=True,
    ),
    # Waits. These programs need nearly no CPU time.
    Case(
        "slow-timer",
        {"strace": (r"sys_clock_nanosleep, \d{5} calls",), "waits": (r"sleep, \d{5} times",),
         "chains": ("row 1 waits in clock_nanosleep < nanosleep < send_mail <",)},
        {"run": r"CPU time, [2-9]\d", "waits": "futex|pipe|mm|a CPU"},
    ),
    Case(
        "slow-wakeup",
        {
            "waits": (r"futex replied\+0x\w+, 10 times, woken by timer_run \(interrupt\)",),
            "chains": ("row 1 waits in .* < pthread_cond_timedwait < wait_for_reply < main$",),
        },
        {"run": "CPU time", "waits": "pipe|mm|a CPU|sleep"},
    ),
    # Contention.
    Case(
        "slow-hotlock",
        {
            "waits": (r"futex totals_lock, \d{3} times",),
            "user": (r"update_totals, [6-9]\d %",),
            "chains": ("row 1 waits in .* < pthread_mutex_lock < update_totals < sell <",),
        },
        {"waits": "futex (customers|stock)_lock|sleep|pipe|mm", "cpu": "system calls|page faults"},
        smp=4,
    ),
    Case(
        "slow-herd",
        {
            "cpu": (r"system calls, [5-8]\d %",),
            "strace": (r"sys_futex, \d{4} calls",),
            "waits": (r"futex lock, \d{3,} times", r"futex changed\+0x\w+, \d{3,} times"),
            "chains": (r"row \d .*pthread_cond_wait < do_jobs <", r"row \d .*< run_job < main"),
        },
        {"waits": "sleep|pipe|mm", "cpu": "page faults"},
        smp=4,
    ),
    Case(
        "slow-yield",
        {"strace": (r"sys_sched_yield, \d{5,} calls",), "heatmap": ("schedule",)},
        {"waits": r"sleep|pipe|mm|futex \w+,", "cpu": "page faults"},
        smp=4,
    ),
)

# Locks on the heap are named by the function that waits, and its caller. The C library's code has
# no frame pointers.
HEAP_LOCKS = {
    "slow-desk": "pthread_mutex_lock < serve_customer",
    "slow-pool": "take_connection < send_requests",
    "slow-prices": "pthread_rwlock_rdlock < read_price",
    "slow-queue": "pthread_cond_wait < take_order",
    "slow-round": "pthread_barrier_wait < finish_round",
}
CASES += tuple(
    Case(
        program,
        {"waits": (rf"futex 0x\w+ \(in {functions}\), \d\d+ times",)},
        {"waits": "pipe|mm|proc"},
        smp=2,
    )
    for program, functions in HEAP_LOCKS.items()
)

# Programs as gcc links them by default, and with their code in a stripped library.
LINKS = {"pie": "", "library": r" \(libslow\.so\)"}
CASES += tuple(
    Case(program, {table: (row,)}, {"waits": "pipe|mm|proc"}, smp, link=link)
    for link, file in LINKS.items()
    for program, smp, table, row in (
        ("slow-search", 1, "user", r"find_customer, (9\d|100) %"),
        ("slow-hotlock", 4, "waits", rf"futex totals_lock{file}, \d{{3}} times"),
        ("slow-desk", 2, "waits", rf"futex 0x\w+ \(in {HEAP_LOCKS['slow-desk']}\), \d\d+ times"),
    )
)


def linked_image(directory: Path, case: Case) -> Path:
    """Returns an image with the program and its libraries, linked as the case says."""
    source = ROOT / f"tests/diagnosis/{case.program}.c"
    program, library = directory / case.program, directory / "libslow.so"
    gcc = ["gcc", "-O2", "-pthread", "-o"]
    if case.link == "library":
        options = ["-fPIC", "-shared", "-s", "-Dmain=run"]
        subprocess.run([*gcc, library, *options, source], check=True)
        source = directory / "main.c"
        source.write_text("int run(void);\nint main(void) { return run(); }\n")
        gcc[1:1] = [f"-L{directory}", f"-Wl,-rpath,{directory}", "-Wl,--no-as-needed", "-lslow"]
    subprocess.run([*gcc, program, source], check=True)
    image = directory / "linked.cpio"
    command = [ROOT / "scripts/mkinitramfs", "-o", image, "--program", program, "--dir", "/tmp"]
    subprocess.run(command, check=True)
    return image


def wait_text(program: str, row: WaitRow) -> str:
    return f"{row.what.removesuffix(f' ({program})')}, {row.nr} times, woken by {row.waker}"


def texts(rows: Iterable[tuple[float, str]], total: float) -> list[str]:
    """Returns the texts of rows, largest first, without small ones. `%` becomes the percentage."""
    large = sorted((row for row in rows if 100 * row[0] >= LEAST_PERCENT * total), reverse=True)
    return [text.replace("%", f"{100 * size / total:.0f} %") for size, text in large]


def plain(name: str) -> str:
    """GCC appends .isra.0 and the like to the names of changed copies."""
    return name.split(".")[0]


def tables_of(log: str, program: str) -> dict[str, list[str]]:
    """Returns the texts of all tables in the last report of the program."""
    reports = report.parse(log)
    found = [one for one in reports if one.why.startswith(f"{program} (pid ")][-1]
    run_ns = round(1e9 * float(re.search(r" after (\d+\.\d+) s$", found.why)[1]))
    summary, strace, points = found.summary, found.strace, found.process_points.rows
    functions = [row for row in found.heatmap.rows if not report_lines.is_rest(row.name)]
    nr_samples = found.heatmap.process["samples"]
    tables = {
        "run": ([(1000 * summary.cpu_us, "CPU time, %")], run_ns),
        "cpu": ([(us, f"{name}, %") for name, us in summary.cpu_parts.items()], summary.cpu_us),
        "strace": (
            [(row.ns, f"{row.name}, {row.nr_calls} calls") for row in strace.rows],
            strace.total.ns,
        ),
        "heatmap": ([(row.nr, f"{row.name}, %") for row in functions], nr_samples),
        "waits": ([(row.ns, wait_text(program, row)) for row in found.waits.rows], run_ns),
        "points": (
            [(row.ns, f"{row.name}, {row.nr} times, {row.avg_ns // 1000} us") for row in points],
            sum(row.ns for row in points),
        ),
    }
    signals = [(nr, f"{name}, %") for name, nr in summary.signals.items()]
    tables["signals"] = (signals, sum(summary.signals.values()))
    if found.files:
        rows = found.files.rows
        paths = [(r.ns, f"{r.path}, {r.nr_calls} calls, {r.nr_errors} {r.error}") for r in rows]
        tables["files"] = (paths, found.files.total.ns)
    users = [(row.nr, f"{plain(row.name)}, %") for row in found.user_functions if row.name]
    tables["user"] = (users, nr_samples)
    ended = Counter(one.why.split(" (pid ")[0] for one in reports)
    processes = [(nr, f"{name}, {nr} processes") for name, nr in ended.items()]
    tables["programs"] = (processes, len(reports))
    chains = [note for note in found.waits.notes if note.startswith("row ")]
    return {**{name: texts(*table) for name, table in tables.items()}, "chains": chains}
