# SPDX-License-Identifier: BSD-2-Clause
"""Serial BREAK and a letter, while programs run, until a line is typed."""

import re

import report


def test_report_on_request(boot):
    with boot.start("spin", "-", 3, smp=2) as guest:
        guest.expect("^spin: started")
        guest.sysrq("p")
        guest.expect("end of report")
        guest.sysrq("p")
        guest.expect("end of report")
        guest.send("\n")
        result = boot.finish(guest.wait(), ok=True, check=True)
    first, second, last = report.parse(result.log)
    later_only_grows(first, second)
    later_only_grows(second, last)


def later_only_grows(first, second):
    """Taking a report changes nothing: what was counted before is still counted."""
    for old in first.strace.rows:
        new = next((row for row in second.strace.rows if row.name == old.name), None)
        assert new, f"{old.name} is gone"
        assert new.nr_calls >= old.nr_calls and new.nr_errors >= old.nr_errors
        assert new.ns >= old.ns
    for word, nr in first.heatmap.split.items():
        assert second.heatmap.split[word] >= nr, word
    for old in first.points.rows:
        new = second.points.row(old.name)
        assert new and new.nr >= old.nr and new.ns >= old.ns


def test_points_are_switched(boot):
    """All off, so that what was counted stays as it is; then on again."""
    with boot.start("spin", "-", 3, smp=2) as guest:
        guest.expect("^spin: started")
        for _ in range(2):
            guest.sysrq("o")
            guest.expect("points toggled")
            for _ in range(2):
                guest.sysrq("p")
                guest.expect("end of report")
        guest.send("\n")
        result = boot.finish(guest.wait(), ok=True, check=True)
    off, still_off, on, still_on, _ = (r.points for r in report.parse(result.log))
    assert off.rows and not any(row.enabled for row in off.rows + still_off.rows)
    assert all(row.enabled for row in on.rows + still_on.rows)
    switches = [points.row("context_switch").nr for points in (off, still_off, on, still_on)]
    assert switches[0] == switches[1] < switches[3]


def test_points_file(boot):
    result = boot("points", smp=4)
    assert "PASS: points" in result.log
    (last,) = report.parse(result.log)
    on = {row.name for row in last.points.rows if row.enabled}
    assert on <= {"page_fault", "futex_wait"}


def test_help(boot):
    with boot.start("spin", "-", smp=2) as guest:
        guest.expect("^spin: started")
        guest.sysrq("h")
        guest.expect("sysrq: z  ")
        guest.send("\n")
        result = boot.finish(guest.wait(), ok=True, check=True)
    for key in "choptz":
        assert re.search(rf"sysrq: {key}  \S", result.log), key
    assert len(report.parse(result.log)) == 1


def test_unknown_key_gives_help(boot):
    with boot.start("spin", "-") as guest:
        guest.expect("^spin: started")
        guest.sysrq("?")
        guest.expect("sysrq: no such key")
        guest.expect("sysrq: h  ")
        guest.send("\n")
        boot.finish(guest.wait(), ok=True, check=True)


def test_tasks(boot):
    with boot.start("spin", "-", 5, smp=2) as guest:
        guest.expect("^spin: started")
        guest.sysrq("t")
        for _ in range(5):
            guest.expect(r"\] .*\bspin\b")
        guest.send("\n")
        boot.finish(guest.wait(), ok=True, check=True)


def test_reset(boot):
    with boot.start("spin", "-", 2, smp=2) as guest:
        guest.expect("^spin: started")
        guest.sysrq("p")
        guest.expect("end of report")
        guest.sysrq("z")
        guest.expect(r"sysrq: reset")
        guest.sysrq("p")
        guest.expect("end of report")
        guest.send("\n")
        result = boot.finish(guest.wait(), ok=True, check=True)
    before, after, _ = report.parse(result.log)
    assert before.strace.row("execve")
    assert not after.strace.row("execve")
    assert before.points.row("exec") and not after.points.row("exec")
    assert after.heatmap.total[0] < before.heatmap.total[0]


def test_letters_without_break_do_nothing(boot):
    with boot.start("spin", "-") as guest:
        guest.expect("^spin: started")
        guest.send("cpz\n")
        result = boot.finish(guest.wait(), ok=True, check=True)
    assert len(report.parse(result.log)) == 1
