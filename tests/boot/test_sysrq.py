# SPDX-License-Identifier: BSD-2-Clause
"""The sysrq keys: a serial BREAK and a letter, while programs run."""

import array
import fcntl
import re
import termios

import pytest
import report


def test_report_on_request(boot):
    with boot.start("spin", "-", 3, smp=2, append="profile.top=all") as guest:
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
    # The last report is about an exit, so its points count only that process.
    for old in first.points.rows:
        new = second.points.row(old.name)
        assert new and new.nr >= old.nr and new.ns >= old.ns


def later_only_grows(first, second):
    """Asserts that no counter decreases, as a report changes no counters."""
    for old in first.strace.rows:
        new = next((row for row in second.strace.rows if row.name == old.name), None)
        assert new, f"{old.name} is gone"
        assert new.nr_calls >= old.nr_calls and new.nr_errors >= old.nr_errors
        assert new.ns >= old.ns
    for word, nr in first.heatmap.split.items():
        assert second.heatmap.split[word] >= nr, word


def test_points_are_switched(boot):
    """While all points are off, their counts do not change."""
    with boot.start("spin", "-", 3, smp=2) as guest:
        guest.expect("^spin: started")
        for state in ("off", "on"):
            guest.sysrq("o")
            guest.expect(f"profile: all points {state}")
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
    with boot.start("spin", "-", 2, smp=2, append="profile.top=all") as guest:
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
    # No more samples than two CPUs take in the time since the reset, whenever the key came.
    since = r"samples: (\d+), all CPUs since the last reset \((\d+\.\d\d) s\)"
    nr, seconds = re.search(since, result.log).groups()
    assert before.heatmap.total[0] > 0
    assert int(nr) == after.heatmap.total[0] <= 2 * (997 * (float(seconds) + 0.01) + 2)


def is_taken_during_report(guest, nr):
    """Types a key at the start of a report, and returns whether it was taken before the end."""
    guest.sysrq("p")
    guest.expect(f"report {nr}: sysrq")
    guest.sysrq("h")
    taken = guest.expect("sysrq: list the keys").start()
    guest.expect("sysrq: if a key does nothing")
    # Keys are handled in order, so the report has ended.
    return taken < guest.text.index(f"end of report {nr}\n")


@pytest.mark.parametrize("smp", [1, 4])
def test_keys_during_a_report(boot, smp):
    with boot.start("crowd", "processes", 200, "keys", smp=smp) as guest:
        guest.expect("^crowd: waits")
        assert any(is_taken_during_report(guest, nr) for nr in range(1, 11))
        last = len(guest.text)
        keys = [("o", "switch all"), ("z", "reset"), ("p", "print the"), ("o", "switch all")]
        for key, answer in [*keys, ("c", "crash on")]:
            guest.sysrq(key)
            guest.expect(f"sysrq: {answer}")
        result = boot.finish(guest.wait(), ok=False, check=False)
    assert result.verdict.panic and result.verdict.console_lost == 0
    log = result.log[last:]
    assert re.findall("profile: all points (on|off)", log) in ([], ["off"], ["off", "on"])
    assert log.count("sysrq: ") == 5


def send_to_uart(guest, key):
    """Sends a key, and waits until QEMU has taken it. The guest need not have."""
    guest.send(key)
    waiting = array.array("i", [1])
    while waiting[0]:
        fcntl.ioctl(guest.process.stdin, termios.FIONREAD, waiting)


def test_keys_that_wait_together(boot):
    """Several BREAKs and keys reach the UART while the CPU is stopped."""
    with boot.start("spin", "-", 3) as guest:
        guest.expect("^spin: started")
        guest.qmp("stop")
        guest.send_break()  # QEMU takes a key if the FIFO has no byte or two, but not if it has one
        for key in "ozpoc":
            guest.send_break()
            send_to_uart(guest, key)
        guest.qmp("cont")
        guest.expect("sysrq: crash")
        result = boot.finish(guest.wait(), ok=False, check=False)
    assert result.verdict.panic
    answers = re.findall(r"sysrq: (print|switch|reset|crash)", result.log)
    assert answers == ["switch", "reset", "print", "switch", "crash"]


def test_key_typed_again_on_a_cpu_that_hangs(boot):
    """The thread that handles keys gets no CPU. The interrupt handles a key typed again."""
    options = dict(smp=1, variant="functions", append="crash=hang", silence=30)
    with boot.start("spin", 60000, 2, **options) as guest:
        guest.expect("crash: CPU 0 hangs")
        keys = [("p", "print the"), *[("o", "switch all")] * 15, ("o", "ignored: 16 keys")]
        for key, answer in [*keys, ("p", "end of report"), ("t", "time.ms")]:
            guest.sysrq(key)
            guest.expect(answer)
        guest.sysrq("c")
        result = boot.finish(guest.wait(), ok=False, check=True)
    assert result.verdict.panic and len(report.parse(result.log)) == 2
    first, second = (m.start() for m in re.finditer("sysrq: print the", result.log))
    assert first < second < result.log.index("report 1: sysrq")
    assert "all points off" not in result.log


def test_letters_without_break_do_nothing(boot):
    with boot.start("spin", "-") as guest:
        guest.expect("^spin: started")
        guest.send("cpz\n")
        result = boot.finish(guest.wait(), ok=True, check=True)
    assert len(report.parse(result.log)) == 1
