# SPDX-License-Identifier: BSD-2-Clause
"""Writes events as CTF, with the names of LTTng: for babeltrace2, lttng-analyses, Trace Compass.

Format: Common Trace Format 1.8.3. A trace is a directory: `metadata` describes the events in TSDL,
and each CPU has a file of packets. A gap starts a new packet, whose context has the number of
events of this CPU that were lost so far. Names and fields are those of LTTng's modules 2.13, as far
as lttng-analyses reads them. Call chains are left out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from profiles import progress
from profiles.events import IDLE, STACK, Cpu, Event, Events, Field, Format, Trace
from profiles.export import ExportError

MAGIC = 0xC1FC1FC1
MAX_PACKET_BYTES = 1 << 20
CONTEXT = struct.Struct("<IQQQQQI")  # magic, and the fields of packet.context
EVENT = struct.Struct("<IQii")  # id, timestamp, pid, tid; behind them comes procname
METADATA = """\
/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = true; } := s32;
typealias integer { size = 64; align = 8; signed = true; } := s64;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := x64;
trace {
	major = 1; minor = 8; byte_order = le;
	packet.header := struct { u32 magic; };
};
env {
	domain = "kernel"; sysname = "Lego"; tracer_name = "legoprof";
	tracer_major = 2; tracer_minor = 13; tracer_patchlevel = 0;
};
clock { name = "monotonic"; description = "since boot"; freq = 1000000000; };
typealias integer {
	size = 64; align = 8; signed = false; map = clock.monotonic.value;
} := ns;
stream {
	packet.context := struct {
		ns timestamp_begin; ns timestamp_end; u64 content_size; u64 packet_size;
		u64 events_discarded; u32 cpu_id;
	};
	event.header := struct { u32 id; ns timestamp; };
	event.context := struct { s32 _pid; s32 _tid; string _procname; };
};
"""
PREFIXES = {"irq_vectors": "x86_irq_vectors_", "exceptions": "x86_exceptions_"}
PREFIXES |= {"kmem": "kmem_", "profile": "profile_", "lock": "lock_"}
TIDS = {"pid": "tid", "prev_pid": "prev_tid", "next_pid": "next_tid", "old_pid": "old_tid"}
TIDS |= {"parent_pid": "parent_tid", "child_pid": "child_tid"}
CALLS = {"stat": "newstat", "fstat": "newfstat", "lstat": "newlstat", "uname": "newuname"}
CALLS |= {"sendfile": "sendfile64"}
UNKNOWN = "unknown"
# The arguments of the calls that lttng-analyses reads more of than their time; others are arg0 ...
ARGUMENTS = """
read fd buf count; write fd buf count; pread64 fd buf count pos; pwrite64 fd buf count pos
readv fd vec vlen; writev fd vec vlen; preadv fd vec vlen pos_l pos_h; close fd
pwritev fd vec vlen pos_l pos_h; open filename flags mode; openat dfd filename flags mode
dup fildes; dup2 oldfd newfd; dup3 oldfd newfd flags; fcntl fd cmd arg
sendfile64 out_fd in_fd offset count; splice fd_in off_in fd_out off_out len flags
fsync fd; fdatasync fd; sync_file_range fd offset nbytes flags; socket family type protocol
connect fd uservaddr addrlen; accept fd upeer_sockaddr upeer_addrlen
accept4 fd upeer_sockaddr upeer_addrlen flags; sendmsg fd msg flags; recvmsg fd msg flags
sendto fd buff len flags addr addr_len; recvfrom fd ubuf size flags addr addr_len
"""
NAMES = {
    words[0]: words[1:] for words in map(str.split, re.split(r"[;\n]", ARGUMENTS.strip("\n")))
}
INTS = {"fd", "dfd", "fildes", "oldfd", "newfd", "out_fd", "in_fd", "fd_in", "fd_out", "cmd"}
INTS |= {"flags", "mode", "family", "type", "protocol"}

Put = Callable[[bytes], bytes]  # returns the fields of an event's bytes


@dataclass
class Packets:
    """The packets of a CPU's stream."""

    cpu: int
    done: list[bytes] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    begin: int = 0
    end: int = 0
    lost: int = 0

    def end_packet(self) -> None:
        bits = 8 * (CONTEXT.size + len(self.body))
        values = self.begin, self.end, bits, bits, self.lost, self.cpu
        self.done += [CONTEXT.pack(MAGIC, *values), bytes(self.body)]
        self.body.clear()
        self.begin = self.end

    def add(self, ns: int, lost: int, data: bytes) -> None:
        if self.body and (lost or len(self.body) + len(data) > MAX_PACKET_BYTES):
            self.end_packet()
        if not self.body:
            self.begin = ns
        self.end = ns
        self.lost += lost
        self.body += data


def text(value: str) -> bytes:
    return value.encode("utf-8", "replace") + b"\0"


def put_field(one: Field) -> tuple[str, Put]:
    """Returns how TSDL declares a field, and how it is written. Names of TSDL begin with _."""
    name, read = f"_{one.name}", one.reader()
    if one.is_text:
        return f"string {name};", lambda data: text(str(read(data)))
    if one.is_array or one.is_moved:

        def put(data: bytes) -> bytes:
            values = read(data)
            found = values if isinstance(values, list) else []
            words = [value & 0xFFFFFFFFFFFFFFFF for value in found]
            return struct.pack(f"<I{len(words)}Q", len(words), *words)

        return f"u32 {name}_length; x64 {name}[{name}_length];", put
    if one.size not in (1, 2, 4, 8):
        raise ExportError(f"the field {one.name} has {one.size} bytes")
    base = 16 if "*" in one.type else 10
    kind = f"size = {8 * one.size}; align = 8; signed = {str(one.is_signed).lower()}; base = {base}"
    return f"integer {{ {kind}; }} {name};", one.content


class Writer:
    def __init__(self, trace: Trace):
        self.trace, self.calls = trace, trace.calls
        self.metadata = [METADATA]
        self.known: dict[tuple[str, int], tuple[int, list[Put]]] = {}

    def declare(
        self, key: tuple[str, int], name: str, fields: list[tuple[str, Put]]
    ) -> tuple[int, list[Put]]:
        number = len(self.known)
        declared = " ".join(what for what, _ in fields)
        self.metadata.append(
            f'event {{ name = "{name}"; id = {number}; fields := struct {{ {declared} }}; }};\n'
        )
        self.known[key] = number, [put for _, put in fields]
        return self.known[key]

    def call_fields(self, format: Format, call: str) -> Iterator[tuple[str, Put]]:
        fields = {one.name: one for one in format.fields}
        if call == UNKNOWN:
            yield put_field(fields["id"])
        if format.name == "sys_exit":
            yield put_field(fields["ret"])
            return
        args = fields["args"]

        def put(i: int, name: str, data: bytes) -> bytes:
            word = args.content(data)[8 * i : 8 * i + 8]
            if name == "filename":  # the event has only its address
                return text(f"{int.from_bytes(word, 'little'):#x}")
            return word[:4] if name in INTS else word

        for i, name in enumerate(NAMES.get(call, [f"arg{i}" for i in range(6)])):
            kind = "string" if name == "filename" else "s32" if name in INTS else "u64"
            yield f"{kind} _{name};", partial(put, i, name)

    def fields(self, format: Format) -> Iterator[tuple[str, Put]]:
        for one in format.fields:
            name = TIDS.get(one.name, one.name) if format.system == "sched" else one.name
            yield put_field(one._replace(name=name))
            if format.name == "sched_process_fork" and name != one.name:  # LTTng has both
                yield f"s32 _{one.name};", partial(self.pid, one)

    def pid(self, field: Field, data: bytes) -> bytes:
        """Returns the process of the thread whose number is in the field."""
        tid = int.from_bytes(field.content(data), "little", signed=True)
        return struct.pack("<i", self.trace.task(tid).pid or tid)

    def event(self, event: Event) -> tuple[int, list[Put]]:
        """Returns the id of the event's declaration, and what writes its fields."""
        format = self.trace.format(event)
        if format.system != "raw_syscalls":
            key = format.name, format.id
            name, make = PREFIXES.get(format.system, "") + format.name, self.fields(format)
        else:
            number = int(str(format.values(event.data)["id"]))
            call = self.calls.get(number, UNKNOWN)
            call = CALLS.get(call, call)
            key = format.name, number if call != UNKNOWN else -1
            what = {"sys_enter": "entry", "sys_exit": "exit"}[format.name]
            name, make = f"syscall_{what}_{call}", self.call_fields(format, call)
        return self.known.get(key) or self.declare(key, name, list(make))

    def record(self, number: int, ns: int, cpu: int, tid: int, fields: bytes) -> bytes:
        task = self.trace.task(tid)
        name = f"swapper/{cpu}" if tid == IDLE else task.name
        return EVENT.pack(number, ns, task.pid or tid, tid) + text(name) + fields

    def tasks(self, ns: int, cpu: int) -> Iterator[bytes]:
        """Yields LTTng's event that describes a task, of each task."""
        fields = "s32 _tid; s32 _pid; string _name;"
        number, _ = self.declare(("tasks", 0), "lttng_statedump_process_state", [(fields, bytes)])
        for tid, task in self.trace.tasks.items():
            data = struct.pack("<ii", tid, task.pid or tid) + text(task.name)
            yield self.record(number, ns, cpu, IDLE, data)

    def stream(self, number: int, cpu: Cpu, has_tasks: bool) -> list[bytes]:
        """Returns the packets of a CPU, from which it takes the events."""
        found = Packets(number)
        events, cpu.events = cpu.events, Events()
        if has_tasks:
            for data in self.tasks(events[0].ns, number):
                found.add(events[0].ns, 0, data)
        for event in progress.over_some(events, "writing events", len(events)):
            if self.trace.format(event).name == STACK:
                continue
            id, puts = self.event(event)
            fields = b"".join(put(event.data) for put in puts)
            data = self.record(id, event.ns, event.cpu, event.tid, fields)
            found.add(event.ns, event.lost, data)
        if found.body:
            found.end_packet()
        if cpu.lost_at_end:
            found.lost += cpu.lost_at_end
            found.end_packet()
        return found.done


def write(trace: Trace) -> dict[str, list[bytes]]:
    """Returns the contents of the files, by their names."""
    writer = Writer(trace)
    starts = [(cpu.events[0].ns, number) for number, cpu in trace.cpus.items() if cpu.events]
    if not starts:
        raise ExportError("there is no event")
    streams = {}
    try:
        for number, cpu in trace.cpus.items():
            if data := writer.stream(number, cpu, number == min(starts)[1]):
                streams[f"kernel/channel0_{number}"] = data
    except (KeyError, TypeError, ValueError) as error:
        raise ExportError(f"the format of an event is not Linux's: {error}") from error
    return {"kernel/metadata": ["".join(writer.metadata).encode()], **streams}
