# SPDX-License-Identifier: BSD-2-Clause
"""Writes trace.dat, the file of trace-cmd and kernelshark.

Format: trace-cmd.dat.v6(5) of trace-cmd 3.1; Documentation/trace/ring-buffer-design.rst of Linux
and the text of header_event for the pages. The times are nanoseconds since boot.
"""

from __future__ import annotations

import struct

from profiles import progress, tracing_data
from profiles.events import PAGE_BYTES, Cpu, Events, Trace
from profiles.export import ExportError

PAGE_HEAD_BYTES = 16
MISSED_EVENTS, MISSED_STORED = 1 << 31, 1 << 30
TIME_EXTEND, DELTA_BITS, MAX_SHORT_BYTES = 30, 27, 28 * 4
OPTION_END, OPTION_CPUSTAT, OPTION_TRACECLOCK, OPTION_UNAME, OPTION_CPUCOUNT = 0, 2, 4, 5, 8


# A gap takes a page, so an export full of gaps would become hundreds of times as large.
MANY_PAGES, MAX_GROWTH = 256, 4


class Pages:
    """The pages of a CPU's buffer. A gap starts a new page, which has the number of lost events."""

    def __init__(self) -> None:
        self.pages: list[bytes] = []
        self.body = bytearray()
        self.start = self.ns = self.lost = 0
        self.nr_bytes = 0  # of events

    def end_page(self) -> None:
        if not self.body:
            return
        room = PAGE_BYTES - PAGE_HEAD_BYTES - len(self.body)
        commit, stored = len(self.body), b""
        if self.lost:
            commit |= MISSED_EVENTS
            if room >= 8:
                commit |= MISSED_STORED
                stored = struct.pack("<Q", self.lost)
        page = struct.pack("<QQ", self.start, commit) + self.body + stored
        self.pages.append(page.ljust(PAGE_BYTES, b"\0"))
        self.nr_bytes += len(self.body)
        if len(self.pages) > MANY_PAGES + MAX_GROWTH * self.nr_bytes // PAGE_BYTES:
            raise ExportError("there are too many gaps between the events for trace.dat")
        self.body.clear()

    def add(self, ns: int, lost: int, data: bytes) -> None:
        data += bytes(-len(data) % 4)
        is_short = len(data) <= MAX_SHORT_BYTES
        delta = ns - self.ns if self.body else 0
        is_too_late = delta >> (DELTA_BITS + 32)
        extension = b""
        if delta >> DELTA_BITS and not is_too_late:
            low = delta & ((1 << DELTA_BITS) - 1)
            extension = struct.pack("<II", low << 5 | TIME_EXTEND, delta >> DELTA_BITS)
            delta = 0
        size = len(extension) + 4 + (0 if is_short else 4) + len(data)
        room = PAGE_BYTES - PAGE_HEAD_BYTES - len(self.body) - (8 if self.lost else 0)
        if lost or is_too_late or not self.body or size > room:
            self.end_page()
            self.start, self.lost, delta, extension = ns, lost, 0, b""
        head = len(data) // 4 if is_short else 0
        self.body += extension + struct.pack("<I", delta << 5 | head)
        if not is_short:
            self.body += struct.pack("<I", len(data) + 4)
        self.body += data
        self.ns = ns


def pages(cpu: Cpu) -> list[bytes]:
    """Returns the pages of a CPU, from which it takes the events."""
    events, cpu.events = cpu.events, Events()
    found = Pages()
    for event in progress.over_some(events, "writing events", len(events)):
        found.add(event.ns, event.lost, event.data)
    found.end_page()
    return found.pages


def statistics(number: int, cpu: Cpu) -> bytes:
    """Returns the text of per_cpu/cpu<n>/stats, which `trace-cmd report --stat` prints."""
    values = {"entries": 0, "overrun": cpu.lost, "commit overrun": 0}
    lines = [f"CPU: {number}", *(f"{name}: {value}" for name, value in values.items())]
    return "\n".join([*lines, ""]).encode() + b"\0"


def options(trace: Trace, nr_cpus: int) -> bytes:
    found = [
        (OPTION_TRACECLOCK, b"[local]\0"),
        (OPTION_UNAME, b"Lego x86_64\0"),
        (OPTION_CPUCOUNT, struct.pack("<I", nr_cpus)),
    ]
    found += [(OPTION_CPUSTAT, statistics(number, cpu)) for number, cpu in trace.cpus.items()]
    parts = [struct.pack("<HI", option, len(data)) + data for option, data in found]
    return b"options  \0" + b"".join(parts) + struct.pack("<H", OPTION_END)


def write(trace: Trace) -> list[bytes]:
    nr_cpus = max(trace.cpus) + 1
    head = tracing_data.write(trace, "6") + struct.pack("<I", nr_cpus)
    head += options(trace, nr_cpus) + b"flyrecord\0"
    at = len(head) + 16 * nr_cpus
    padding = -at % PAGE_BYTES
    at += padding
    sections: list[bytes] = []
    data: list[bytes] = []
    for number in range(nr_cpus):
        part = pages(trace.cpus.get(number, Cpu()))
        nr_bytes = PAGE_BYTES * len(part)
        sections.append(struct.pack("<QQ", at, nr_bytes))
        data += part
        at += nr_bytes
    return [head, *sections, bytes(padding), *data]
