# SPDX-License-Identifier: BSD-2-Clause
"""Writes events as tracepoints of a perf.data: for perf script, trace, sched, lock and kmem.

Events are in the order of their times. Each gap becomes a record of lost events.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

from profiles import tracing_data
from profiles.events import IDLE, Event, Trace
from profiles.export import Export, ExportError
from profiles.perf_data import (
    KALLSYMS,
    CALLCHAIN,
    CONTEXT_KERNEL,
    CPU,
    FEATURE_BUILD_ID,
    FEATURE_EVENT_DESC,
    FEATURE_NRCPUS,
    ID,
    IDENTIFIER,
    IP,
    MISC_KERNEL,
    PERIOD,
    SAMPLE,
    TID,
    TIME,
    around,
    build_ids,
    comm,
    event_attribute,
    event_descriptions,
    kernel_map,
    machine,
    record,
    trailer,
)
from profiles.stacks import call_sites

TRACEPOINT, RAW, LOST = 2, 0x400, 2
SAMPLE_TYPE = IP | TID | TIME | CPU | PERIOD | RAW | IDENTIFIER  # and CALLCHAIN, if there are any
FEATURE_TRACING_DATA = 1
SAMPLE_HEAD = struct.Struct("<IHHQQIIQIIQ")  # up to PERIOD, without CALLCHAIN and RAW
RAW_HEAD = struct.Struct("<I")
PADDING = bytes(4)  # the data of events are multiples of 8 bytes, and follow their size


def task(trace: Trace, tid: int) -> tuple[int, int]:
    """Returns pid and tid. The idle task is perf's swapper."""
    return (0, 0) if tid == IDLE else (trace.task(tid).pid, tid)


def sample(number: int, task: tuple[int, int], event: Event, chain: list[int] | None) -> bytes:
    """Returns the record of an event. chain: None if the attributes have no CALLCHAIN."""
    ip, words = 0, b""
    if chain is not None:
        sites = call_sites(chain, False)
        ip = sites[0] if sites else 0
        sites = [CONTEXT_KERNEL, *sites] if sites else []
        words = struct.pack(f"<Q{len(sites)}Q", len(sites), *sites)
    data = event.data
    size = SAMPLE_HEAD.size + len(words) + RAW_HEAD.size + len(data) + len(PADDING)
    values = number, ip, *task, event.ns, event.cpu, 0, 1
    head = SAMPLE_HEAD.pack(SAMPLE, MISC_KERNEL, size, *values) + words
    return head + RAW_HEAD.pack(len(data) + len(PADDING)) + data + PADDING


def lost(nr: int, cpu: int, ns: int) -> bytes:
    return record(LOST, 0, struct.pack("<QQ", ID, nr) + trailer(0, 0, ns, cpu))


def first_records(trace: Trace, chains: dict[int, list[int]]) -> bytes:
    tasks = ((tid, one) for tid, one in trace.tasks.items() if tid != IDLE)
    comms = (comm(one.pid, tid, one.name, 0) for tid, one in tasks)
    return kernel_map(trace.kernel, chains.values()) + b"".join(comms)


def nr_bytes(trace: Trace, chains: dict[int, list[int]]) -> int:
    """Returns the bytes of the records of all events, which the file has before them."""
    nr_samples = nr_lost = found = 0
    for cpu in trace.cpus.values():
        nr_samples += len(cpu.events)
        found += len(cpu.events.data)
        if cpu.events.has_stacks:
            stacks = [len(one.data) for one in cpu.events if trace.format(one).is_stack]
            nr_samples -= len(stacks)
            found -= sum(stacks)
        nr_lost += len(cpu.events.lost) + bool(cpu.lost_at_end)
    found += nr_samples * (SAMPLE_HEAD.size + RAW_HEAD.size + len(PADDING))
    found += nr_lost * len(lost(0, 0, 0))
    if chains:
        found += 8 * nr_samples + sum(8 + 8 * len(chain) for chain in chains.values() if chain)
    return found


def records(
    trace: Trace, numbers: dict[int, int], chains: dict[int, list[int]]
) -> Iterator[bytes]:
    tasks: dict[int, tuple[int, int]] = {}
    last_ns = 0
    for event in trace.in_order("writing events"):
        if event.lost:
            yield lost(event.lost, event.cpu, event.ns)
        if not trace.format(event).is_stack:
            tid = event.tid
            if tid not in tasks:
                tasks[tid] = task(trace, tid)
            chain = chains.get(event.place, []) if chains else None
            yield sample(numbers[event.id], tasks[tid], event, chain)
        last_ns = event.ns
    for number, cpu in trace.cpus.items():
        if cpu.lost_at_end:
            yield lost(cpu.lost_at_end, number, last_ns)


def write(export: Export, trace: Trace) -> Iterator[bytes]:
    events = []
    chains = trace.chains()
    sample_type = SAMPLE_TYPE | bool(chains) * CALLCHAIN
    # Ids start with ID, which records other than samples use, too.
    for number, format in enumerate(trace.formats.values(), ID):
        attr = event_attribute(TRACEPOINT, format.id, 1, sample_type)
        events.append((attr, number, f"{format.system}:{format.name}"))
    numbers = dict(zip(trace.formats, range(ID, ID + len(events))))
    try:
        first, ids = first_records(trace, chains), build_ids(trace.build_id, KALLSYMS, [])
    except (struct.error, ValueError) as error:
        raise ExportError(f"a number does not fit perf.data: {error}") from error
    nr_cpus = max(trace.cpus) + 1
    features = machine(export) | {
        FEATURE_TRACING_DATA: tracing_data.write(trace, "0.6"),
        FEATURE_BUILD_ID: ids,
        FEATURE_NRCPUS: struct.pack("<II", nr_cpus, nr_cpus),
        FEATURE_EVENT_DESC: event_descriptions(events),
    }
    attrs = [(attr, number) for attr, number, _ in events]
    before, after = around(attrs, len(first) + nr_bytes(trace, chains), features)
    return itertools.chain([before, first], records(trace, numbers, chains), [after])
