# SPDX-License-Identifier: BSD-2-Clause
"""The first lines of a report say what dominates: for each program of tests/diagnosis/, its cause.

They also must not say what does not dominate, nor name a row that does not prove it.
"""

from __future__ import annotations

import re

import report
import report_lines

FINDING = re.compile(r"^(\d+) % of (CPU time|wall time) (.*) \[(.*)\]$")
LEAST_SHARE = 20
NO_WAIT = "waiting|sleep"

# The program, the finding that names the cause, and what no finding may say.
PROGRAMS = {
    "spin": ("CPU time in user function wait_for_answer of slow-spin", NO_WAIT + "|sys_|futex"),
    "search": ("CPU time in user function find_customer", NO_WAIT + "|sys_|futex|faults"),
    "recursion": ("CPU time in user function visit_tree", NO_WAIT + "|sys_|futex"),
    "fsync": (r"CPU time in system calls: .*50,000 sys_write.*50,000 sys_fsync", NO_WAIT),
    "mmap": (r"CPU time in system calls: .*20,480 sys_munmap.*20,480 sys_mmap", NO_WAIT),
    "fork": (
        r"system calls: 60 sys_clone, 1\.\d ms each; 61 sys_exit_group, "
        r"([6-9]\d\d us|1\.\d ms) each; "
        r"60 forks of 64 MiB ",
        NO_WAIT + "|futex",
    ),
    "poll": (r"CPU time in sys_poll: \d\d\d,\d\d\d calls", NO_WAIT + "|futex"),
    "signals": (r"CPU time in system calls: 50,000 sys_kill", NO_WAIT + "|user code"),
    "storm": (
        r"CPU time in interrupts; (\d\d,\d\d\d) signals came, \1 of them SIGALRM, "
        r"timer set by setitimer < main \[CPU time; events\]",
        NO_WAIT + "|futex",
    ),
    "open": (
        r"CPU time in calls that failed: 30,000 of 30,001 with a path, "
        r"30,000 for /etc/foo\.conf \(ENOENT\)",
        NO_WAIT + "|futex",
    ),
    "leak": (r"CPU time in page faults: 2\d,\d\d\d, .*896 brk, 0 mmap, 0 munmap", NO_WAIT),
    "scan": (r"CPU time in (system calls: )?.*1,000 sys_getdents64", NO_WAIT),
    "proc": (r"CPU time in system calls: 5,000 sys_read.*5,000 sys_openat", NO_WAIT),
    "timer": (
        r"wall time sleeping in wait_for_mail\(\), woken by timer_run\(\): 1[56],\d\d\d times",
        "CPU time",
    ),
    "wakeup": (r"waiting for futex replied\S* \(slow-wakeup\).*timer_run\(\): 10 times", "CPU"),
    "hotlock": (
        r"waiting for futex totals_lock \(slow-hotlock\) in update_totals\(\), woken by sell",
        "exit of a",
    ),
    "herd": (r"CPU time in sys_futex: \d,\d\d\d calls", "exit of a thread"),
    "yield": (r"CPU time in sys_sched_yield: \d\d\d,\d\d\d calls", "exit of a thread|futex"),
    "call": (r"CPU time in system calls: 20 sys_pwrite64", NO_WAIT),
    "cpu": (r"wall time waiting for a CPU, preempted", "sys_|futex|exit of a thread"),
    "faults": (r"CPU time in page faults: 25,\d\d\d, ", NO_WAIT),
    "mmlock": (
        r"waiting for mm->lock in map_and_unmap\(\), held by (map_area|mm_unmap)\(\) called from "
        r"map_and_unmap\(\) and (?!\1)(map_area|mm_unmap)\(\) called from map_and_unmap\(\)",
        "exit of a",
    ),
    "desk": (r"for futex 0x\w+ \(in pthread_mutex_lock < serve_customer\)", "exit of a"),
    "pool": (r"for futex 0x\w+ \(in take_connection < send_requests\)", "exit of a"),
    "prices": (r"for futex 0x\w+ \(in pthread_rwlock_rdlock < read_price\)", "exit of a"),
    "queue": (r"for futex 0x\w+ \(in pthread_cond_wait < take_order\)", "exit of a"),
    "round": (r"for futex 0x\w+ \(in pthread_barrier_wait < finish_round\)", "exit of a"),
    "producer": (
        r"for pipe->read_wait in main\(\), woken by pipe_write\(\) called from produce\(\): 20",
        "CPU",
    ),
}


def findings_of(log: str) -> list[re.Match[str]]:
    """Returns the findings of the only report: all lines between its heading and `CPU time:`."""
    found: list[re.Match[str]] = []
    inside = False
    for line in report_lines.Lines(log).lines:
        if report.BEGIN.match(line):
            inside = True
        elif line.startswith("CPU time: "):
            return found
        elif inside and not line.startswith("profile: "):  # that is a warning
            match = FINDING.match(line)
            assert match, line
            found.append(match)
    raise AssertionError("no summary")


def check_rows(found: report.Report, match: re.Match[str]) -> None:
    """Checks that the rows that a finding names are about what it says."""
    text, source = match[3], match[4]
    if not (cited := re.fullmatch(r"Kernel ([\w ]+): rows? ([\d, ]+)", source)):
        others = ("waited", "CPU time", "CPU time; Kernel strace", "CPU time; events")
        assert source in others or source.startswith("Programs: ")
        return
    rows = [int(nr) - 1 for nr in cited[2].split(", ")]
    if cited[1] == "strace":
        assert all(found.strace.rows[nr].name in text for nr in rows)
    elif cited[1] == "Files":
        (nr,) = rows
        assert found.files.rows[nr].path in text and found.files.rows[nr].error in text
    elif cited[1] == "Heatmap":
        (nr,) = rows
        assert found.heatmap.rows[nr].name.removesuffix("~") in text
    elif cited[1] == "Heatmap of user functions":
        (nr,) = rows
        row = found.user_functions[nr]
        assert row.name in text and row.file.rpartition("/")[2] in text
    else:
        assert found.waits.rows[rows[0]].what in text


def check_cause(log: str, program: str) -> None:
    """The first lines of the only report in the log name the cause, and nothing wrong."""
    cause, wrong = PROGRAMS[program.removeprefix("slow-")]
    (found,) = report.parse(log)
    findings = findings_of(log)
    assert 1 <= len(findings) <= 3
    assert any(re.search(cause, match[0]) for match in findings), findings
    for match in findings:
        assert not re.search(wrong, match[0]), match[0]
        assert LEAST_SHARE <= int(match[1]) <= 100
        check_rows(found, match)
