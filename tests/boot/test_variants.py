# SPDX-License-Identifier: BSD-2-Clause
"""
Kernels with some of the three profilers, and without their optional parts, build, boot, and report
exactly what is compiled in. Each two profilers occur in all four combinations, together and apart.
"""

import re

import pytest

import report
from test_heatmap import FUNCTION_ROW, tables_in
from test_heatmap_chain import file_lines, stacks_of

PARTS = {"s": "strace", "h": "heatmap", "p": "points"}
VARIANTS = {
    "profile-none": "",
    "tail-calls": "sh",
    "profile-sp": "sp",
    "profile-hp": "hp",
    None: "shp",
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_profilers(boot, variant):
    expected = {PARTS[letter] for letter in VARIANTS[variant]}
    log = boot("wordcount", "-t", 8, "/data/small", variant=variant, smp=2).log
    found = report.parse(log)
    assert len(found) == bool(expected)
    if expected:
        assert found[0].parts == expected
    else:
        assert "Kernel strace" not in log and "Heatmap" not in log and "Profile Points" not in log


@pytest.mark.parametrize("variant", ["profile-none", "profile-hp"])
def test_sysrq_and_panic_without_all_parts(boot, variant):
    with boot.start("spin", 60000, 2, smp=2, variant=variant, silence=30) as guest:
        guest.expect("^spin: started")
        guest.sysrq("p")
        guest.expect("profile: end of report|profiling is not built in")
        guest.sysrq("z")
        guest.expect("sysrq: reset")
        guest.sysrq("c")
        result = boot.finish(guest.wait(), ok=False, check=True)
    assert result.error.startswith("Kernel panic")
    assert "reboot: panic, status 127" in result.log


COMMANDS = """\
for file in /proc/profile/*; do echo "file ${file##*/}"; done
echo all >/proc/profile/strace_live
i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done
times
echo went $((40 + 2))
"""


def check_ticks(log: str) -> None:
    """Without accounts, ticks divide CPU time for programs, and nothing divides it in reports."""
    summaries = [found.summary for found in report.parse(log) if found.summary]
    assert not any(summary.cpu_parts for summary in summaries)
    assert not re.search(r"(user code|interrupts|idle) \d+\.\d{6}|time of \d CPU", log)
    user = re.search(r"^(\d+)m([\d.]+)s \d+m[\d.]+s", log, re.MULTILINE)
    user_us = 60_000_000 * int(user[1]) + round(1_000_000 * float(user[2]))
    cpu_us = max(summary.cpu_us for summary in summaries)  # the shell's
    assert 0.5 * cpu_us < user_us <= cpu_us


def test_without_strace_live_and_accounts(boot):
    append = "profile.strace_live=all profile.top=all"
    options = dict(variant="tail-calls", append=append, initrd="shell.cpio", icount=True)
    with boot.start(None, **options) as guest:
        guest.expect(r"lego:[^\n]*# ")
        guest.send(COMMANDS)
        guest.expect("^went 42")
        guest.sysrq("p")
        guest.expect("end of report")
        guest.send("exit\n")
        log = boot.finish(guest.wait(), ok=True, check=True).log
    assert "params: profile.strace_live=all: no such parameter, ignored" in log
    files = set(re.findall(r"^file (\S+)$", log, re.MULTILINE))
    assert {"strace", "report", "stacks"} <= files and not {"strace_live", "accounts.json"} & files
    assert re.search("create .*strace_live: nonexistent", log)
    assert not re.search(r"\[pid +\d+\] \w+\(", log)
    last = report.parse(log)[-1]
    assert last.parts == {"strace", "heatmap"} and last.strace.row("execve")
    check_ticks(log)


def test_without_call_chains(boot, builds):
    """Each stack is one address, so a function's inclusive samples are its self samples."""
    log = boot("callers", 500, variant="profile-hp", smp=2, append="profile.depth=8").log
    assert "params: profile.depth=8: no such parameter, ignored" in log
    assert "PASS: callers" in log and "cut chains" not in log
    stacks = stacks_of(log, builds.kernel("profile-hp"))
    assert all(len(stack.user) + len(stack.kernel) == 1 and not stack.truncated for stack in stacks)
    tables = tables_in(file_lines(log, "heatmap"))
    rows = [FUNCTION_ROW.match(row).groups() for row in tables["function"]]
    in_kernel = sum(stack.nr for stack in stacks if stack.kernel)
    assert in_kernel == sum(int(row[2]) for row in rows if row[1][0] != "[") > 0
    assert all(row[2] == row[4] for row in rows)


def test_llvm(boot):
    log = boot("wordcount", "-t", 46, "/data/small", variant="llvm", smp=4).log
    (found,) = report.parse(log)
    assert found.parts == set(PARTS.values())
