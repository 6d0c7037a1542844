# SPDX-License-Identifier: BSD-2-Clause
"""Tests that each format has only what the user has chosen, and says what was lost."""

from __future__ import annotations

import gzip
import json
import re
import struct

import pytest
import trace_export
from legoprof_shapes import seal
from test_legoprof import META, SAMPLE, legoprof, profile_export
from test_legoprof_events import STACK, perf_records, rows, slices_of
from test_legoprof_fuzz import FILES, WAIT, whole
from trace_export import ENTER, EXIT, MS, SWITCH, TASKS, Ring

ROWS = [
    SAMPLE,
    SAMPLE | {"pid": 2, "tid": 3, "comm": "c", "cpu": 1, "samples": 20},
    SAMPLE | {"pid": 2, "tid": 4, "comm": "d", "cpu": 2, "samples": 300, "syscall": "sys_write"},
    SAMPLE | {"pid": 0, "tid": 0, "comm": "idle/0", "class": "idle", "samples": 4000},
    # An ending thread, which has left its process.
    SAMPLE | {"pid": 0, "tid": 4, "comm": "d", "cpu": 2, "samples": 50000, "syscall": None},
]
SOURCE = [
    {"cpu": cpu, "hz": 1000, "expected": 100, "lost": 10 * cpu, "self": 3} for cpu in range(3)
]
CPUS = [{"cpu": 2, "dropped": 4}]
FORMATS = ["folded", "stacks", "speedscope", "callgrind", "pprof", "perf-data"]


@pytest.fixture
def run(run_legoprof):
    """Returns a function that runs legoprof on rows of files, for (status, output, stderr)."""
    return lambda files, *argv: run_legoprof(whole(META, files), *argv)


def total(name: str, data: bytes) -> int:
    """Returns the samples in a file. Of pprof's, go's pprof counts them in tests/consumers."""
    if name == "perf-data":
        samples = [body for kind, body in perf_records(data) if kind == 9]
        return sum(struct.unpack_from("<Q", body, 40)[0] for body in samples) // 1_000_000
    if name == "speedscope":
        return json.loads(data)["profiles"][0]["endValue"]
    pattern = {"callgrind": rb"^totals: (\d+)$", "folded": rb" (\d+)$", "stacks": rb"^ +(\d+)$"}
    return sum(map(int, re.findall(pattern[name], data, re.M)))


@pytest.mark.parametrize(
    "options,expected",
    [
        ("", 54327),
        ("--pid 1", 7),
        ("--pid 2", 50320),
        ("--pid 1,2", 50327),
        ("--pid 0", 4000),
        ("--tid 3 --tid 1", 27),
        ("--cpu 2,1", 50320),
        ("--comm c --comm d", 50320),
        ("--comm d --syscall write", 300),
        ("--syscall sys_read", 4027),
        ("--no-idle", 50327),
        ("--pid 0,1 --no-idle", 7),
    ],
)
def test_samples(run, options, expected):
    files = {"samples.json": ROWS, "source.json": [{"cpu": 0, "hz": 1000}]}
    for name in set(FORMATS) - {"pprof"}:
        status, data, err = run(files, name, *options.split())
        assert (status, err) == (0, "") and total(name, data) == expected
    argv = "report", "--by", "task", "--format", "json"
    found = map(json.loads, run(files, *argv, *options.split())[1].splitlines())
    assert sum(row["samples"] for row in found) == expected


def test_title_has_the_filter(run):
    files = {"samples.json": ROWS}
    _, data, _ = run(files, "speedscope", "--pid", "2,1", "--comm", "a b")
    assert json.loads(data)["profiles"][0]["name"] == "run.lego --pid 1,2 --comm a b"


def test_what_cannot_be_chosen(run):
    files = FILES | {"samples.json": ROWS, "source.json": SOURCE}
    for argv, why in (
        (["folded", "--pid", "9"], "nothing matches --pid 9"),
        (["folded", "--waits", "--tid", "9"], "waits have no tid"),
        (["perf-data", "--from", "1"], "have no times: --from and --to choose events"),
        (["report", "--cpu", "1"], "without --by, so --cpu 1 can choose none"),
        (["report", "--no-idle"], "without --by, so --no-idle can choose none"),
        (["callgrind", "--calls", "--pid", "1"], "for the whole machine, so --pid 1 can"),
        (["ftrace", "--tid", "9"], "no event matches --tid 9"),
    ):
        status, data, err = run(files, *argv)
        assert status == 2 and not data and why in err, err
    for bad in ["--pid", "x"], ["--cpu", "1,"], ["--from", "x"]:
        with pytest.raises(SystemExit):
            run(files, "ftrace", *bad)


def test_waits(run):
    files = {"waits_stacks.json": [WAIT, WAIT | {"cpu": 1, "pid": 2, "asleep_ns": 30}]}
    assert run(files, "folded", "--waits", "--cpu", "1")[1].endswith(b" 100\n")


LOST = "43 of 300 samples were lost (14.33 %)"


def test_losses(run):
    """Losses of the source and of the store are added up, of the CPUs that are chosen."""
    files = {"samples.json": ROWS, "source.json": SOURCE, "cpus.json": CPUS}
    for name in FORMATS:
        status, data, err = run(files, name)
        assert (status, err) == (0, f"{LOST}\n")
        if name == "perf-data":
            bodies = [body for kind, body in perf_records(data) if kind == 13]
            assert [struct.unpack_from("<Q", body)[0] for body in bodies] == [3, 13, 27]
            assert {len(body) for body in bodies} == {8 + 32}
        elif name not in ("folded", "stacks"):
            assert LOST.encode() in (gzip.decompress(data) if name == "pprof" else data)
        assert run(files, name, "--cpu", "1")[2] == "13 of 100 samples were lost (13.00 %)\n"
    _, data, err = run(files, "report", "--by", "task")
    assert data.decode().splitlines()[-1] == LOST and err == f"{LOST}\n"


def test_losses_in_the_title(run, tmp_path, monkeypatch):
    script = tmp_path / "flamegraph.pl"
    script.write_text('print "$ARGV[1]\\n"; my @all = <STDIN>;')
    monkeypatch.setattr(legoprof.flamegraph, "find", lambda: str(script))
    files = {"samples.json": ROWS, "source.json": SOURCE, "cpus.json": CPUS}
    _, data, _ = run(files, "flamegraph", "--pid", "2")
    assert data.decode() == f"run.lego --pid 2: 50320 samples, {LOST}\n"


def test_lost_waits():
    table = profile_export.Table("", [], ["not in the store: 6 waits of all threads, no room"])
    files = rows({"waits_stacks.json": [WAIT]}) | {"waits.json": [table]}
    export = profile_export.Export("", META, {}, files, [])
    found = legoprof.profiles.stacks.read(export, waits=True)
    assert str(found.losses) == "6 of 8 waits were lost (75.00 %)"


def test_lost_calls(tmp_path, capsys):
    """The function profiler's table says in a note how many calls had no room."""
    path, row = tmp_path / "run.lego", FILES["function_calls.json"][0]
    lines = [{"file": "function_calls.json"}, {"table": ""}, row]
    lines.append({"note": "no room for 12 calls (not included)"})
    path.write_bytes(seal(lines))
    assert legoprof.main(["callgrind", "--calls", str(path)]) == 0
    out, err = capsys.readouterr()
    text = "12 of 16 calls were lost (75.00 %)\n"
    assert err == f"legoprof: {path}: {text}" and f"\ndesc: {text}" in out


def test_damaged_losses(run):
    """Counts of a wrong type are no losses, and no traceback."""
    for bad in None, -1, "x", [1], 1 << 70, True:
        source = [SOURCE[0] | {"lost": bad, "self": bad}]
        status, _, err = run({"samples.json": ROWS, "source.json": source}, "perf-data")
        assert (status, err) == (0, "")


def test_images(run):
    """Samples are counted by the file of the innermost function."""
    user = SAMPLE | {"kernel": [], "syscall": None, "code_map": 2, "samples": 5}
    unknown = user | {"user": ["0x999000"], "samples": 2}
    maps = [FILES["code_maps.json"][0], FILES["code_maps.json"][1]]
    files = {"images.json": FILES["images.json"], "code_maps.json": maps}
    files["samples.json"] = [SAMPLE, user, unknown]
    _, out, err = run(files, "report", "--by", "image", "--format", "csv")
    assert out.decode().splitlines() == [
        "samples,percent,image",
        "7,50.00,[kernel]",
        "5,35.71,/bin/a",
        "2,14.29,-",
    ]


def ftrace(run, files: dict, *options: str) -> list[str]:
    """Returns CPU, time and name of each event, and the gaps."""
    status, data, err = run(files, "ftrace", *options)
    assert status == 0, err
    lines = [line for line in data.decode().splitlines() if not line.startswith("#")]
    event = re.compile(r".* \[00(\d)\] \S+ +([\d.]+): (<stack trace>|\w+).*")
    gap = re.compile(r"CPU:(\d) \[LOST (\d+) EVENTS\]")
    found = [event.fullmatch(line) or gap.fullmatch(line) for line in lines]
    return [" ".join(match.groups()) for match in found if match]


def test_events_of_a_task(run):
    """Of sched's events, those about a task count, too. A gap stays before the next event."""
    files = trace_export.small()
    assert ftrace(run, files, "--comm", "writer") == [
        "1 3",
        "1 1.005000 sched_switch",
        "1 1.006000 contention_begin",
        "1 1.007000 contention_end",
        "1 1.008000 sched_wakeup",
        "1 2",
        *(f"1 1.0{ms}000 sys_{name}" for ms, name in zip(range(12, 16), ["enter", "exit"] * 2)),
        "0 7",
    ]
    found = ftrace(run, files, "--tid", "11", "--cpu", "1")
    assert found == ["1 3", "1 1.008000 sched_wakeup", "1 2"]
    assert len(ftrace(run, files, "--pid", "11", "--idle")) == 18 + 3


def test_events_of_a_time(run):
    files = trace_export.small()
    options = ["--from", "1.0055", "--to", "1.009"]
    assert ftrace(run, files, *options) == [
        "1 1.006000 contention_begin",
        "1 1.007000 contention_end",
        "1 1.008000 sched_wakeup",
        "0 1.009000 sched_switch",
        "1 2",
    ]
    status, data, err = run(files, "ftrace", *options)
    assert err == "CPU 1: 2 events were lost, 3 are there\n"
    assert ftrace(run, files, "--from", "6")[-1] == "0 7"
    slices = slices_of(json.loads(run(files, "chrome", "--to", "1.002")[1])["traceEvents"])
    assert {key[2] for key in slices} == {"reader", "read"}


def test_events_in_a_call(run):
    """From sys_enter to sys_exit. After a gap, it is unknown which calls threads are in."""
    files = trace_export.small(has_gaps=False)
    assert ftrace(run, files, "--syscall", "read") == [
        "0 1.001000 sys_enter",
        "0 1.002000 kmalloc",
        "0 1.003000 kmalloc",
        "0 1.004000 sched_switch",
        "0 1.010000 kfree",
        "0 1.011000 sys_exit",
    ]
    found = ftrace(run, trace_export.small(), "--syscall", "read")
    assert "0 1.010000 kfree" not in found and "0 1.011000 sys_exit" in found


def test_idle_events(run):
    """Events of the idle task are left out, but not its switches, by which tools count time."""
    ring = Ring(0)
    ring.add(1 * MS, EXIT.data(0, 1, 0))
    ring.add(2 * MS, SWITCH.data(0, "swapper", 0, 120, 0, "reader", 11, 120))
    files = trace_export.files([ring], TASKS, trace_export.KINDS)
    assert ftrace(run, files, "--no-idle") == ["0 0.002000 sched_switch"]
    assert len(ftrace(run, files)) == 2


def test_chains_go_with_their_events(run):
    ring = Ring(0)
    for i, (kind, call) in enumerate([(ENTER, 0), (EXIT, 0), (ENTER, 1), (EXIT, 1)]):
        values = [[0] * 6] if kind is ENTER else [0]
        ring.add(2 * i * MS, kind.data(11, call, *values))
        ring.add((2 * i + 1) * MS, STACK.data(11, 1, 0, [0x81 + i, 0]))
    files = trace_export.files([ring], TASKS, [ENTER, EXIT, STACK])
    assert ftrace(run, files, "--syscall", "write") == [
        "0 0.004000 sys_enter",
        "0 0.005000 <stack trace>",
        "0 0.006000 sys_exit",
        "0 0.007000 <stack trace>",
    ]
    assert ftrace(run, files, "--to", "0.004")[-1] == "0 0.005000 <stack trace>"


def test_kernel_threads(run):
    """They are no processes: pid 0, as in samples. In a picture, they are under one heading."""
    ring = Ring(0)
    ring.add(MS, EXIT.data(1_000_000_000, 1, 0))
    files = trace_export.files([ring], {1_000_000_000: (0, "kworker")}, [EXIT])
    _, data, _ = run(files, "perf-data", "--events")
    (sample,) = (body for kind, body in perf_records(data) if kind == 9)
    assert struct.unpack_from("<II", sample, 16) == (0, 1_000_000_000)
    _, data, _ = run(files, "chrome")
    names = {
        one["args"]["name"]: (one["pid"], one["tid"])
        for one in json.loads(data)["traceEvents"]
        if one["name"].endswith("_name")
    }
    assert set(names) == {"kernel threads", "kworker"} and len(set(names.values())) == 1
    assert len(ftrace(run, files, "--pid", "0")) == 1


def test_release_is_that_of_the_kernel():
    source = (profile_export.Path(__file__).parents[2] / "kernel/process/info.c").read_text()
    assert f'.release = "{legoprof.perf_data.RELEASE}",' in source
