# SPDX-License-Identifier: BSD-2-Clause
"""Reads the events of an export.

An event keeps the bytes that the kernel recorded. The format text of its kind describes them, so
writers need not know the kinds. The formats are in kernel/profile/formats.md and
<profile/abi.h>; Documentation/trace/events.rst of Linux describes the format texts.
"""

from __future__ import annotations

import base64
import heapq
import re
import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from profiles import progress
from profiles.export import Export, ExportError, printable
from profiles.stacks import Symbols, number

PAGE_BYTES = 4096
PAGE_HEAD = struct.Struct("<QQ")  # struct profile_trace_page
RECORD_HEAD = struct.Struct("<IHH")  # low half of the TSC, bytes, kind
EVENT, PADDING, EXTENSION = range(3)  # enum profile_trace_kind
COMMON = struct.Struct("<HBBi")  # struct profile_trace_event
IRQS_OFF, HARDIRQ, NMI = 0x01, 0x08, 0x40
IDLE = 0  # tid
STACK = "kernel_stack"  # the call chain of an earlier event
STACK_HEAD = struct.Struct("<i4x")  # after the common fields: the number of addresses that follow
MAX_NS = 1 << 63
CPU_BITS = 12  # of a CPU's number
MAX_FORMAT_BYTES, MAX_FIELDS = 8192, 64  # the kernel's formats have at most 2048 bytes
PRINTABLE = bytes(byte if byte in b"\0" or 32 <= byte < 127 else ord("?") for byte in range(256))
FIELD = re.compile(
    r"^\s*field:(?P<type>.*?)\s*(?P<name>\w+)(?P<array>\[\w*\])?;\s*"
    r"offset:(?P<offset>\d{1,4});\s*size:(?P<size>\d{1,4});\s*signed:(?P<signed>[01]);$"
)


class Event(NamedTuple):
    cycles: int
    ns: int  # since boot
    cpu: int
    lost: int  # number of events of this CPU that were lost just before
    data: bytes  # the common fields and those of the event, described by its format
    nr: int  # among the events of its CPU

    @property
    def place(self) -> int:
        """Returns a number that no other event of the trace has."""
        return self.nr << CPU_BITS | self.cpu

    @property
    def id(self) -> int:
        return self.data[0] | self.data[1] << 8

    @property
    def flags(self) -> int:
        return self.data[2]

    @property
    def tid(self) -> int:
        return COMMON.unpack_from(self.data)[3]


class Field(NamedTuple):
    type: str
    name: str
    offset: int
    size: int
    is_signed: bool
    is_array: bool

    @property
    def is_moved(self) -> bool:
        """Returns whether the field has the offset and (upper half) the size of its content."""
        return "__data_loc" in self.type

    @property
    def is_text(self) -> bool:
        return (self.is_array or self.is_moved) and re.search(r"\bchar\b", self.type) is not None

    def place(self, data: bytes) -> slice:
        start, size = self.offset, self.size
        if self.is_moved:
            place = int.from_bytes(data[start : start + size], "little")
            start, size = place & 0xFFFF, place >> 16
        elif self.is_array and not size:  # up to the end of the record
            size = len(data) - start
        return slice(start, start + size)

    def content(self, data: bytes) -> bytes:
        return data[self.place(data)]

    def value(self, data: bytes) -> int | str | list[int]:
        content = self.content(data)
        if self.is_text:
            return content.partition(b"\0")[0].decode("latin-1")
        if not self.is_array:
            return int.from_bytes(content, "little", signed=self.is_signed)
        bits = re.search(r"\bu?int(\d+)|\b[us](8|16|32|64)\b|\b(long)\b", self.type)
        unit = 4 if not bits else 8 if bits[3] else int(bits[1] or bits[2]) // 8
        parts = (content[at : at + unit] for at in range(0, len(content), unit))
        return [int.from_bytes(part, "little", signed=self.is_signed) for part in parts]


@dataclass
class Format:
    """A kind of events."""

    system: str
    name: str
    id: int
    text: str  # of events/<system>/<event>/format
    fields: list[Field]  # without the common ones
    print_format: str

    def __post_init__(self) -> None:
        self.texts = [field for field in self.fields if field.is_text]
        # Arrays may be shorter than they are declared, for example the chains of kernel_stack.
        ends = [field.offset + field.size for field in self.fields if not field.is_array]
        self.size = max(ends, default=0)

    def printable(self, data: bytes) -> bytes:
        """Replaces control characters in texts. Tools print them, so a name could forge a line."""
        for one in self.texts:
            place = one.place(data)
            old = data[place]
            new = old.translate(PRINTABLE)
            if new != old:
                data = data[: place.start] + new + data[place.start + len(old) :]
        return data

    def values(self, data: bytes) -> dict[str, int | str | list[int]]:
        return {field.name: field.value(data) for field in self.fields}


def chain(data: bytes) -> list[int]:
    """Returns the return addresses of a call chain, the innermost first."""
    start = COMMON.size + STACK_HEAD.size
    if len(data) < start:
        return []
    nr = min(STACK_HEAD.unpack_from(data, COMMON.size)[0], (len(data) - start) // 8)
    return list(struct.unpack_from(f"<{max(nr, 0)}Q", data, start))


class Events:
    """
    The events of a CPU, the oldest first. Each takes its data and 16 bytes: an Event is made when
    it is read.
    """

    def __init__(self, cpu: int = 0, hz: int = 1):
        self.cpu, self.hz = cpu, hz
        self.cycles, self.ends = array("Q"), array("Q")
        self.data = bytearray()
        self.lost: dict[int, int] = {}  # by the number of the event after them

    def add(self, cycles: int, lost: int, data: bytes) -> None:
        if lost:
            self.lost[len(self)] = lost
        self.cycles.append(cycles)
        self.data += data
        self.ends.append(len(self.data))

    def __len__(self) -> int:
        return len(self.cycles)

    def __getitem__(self, nr: int) -> Event:
        """Returns an event by its number, which is not negative."""
        data = bytes(self.data[self.ends[nr - 1] if nr else 0 : self.ends[nr]])
        cycles = self.cycles[nr]
        ns = (cycles * 1_000_000_000 + self.hz // 2) // self.hz
        return Event(cycles, ns, self.cpu, self.lost.get(nr, 0), data, nr)

    def __iter__(self) -> Iterator[Event]:
        return map(self.__getitem__, range(len(self)))


@dataclass
class Cpu:
    events: Events = field(default_factory=Events)
    lost_at_end: int = 0  # number of events lost after the last one

    @property
    def lost(self) -> int:
        return sum(self.events.lost.values()) + self.lost_at_end


class Task(NamedTuple):
    name: str
    pid: int  # of the process; 0: a kernel thread; the tid, if it is unknown


@dataclass
class Trace:
    formats: dict[int, Format]
    tasks: dict[int, Task]  # by tid
    cpus: dict[int, Cpu]
    build_id: str
    kernel: Symbols | None = None
    exported: Symbols | None = None  # the functions that the export names
    nr_damaged: int = 0  # rows that could not be read
    calls: dict[int, str] = field(default_factory=dict)  # system calls without "sys_", by number

    @property
    def functions(self) -> Symbols | None:
        """Returns the kernel's functions; without its file, those that the export names."""
        return self.kernel or self.exported

    def in_order(self, what: str = "reading events") -> Iterator[Event]:
        """Yields the events of all CPUs, by time, and shows the progress."""
        cpus = [cpu.events for cpu in self.cpus.values()]
        events = heapq.merge(*cpus, key=lambda one: one.cycles)
        return progress.over_some(events, what, sum(map(len, cpus)))

    def stacks(self) -> dict[int, Event]:
        """
        Returns the events that are call chains, by the places of the events that they belong to:
        the last one before on the CPU that has none, if the thread and the flags are the same.
        """
        found = {}
        for cpu in self.cpus.values():
            without: list[int] = []  # their numbers
            for event in cpu.events:
                if event.lost:
                    without.clear()
                if self.format(event).name != STACK:
                    without.append(event.nr)
                elif without and (of := cpu.events[without[-1]]).data[2:8] == event.data[2:8]:
                    found[of.place] = event
                    without.pop()
        return found

    def chains(self) -> dict[int, list[int]]:
        """Returns the call chains by the places of their events."""
        return {key: chain(event.data) for key, event in self.stacks().items()}

    def format(self, event: Event) -> Format:
        return self.formats[event.id]

    def name(self, address: int) -> str:
        """Returns the kernel function at an address, or the address."""
        found = self.functions.function(address) if self.functions else None
        return found[1] if found else f"{address:#x}"

    def task(self, tid: int) -> Task:
        return self.tasks.get(tid) or Task("<idle>" if tid == IDLE else "<...>", tid)


def parse_format(system: str, name: str, id: int, text: str) -> Format:
    """Reads the text of a `format` file. Raises ValueError."""
    fields = []
    for line in text.splitlines():
        if not line.lstrip().startswith("field:"):
            continue
        found = FIELD.match(line)
        if not found:
            raise ValueError(line)
        size, kind = int(found["size"]), found["type"]
        is_array = found["array"] is not None or kind.endswith("[]")
        is_signed = found["signed"] == "1"
        one = Field(kind, found["name"], int(found["offset"]), size, is_signed, is_array)
        fields.append(one)
    own = [one for one in fields if not one.name.startswith("common_")]
    if len(own) > MAX_FIELDS:
        raise ValueError(text)
    return Format(system, name, id, text, own, text.partition("print fmt: ")[2].rstrip("\n"))


def read_format(row: dict) -> Format:
    system, name, text = row["system"], row["event"], row["format"]
    if not all(isinstance(part, str) and part.isascii() for part in (system, name, text)):
        raise ValueError(row)
    if not re.fullmatch(r"\w+", system) or not re.fullmatch(r"\w+", name) or "\0" in text:
        raise ValueError(row)
    if len(text) > MAX_FORMAT_BYTES:
        raise ValueError(row)
    return parse_format(system, name, number(row["id"], 16), text)


def records(page: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields cycles and content of a page's events. Stops at an invalid record."""
    cycles, _ = PAGE_HEAD.unpack_from(page)
    high, at = cycles >> 32 << 32, PAGE_HEAD.size
    while at + RECORD_HEAD.size <= len(page):
        low, size, kind = RECORD_HEAD.unpack_from(page, at)
        content = page[at + RECORD_HEAD.size : at + size]
        if size % 8 or len(content) != size - RECORD_HEAD.size or len(content) < COMMON.size:
            return
        at += size
        if kind == EVENT:
            yield high | low, content
        elif kind == EXTENSION:
            high = int.from_bytes(content[:8], "little") >> 32 << 32
        elif kind != PADDING:
            return


class CpuReader:
    """Numbers the events of a CPU, and finds the gaps between them."""

    def __init__(
        self, cpu: int, first: int, after_last: int, hz: int, formats: dict[int, Format]
    ):
        self.cpu, self.next, self.after_last = Cpu(Events(cpu, hz)), first, after_last
        self.formats = formats
        self.cycles, self.end_cycles = 0, (MAX_NS - 1) * hz // 1_000_000_000

    def add_page(self, page: bytes) -> None:
        nr = PAGE_HEAD.unpack_from(page)[1]
        for cycles, data in records(page):
            # Left out: events before the last reset, or after the export began, and damaged ones.
            format = self.formats.get(data[0] | data[1] << 8)
            is_new = self.next <= nr < self.after_last and self.cycles <= cycles < self.end_cycles
            if format and is_new and len(data) >= format.size:
                self.cpu.events.add(cycles, nr - self.next, format.printable(data))
                self.next, self.cycles = nr + 1, cycles
            nr += 1

    def end(self) -> Cpu:
        self.cpu.lost_at_end = max(0, self.after_last - self.next)
        return self.cpu


def read_rows(export: Export, file: str, read: Callable, damaged: list[str]) -> Iterator:
    """Yields read(row) for the rows of a file. Adds the file to `damaged` for each bad row."""
    for row in progress.over(export.rows(file), f"reading {file}"):
        try:
            found = read(row)
        except (KeyError, TypeError, ValueError, OverflowError):
            damaged.append(file)
        else:
            yield found


def read_task(row: dict) -> tuple[int, Task]:
    tid = number(row["tid"], 31)
    name = re.sub(r"[\x00-\x1f\x7f-\xff]", "?", str(row["task"]))
    if not name.isascii():
        raise ValueError(row)
    return tid, Task(name, number(row.get("pid", tid), 31))


def read_call(row: dict) -> tuple[int, str]:
    return number(row["nr"], 31), printable(str(row["syscall"])).removeprefix("sys_")


def read_cpu(row: dict) -> tuple[int, int, int]:
    return number(row["cpu"], CPU_BITS), number(row["first"], 63), number(row["next"], 63)


def read_page(row: dict) -> tuple[int, bytes]:
    data = base64.b64decode(row["data"], validate=True)
    if not PAGE_HEAD.size <= len(data) <= PAGE_BYTES:
        raise ValueError(row)
    return number(row["cpu"], CPU_BITS), data


def read(export: Export, kernel: Symbols | None = None) -> Trace:
    """
    Returns the events of an export. Damaged rows are left out, and counted. Takes the pages, which
    are most of an export, out of it.
    """
    if "runs" in export.meta:
        raise ExportError(f"{export.path} has several runs: convert the events of each by itself")
    damaged: list[str] = []
    formats = {one.id: one for one in read_rows(export, "trace_events.json", read_format, damaged)}
    tasks = dict(read_rows(export, "trace_tasks.json", read_task, damaged))
    calls = dict(read_rows(export, "trace_calls.json", read_call, damaged))
    cpus = list(read_rows(export, "trace_cpus.json", read_cpu, damaged))
    if not cpus:
        raise ExportError(f"{export.path} has no events: boot with trace_event=, or set_event")
    hz = export.meta.get("tsc_hz")
    if type(hz) is not int or not 0 < hz < 1 << 62:
        raise ExportError(f"{export.path} has no frequency of the TSC")
    readers = {cpu: CpuReader(cpu, first, last, hz, formats) for cpu, first, last in cpus}
    for cpu, page in read_rows(export, "trace_pages.json", read_page, damaged):
        if cpu in readers:
            readers[cpu].add_page(page)
    export.rows("trace_pages.json").clear()
    found = {cpu: reader.end() for cpu, reader in readers.items()}
    build_id = str(export.meta.get("build_id") or "")
    return Trace(
        *(formats, tasks, found, build_id, kernel), nr_damaged=len(damaged), calls=calls
    )
