# SPDX-License-Identifier: BSD-2-Clause
"""Writes events as tracepoints of a perf.data: for perf script, trace, sched, lock and kmem.

Events are in the order of their times. Each gap becomes a record of lost events.
"""

from __future__ import annotations

import struct

from profiles import tracing_data
from profiles.events import IDLE, STACK, Event, Trace
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
    build_ids,
    comm,
    event_attribute,
    event_descriptions,
    file,
    kernel_map,
    machine,
    record,
    trailer,
)
from profiles.stacks import call_sites

TRACEPOINT, RAW, LOST = 2, 0x400, 2
SAMPLE_TYPE = IP | TID | TIME | CPU | PERIOD | RAW | IDENTIFIER  # and CALLCHAIN, if there are any
FEATURE_TRACING_DATA = 1


def task(trace: Trace, tid: int) -> tuple[int, int]:
    """Returns pid and tid. The idle task is perf's swapper."""
    return (0, 0) if tid == IDLE else (trace.task(tid).pid, tid)


def sample(trace: Trace, number: int, event: Event, chain: list[int] | None) -> bytes:
    """Returns the record of an event. chain: None if the attributes have no CALLCHAIN."""
    chain = chain if chain is None else call_sites(chain, False)
    body = struct.pack("<QQII", number, chain[0] if chain else 0, *task(trace, event.tid))
    body += struct.pack("<QIIQ", event.ns, event.cpu, 0, 1)
    if chain is not None:
        chain = [CONTEXT_KERNEL, *chain] if chain else []
        body += struct.pack(f"<Q{len(chain)}Q", len(chain), *chain)
    padding = -(4 + len(event.data)) % 8
    body += struct.pack("<I", len(event.data) + padding) + event.data + bytes(padding)
    return record(SAMPLE, MISC_KERNEL, body)


def lost(nr: int, cpu: int, ns: int) -> bytes:
    return record(LOST, 0, struct.pack("<QQ", ID, nr) + trailer(0, 0, ns, cpu))


def records(trace: Trace, numbers: dict[int, int], chains: dict[int, list[int]]) -> bytearray:
    found = bytearray(kernel_map(trace.kernel, chains.values()))
    for tid, one in trace.tasks.items():
        if tid != IDLE:
            found += comm(one.pid, tid, one.name, 0)
    last_ns = 0
    for event in trace.in_order("writing events"):
        if event.lost:
            found += lost(event.lost, event.cpu, event.ns)
        if trace.format(event).name != STACK:
            chain = chains.get(event.place, []) if chains else None
            found += sample(trace, numbers[event.id], event, chain)
        last_ns = event.ns
    for number, cpu in trace.cpus.items():
        if cpu.lost_at_end:
            found += lost(cpu.lost_at_end, number, last_ns)
    return found


def write(export: Export, trace: Trace) -> list[bytes]:
    events = []
    chains = trace.chains()
    sample_type = SAMPLE_TYPE | bool(chains) * CALLCHAIN
    # Ids start with ID, which records other than samples use, too.
    for number, format in enumerate(trace.formats.values(), ID):
        attr = event_attribute(TRACEPOINT, format.id, 1, sample_type)
        events.append((attr, number, f"{format.system}:{format.name}"))
    numbers = dict(zip(trace.formats, range(ID, ID + len(events))))
    try:
        data, ids = records(trace, numbers, chains), build_ids(trace.build_id, KALLSYMS, [])
    except (struct.error, ValueError) as error:
        raise ExportError(f"a number does not fit perf.data: {error}") from error
    nr_cpus = max(trace.cpus) + 1
    features = machine(export) | {
        FEATURE_TRACING_DATA: tracing_data.write(trace, "0.6"),
        FEATURE_BUILD_ID: ids,
        FEATURE_NRCPUS: struct.pack("<II", nr_cpus, nr_cpus),
        FEATURE_EVENT_DESC: event_descriptions(events),
    }
    return file([(attr, number) for attr, number, _ in events], data, features)
