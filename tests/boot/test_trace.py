# SPDX-License-Identifier: BSD-2-Clause
"""Events in /sys/kernel/tracing: recording, counting, filters, losses, and exports."""

from __future__ import annotations

import base64
import json
import re
import struct

import harness

LINE = re.compile(
    r"^ {0,15}(?P<comm>\S.{0,15})-(?P<tid>\d+) +\[(?P<cpu>\d{3})\] (?P<flags>[d.]\.[hZz.]\.\.) +"
    r"(?P<time>\d+\.\d{6}): (?P<event>\w+): (?P<text>.*)$"
)
T = "/sys/kernel/tracing"

# `section` marks the output of the next commands. `sync` makes one system call, number 162.
# Three readers run at once. One that comes too late gets no event, and waits until its time is up.
SCRIPT = f"""\
section() {{ echo "== $1"; }}
cd {T}
section format; cat events/sched/sched_switch/format
section boot; cat set_event; grep -c sched_process_exec trace
section bad; echo nonsense >set_event; echo 'nr == 1' >events/sched/sched_switch/filter
echo >set_event; echo >trace
echo 'id == 162' >events/raw_syscalls/sys_enter/filter
echo raw_syscalls:sys_enter sched:sched_process_* sched_switch >set_event
busybox sync; busybox sync; busybox sync
echo >set_event
section trace; cat trace
section again; cat trace | wc -l
section cleared; echo >trace; grep -vc '^#' trace
echo 16 >buffer_size_kb; echo 0 >options/overwrite; echo 1 >events/kmem/enable
busybox ls -lR /proc >/dev/null 2>&1
echo 0 >events/enable
section stats; cat per_cpu/cpu0/stats per_cpu/cpu1/stats; grep -vc '^#' trace
section pipe; echo >trace; echo 1 >events/raw_syscalls/enable; busybox sync
busybox head -n 3 trace_pipe; echo 0 >events/enable
section ends; echo >trace; echo 1 >events/raw_syscalls/enable; busybox sync; echo 0 >tracing_on
grep -v '^#' trace; echo ==; busybox timeout 60 busybox cat trace_pipe
section readers; echo 1 >tracing_on; ls -lR /proc >/dev/null 2>&1; echo 0 >tracing_on
grep -vc '^#' trace; for i in 1 2 3; do busybox timeout 15 busybox cat trace_pipe >/tmp/$i & done
wait; for i in 1 2 3; do busybox wc -l </tmp/$i; done
section waits; busybox timeout 1 busybox cat trace_pipe; echo $?
echo 1 >tracing_on; echo 0 >events/enable
section signals; echo >trace; echo signal_generate >set_event
busybox sleep 1000 & kill -STOP $!; until grep -q ') T ' /proc/$!/stat; do :; done
kill -USR1 $!; kill -USR1 $!; kill -KILL $!; echo >set_event; cat trace
mkdir -p /etc; echo nobody:x:99:99::/:/bin/sh >/etc/passwd
section user; busybox su nobody -s /bin/sh -c 'ls {T}' 2>&1
section end
"""


def sections(log: str) -> dict[str, list[str]]:
    parts = re.split(r"^== (\w+)\r?$", log, flags=re.MULTILINE)
    return {name: text.strip("\r\n").splitlines() for name, text in zip(parts[1::2], parts[2::2])}


def events(lines: list[str]) -> list[dict[str, str]]:
    found = [LINE.match(line) for line in lines if not line.startswith("#")]
    assert all(found), [line for line, match in zip(lines, found) if not match]
    return [match.groupdict() for match in found]


def test_files(boot, tmp_path):
    image = harness.script_image(tmp_path, SCRIPT)
    append = "profile.on_exit=none trace_event=nonsense,sched:sched_process_exec"
    log = boot(None, initrd=image, append=append, smp=2).log
    found = sections(log)
    assert "profile: trace_event=nonsense: cannot be switched on" in log
    assert "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;" in found["format"]
    assert sum("Invalid argument" in line for line in found["bad"]) == 2
    assert found["boot"][0] == "sched:sched_process_exec" and int(found["boot"][1]) >= 1

    lines = events(found["trace"])
    head = [line for line in found["trace"] if line.startswith("#")]
    assert head[0] == "# tracer: nop" and head[10].startswith("#           TASK-PID     CPU#")
    assert f"entries-in-buffer/entries-written: {len(lines)}/{len(lines)}   #P:2" in head[2]
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    syncs = [line for line in lines if line["event"] == "sys_enter"]
    assert len(syncs) == 3 and all(line["text"].startswith("NR 162 (") for line in syncs)
    names = {name: [line for line in lines if line["event"] == name] for name in
             ("sched_process_fork", "sched_process_exec", "sched_process_exit")}
    for number, name in (("child_pid", "sched_process_fork"), ("pid", "sched_process_exec"),
                         ("pid", "sched_process_exit")):
        tids = [re.search(rf"\b{number}=(\d+)", line["text"])[1] for line in names[name]]
        assert tids == [line["tid"] for line in syncs]
    check_switches(lines)
    assert int(found["again"][0]) == len(found["trace"])
    assert found["cleared"] == ["0"]
    check_stats(found["stats"])
    assert len(events(found["pipe"])) == 3
    # If recording is off, a reader gets the events that are left and then the end of the file. A
    # reader that got none waits.
    left, drained = "\n".join(found["ends"]).split("\n==\n")
    assert left == drained and len(events(left.splitlines())) > 10
    nr_events, *nr_lines = map(int, found["readers"])
    assert len(nr_lines) == 3 and sum(nr_lines) == nr_events > 150
    assert found["waits"][-1] == "143"
    sent = [re.search(r"sig=(\d+) .* (res=\d)", line) for line in found["signals"]]
    results = [match.groups() for match in sent if match]
    # As on Linux, the second SIGUSR1 is merged with the first one, which is still pending.
    assert [result for sig, result in results if sig == "10"] == ["res=0", "res=2"]
    assert any("Permission denied" in line for line in found["user"])


def check_switches(lines: list[dict[str, str]]) -> None:
    """
    On each CPU, the task that is switched out is the one that was switched in last, and events have
    the number of the running task.
    """
    running: dict[str, str] = {}
    nr = 0
    for line in lines:
        cpu = line["cpu"]
        assert running.get(cpu, line["tid"]) == line["tid"]
        if line["event"] == "sched_switch":
            out, into = re.search(r"prev_pid=(\d+) .* next_pid=(\d+)", line["text"]).groups()
            assert out == line["tid"]
            running[cpu] = into
            nr += 1
    assert nr >= 6


def check_stats(lines: list[str]) -> None:
    """Rings that keep the oldest events lose new ones. The file has all events of the rings."""
    values = [int(line.split(": ")[1]) for line in lines if re.match("entries|dropped|over", line)]
    (kept0, over0, lost0), (kept1, over1, lost1) = values[:3], values[3:6]
    assert over0 == over1 == 0 and lost0 + lost1 > 0
    assert int(lines[-1]) == kept0 + kept1


def decode(page: bytes):
    """Yields the number and the content of each event in a page."""
    _, number = struct.unpack_from("<QQ", page)
    at = 16
    while at < len(page):
        (head,) = struct.unpack_from("<Q", page, at)
        size, kind = head >> 32 & 0xFFFF, head >> 48
        assert size >= 8 and at + size <= len(page)
        if kind == 0:
            yield number, page[at + 8 : at + size]
            number += 1
        at += size


def export_rows(text: str) -> dict[str, list[dict]]:
    rows: dict[str, list[dict]] = {}
    for line in text.splitlines():
        row = json.loads(line)
        if "file" in row:
            current = rows.setdefault(row["file"], [])
        elif rows and "table" not in row and "note" not in row:
            current.append(row)
    return rows


EXPORT = f"""\
echo 'nr_nothing' >/dev/null
cd {T}
echo raw_syscalls:sys_enter >set_event
busybox sync
echo >set_event
echo "== lines $(grep -vc '^#' trace)"
cat /proc/profile/export
"""


def test_export_has_the_same_events(boot, tmp_path):
    """An export has the events of `trace`, and two runs with -icount are the same."""
    image = harness.script_image(tmp_path, EXPORT)

    def run() -> str:
        options = dict(append="profile.on_exit=none", icount=True, smp=2)
        return boot(None, initrd=image, **options).log

    log = harness.run_until_equal(run)
    rows = export_rows("\n".join(re.findall(r"^\{.*\}$", log, re.MULTILINE)))
    nr_lines = int(re.search(r"^== lines (\d+)", log, re.MULTILINE)[1])
    (event,) = [row for row in rows["trace_events.json"] if row["event"] == "sys_enter"]
    assert re.search(r"\tfield:long id;\toffset:8;\tsize:8;", event["format"])
    names = {row["tid"]: row["task"] for row in rows["trace_tasks.json"]}
    ids, missing = [], 0
    for cpu in rows["trace_cpus.json"]:
        pages = [row["data"] for row in rows["trace_pages.json"] if row["cpu"] == cpu["cpu"]]
        found = [item for page in pages for item in decode(base64.b64decode(page))]
        numbers = [number for number, _ in found if number >= cpu["first"]]
        assert numbers == list(range(cpu["first"], cpu["next"]))
        for _, content in found:
            kind, _, _, tid, nr = struct.unpack_from("<HBBiq", content)
            assert kind == event["id"]
            ids.append((names.get(tid), nr))
        missing += cpu["next"] - cpu["first"] - len(numbers)
    assert len(ids) == nr_lines and not missing
    assert ("busybox", 162) in ids or ("sync", 162) in ids
