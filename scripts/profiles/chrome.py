# SPDX-License-Identifier: BSD-2-Clause
"""Writes events as Chrome's JSON, for Perfetto and chrome://tracing: CPUs and tasks over time.

Format: "Trace Event Format" of the Catapult project. Two events that begin and end something become
a slice on the track of their task. Any other event becomes an instant there. Slices also show which
task a CPU runs, and whether a task that does not run is ready or asleep. Events of the idle task
are on the track of their CPU.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from profiles.events import IDLE, STACK, Event, Format, Trace
from profiles.export import ExportError
from profiles.print_format import Printer

CPUS = 1 << 22  # the pid of CPUs' tracks: one more than Linux's highest pid
KERNEL = CPUS + 1  # of kernel threads' tracks
BETWEEN = 1 << 12  # plus the CPU: the track of slices that one thread begins and another one ends
# The suffixes of events that begin and end a slice.
PAIRS = [("_entry", "_exit"), ("_begin", "_end"), ("_enter", "_exit"), ("_start", "_end")]
RUNNING = 0  # prev_state
INSTANT = "i"
READ_BYTES = 1 << 20


def pairs(trace: Trace) -> Iterator[tuple[Format, Format, str]]:
    """Yields the events that begin and end something, and what their names begin with."""
    by_name = {(one.system, one.name): one for one in trace.formats.values()}
    for (system, name), first in by_name.items():
        for begin, end in PAIRS:
            stem = name.removesuffix(begin)
            last = by_name.get((system, stem + end))
            if name.endswith(begin) and last:
                yield first, last, stem


quoted = lru_cache(1 << 12)(json.dumps)  # a name


class Lines:
    """The text, in a temporary file: it takes three times as much room as the export."""

    SEPARATOR = ",\n"

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()
        self.size = 0
        self.others: dict[int, tuple[int, bytes]] = {}  # by place: what replaces so many bytes

    def add(self, line: str) -> int:
        """Returns the place of the line."""
        data = (self.SEPARATOR + line if self.size else line).encode()
        self.file.write(data)
        self.size += len(data)
        return self.size - len(line)

    def parts(self) -> Iterator[bytes]:
        at = self.file.seek(0)
        for place, (nr_bytes, line) in sorted(self.others.items()):
            yield from self.read(place - at)
            yield line
            at = self.file.seek(place + nr_bytes)
        yield from self.read(self.size - at)

    def read(self, nr_bytes: int) -> Iterator[bytes]:
        while nr_bytes > 0:
            yield self.file.read(min(nr_bytes, READ_BYTES))
            nr_bytes -= READ_BYTES


@dataclass(slots=True)
class Slice:
    key: str
    name: str
    place: int  # of the line that begins it
    line: str
    is_open: bool = True


@dataclass
class Track:
    pid: int
    tid: int
    slices: list[Slice] = field(default_factory=list)  # the outermost first; some are not open
    by_key: dict[str, list[Slice]] = field(default_factory=dict)  # those that are open

    def add(self, one: Slice) -> None:
        self.slices.append(one)
        self.by_key.setdefault(one.key, []).append(one)

    def take(self, key: str) -> Slice | None:
        """Returns the innermost open slice with the key, which is not open any more."""
        if not self.by_key.get(key):
            return None
        one = self.by_key[key].pop()
        one.is_open = False
        return one

    def pop(self) -> Slice | None:
        """Returns the innermost open slice, which is not open any more."""
        while self.slices:
            if (one := self.slices.pop()).is_open:
                return self.take(one.key)
        return None


def timestamp(ns: int) -> float:
    """Returns microseconds. Perfetto computes int(us * 1000.0), which must give the same ns."""
    us = ns / 1000
    return us if int(us * 1000.0) == ns else math.nextafter(us, math.inf)


def of_track(track: Track) -> str:
    return f'"pid": {track.pid}, "tid": {track.tid}'


def json_of(args: dict) -> str:
    """Returns what json.dumps() does, in less time. Names of fields need no escapes."""
    found = [
        f'"{key}": {value if type(value) is int else json.dumps(value)}'
        for key, value in args.items()
    ]
    return f"{{{', '.join(found)}}}"


def full_key(key: str, args: dict) -> str:
    """Returns the key of a slice. Profile points may overlap, so their keys include the name."""
    return f"{key}:{args['name']}" if key == "profile:point" else key


class Writer:
    def __init__(self, trace: Trace):
        self.trace, self.calls = trace, trace.calls
        self.printer = Printer(trace.functions)
        self.lines = Lines()
        self.of_tasks: dict[int, Track] = {}
        self.tracks: dict[tuple[int, int], Track] = {}
        self.begins: dict[int, str] = {}  # the keys of the slices that events begin, by id
        self.ends: dict[int, str] = {}
        for first, last, stem in pairs(trace):
            self.begins.setdefault(first.id, f"{first.system}:{stem}")
            self.ends.setdefault(last.id, f"{first.system}:{stem}")
        self.began_on: dict[tuple[int, str], Track] = {}  # by CPU and key
        self.chains = trace.chains()

    def track(self, pid: int, tid: int) -> Track:
        return self.tracks.setdefault((pid, tid), Track(pid, tid))

    def cpu_track(self, cpu: int) -> Track:
        return self.track(CPUS, cpu)

    def task_track(self, tid: int) -> Track:
        if tid not in self.of_tasks:
            self.of_tasks[tid] = self.track(self.trace.task(tid).pid or KERNEL, tid)
        return self.of_tasks[tid]

    def put(self, kind: str, name: str, ns: int, track: Track, args: dict) -> tuple[int, str]:
        """Returns the place of the line, and the line."""
        scope = ', "s": "t"' if kind == INSTANT else ""
        line = (
            f'{{"ph": "{kind}", "name": {quoted(name)}, "ts": {timestamp(ns)}, {of_track(track)}'
            f'{scope}, "args": {json_of(args)}}}'
        )
        return self.lines.add(line), line

    def begin(self, track: Track, key: str, name: str, ns: int, args: dict) -> None:
        track.add(Slice(key, name, *self.put("B", name, ns, track, args)))

    def end(self, track: Track, key: str, ns: int, args: dict) -> bool:
        """Ends the slice with that key, and those inside it. Returns false if there is none."""
        if not track.by_key.get(key):
            return False
        while one := track.pop():
            is_it = one.key == key
            more = args if is_it else {"end": "not recorded"}
            self.put("E", one.name, ns, track, more)
            if is_it:
                break
        return True

    def end_of_other(self, event: Event, key: str, args: dict) -> bool:
        """
        Ends a slice that another thread began on this CPU, for example the profile point
        context_switch. It would overlap with slices of both threads, so it moves to a track of the
        CPU.
        """
        began = self.began_on.get((event.cpu, key))
        one = began.take(key) if began else None
        if not began or not one:
            return False
        track = self.track(CPUS, BETWEEN + event.cpu)
        line = one.line.replace(of_track(began), of_track(track), 1)
        self.lines.others[one.place] = len(one.line), line.encode()
        self.put("E", one.name, event.ns, track, args)
        return True

    def name(self, format: Format, args: dict) -> str:
        """Names a slice after its system call, its function, its field `name`, or its event."""
        if format.name == "sys_enter" and isinstance(args.get("id"), int):
            return self.calls.get(args["id"], f"sys_{args['id']}")
        function = args.get("func", args.get("function"))
        if isinstance(function, int) and self.trace.functions:
            return self.trace.name(function)
        if isinstance(args.get("name"), str):
            return args["name"]
        return re.sub(r"_(entry|begin|enter|start)$", "", format.name)

    def stack(self, event: Event) -> dict:
        """Returns the event's call chain, if it has one, with the innermost function first."""
        chain = self.chains.get(event.place)
        return {"stack": [self.trace.name(address - 1) for address in chain]} if chain else {}

    def switch(self, event: Event, args: dict) -> None:
        """
        Handles sched_switch. The track of the CPU shows the new task. The track of the old task
        shows why it does not run.
        """
        cpu = self.cpu_track(event.cpu)
        self.end(cpu, "runs", event.ns, {})
        previous, next = args["prev_pid"], args["next_pid"]
        if previous != IDLE:
            key = "ready" if args["prev_state"] == RUNNING else "asleep"
            state = {"prev_state": args["prev_state"]} | self.stack(event)
            self.begin(self.task_track(previous), key, key, event.ns, state)
        if next != IDLE:
            track = self.task_track(next)
            self.end(track, "ready", event.ns, {}) or self.end(track, "asleep", event.ns, {})
            self.begin(cpu, "runs", args["next_comm"], event.ns, {"tid": next})

    def wake(self, event: Event, args: dict) -> None:
        track = self.task_track(args["pid"])
        if self.end(track, "asleep", event.ns, {"woken by": event.tid}):
            self.begin(track, "ready", "ready", event.ns, {})

    def add(self, event: Event) -> None:
        format = self.trace.format(event)
        args = format.values(event.data)
        is_idle = event.tid == IDLE
        track = self.cpu_track(event.cpu) if is_idle else self.task_track(event.tid)
        if event.lost:
            name = f"{event.lost} events lost"
            self.put(INSTANT, name, event.ns, self.cpu_track(event.cpu), {})
        if format.name == STACK:
            return None
        if format.name == "sched_switch":
            return self.switch(event, args)
        if format.name == "sched_wakeup":
            self.wake(event, args)
        if event.id in self.begins:
            key = full_key(self.begins[event.id], args)
            args |= self.stack(event)
            self.began_on[event.cpu, key] = track
            return self.begin(track, key, self.name(format, args), event.ns, args)
        if event.id in self.ends:
            key = full_key(self.ends[event.id], args)
            if self.end(track, key, event.ns, args) or self.end_of_other(event, key, args):
                return None
        text = self.printer.text(format, event.data)
        self.put(INSTANT, format.name, event.ns, track, {"text": text} | self.stack(event))

    def end_all(self, ns: int) -> None:
        for track in self.tracks.values():
            while one := track.pop():
                self.put("E", one.name, ns, track, {"end": "not yet"})

    def name_tracks(self) -> None:
        def name(kind: str, track: Track, value: str | int, key: str = "name") -> None:
            self.put("M", kind, 0, track, {key: value})

        named = set()
        for track in self.tracks.values():
            is_cpu = track.pid == CPUS
            task = self.trace.task(track.tid)
            cpu = f"CPU {track.tid % BETWEEN}" + ", switches" * (track.tid >= BETWEEN)
            name("thread_name", track, cpu if is_cpu else task.name)
            if is_cpu:
                order = 2 * (track.tid % BETWEEN) + track.tid // BETWEEN
                name("thread_sort_index", track, order, "sort_index")
            if track.pid not in named:
                named.add(track.pid)
                process = {CPUS: "CPUs", KERNEL: "kernel threads"}.get(track.pid)
                name("process_name", track, process or self.trace.task(track.pid).name)
                name("process_sort_index", track, -1 if is_cpu else track.pid, "sort_index")


def write_lines(trace: Trace) -> Writer:
    writer = Writer(trace)
    last_ns = 0
    for event in trace.in_order("writing events"):
        try:
            writer.add(event)
        except (KeyError, TypeError) as error:
            name = trace.format(event).name
            raise ExportError(f"the format of {name} is not Linux's: {error}") from error
        last_ns = event.ns
    writer.end_all(last_ns)
    for number, cpu in trace.cpus.items():
        if cpu.lost_at_end:
            name = f"{cpu.lost_at_end} events lost"
            writer.put(INSTANT, name, last_ns, writer.cpu_track(number), {})
    writer.name_tracks()
    writer.lines.file.flush()  # so that it is not the output that fails
    return writer


def write(trace: Trace) -> Iterator[bytes]:
    """Returns the text in parts."""
    try:
        writer = write_lines(trace)
    except OSError as error:
        raise ExportError(f"temporary file: {error.strerror}") from error
    return itertools.chain(
        [b'{"displayTimeUnit":"ns","traceEvents":[\n'], writer.lines.parts(), [b"\n]}\n"]
    )
