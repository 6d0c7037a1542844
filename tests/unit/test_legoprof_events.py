# SPDX-License-Identifier: BSD-2-Clause
"""Converts events to the formats of other tools. Small readers in this file read them back."""

from __future__ import annotations

import json
import struct

import pytest
import trace_export
from test_legoprof import META, READ, legoprof
from test_legoprof_fuzz import whole
from trace_export import EXIT, MS, TASKS, Kind, Ring

events, print_format = legoprof.profiles.events, legoprof.profiles.print_format

LOST = [
    "CPU 0: 7 events were lost, 10 are there",
    "CPU 1: 5 events were lost, 8 are there",
]


@pytest.fixture
def convert(run_legoprof):
    """Returns a function that runs legoprof on rows of files, for (status, output, stderr)."""

    def run(files: dict, command: str, *options: str, meta: dict = META) -> tuple[int, bytes, str]:
        return run_legoprof(whole(meta, files), command, *options)

    return run


def only(kind: Kind, *values: object) -> dict:
    """Returns an export with one event, of thread 11."""
    ring = Ring(0)
    ring.add(2_000_000_500, kind.data(11, *values))
    return trace_export.files([ring], TASKS, [kind])


def test_ftrace(convert):
    status, out, err = convert(trace_export.small(), "ftrace")
    assert status == 0
    assert err.splitlines() == LOST
    lines = out.decode().splitlines()
    assert lines[2] == "# entries-in-buffer/entries-written: 18/30   #P:2"
    assert [line for line in lines if "LOST" in line] == [
        "CPU:1 [LOST 3 EVENTS]",
        "CPU:1 [LOST 2 EVENTS]",
        "CPU:0 [LOST 7 EVENTS]",
    ]
    head = "          reader-11      [000] "
    assert lines[13:17] == [
        head + ".....     1.001000: sys_enter: NR 0 (3, 7fff0000, 64, 0, 0, 0)",
        head + "d....     1.002000: kmalloc: call_site=0xffffffff81000100 ptr=0xffff888000001000 "
        "bytes_req=100 bytes_alloc=128 gfp_flags=none node=-1",
        head + "d....     1.003000: kmalloc: call_site=0xffffffff81000100 ptr=0xffff888000002000 "
        "bytes_req=30 bytes_alloc=32 gfp_flags=X node=-1",
        head + "d....     1.004000: sched_switch: prev_comm=reader prev_pid=11 prev_prio=120 "
        "prev_state=S ==> next_comm=swapper next_pid=0 next_prio=120",
    ]


def pages_of(data: bytes) -> dict[int, list[bytes]]:
    """Returns the pages of a trace.dat by CPU. The sections before them vary in length."""
    at = data.index(b"options  \0")
    (nr_cpus,) = struct.unpack_from("<I", data, at - 4)
    at = data.index(b"flyrecord\0") + 10
    found = {}
    for cpu in range(nr_cpus):
        start, size = struct.unpack_from("<QQ", data, at + 16 * cpu)
        assert start % 4096 == size % 4096 == 0 and start + size <= len(data)
        found[cpu] = [data[i : i + 4096] for i in range(start, start + size, 4096)]
    return found


def records_of(page: bytes) -> tuple[int, list[tuple[int, bytes]]]:
    """Returns the number of events lost before a page, and time and content of its events."""
    time, commit = struct.unpack_from("<QQ", page)
    at, end = 16, 16 + (commit & 0xFFFFFFF)
    nr_lost = struct.unpack_from("<Q", page, end)[0] if commit >> 30 == 3 else 0
    found = []
    while at < end:
        (head,) = struct.unpack_from("<I", page, at)
        kind, size, at = head & 31, 4 * (head & 31), at + 4
        time += head >> 5
        if kind == 30:
            time += struct.unpack_from("<I", page, at)[0] << 27
            at += 4
            continue
        if not kind:
            size = struct.unpack_from("<I", page, at)[0] - 4
            at += 4
        found.append((time, page[at : at + size]))
        at += size
    assert at == end
    return nr_lost, found


@pytest.mark.parametrize("command", ["ftrace", "chrome", "trace-dat", "perf-data"])
def test_names_forge_no_line(convert, command):
    """Tools print texts of events without escaping, so legoprof replaces control characters."""
    kind, evil = trace_export.WAKEUP, b"x\n-1 [000] \x1b\xff"
    files = only(kind, evil, 7, 120, 1)
    status, data, _ = convert(files, command, *["--events"][: command == "perf-data"])
    assert status == 0 and evil not in data and b"x?-1 [000] ??" in data


def test_trace_dat(convert):
    files = trace_export.small()
    status, data, _ = convert(files, "trace-dat")
    assert status == 0 and data.startswith(b"\x17\x08\x44tracing6\0")
    pages = pages_of(data)
    assert [[records_of(page)[0] for page in pages[cpu]] for cpu in (0, 1)] == [[0], [3, 2]]
    found = [[one for page in pages[cpu] for one in records_of(page)[1]] for cpu in (0, 1)]
    trace = events.read(legoprof.profiles.export.Export("", META, {}, rows(files), []))
    for cpu in 0, 1:
        expected = [(event.ns, event.data) for event in trace.cpus[cpu].events]
        assert found[cpu] == expected


def rows(files: dict) -> dict:
    Table = legoprof.profiles.export.Table
    return {name: [Table(name, rows)] for name, rows in files.items()}


def test_long_events_and_full_pages(convert):
    """Events of every length up to a page, with gaps, are all converted."""
    ring, expected = Ring(0), []
    kind = Kind(400, "test", "long", [], '"x"')
    for i, nr_words in enumerate([0, 1, 13, 14, 507, 508, 508, 3] * 3):
        data = kind.data(11) + bytes([i]) * 8 * nr_words
        ns = 10**9 * (i + 1)
        if i % 5 == 4:
            ring.lose(i)
        ring.add(ns, data)
        expected.append((ns, data))
    status, data, _ = convert(trace_export.files([ring], TASKS, [kind]), "trace-dat")
    found = [one for page in pages_of(data)[0] for one in records_of(page)[1]]
    assert status == 0 and found == expected


def perf_records(data: bytes) -> list[tuple[int, bytes]]:
    at, size = struct.unpack_from("<QQ", data, 40)
    found, end = [], at + size
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        found.append((kind, data[at + 8 : at + length]))
        at += length
    return found


def test_perf_data(convert):
    files = trace_export.small()
    status, data, _ = convert(files, "perf-data", "--events")
    assert status == 0
    found = perf_records(data)
    samples = [body for kind, body in found if kind == 9]
    assert [struct.unpack_from("<Q", body, 8)[0] for kind, body in found if kind == 2] == [3, 2, 7]
    times = [struct.unpack_from("<QI", body, 24) for body in samples]
    assert len(times) == 18 and times == sorted(times)
    tid, _, cpu = struct.unpack_from("<IQI", samples[1], 20)
    assert (struct.unpack_from("<I", samples[1], 16)[0], tid, cpu) == (11, 11, 0)
    call = trace_export.ENTER.data(11, 0, [3, 0x7FFF0000, 100, 0, 0, 0], flags=0)
    assert samples[1].endswith(call + bytes(4))
    assert [body[:8] for kind, body in found if kind == 3] == [
        struct.pack("<II", pid, tid) for tid, (pid, _) in TASKS.items()
    ]


def slices_of(lines: list[dict]) -> dict[tuple[int, int, str, float], tuple[float, dict]]:
    """
    Returns end and arguments of slices, by track, name and begin. An end belongs to the slice of
    the track that began last.
    """
    open_slices: dict[tuple[int, int], list[dict]] = {}
    found = {}
    for one in lines:
        track = one["pid"], one["tid"]
        if one["ph"] == "B":
            open_slices.setdefault(track, []).append(one)
        elif one["ph"] == "E":
            begin = open_slices[track].pop()
            assert begin["name"] == one["name"]
            found[(*track, one["name"], begin["ts"])] = one["ts"], begin["args"] | one["args"]
    assert not any(open_slices.values())
    return found


def test_chrome(convert):
    """Calls, waits and the tasks of CPUs are slices. Gaps and other events are instants."""
    status, data, _ = convert(trace_export.small(), "chrome")
    assert status == 0
    found = json.loads(data)["traceEvents"]
    slices = {key: end - key[3] for key, (end, _) in slices_of(found).items()}
    cpus = 1 << 22
    assert slices == {
        (cpus, 0, "reader", 1_000_000): 4000,
        (cpus, 0, "reader", 1_009_000): 4_992_000,
        (cpus, 1, "writer", 1_005_000): 4_996_000,
        (11, 11, "read", 1_001_000): 10_000,
        (11, 11, "asleep", 1_004_000): 4000,
        (11, 11, "ready", 1_008_000): 1000,
        (11, 11, "exit", 6_000_000): 1000,
        (11, 11, "asleep", 6_001_000): 0,
        (11, 12, "contention", 1_006_000): 1000,
        (11, 12, "write", 1_012_000): 1000,
        (11, 12, "write", 1_014_000): 1000,
    }
    instants = [one["name"] for one in found if one["ph"] == "i"]
    assert sorted(instants) == [
        "2 events lost",
        "3 events lost",
        "7 events lost",
        "kfree",
        "kmalloc",
        "kmalloc",
        "sched_wakeup",
    ]
    names = {(one["pid"], one["tid"]): one["args"] for one in found if one["name"] == "thread_name"}
    assert names[cpus, 1] == {"name": "CPU 1"} and names[11, 12] == {"name": "writer"}


def test_slices_have_the_names_of_fields(convert):
    """
    A slice without an end lasts until the last event. An end without a begin becomes an instant.
    """
    begin = Kind(401, "irq", "irq_handler_entry", [("char", "name[16]", "16s")], '"x"')
    end = Kind(402, "irq", "irq_handler_exit", [("int", "ret", "i")], '"ret=%d", REC->ret')
    ring = Ring(0)
    for i, data in enumerate([end.data(0, 1), begin.data(0, "serial"), begin.data(11, "timer")]):
        ring.add(MS * (i + 1), data)
    _, data, _ = convert(trace_export.files([ring], TASKS, [begin, end]), "chrome")
    found = [one for one in json.loads(data)["traceEvents"] if one["ph"] != "M"]
    assert [one["name"] for one in found if one["ph"] == "i"] == ["irq_handler_exit"]
    slices = slices_of(found)
    assert [(tid, name, end - begin) for (_, tid, name, begin), (end, _) in slices.items()] == [
        (0, "serial", 1000),
        (11, "timer", 0),
    ]
    assert all(args["end"] == "not yet" for _, args in slices.values())


STACK = Kind(
    4,
    "ftrace",
    "kernel_stack",
    [("int", "size", "i"), ("int", "unused", "i"), ("unsigned long", "caller[2]", "2Q")],
    '"\\t=> %ps\\n", (void *)REC->caller[0]',
)


def test_call_chains(convert):
    """
    A chain belongs to the last event before it, in the same context, that has none. Here, an NMI's
    event comes in between.
    """
    ring = Ring(0)
    ring.add(1000, EXIT.data(11, 1, 0, flags=0))
    ring.add(2000, EXIT.data(11, 2, 0, flags=0))
    ring.add(3000, EXIT.data(11, 3, 0, flags=64))
    ring.add(4000, STACK.data(11, 2, 0, [0x81, 0x82], flags=64))
    ring.add(5000, STACK.data(11, 1, 0, [0x91, 0], flags=0))
    ring.lose(3)
    ring.add(6000, STACK.data(11, 1, 0, [0xA1, 0], flags=0))
    files = trace_export.files([ring], TASKS, [EXIT, STACK])
    stack = files["trace_events.json"][1]  # declares more addresses than the events have
    stack["format"] = stack["format"].replace("size:16", "size:64")
    assert "caller[2];\toffset:16;\tsize:64" in stack["format"]
    _, data, _ = convert(files, "perf-data", "--events")
    found = perf_records(data)
    assert [struct.unpack_from("<Q", body, 8)[0] for kind, body in found if kind == 2] == [3]
    chains = []
    for body in (body for kind, body in found if kind == 9):
        (nr,) = struct.unpack_from("<Q", body, 48)
        chains.append(list(struct.unpack_from(f"<{nr}Q", body, 56)))
    kernel = (1 << 64) - 128
    assert chains == [[], [kernel, 0x90], [kernel, 0x80, 0x81]]
    _, text, _ = convert(files, "ftrace")
    assert text.count(b": <stack trace>\n => 0x") == 3
    _, data, _ = convert(files, "chrome")
    args = [one["args"] for one in json.loads(data)["traceEvents"] if one["name"] == "sys_exit"]
    assert [one.get("stack") for one in args] == [None, ["0x90"], ["0x80", "0x81"]]


def test_names_of_the_export(convert):
    """Without the kernel's file, events name the functions that the export names itself."""
    timer = Kind(401, "timer", "timer_entry", [("void *", "function", "Q")], '"%ps", REC->function')
    end = Kind(402, "timer", "timer_exit", [("int", "ret", "i")], '"ret=%d", REC->ret')
    ring = Ring(0)
    for cycles, kind, value in (1000, timer, 0x80), (2000, end, 0), (3000, timer, 0xC0):
        ring.add(cycles, kind.data(11, value))
    ring.add(4000, STACK.data(11, 1, 0, [0x91, 0]))
    row = {"image": 0, "offset": "0x0", "bytes": 16}
    functions = [(0x80, "tick"), (0x90, "a caller\nforged")]
    files = trace_export.files([ring], TASKS, [timer, end, STACK]) | {
        "symbols.json": [row | {"address": hex(at), "function": name} for at, name in functions]
    }
    for command, wanted in {
        "chrome": [b'"name": "tick"', b'"stack": ["a caller?forged"]', b'"name": "0xc0"'],
        "ftrace": [b"timer_entry: tick\n", b"\n => a caller?forged\n", b"timer_entry: 0xc0\n"],
        "trace-dat": [b"0000000000000080 T tick\n0000000000000090 T a caller?forged\n"],
        "perf-data": [b"0000000000000080 T tick\n"],
    }.items():
        status, data, err = convert(files, command, *["--events"][: command == "perf-data"])
        assert status == 0, err
        for text in wanted:
            assert text in data, (command, text)


def test_no_room_for_the_temporary_file_of_chrome(convert, monkeypatch):
    tempfile = legoprof.profiles.chrome.tempfile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: open("/dev/full", "w+b", 1 << 20))
    status, _, err = convert(trace_export.small(), "chrome")
    assert status == 2 and err.endswith("error: temporary file: No space left on device\n")


def test_points_in_chrome(convert):
    """Points may overlap. If another thread ends a point, it is on a track of the CPU."""
    name = [("char", "name[16]", "16s")]
    begin = Kind(401, "profile", "point_begin", name, '"x"')
    end = Kind(402, "profile", "point_end", name, '"x"')
    ring = Ring(1)
    steps = [(begin, 11, "a"), (begin, 11, "b"), (begin, 11, "switch"), (end, 12, "switch")]
    steps += [(end, 11, "b"), (end, 11, "a")]
    for i, (kind, tid, value) in enumerate(steps):
        ring.add(MS * (i + 1), kind.data(tid, value))
    _, data, _ = convert(trace_export.files([ring], TASKS, [begin, end]), "chrome")
    found = [one for one in json.loads(data)["traceEvents"] if one["ph"] != "M"]
    assert {key[1:]: end for key, (end, _) in slices_of(found).items()} == {
        (11, "a", 1000): 6000,
        (11, "b", 2000): 5000,
        (4097, "switch", 3000): 4000,
    }


@pytest.mark.parametrize(
    "print_text,expected",
    [
        ('"%d %u %x %#lx %c|%-4s|%4s|%%", REC->a, REC->a, REC->a, REC->b, 65, "x", "y"', None),
        ('"%s", REC->a == -2 && !(REC->b & 1) ? "yes" : "no"', "yes"),
        ('"%d %d %d", (REC->b + 3) * 2 - 7 / -2, 1 << 4 | 3, 2 + 3 > 4', "41 19 1"),
        ('"%lx", (unsigned long)(unsigned int)REC->a', "fffffffe"),
        ('"%lld", (s64)(u8)REC->a', "254"),
        ('"%s", __print_symbolic(REC->b, { 16, "s" "ixteen" }, { 1, "one" })', "sixteen"),
        ('"%s", __print_symbolic(REC->a, { 16, "sixteen" })', "0xfffffffffffffffe"),
        ('"%s", __print_flags(REC->b | 3, "+", { 1, "A" }, { 2, "B" })', "A+B+0x10"),
        ('"%5d.%03ld", REC->b, 7', "   16.007"),
        ('"%d", REC->c', "a=-2 b=16"),
        ('"%d"', "a=-2 b=16"),
        ('"%s", whatever(REC->a)', "a=-2 b=16"),
        ('"%d", ' + "(" * 5000 + "1" + ")" * 5000, "a=-2 b=16"),
        ('"%d", REC->b / 0', "0"),
    ],
)
def test_print_formats(print_text, expected):
    kind = Kind(400, "test", "test", [("int", "a", "i"), ("long", "b", "q")], print_text)
    one = events.parse_format("test", "test", 400, kind.text())
    text = print_format.Printer(None).text(one, kind.data(11, -2, 16))
    assert text == (expected or "-2 4294967294 fffffffe 0x10 A|x   |   y|%")


def test_moved_fields():
    """A text may lie behind the fields, as in sched_process_exec."""
    fields = [("__data_loc char[]", "file", "I"), ("int", "pid", "i")]
    kind = Kind(400, "sched", "exec", fields, '"%s %d", __get_str(file), REC->pid')
    data = kind.data(11, 8 << 16 | 16, 5) + b"/bin/ls\0"
    one = events.parse_format("sched", "exec", 400, kind.text())
    assert print_format.Printer(None).text(one, data) == "/bin/ls 5"


def test_microseconds_are_rounded(convert):
    _, out, _ = convert(only(trace_export.EXIT, 0, -2), "ftrace")
    assert out.endswith(b"d....     2.000001: sys_exit: NR 0 = -2\n")


def test_events_before_a_reset(convert):
    """Events with a number below `first` are neither read nor counted as lost."""
    files = trace_export.small()
    files["trace_cpus.json"][0]["first"] = 4
    _, out, err = convert(files, "ftrace")
    assert b"1.003000" not in out and b"1.004000" in out
    assert "CPU 0: 7 events were lost, 6 are there" in err


def test_refusals(convert):
    trace = trace_export.small()
    status, _, err = convert({"strace.json": [READ]}, "ftrace")
    assert status == 2 and "has no events" in err
    status, _, err = convert(trace, "ftrace", meta=META | {"runs": {"a": META}})
    assert status == 2 and "has several runs" in err
    status, _, err = convert(trace, "trace-dat", meta=META | {"tsc_hz": 0})
    assert status == 2 and "has no frequency of the TSC" in err


def test_time_that_runs_backwards(convert):
    """An event with an earlier time than the one before counts as lost."""
    ring = Ring(0)
    for ms in 1, 3, 2, 4:
        ring.add(ms * MS, trace_export.EXIT.data(11, 0, 0))
    _, out, err = convert(trace_export.files([ring], TASKS, trace_export.KINDS), "ftrace")
    assert b"0.002000" not in out and b"CPU:0 [LOST 1 EVENTS]" in out
    assert "1 events were lost, 3 are there" in err
