# SPDX-License-Identifier: BSD-2-Clause
"""Reads the events of an export.

An event keeps the bytes that the kernel recorded. The format text of its kind describes them, so
writers need not know the kinds. The formats are in kernel/profile/formats.md and
<profile/abi.h>; Documentation/trace/events.rst of Linux describes the format texts.
"""

from __future__ import annotations

import base64
import re
import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, repeat
from operator import itemgetter
from typing import NamedTuple, cast

from profiles import progress
from profiles.export import Export, ExportError, printable, taken
from profiles.stacks import Symbols, number

PAGE_BYTES = 4096
PAGE_HEAD = struct.Struct("<QQ")  # struct profile_trace_page
RECORD_HEAD = struct.Struct("<IHH")  # low half of the TSC, bytes, kind
EVENT, PADDING, EXTENSION = range(3)  # enum profile_trace_kind
COMMON = struct.Struct("<HBBi")  # struct profile_trace_event
IRQS_OFF, HARDIRQ, NMI = 0x01, 0x08, 0x40
IDLE = 0  # tid
PAGES = "trace_pages.json"
STACK = "kernel_stack"  # the call chain of an earlier event
STACK_HEAD = struct.Struct("<i4x")  # after the common fields: the number of addresses that follow
MAX_NS = 1 << 63
PART = 1 << 11  # events of a CPU that are in memory as objects
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


Value = bytes | int | str | list
CODES = {1: "b", 2: "h", 4: "i", 8: "q"}  # of struct, for elements of arrays


class Field(NamedTuple):
    type: str
    name: str
    offset: int
    size: int
    is_signed: bool
    is_array: bool
    is_moved: bool  # it has the offset and (upper half) the size of its content
    is_text: bool

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

    def reader(self) -> Callable[[bytes], Value]:
        """Returns a function that reads the field's value from the bytes of an event."""
        size = self.size
        content: Callable[[bytes], bytes] = self.content
        if size and not self.is_moved:  # which is faster
            content = itemgetter(slice(self.offset, self.offset + size))
        if self.is_text:
            return lambda data: content(data).partition(b"\0")[0].decode("latin-1")
        if not self.is_array:
            return lambda data: int.from_bytes(content(data), "little", signed=self.is_signed)
        bits = re.search(r"\bu?int(\d+)|\b[us](8|16|32|64)\b|\b(long)\b", self.type)
        unit = 4 if not bits else 8 if bits[3] else int(bits[1] or bits[2]) // 8
        unit = unit if unit in CODES else 4
        code = CODES[unit] if self.is_signed else CODES[unit].upper()

        def read(data: bytes) -> list[int]:
            found = content(data)
            found += bytes(-len(found) % unit)
            return list(struct.unpack(f"<{len(found) // unit}{code}", found))

        return read


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
        self.readers = {field.name: field.reader() for field in self.fields}
        self.is_stack = self.name == STACK
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

    def values(self, data: bytes) -> dict:
        return {name: read(data) for name, read in self.readers.items()}


def chain(data: bytes) -> list[int]:
    """Returns the return addresses of a call chain, the innermost first."""
    start = COMMON.size + STACK_HEAD.size
    if len(data) < start:
        return []
    nr = min(STACK_HEAD.unpack_from(data, COMMON.size)[0], (len(data) - start) // 8)
    return list(struct.unpack_from(f"<{max(nr, 0)}Q", data, start))


# Event._make() takes three times as long.
MAKE_EVENT = cast(Callable[[tuple], Event], partial(tuple.__new__, Event))


class Events:
    """
    The events of a CPU, the oldest first. Each takes its data and 16 bytes: an Event is made when
    it is read.
    """

    def __init__(self, cpu: int = 0, hz: int = 1):
        self.cpu, self.hz = cpu, hz
        self.cycles, self.ends = array("Q"), array("Q", [0])  # also that of no event
        self.data = bytearray()
        self.lost: dict[int, int] = {}  # by the number of the event after them
        self.has_stacks = False  # there are call chains

    def add(self, cycles: Collection[int], data: list[bytes]) -> None:
        self.cycles.extend(cycles)
        self.ends.extend(accumulate(map(len, data), initial=self.ends.pop()))
        self.data += b"".join(data)

    def __len__(self) -> int:
        return len(self.cycles)

    def part(self, start: int, end: int) -> list[Event]:
        """Returns the events from the number `start` to the one before `end`."""
        cycles, ends = self.cycles[start:end], self.ends[start : end + 1]
        raw, first = bytes(self.data[ends[0] : ends[-1]]), ends[0]
        data = [raw[a - first : b - first] for a, b in zip(ends, ends[1:])]
        half, hz = self.hz // 2, self.hz
        times = [(one * 1_000_000_000 + half) // hz for one in cycles]
        numbers = range(start, end)
        lost = map(self.lost.get, numbers, repeat(0))
        return list(map(MAKE_EVENT, zip(cycles, times, repeat(self.cpu), lost, data, numbers)))

    def __getitem__(self, nr: int) -> Event:
        """Returns an event by its number, which is not negative."""
        return self.part(nr, nr + 1)[0]

    def __iter__(self) -> Iterator[Event]:
        for start in range(0, len(self), PART):
            yield from self.part(start, min(start + PART, len(self)))


def merged(cpus: list[Events]) -> Iterator[Event]:
    """Yields the events of all CPUs, by time. Sorts parts, which is faster than a heap."""
    at = [0] * len(cpus)
    while left := [i for i, one in enumerate(cpus) if at[i] < len(one)]:
        last = min(cpus[i].cycles[min(at[i] + PART, len(cpus[i])) - 1] for i in left)
        part: list[Event] = []
        for i in left:
            start, at[i] = at[i], bisect_right(cpus[i].cycles, last, at[i])
            part += cpus[i].part(start, at[i])
        part.sort(key=itemgetter(0))
        yield from part


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
        return progress.over_some(merged(cpus), what, sum(map(len, cpus)))

    def stacks(self) -> dict[int, Event]:
        """
        Returns the events that are call chains, by the places of the events that they belong to:
        the last one before on the CPU that has none, if the thread and the flags are the same.
        """
        found = {}
        for cpu in self.cpus.values():
            without: list[int] = []  # their numbers
            if not cpu.events.has_stacks:
                continue
            for event in cpu.events:
                if event.lost:
                    without.clear()
                if not self.format(event).is_stack:
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
        is_moved = "__data_loc" in kind
        is_text = (is_array or is_moved) and re.search(r"\bchar\b", kind) is not None
        place = int(found["offset"]), size
        fields.append(Field(kind, found["name"], *place, is_signed, is_array, is_moved, is_text))
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


class CpuReader:
    """Numbers the events of a CPU, and finds the gaps between them."""

    def __init__(
        self, cpu: int, first: int, after_last: int, hz: int, formats: dict[int, Format]
    ):
        self.cpu, self.next, self.after_last = Cpu(Events(cpu, hz)), first, after_last
        self.formats = formats
        self.cycles, self.end_cycles = 0, (MAX_NS - 1) * hz // 1_000_000_000

    def add_page(self, page: bytes) -> None:
        """Adds the events of a page, up to an invalid record."""
        cycles, nr = PAGE_HEAD.unpack_from(page)
        high, at, events = cycles >> 32 << 32, PAGE_HEAD.size, self.cpu.events
        times: list[int] = []
        found: list[bytes] = []
        while at + RECORD_HEAD.size <= len(page):
            low, size, kind = RECORD_HEAD.unpack_from(page, at)
            data = page[at + RECORD_HEAD.size : at + size]
            at += size
            if size % 8 or len(data) < COMMON.size or at > len(page):
                break
            if kind == EVENT:
                format, time = self.formats.get(data[0] | data[1] << 8), high | low
                is_new = self.next <= nr < self.after_last and self.cycles <= time < self.end_cycles
                # Left out: events before the last reset, or after the export began, and damaged
                # ones, such as of a thread with a negative number.
                if format and is_new and len(data) >= format.size and data[7] < 0x80:
                    if nr != self.next:
                        events.lost[len(events) + len(found)] = nr - self.next
                    events.has_stacks = events.has_stacks or format.is_stack
                    times.append(time)
                    found.append(format.printable(data) if format.texts else data)
                    self.next, self.cycles = nr + 1, time
                nr += 1
            elif kind == EXTENSION:
                high = int.from_bytes(data[:8], "little") >> 32 << 32
            elif kind != PADDING:
                break
        events.add(times, found)

    def end(self) -> Cpu:
        self.cpu.lost_at_end = max(0, self.after_last - self.next)
        return self.cpu


def read_rows(export: Export, file: str, read: Callable, damaged: list[str]) -> Iterator:
    """
    Yields read(row) for the rows of a file. Adds the file to `damaged` for each bad row. Takes the
    pages, which are most of an export, out of it.
    """
    rows = export.rows(file)
    found: Iterable[dict] = taken(rows) if file == PAGES else rows
    for row in progress.over_some(found, f"reading {file}", len(rows)):
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
    Returns the events of an export, without the damaged rows, which are counted. Takes the pages
    out of the export.
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
    for cpu, page in read_rows(export, PAGES, read_page, damaged):
        if cpu in readers:
            readers[cpu].add_page(page)
    found = {cpu: reader.end() for cpu, reader in readers.items()}
    build_id = str(export.meta.get("build_id") or "")
    return Trace(
        *(formats, tasks, found, build_id, kernel), nr_damaged=len(damaged), calls=calls
    )
