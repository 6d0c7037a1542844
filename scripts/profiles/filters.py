# SPDX-License-Identifier: BSD-2-Clause
"""Chooses samples, waits and events by task, CPU, system call or time, before they are written."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from profiles.events import IDLE, STACK, Cpu, Event, Events, Trace
from profiles.export import ExportError
from profiles.stacks import Stack, Stacks

MAX_NS = 1 << 63
TASKS = ("pid", "next_pid", "child_pid")  # fields of sched's events with the tid of another task


def numbers(argument: str) -> list[int]:
    return [int(one) for one in argument.split(",")]


def nanoseconds(argument: str) -> int:
    try:
        return int(Decimal(argument) * 1_000_000_000)
    except (InvalidOperation, OverflowError):
        raise ValueError(argument) from None


def plain(call: str) -> str:
    return call.removeprefix("sys_")


def add_options(
    parser: argparse.ArgumentParser, with_idle: bool = True, has_times: bool = False
) -> None:
    """Adds the options of a Filter. with_idle: whether idle time is included by default."""
    group = parser.add_argument_group("only what matches all of")
    for name, metavar, text in (
        ("pid", "PID,..", "of these processes; 0: of the kernel's threads"),
        ("tid", "TID,..", "of these threads"),
        ("cpu", "CPU,..", "of these CPUs"),
    ):
        group.add_argument(
            f"--{name}", type=numbers, action="extend", default=[], metavar=metavar, help=text
        )
    for name, text in (
        ("comm", "of tasks of this name; may be given several times"),
        ("syscall", "in this system call; may be given several times"),
    ):
        group.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=text)
    parser.set_defaults(**{"from": None, "to": None})
    for name, what in (("from", "since"), ("to", "until")) if has_times else ():
        text = f"events {what} this time, in seconds since boot"
        group.add_argument(f"--{name}", type=nanoseconds, metavar="SECONDS", help=text)
    kept = "included" if with_idle else "left out"
    group.add_argument(
        "--idle",
        action=argparse.BooleanOptionalAction,
        default=with_idle,
        help=f"include idle time, or leave it out (default: {kept})",
    )


@dataclass
class Filter:
    """An empty set chooses all."""

    pids: frozenset[int]
    tids: frozenset[int]
    cpus: frozenset[int]
    comms: frozenset[str]
    calls: frozenset[str]
    start_ns: int | None
    end_ns: int | None
    with_idle: bool

    @classmethod
    def of(cls, args: argparse.Namespace) -> Filter:
        return cls(
            frozenset(args.pid),
            frozenset(args.tid),
            frozenset(args.cpu),
            frozenset(args.comm),
            frozenset(map(plain, args.syscall)),
            getattr(args, "from"),
            args.to,
            args.idle,
        )

    def __str__(self) -> str:
        """Returns the options that choose, as a part of a title."""
        found = ""
        for name, ids in ("pid", self.pids), ("tid", self.tids), ("cpu", self.cpus):
            found += f" --{name} {','.join(map(str, sorted(ids)))}" if ids else ""
        for name, texts in ("comm", self.comms), ("syscall", self.calls):
            found += "".join(f" --{name} {text}" for text in sorted(texts))
        for name, ns in ("from", self.start_ns), ("to", self.end_ns):
            if ns is not None:
                found += f" --{name} {ns / 1e9:.9f}".rstrip("0").rstrip(".")
        return found

    def refuse(self, why: str) -> None:
        """Raises ExportError if the filter would choose."""
        if words := str(self) or ("" if self.with_idle else " --no-idle"):
            raise ExportError(f"{why}, so{words} can choose none")

    def has_stack(self, stack: Stack) -> bool:
        return (
            (not self.pids or stack.pid in self.pids)
            and (not self.tids or stack.tid in self.tids)
            and (not self.cpus or stack.cpu in self.cpus)
            and (not self.comms or stack.comm in self.comms)
            and (not self.calls or plain(stack.call or "") in self.calls)
        )

    def choose_stacks(self, stacks: Stacks) -> int:
        """Leaves out the other stacks, and idle time. Returns how many samples were idle time."""
        if self.start_ns is not None or self.end_ns is not None:
            raise ExportError("samples and waits have no times: --from and --to choose events")
        if stacks.unit != "samples" and (self.tids or self.calls):
            what = "memory has" if stacks.unit == "bytes" else "waits have"
            raise ExportError(f"{what} no tid and no system call to choose by")
        if str(self):
            stacks.stacks = [one for one in stacks.stacks if self.has_stack(one)]
            if not stacks.stacks:
                raise ExportError(f"nothing matches{self}")
        if self.cpus:
            stacks.losses.keep_cpus(self.cpus)
        return 0 if self.with_idle else stacks.drop_idle()

    def choose_events(self, trace: Trace) -> None:
        """
        Leaves out the other events. A gap stays if it may have been in the time that is chosen.
        """
        if not str(self) and self.with_idle:
            return
        kept = Chooser(self, trace).kept()
        if self.cpus:
            trace.cpus = {number: cpu for number, cpu in trace.cpus.items() if number in self.cpus}
        for cpu in trace.cpus.values():
            self.leave(cpu, kept)
        if not any(cpu.events for cpu in trace.cpus.values()):
            raise ExportError(f"no event matches{self or ' --no-idle'}")

    def leave(self, cpu: Cpu, kept: set[int]) -> None:
        """Leaves the events at these places on a CPU. They take over the gaps before."""
        start = self.start_ns or 0
        end = MAX_NS if self.end_ns is None else self.end_ns
        found = Events(cpu.events.cpu, cpu.events.hz)
        found.has_stacks = cpu.events.has_stacks
        last_ns = lost = 0
        for event in cpu.events:
            lost += event.lost if last_ns <= end and event.ns >= start else 0
            if event.place in kept:
                if lost:
                    found.lost[len(found)] = lost
                found.add([event.cycles], [event.data])
                lost = 0
            last_ns = event.ns
        cpu.lost_at_end = lost + (cpu.lost_at_end if last_ns <= end else 0)
        cpu.events = found


class Chooser:
    """Chooses the events of a trace. A call chain goes with its event."""

    def __init__(self, filter: Filter, trace: Trace):
        self.filter, self.trace = filter, trace
        self.calls = {number for number, name in trace.calls.items() if name in filter.calls}
        self.current: dict[int, int] = {}  # the system calls that threads are in, by tid

    def kept(self) -> set[int]:
        """Returns the places of the events."""
        found: set[int] = set()
        stacks = self.trace.stacks()
        for event in self.trace.in_order("choosing events"):
            if self.trace.format(event).name != STACK and self.has(event):
                found.add(event.place)
                if chain := stacks.get(event.place):
                    found.add(chain.place)
        return found

    def has(self, event: Event) -> bool:
        one = self.filter
        in_call = not one.calls or self.call(event) in self.calls
        return (
            in_call
            and (not one.cpus or event.cpu in one.cpus)
            and (one.start_ns is None or event.ns >= one.start_ns)
            and (one.end_ns is None or event.ns <= one.end_ns)
            and (one.with_idle or event.tid != IDLE or self.is_of_sched(event))
            and any(map(self.has_task, self.tasks(event)))
        )

    def is_of_sched(self, event: Event) -> bool:
        return self.trace.format(event).system == "sched"

    def call(self, event: Event) -> int | None:
        """Returns the system call that an event is in: from its sys_enter to its sys_exit."""
        if event.lost:
            self.current.clear()  # there may have been any
        name = self.trace.format(event).name
        if name not in ("sys_enter", "sys_exit"):
            return self.current.get(event.tid)
        number = self.trace.format(event).values(event.data).get("id")
        if name == "sys_enter" and isinstance(number, int):
            self.current[event.tid] = number
        else:
            self.current.pop(event.tid, None)
        return number if isinstance(number, int) else None

    def tasks(self, event: Event) -> list[int]:
        """Returns the tids of the tasks that an event is of, or about."""
        found = [event.tid]
        if self.is_of_sched(event):
            values = self.trace.format(event).values(event.data)
            found += [tid for key in TASKS if isinstance(tid := values.get(key), int)]
        return found

    def has_task(self, tid: int) -> bool:
        one = self.filter
        task = self.trace.task(tid)
        return (
            (not one.tids or tid in one.tids)
            and (not one.pids or task.pid in one.pids)
            and (not one.comms or task.name in one.comms)
        )
