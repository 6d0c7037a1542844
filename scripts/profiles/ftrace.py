# SPDX-License-Identifier: BSD-2-Clause
"""Writes events as text, as in /sys/kernel/tracing/trace. Perfetto reads it, too.

Format: Documentation/trace/ftrace.rst of Linux 6.1, "Output format".
"""

from __future__ import annotations

from profiles.events import HARDIRQ, IRQS_OFF, NMI, STACK, Event, Trace, chain
from profiles.export import printable
from profiles.print_format import Printer
from profiles.tracing_data import FTRACE

HEAD = """\
# tracer: nop
#
# entries-in-buffer/entries-written: {entries}/{written}   #P:{cpus}
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""


def flags_text(flags: int) -> str:
    context = "Z" if flags & NMI and flags & HARDIRQ else "z" if flags & NMI else ""
    context = context or ("h" if flags & HARDIRQ else ".")
    return f"{'d' if flags & IRQS_OFF else '.'}.{context}.."


def event_text(trace: Trace, printer: Printer, event: Event) -> str:
    format = trace.format(event)
    if format.name != STACK:
        name = "" if format.system == FTRACE else f"{format.name}: "
        return name + printable(printer.text(format, event.data))
    names = (trace.name(address - 1) for address in chain(event.data))
    return "<stack trace>" + "".join(f"\n => {name}" for name in names)


def write(trace: Trace) -> bytes | bytearray:
    printer = Printer(trace.functions)
    entries = sum(len(cpu.events) for cpu in trace.cpus.values())
    written = entries + sum(cpu.lost for cpu in trace.cpus.values())
    found = bytearray(HEAD.format(entries=entries, written=written, cpus=len(trace.cpus)).encode())
    for event in trace.in_order("writing events"):
        if event.lost:
            found += f"CPU:{event.cpu} [LOST {event.lost} EVENTS]\n".encode()
        tid = event.tid
        seconds, us = divmod((event.ns + 500) // 1000, 1_000_000)
        head = f"{trace.task(tid).name:>16}-{tid:<7} [{event.cpu:03d}] {flags_text(event.flags)} "
        text = event_text(trace, printer, event)
        found += f"{head}{seconds:5d}.{us:06d}: {text}\n".encode("latin-1", "replace")
    for number, cpu in trace.cpus.items():
        if cpu.lost_at_end:
            found += f"CPU:{number} [LOST {cpu.lost_at_end} EVENTS]\n".encode()
    return found
