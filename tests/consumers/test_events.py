# SPDX-License-Identifier: BSD-2-Clause
"""trace-cmd, kernelshark, perf and others read the events of a run. They agree with the tables."""

from __future__ import annotations

import base64
import json
import os
import re
import struct
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import qemu
from conftest import BUILD, KERNEL, ROOT, run
from profiles import events, export
from test_consumers import screen

ALL = "sched,raw_syscalls,irq,irq_vectors,exceptions,kmem,lock,timer,signal,profile"
NOT_BACK = {"exit", "exit_group"}  # calls that never return
SYMBOLS = ["--kernel", KERNEL]
RW = ("read", "write")


def options(path: Path, smp: int, append: str, initrd: str = "initramfs") -> qemu.Options:
    image = BUILD / f"{initrd}.cpio"
    append = f"profile.on_exit=none {append}"
    return qemu.Options(
        kernel=KERNEL, initrd=image, append=append, icount=True, smp=smp, export=path
    )


def boot(path: Path, arguments: str, smp: int = 1) -> Path:
    """Runs the demo with -icount and all events on from the start. Returns the export."""
    append = f"trace_event={ALL} init=/bin/wordcount -- {arguments}"
    result = qemu.run(options(path, smp, append))
    assert result.ok and not result.export_error, result.tail()
    return path


@pytest.fixture(scope="module")
def traced(tmp_path_factory) -> Path:
    """Returns the export of a demo that loses no event."""
    path = tmp_path_factory.mktemp("events") / "run.lego"
    return boot(path, "-t 4 /bin/wordcount")


@pytest.fixture(scope="module")
def lossy(tmp_path_factory) -> Path:
    """Returns the export of a demo with more events than the rings hold."""
    path = tmp_path_factory.mktemp("lossy") / "run.lego"
    return boot(path, "-t 46 /data/text", smp=2)


def convert(path: Path, command: str, *options: str) -> Path:
    output = path.with_suffix(f".{command.removeprefix('trace-')}")  # kernelshark wants .dat
    if not output.exists():
        run(ROOT / "scripts/legoprof", command, path, *SYMBOLS, *options, "-o", output)
    return output


def perf_data(path: Path) -> Path:
    return convert(path, "perf-data", "--events")


def test_perf_scripts_count_reads_and_writes(tmp_path):
    """perf's rw-by-pid and rw-by-file have the calls and bytes that the table of strace has."""
    calls = ",".join(f"syscalls:sys_{way}_{name}" for way in ("enter", "exit") for name in RW)
    append = f"trace_event={calls} init=/bin/busybox -- dd if=/bin/busybox of=/x bs=4096"
    path = tmp_path / "run.lego"
    result = qemu.run(options(path, 1, append, "shell"))
    assert result.ok and not result.export_error, result.tail()
    counted = {row["syscall"]: row["calls"] for row in export.load(path).rows("strace.json")}
    data = perf_data(path)
    by_pid = run("perf", "script", "report", "rw-by-pid", "-i", data)
    # The first row of each part: reads, failed ones (for perf, the end of a file), writes.
    rows = re.findall(r"pid .*\n[- ]+\n +1 +busybox +(\d+) +\d+", by_pid)
    reads, writes = int(rows[0]), int(rows[-1])
    assert (reads, writes) == (counted["sys_read"], counted["sys_write"]), by_pid
    by_file = run("perf", "script", "report", "rw-by-file", "busybox", "-i", data)
    rows = re.findall(r"^ +\d+ +(\d+) +\d+$", by_file, re.MULTILINE)
    assert sum(map(int, rows)) == reads + writes > 500, by_file


def recorded(path: Path) -> tuple[int, int]:
    """Returns the number of events that the kernel has numbered, and of those in the export."""
    found = export.load(path)
    trace = events.read(found)
    numbered = sum(row["next"] - row["first"] for row in found.rows("trace_cpus.json"))
    return numbered, sum(len(cpu.events) for cpu in trace.cpus.values())


def trace_cmd(path: Path, *options: str) -> list[str]:
    text = run("trace-cmd", "report", *options, "-i", convert(path, "trace-dat"))
    return [line for line in text.splitlines() if not line.startswith("cpus=")]


def check_counts(path: Path, perf) -> tuple[int, int]:
    numbered, kept = recorded(path)
    lines = trace_cmd(path)
    dropped = [re.fullmatch(r"CPU:\d+ \[(\d+) EVENTS DROPPED\]", line) for line in lines]
    gaps = sum(int(found[1]) for found in dropped if found)
    assert sum(found is None for found in dropped) == kept
    text = perf("script", "--show-lost-events", "-i", perf_data(path))
    lost = [int(nr) for nr in re.findall(r"PERF_RECORD_LOST lost (\d+)", text)]
    samples = [line for line in text.splitlines() if "PERF_RECORD_LOST" not in line]
    assert len(samples) == kept and numbered == kept + sum(lost)
    assert gaps <= sum(lost)  # trace.dat cannot say that events after the last one were lost
    return numbered, kept


def test_nothing_is_lost(traced, perf):
    """trace-cmd prints a line, and perf a sample, for each event in the rings."""
    numbered, kept = check_counts(traced, perf)
    assert numbered == kept > 2000


def test_lost_events_are_counted(lossy, perf):
    numbered, kept = check_counts(lossy, perf)
    assert numbered > kept > 2000


def test_trace_cmd_reads_what_ftrace_prints(traced):
    """Task, CPU, time and event of each line are the same."""
    ours = convert(traced, "ftrace").read_text().splitlines()
    theirs = trace_cmd(traced, "-R")
    assert not any("UNKNOWN" in line or "FAILED" in line for line in theirs)
    lines = [line for line in ours if not line.startswith("#")]
    pattern = re.compile(r"(\S.*\S)-(\d+) +\[(\d+)\] .* (\d+\.\d+): (\w+):")
    sides = lines, trace_cmd(traced)
    found = [[pattern.search(line).groups() for line in side] for side in sides]
    assert found[0] == found[1]


def test_threads_have_their_process(traced, perf):
    """The demo's threads are those of process 1, the first program."""
    text = perf("script", "-F", "comm,pid,tid", "-i", perf_data(traced))
    found = set(re.findall(r"^ *wordcount +(\d+)/(\d+)", text, re.M))
    assert len(found) == 4 and {pid for pid, _ in found} == {"1"}


def test_perf_trace_counts_as_strace(traced, perf):
    """Calls and errors of each row are the same, except for calls that never return."""
    output = traced.with_suffix(".calls")
    perf("trace", "-s", "-i", perf_data(traced), "-o", output)
    text = output.read_text()
    calls: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for name, nr, nr_errors in re.findall(r"^   (\w+) +(\d+) +(\d+) +[\d.]+ ", text, re.M):
        calls[name] += int(nr)
        errors[name] += int(nr_errors)
    rows = export.load(traced).rows("strace.json")
    expected = {row["syscall"].removeprefix("sys_"): row for row in rows}
    assert set(expected) & NOT_BACK
    for name in NOT_BACK:
        expected.pop(name, None)
    expected["execve"]["calls"] -= 1  # the kernel's own, of the first program
    counts = {name: row["calls"] - row["in_flight"] for name, row in expected.items()}
    assert calls == +Counter(counts)
    assert +errors == {name: row["errors"] for name, row in expected.items() if row["errors"]}


def ns_of(text: str) -> int:
    seconds, fraction = text.split(".")
    return int(seconds.rpartition(":")[2]) * 1_000_000_000 + int(fraction)


def test_ctf(traced, perf, tmp_path):
    """perf converts all events to CTF, too, with its own names, and babeltrace2 reads each."""
    perf("data", "convert", "--all", "-i", perf_data(traced), "--to-ctf", tmp_path / "ctf")
    text = run("babeltrace2", tmp_path / "ctf")
    line = re.compile(r"^\[([\d:.]+)\] \([^)]*\) ([a-z_]+:\w+): ", re.M)
    found = [(ns_of(stamp), name) for stamp, name in line.findall(text)]
    trace = events.read(export.load(traced))
    assert Counter(found) == Counter(
        (event.ns, f"{one.system}:{one.name}")
        for event in trace.in_order()
        for one in [trace.format(event)]
    )


def test_perf_knows_kernel_threads(traced, perf):
    """They are threads of process 0, with names and times of their own."""
    text = perf("script", "-F", "comm,pid,tid", "-i", perf_data(traced))
    found = dict(re.findall(r"^ *(\S+) +(\d+)/1\d{9}", text, re.M))
    assert {"init", "strace"} <= set(found) and set(found.values()) == {"0"}
    text = perf("sched", "timehist", "-i", perf_data(traced))
    assert {"init", "strace"} <= set(re.findall(r"^ +[\d.]+ \[0000\]  (\w+) ", text, re.M))


NR_WRITERS = 3
WRITERS = (
    f"for i in $(seq {NR_WRITERS}); do dd if=/dev/zero of=/tmp/x bs=1M count=32 & done; wait"
)

COMMANDS = [
    "cd /sys/kernel/tracing",
    "echo x > /tmp/x; cat /tmp/x",  # the first command of a kind allocates memory that stays
    "echo 'flags == 32' > events/lock/contention_begin/filter",  # mutexes only
    "echo 1 > events/lock/enable; echo 1 > events/sched/enable",
    "echo 1 > events/kmem/kmalloc/enable; echo 1 > events/kmem/kfree/enable",
    WRITERS,
    "echo l > /proc/sysrq-trigger",
    "mkdir /tmp/d; for i in 1 2 3 4 5; do echo x > /tmp/d/$i; done; rm /tmp/d/2",
    "echo l > /proc/sysrq-trigger",
    "echo 0 > events/enable",
    "exit",
]


def shell(path: Path, commands: list[str]) -> str:
    """Returns the log of a shell that runs the commands. The last one must end it."""
    # With one CPU, time is its instructions, and nothing spins for a lock.
    with qemu.Guest(options(path, 1, "", "shell")) as guest:
        for command in commands:
            guest.expect(r"lego:[^\n]*# ")
            guest.send(command + "\n")
        result = guest.wait()
    assert result.ok and not result.export_error, result.tail()
    assert events.read(export.load(path)).cpus
    return result.log.replace("\r", "")


@pytest.fixture(scope="module")
def session(tmp_path_factory) -> tuple[Path, str]:
    """Runs three programs that write to one file, and makes files. Returns (export, log)."""
    path = tmp_path_factory.mktemp("session") / "run.lego"
    return path, shell(path, COMMANDS)


def timehist(path: Path, perf) -> dict[int, Counter[str]]:
    """Returns the sums of timehist's columns by thread, and when the thread last ran, in ns."""
    text = perf("sched", "timehist", "-i", perf_data(path))
    number = r" +([\d.]+)"
    row = re.compile(rf"^{number} \[\d+\] +\S+\[(\d+)[/\d]*\]{3 * number} *$", re.M)
    found: dict[int, Counter[str]] = {}
    for seconds, tid, *columns in row.findall(text):
        wait, delay, cpu = (round(float(ms) * 1e6) for ms in columns)
        is_first = int(tid) not in found
        sums = found.setdefault(int(tid), Counter())
        # perf counts no wait for a new thread, so its delay after the wakeup is its whole wait.
        sums.update(rows=1, run=cpu, wait=delay if is_first else wait)
        sums["end"] = round(float(seconds) * 1e9)
    return found


def test_perf_sched_times_as_the_waits_table(session, perf):
    """
    Wait times are those of the table, and the rest of a thread's life is its run time. perf rounds
    times to microseconds, and an event is written some instructions after the switch was timed.
    """
    sums = timehist(session[0], perf)
    waited_ns: Counter[int] = Counter()
    for row in export.load(session[0]).rows("waits_stacks.json"):
        # The table counts the wait of a new thread from its creation, perf from its wakeup.
        asleep_ns = 0 if row["what"] == "start" else row["asleep_ns"]
        waited_ns[row["pid"]] += asleep_ns + row["ready_ns"]
    text = convert(session[0], "ftrace").read_text()
    forks = re.findall(r" ([\d.]+): sched_process_fork: .* child_pid=(\d+)$", text, re.M)
    born_ns = {int(tid): round(float(seconds) * 1e9) for seconds, tid in forks}
    writers = [int(tid) for tid in re.findall(r" dd-(\d+) .*: sched_process_exit:", text)]
    assert len(writers) == NR_WRITERS
    for tid in writers:
        found = sums[tid]
        slack_ns = 2000 * (found["rows"] + 1)
        assert found["wait"] == pytest.approx(waited_ns[tid], abs=slack_ns)
        assert found["run"] == pytest.approx(
            found["end"] - born_ns[tid] - waited_ns[tid], abs=slack_ns
        )
        assert found["run"] > 1_000_000
    assert sum(sums[tid]["wait"] for tid in writers) > 1_000_000


def test_perf_lock_contention_as_waits_by_lock(session):
    """
    A contention has several waits if other threads took the lock first. It is longer than its waits
    by the code that runs between them, less than a microsecond for each.
    """
    path, _ = session
    data = perf_data(path)
    text = run("sh", "-c", 'exec perf lock contention -i "$0" -t 2>&1', data)
    threads = re.findall(r"^ +(\d+) +([\d.]+) (us|ms|s) .* dd$", text, re.M)
    nr = sum(int(row[0]) for row in threads)
    scale = {"us": 1e3, "ms": 1e6, "s": 1e9}
    total = sum(float(waited) * scale[unit] for _, waited, unit in threads)
    (lock,) = (
        row for row in export.load(path).rows("waits_locks.json") if "write_lock" in row["lock"]
    )
    assert 0 < nr <= lock["waits"] and lock["wait_ns"] > 1_000_000
    rounding_ns = sum(scale[unit] / 100 for *_, unit in threads)
    assert total == pytest.approx(lock["wait_ns"], abs=1000 * lock["waits"] + rounding_ns / 2)


def test_call_chains(lego, perf, tmp_path):
    """Each event has a call chain. perf finds the same callers of locks as the waits table."""
    path = tmp_path / "run.lego"
    switches = ["echo x > /tmp/x", "cd /sys/kernel/tracing", "echo 1 > options/stacktrace"]
    shell(path, [*switches, "echo lock sched > set_event", WRITERS, "echo > set_event", "exit"])
    trace = events.read(export.load(path))
    names = Counter(trace.format(event).name for event in trace.in_order())
    nr_chains = names.pop("kernel_stack")
    assert nr_chains == names.total() > 50
    assert sum("<stack trace >" in line for line in trace_cmd(path)) == nr_chains
    with_chains = perf("script", "-F", "event,ip,sym", "-i", perf_data(path)).split("\n\n")
    assert sum("trace_write_slow\n" in one for one in with_chains) == nr_chains

    command = 'exec perf --buildid-dir "$0" lock contention -i "$1" 2>&1'
    text = run("sh", "-c", command, lego.with_name("buildid"), perf_data(path))
    rows = re.findall(r"^ +(\d+) .* mutex +(\w+)\+0x\w+$", text, re.M)
    assert sum(int(nr) for nr, _ in rows) == names["contention_end"] and "Unknown" not in text
    waits = export.load(path).rows("waits.json")
    assert {caller for _, caller in rows} == {
        row["function"] for row in waits if row["what"] == "inode->write_lock"
    }


def test_perf_kmem_stat_as_leak_counts(session, perf):
    """Both count the same bytes that were allocated and not freed between two sysrq l."""
    path, log = session
    counts = re.findall(r"^\[ *([\d.]+)\] leaks: .*bytes of kmalloc (\d+)", log, re.M)
    assert len(counts) == 2
    net = []
    for stamp, _ in counts:
        text = perf("kmem", "-i", perf_data(path), "--time", f",{stamp}", "stat")
        (number,) = re.findall(r"Net total bytes allocated: ([\d,]+)", text)
        net.append(int(number.replace(",", "")))
    assert net[1] - net[0] == int(counts[1][1]) - int(counts[0][1]) > 1000


def any_of(*types: str) -> dict:
    return {"type": list(types)}


# "Trace Event Format" of Catapult: begins and ends, instants and metadata.
SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "additionalProperties": False,
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["ph", "name", "ts", "pid", "tid"],
                "properties": {
                    "ph": {"enum": ["B", "E", "i", "M"]},
                    "name": any_of("string"),
                    "ts": {"type": "number", "minimum": 0},
                    "s": {"enum": ["g", "p", "t"]},
                    "args": any_of("object"),
                    "pid": any_of("integer"),
                    "tid": any_of("integer"),
                },
                "additionalProperties": False,
                "oneOf": [
                    {"properties": {"ph": {"enum": ["B", "E"]}}},
                    {"properties": {"ph": {"const": "i"}}, "required": ["s"]},
                    {
                        "properties": {
                            "ph": {"const": "M"},
                            "name": {"pattern": "^(process|thread)_(name|sort_index)$"},
                        },
                        "required": ["args"],
                    },
                ],
            },
        },
    },
}


def test_chrome(traced):
    """
    The file is valid, and slices of a track are nested. Times are exact to the nanosecond if read
    as Perfetto does (CoerceToTs() in its json_utils.cc).
    """
    import jsonschema

    file = json.loads(convert(traced, "chrome").read_text())
    jsonschema.validate(file, SCHEMA)
    times = {event.ns for event in events.read(export.load(traced)).in_order()}
    open_slices: dict[tuple[int, int], list[str]] = {}
    nr_slices, last = 0, 0.0
    for one in file["traceEvents"]:
        if one["ph"] == "M":
            continue
        assert one["ts"] >= last and int(one["ts"] * 1000.0) in times
        last = one["ts"]
        names = open_slices.setdefault((one["pid"], one["tid"]), [])
        if one["ph"] == "B":
            names.append(one["name"])
            nr_slices += 1
        elif one["ph"] == "E":
            assert names.pop() == one["name"]
    assert nr_slices > 300 and not any(open_slices.values())


def test_chrome_in_speedscope(traced, npm, tmp_path):
    """speedscope shows the names of the tracks and the slices of the first one."""
    package = npm("speedscope", "1.25.0") / "dist/release"
    data = base64.b64encode(convert(traced, "chrome").read_bytes()).decode()
    script = tmp_path / "run.js"
    script.write_text(f'speedscope.loadFileFromBase64("run.json", "{data}")')
    text = screen(f"file://{package}/index.html#localProfilePath={script}&view=sandwich", tmp_path)
    assert "wordcount (pid 1), wordcount (tid 1)" in text
    assert ">asleep" in text and ">futex" in text


def xwd(path: Path) -> tuple[int, int, bytes]:
    """Returns width, height and pixels (blue, green, red, unused) of an X window dump."""
    data = path.read_bytes()
    words = struct.unpack_from(">25I", data)
    header_size, width, height, line_bytes, nr_colors = (words[i] for i in (0, 4, 5, 12, 19))
    assert line_bytes == 4 * width
    start = header_size + 12 * nr_colors
    return width, height, data[start : start + line_bytes * height]


def nr_colored(pixels: bytes) -> int:
    """Counts pixels that are not grey: kernelshark draws tasks in colors."""
    return sum(
        max(bgr) - min(bgr) > 100 for bgr in zip(pixels[0::4], pixels[1::4], pixels[2::4])
    )


def check_kernelshark(path, tmp_path):
    """kernelshark opens the file and draws the tasks of the CPUs."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "setting.ini").write_text("[General]\nnoRootWarn=true\n")
    log, display = tmp_path / "log", f":{os.getpid()}"
    environment = os.environ | {"DISPLAY": display, "KS_USER_CACHE_DIR": str(cache)}
    environment |= {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    screen = ["Xvfb", display, "-screen", "0", "1400x900x24", "-fbdir", str(tmp_path)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(screen, **quiet) as server, log.open("wb") as output:
        command = ["kernelshark", "-i", str(path)]
        end_s = time.monotonic() + 60
        while not (tmp_path / "Xvfb_screen0").exists() and time.monotonic() < end_s:
            time.sleep(0.1)
        with subprocess.Popen(command, env=environment, stdout=output, stderr=output) as viewer:
            found = 0
            while found < 2000 and viewer.poll() is None and time.monotonic() < end_s:
                time.sleep(0.5)
                found = nr_colored(xwd(tmp_path / "Xvfb_screen0")[2])
            viewer.kill()
        server.terminate()
    assert found >= 2000, log.read_text()


def test_kernelshark(lossy, tmp_path):
    check_kernelshark(convert(lossy, "trace-dat"), tmp_path)
