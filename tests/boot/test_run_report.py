# SPDX-License-Identifier: BSD-2-Clause
"""profile.on_exit=run: one report of all processes of a run."""

import re

import pytest

import harness
import report
from report_lines import END, Lines

SIXTY = "i=0; while [ $i -lt 60 ]; do busybox cat /command > /dev/null; i=$((i+1)); done\n"
PROGRAM_ROW = re.compile(r"^ *(\d+) +(\d+\.\d{9}) +(\d+\.\d{9}) +(\d+) (\S+)$")


def report_lines(log: str) -> list[str]:
    """Returns the lines of all reports, without time stamps."""
    lines, inside = [], False
    for line in Lines(log).lines:
        inside |= bool(report.BEGIN.match(line))
        if inside:
            lines.append(line)
        inside &= not END.match(line)
    return lines


def programs(lines: list[str]) -> dict[str, tuple[int, float, int]]:
    """Returns the table by program: processes, CPU seconds and calls of each row."""
    rows = {}
    for line in lines[lines.index("Programs") :]:
        if match := PROGRAM_ROW.match(line):
            rows[match[5]] = int(match[1]), float(match[2]), int(match[4])
        if line.endswith(" total"):
            return rows
    raise AssertionError("the table by program has no end")


def shape(line: str) -> str:
    """Returns a line without its numbers and the width of its columns."""
    return re.sub(r"[ -]+", " ", re.sub(r"[0-9a-f]*\d[0-9a-f]*", "N", line))


def without_samples(lines: list[str]) -> list[str]:
    """Returns the lines without the tables of samples, but with the first one's heading."""
    rest, inside = [], False
    for line in lines:
        if line.startswith("Kernel "):
            inside = line.startswith("Kernel Heatmap")
        if not inside or line.startswith("Kernel Heatmap ("):
            rest.append(line)
    return rest


def test_sixty_commands_have_one_report(boot, tmp_path):
    image = harness.script_image(tmp_path, SIXTY)
    log = boot(None, initrd=image, append="profile.on_exit=run", icount=True).log
    assert not report.check_log(log)
    (found,) = report.parse(log)
    assert re.fullmatch(r"run of 62 processes, \d+\.\d{3} s", found.why)
    lines = report_lines(log)
    assert len(lines) <= 100
    rows = programs(lines)
    assert rows["busybox"][0] == 60 and rows["total"][0] == 62
    assert rows["total"][2] == sum(rows[name][2] for name in rows if name != "total")
    assert found.summary.nr_threads == 62
    assert found.summary.nr_calls == rows["total"][2]
    assert abs(found.summary.cpu_us / 1e6 - rows["total"][1]) < 1e-5
    # Nothing was printed before the end, so there is nothing to tell about it.
    assert "report_printf" not in "\n".join(lines)
    assert not any(line.startswith(("reports", "blind spot")) for line in lines)


def test_printing_is_in_no_profile(boot, tmp_path):
    """Printing keeps interrupts off and delays the shell, which says nothing about programs.

    Compared with a run that prints only the reports of the shell and of init.
    """
    image = harness.script_image(tmp_path, SIXTY)
    logs = {
        globs: boot(None, initrd=image, append=f"profile.on_exit={globs}", icount=True).log
        for globs in ("all", "sh,init")
    }
    lines = report_lines(logs["all"])
    assert sum(line.startswith("profile: end of report") for line in lines) == 62
    assert not any(line.startswith("blind spot") for line in lines)
    told = [line for line in lines if line.startswith("delayed by reports of other processes: ")]
    assert len(told) == 2  # in the reports of the shell and of init
    assert all(float(line.split()[6]) > 0.03 for line in told)
    shells = [report.parse(log)[-2:] for log in logs.values()]
    for told, alone in zip(*shells):
        seconds = [float(re.search(r"after (\S+) s", found.why)[1]) for found in (told, alone)]
        slept = [found.waits.rows[0].ns for found in (told, alone)]
        calls = [found.straces[0].rows[0] for found in (told, alone)]
        assert {call.name for call in calls} == {"sys_wait4"}
        assert seconds[0] == pytest.approx(seconds[1], rel=0.03, abs=0.0011)  # as printed
        for with_reports, without in (slept, [call.ns for call in calls]):
            assert with_reports == pytest.approx(without, rel=0.03)


def test_a_run_of_one_process_has_its_report(boot):
    """The two reports have the same lines. Their numbers, and what was sampled, differ."""
    options = {"icount": True, "initrd": "diagnosis.cpio"}
    logs = [
        boot("slow-call", append=f"profile.on_exit={word}", **options).log
        for word in ("all", "run")
    ]
    shapes = [[shape(line) for line in without_samples(report_lines(log))] for log in logs]
    assert shapes[0] == shapes[1]
    assert shapes[1][0].startswith("profile: report N: slow call (pid N) exited with status")


def test_processes_that_run_are_included(boot, tmp_path):
    script = "setsid sleep 100 &\nsleep 0.1\n"
    image = harness.script_image(tmp_path, script)
    log = boot(None, initrd=image, append="profile.on_exit=run", icount=True).log
    assert not report.check_log(log)
    (found,) = report.parse(log)
    assert re.match(r"run of 4 processes, 1 still running, ", found.why)
    assert programs(report_lines(log))["sleep"][0] == 2
    assert found.summary.parts["sleep"] > 190_000
    assert found.waits.nr_in_flight == 1


def test_a_life_ends_before_its_report_waits(boot, tmp_path):
    """On several CPUs, reports queue for the console. That is not part of a process's life."""
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do busybox true & done; wait\n"
    image = harness.script_image(tmp_path, script)
    log = boot(None, initrd=image, append="profile.on_exit=busybox", smp=4, icount=True).log
    lives = [float(life) for life in re.findall(r" exited with status 0 after (\S+) s", log)]
    stamps = re.findall(r"^\[ *(\S+)\] profile: report \d+: busybox", log, re.MULTILINE)
    assert len(lives) == len(stamps) == 12
    assert max(lives) < float(stamps[-1]) - float(stamps[0])


@pytest.mark.parametrize("word", ["run", "none"])
def test_word_at_run_time(boot, tmp_path, word):
    script = f"echo {word} > /proc/profile/on_exit\nbusybox true\nbusybox true\n"
    image = harness.script_image(tmp_path, script)
    log = boot(None, initrd=image, append="profile.on_exit=none", icount=True).log
    assert len(report.parse(log)) == (word == "run")
