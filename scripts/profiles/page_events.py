# SPDX-License-Identifier: BSD-2-Clause
"""Makes the time line of a page from events: what each thread and CPU did when.

A lane is a list of intervals that do not overlap. A CPU has one, with the threads that ran. A
thread has one with its states, and one for each depth of calls and other pairs of events. Where
events were lost, states are unknown until the next event says what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from profiles.chrome import pairs
from profiles.events import IDLE, STACK, Event, Format, Trace
from profiles.page_columns import Columns
from profiles.page_data import NONE, Strings

KINDS = ["running", "ready", "asleep", "unknown", "call", "pair", "event"]
RUNNING, READY, ASLEEP, UNKNOWN, CALL, PAIR, EVENT = range(len(KINDS))
MAX_DEPTH = 8  # of pairs that are shown
MAX_OPEN = 256
CALLS = "sys_enter", "sys_exit"


@dataclass
class Lane:
    start: list[int] = field(default_factory=list)
    ns: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    open: bool = False

    def begin(self, ns: int, kind: int, name: int) -> None:
        self.end(ns)
        self.start.append(ns)
        self.ns.append(0)
        self.kind.append(kind)
        self.name.append(name)
        self.open = True

    def end(self, ns: int) -> None:
        if self.open:
            self.ns[-1] = ns - self.start[-1]
            self.open = False

    def drop(self) -> None:
        """Takes back the interval that has just begun."""
        for values in (self.start, self.ns, self.name, self.kind):
            values.pop()
        self.open = False

    def is_(self, kind: int) -> bool:
        return self.open and self.kind[-1] == kind

    def write(self, columns: Columns) -> list:
        """
        Writes the start of the first interval, and the gaps before the intervals, which are mostly
        0, the lengths, names, kinds.
        """
        ends = (start + ns for start, ns in zip(self.start, self.ns))
        gaps = (start - end for start, end in zip(self.start[1:], ends))
        written = (columns.add(values) for values in ([0, *gaps], self.ns, self.name, self.kind))
        return [self.start[0], *written]


@dataclass
class Track:
    states: Lane = field(default_factory=Lane)
    depths: list[Lane] = field(default_factory=list)
    open: list[str] = field(default_factory=list)  # the keys of pairs that have begun
    marks: Lane = field(default_factory=Lane)  # single events
    nr_gaps: int = 0  # places where events were lost, that are in its states
    call: int = NONE  # the name of the system call that it is in

    def begin(self, ns: int, kind: int, key: str, name: int) -> None:
        depth = len(self.open)
        if depth == MAX_OPEN:
            return
        self.open.append(key)
        if depth >= MAX_DEPTH:
            return
        if depth == len(self.depths):
            self.depths.append(Lane())
        self.depths[depth].begin(ns, kind, name)

    def end(self, ns: int, key: str) -> bool:
        if key not in self.open:
            return False
        while self.open:
            one = self.open.pop()
            if len(self.open) < MAX_DEPTH:
                self.depths[len(self.open)].end(ns)
            if one == key:
                break
        return True

    def forget(self, ns: int) -> None:
        """Ends what is open: events after this one were lost."""
        for lane in self.depths:
            lane.end(ns)
        self.open.clear()
        self.call = NONE


class TimeLine:
    def __init__(self, trace: Trace, strings: Strings):
        self.trace, self.strings = trace, strings
        self.calls = {nr: f"sys_{name}" for nr, name in trace.calls.items()}
        self.cpus: dict[int, Track] = {}
        self.tasks: dict[int, Track] = {}
        self.last_ns: dict[int, int] = {}  # the last event, by CPU
        self.lost: list[list[int]] = []  # CPU, since and until when, and how many events
        self.ended: set[int] = set()  # threads that will not run again
        self.begins: dict[int, str] = {}  # the keys of the pairs that events begin, by id
        self.ends: dict[int, str] = {}
        for first, last, stem in pairs(trace):
            if first.name not in CALLS:
                self.begins.setdefault(first.id, stem)
                self.ends.setdefault(last.id, stem)
        self.handlers: dict[str, Callable[[Event, dict], None]] = {
            "sched_switch": self.switch,
            "sched_wakeup": self.wake,
            "sched_process_exit": lambda event, args: self.ended.add(args["pid"]),
            "sys_enter": self.enter,
            "sys_exit": self.leave,
        }

    def cpu(self, number: int) -> Track:
        return self.cpus.setdefault(number, Track())

    def task(self, tid: int) -> Track:
        """Returns the track of a thread, whose state is unknown since events were lost."""
        track = self.tasks.setdefault(tid, Track(nr_gaps=len(self.lost)))
        if track.nr_gaps < len(self.lost):
            _, since, _, _ = self.lost[track.nr_gaps]
            if track.states.open and track.states.start[-1] <= since:
                track.states.begin(since, UNKNOWN, NONE)
            track.forget(since)
            track.nr_gaps = len(self.lost)
        return track

    def lose(self, event: Event) -> None:
        since = self.last_ns.get(event.cpu, event.ns)
        self.lost.append([event.cpu, since, event.ns, event.lost])
        self.cpu(event.cpu).states.begin(since, UNKNOWN, self.strings.number("events were lost"))

    def switch(self, event: Event, args: dict) -> None:
        previous, following = args["prev_pid"], args["next_pid"]
        states = self.cpu(event.cpu).states
        if following != IDLE:
            states.begin(event.ns, RUNNING, self.strings.number(str(args["next_comm"])))
            name = self.strings.number(f"CPU {event.cpu}")
            self.task(following).states.begin(event.ns, RUNNING, name)
        else:
            states.end(event.ns)
        if previous != IDLE:
            track = self.task(previous)
            kind = ASLEEP if args["prev_state"] else READY
            track.states.begin(event.ns, kind, track.call if kind == ASLEEP else NONE)
            if previous in self.ended:
                track.states.drop()
                track.forget(event.ns)

    def wake(self, event: Event, args: dict) -> None:
        track = self.task(args["pid"])
        if not track.states.is_(RUNNING):
            name = self.trace.task(event.tid).name if event.tid != IDLE else "an interrupt"
            track.states.begin(event.ns, READY, self.strings.number(f"woken by {name}"))

    def enter(self, event: Event, args: dict) -> None:
        track, number = self.task(event.tid), args["id"]
        track.call = self.strings.number(self.calls.get(number, f"sys_{number}"))
        track.begin(event.ns, CALL, "call", track.call)

    def leave(self, event: Event, args: dict) -> None:
        track = self.task(event.tid)
        track.end(event.ns, "call")
        track.call = NONE

    def add(self, event: Event) -> None:
        format = self.trace.format(event)
        if event.lost:
            self.lose(event)
        self.last_ns[event.cpu] = event.ns
        if format.name == STACK:
            return
        args = format.values(event.data)
        if event.tid != IDLE and format.name != "sched_switch":
            self.runs(event)
        if handler := self.handlers.get(format.name):
            handler(event, args)
        else:
            self.add_other(event, format, args)

    def runs(self, event: Event) -> None:
        """The thread of an event has the CPU, whatever was known before."""
        states = self.task(event.tid).states
        if not states.is_(RUNNING):
            states.begin(event.ns, RUNNING, self.strings.number(f"CPU {event.cpu}"))
        lane = self.cpu(event.cpu).states
        if not lane.is_(RUNNING):
            name = self.trace.task(event.tid).name
            lane.begin(event.ns, RUNNING, self.strings.number(name))

    def add_other(self, event: Event, format: Format, args: dict) -> None:
        track = self.cpu(event.cpu) if event.tid == IDLE else self.task(event.tid)
        point = args.get("name")
        name = point if isinstance(point, str) else None
        if key := self.begins.get(event.id):
            track.begin(event.ns, PAIR, f"{key} {name}", self.strings.number(name or key))
        elif key := self.ends.get(event.id):
            track.end(event.ns, f"{key} {name}")
        else:
            track.marks.begin(event.ns, EVENT, self.strings.number(format.name))
            track.marks.end(event.ns)

    def end(self, ns: int) -> None:
        for track in [*self.cpus.values(), *map(self.task, self.tasks)]:
            track.states.end(ns)
            track.forget(ns)

    def write(self, columns: Columns) -> dict:
        def lanes(track: Track) -> list:
            filled = [track.states, *track.depths, track.marks]
            return [lane.write(columns) for lane in filled if lane.start]

        tasks = []
        for tid, track in sorted(self.tasks.items()):
            task = self.trace.task(tid)
            tasks.append([tid, task.pid, self.strings.number(task.name), lanes(track)])
        return {
            "kinds": KINDS,
            "cpus": [[number, lanes(track)] for number, track in sorted(self.cpus.items())],
            "tasks": tasks,
            "lost": self.lost,
        }


def write(trace: Trace, strings: Strings, columns: Columns) -> dict | None:
    """Returns the time line, or None without an event. Removes the events from the trace."""
    found = TimeLine(trace, strings)
    first = last = None
    nr = 0
    for event in trace.in_order():
        first = event.ns if first is None else first
        last = event.ns
        nr += 1
        try:
            found.add(event)
        except (KeyError, TypeError, ValueError):
            continue  # a format that is not Linux's
    if first is None or last is None:
        return None
    found.end(last)
    return found.write(columns) | {"from": first, "to": last, "events": nr}


def limits(found: dict | None) -> list[str]:
    """Says how many events the time line lacks."""
    nr = sum(lost for _, _, _, lost in found["lost"]) if found else 0
    return [f"{nr:,} events were lost, where the time line is empty or unknown"] if nr else []
