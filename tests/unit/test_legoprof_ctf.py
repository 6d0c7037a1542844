# SPDX-License-Identifier: BSD-2-Clause
"""Converts events to CTF. A small reader in this file reads the packets back."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
import trace_export
from test_legoprof import META, READ, legoprof
from test_legoprof_fuzz import whole
from trace_export import MS, TASKS, Kind, Ring

HEAD = struct.Struct("<IQQQQQI")


@pytest.fixture
def convert(tmp_path, capsys):
    """Returns a function that runs legoprof, for (status, directory, stderr)."""

    def run(files: dict) -> tuple[int, Path, str]:
        path, output = tmp_path / "run.lego", tmp_path / "trace"
        path.write_bytes(whole(META, files))
        status = legoprof.main(["ctf", str(path), "-o", str(output)])
        return status, output / "kernel", capsys.readouterr().err

    return run


def packets(path: Path) -> list[tuple[int, int, int, int, bytes]]:
    """Returns begin, end, number of lost events so far, CPU and events of each packet."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        magic, begin, end, content, size, lost, cpu = HEAD.unpack_from(data, at)
        assert magic == 0xC1FC1FC1 and content == size and size % 8 == 0 and begin <= end
        found.append((begin, end, lost, cpu, data[at + HEAD.size : at + size // 8]))
        at += size // 8
    assert at == len(data)
    return found


def names(trace: Path) -> list[str]:
    return re.findall(r'^event { name = "(\w+)"; id = \d+;', (trace / "metadata").read_text(), re.M)


def only(kind: Kind, *values: object) -> dict:
    ring = Ring(0)
    ring.add(2 * MS, kind.data(11, *values))
    return trace_export.files([ring], TASKS, [kind])


def test_packets_have_times_and_losses(convert):
    status, trace, _ = convert(trace_export.small())
    assert status == 0 and {path.name for path in trace.iterdir()} == {
        "metadata",
        "channel0_0",
        "channel0_1",
    }
    zero, one = packets(trace / "channel0_0"), packets(trace / "channel0_1")
    assert [(begin // MS, end // MS, lost, cpu) for begin, end, lost, cpu, _ in zero] == [
        (1000, 6001, 0, 0),
        (6001, 6001, 7, 0),  # those after the last one
    ]
    assert [(begin // MS, end // MS, lost, cpu) for begin, end, lost, cpu, _ in one] == [
        (1005, 1008, 3, 1),
        (1012, 1015, 5, 1),
    ]
    assert zero[1][-1] == b""


def test_events_have_names_and_fields_of_lttng(convert):
    _, trace, _ = convert(trace_export.small())
    assert names(trace) == [
        "lttng_statedump_process_state",
        "sched_switch",
        "syscall_entry_read",
        "kmem_kmalloc",
        "kmem_kfree",
        "syscall_exit_read",
        "syscall_entry_exit",
        "lock_contention_begin",
        "lock_contention_end",
        "sched_wakeup",
        "syscall_entry_write",
        "syscall_exit_write",
    ]
    metadata = (trace / "metadata").read_text()
    fields = re.search(r'"sched_switch"; .* := struct { (.*) }; };', metadata)
    assert fields and re.findall(r"(\w+);(?: |$)", fields[1])[-1] == "_next_prio"
    assert "_prev_tid;" in fields[1] and "_prev_pid" not in fields[1]
    assert '"syscall_entry_read"; id = 2; fields := struct { s32 _fd; u64 _buf; u64 _count; }' in (
        metadata
    )


def test_fields_have_the_bytes_of_events(convert):
    _, trace, _ = convert(only(trace_export.ENTER, 1, [3, 0x7FFF0000, 4, 0, 0, 0]))
    ((_, _, _, _, events),) = packets(trace / "channel0_0")
    head = struct.pack("<IQii", 1, 2 * MS, 11, 11) + b"reader\0"
    assert events.endswith(head + struct.pack("<iQQ", 3, 0x7FFF0000, 4))


def test_a_call_without_a_name(convert):
    _, trace, _ = convert(only(trace_export.EXIT, 99999, -38))
    assert names(trace)[1:] == ["syscall_exit_unknown"]
    ((_, _, _, _, events),) = packets(trace / "channel0_0")
    assert events.endswith(struct.pack("<qq", 99999, -38))


def test_names_forge_no_event(convert):
    """A name ends at its first zero byte, and is UTF-8 without control characters."""
    _, trace, _ = convert(only(trace_export.WAKEUP, b"x\n\x1b\xff", 7, 120, 1))
    ((_, _, _, _, events),) = packets(trace / "channel0_0")
    assert events.endswith(b"reader\0x???\0" + struct.pack("<iii", 7, 120, 1))


def test_other_formats_are_refused(convert):
    kind = Kind(303, "raw_syscalls", "sys_enter", [("long", "id", "q")], '"%ld", REC->id')
    status, trace, err = convert(only(kind, 1))
    assert status == 2 and not trace.exists() and err.count("\n") == 1 and "not Linux's" in err


def test_no_trace_is_written_over_another(convert):
    assert convert(trace_export.small())[0] == 0
    status, _, err = convert(trace_export.small())
    assert status == 2 and err.endswith("trace/kernel: File exists\n")


def test_no_events(convert):
    status, trace, err = convert({"strace.json": [READ]})
    assert status == 2 and not trace.exists() and "no events" in err
    status, trace, err = convert(trace_export.files([Ring(0)], TASKS, trace_export.KINDS))
    assert status == 2 and not trace.exists() and "there is no event" in err
