# SPDX-License-Identifier: BSD-2-Clause
"""Writes events as text, as in /sys/kernel/tracing/trace. Perfetto reads it, too.

Format: Documentation/trace/ftrace.rst of Linux 6.1, "Output format".
"""

from __future__ import annotations

from collections.abc import Iterator

from profiles.events import HARDIRQ, IRQS_OFF, NMI, Format, Trace, chain
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


def event_text(trace: Trace, printer: Printer, format: Format, data: bytes) -> str:
    if not format.is_stack:
        name = "" if format.system == FTRACE else f"{format.name}: "
        return name + printable(printer.text(format, data))
    names = (trace.name(address - 1) for address in chain(data))
    return "<stack trace>" + "".join(f"\n => {name}" for name in names)


def write(trace: Trace) -> Iterator[bytes]:
    printer = Printer(trace.functions)
    entries = sum(len(cpu.events) for cpu in trace.cpus.values())
    written = entries + sum(cpu.lost for cpu in trace.cpus.values())
    yield HEAD.format(entries=entries, written=written, cpus=len(trace.cpus)).encode()
    heads: dict[tuple[int, bytes], str] = {}  # by CPU, and the bytes of the flags and the thread
    for event in trace.in_order("writing events"):
        _, ns, cpu, lost, data, _ = event
        if lost:
            yield f"CPU:{cpu} [LOST {lost} EVENTS]\n".encode()
        key = cpu, data[2:8]
        if key not in heads:
            task = f"{trace.task(event.tid).name:>16}-{event.tid:<7}"
            heads[key] = f"{task} [{cpu:03d}] {flags_text(event.flags)} "
        us = (ns + 500) // 1000
        text = event_text(trace, printer, trace.format(event), data)
        line = f"{heads[key]}{us // 1_000_000:5d}.{us % 1_000_000:06d}: {text}\n"
        yield line.encode("latin-1", "replace")
    for number, cpu_ in trace.cpus.items():
        if cpu_.lost_at_end:
            yield f"CPU:{number} [LOST {cpu_.lost_at_end} EVENTS]\n".encode()
