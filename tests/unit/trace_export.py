# SPDX-License-Identifier: BSD-2-Clause
"""Makes exports with events: the formats of some of Linux's events, and the pages of rings."""

from __future__ import annotations

import base64
import struct

COMMON = [("unsigned short", "common_type", "H"), ("unsigned char", "common_flags", "B")]
COMMON += [("unsigned char", "common_preempt_count", "B"), ("int", "common_pid", "i")]
SIZES = {"B": 1, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8, "16s": 16, "2Q": 16, "6Q": 48}
STATES = '{ 1, "S" }, { 2, "D" }'


class Kind:
    """A kind of event. Makes the text of its format, and the bytes of an event."""

    def __init__(self, id: int, system: str, name: str, fields: list[tuple], print_format: str):
        self.id, self.system, self.name, self.print_format = id, system, name, print_format
        self.fields = fields
        self.packing = "<" + "".join(code for *_, code in COMMON + fields)

    def text(self) -> str:
        lines, at = [f"name: {self.name}", f"ID: {self.id}", "format:"], 0
        for i, (kind, name, code) in enumerate(COMMON + self.fields):
            size = SIZES[code]
            signed = int(code in "iq")
            lines.append(f"\tfield:{kind} {name};\toffset:{at};\tsize:{size};\tsigned:{signed};")
            if i == len(COMMON) - 1:
                lines.append("")
            at += size
        return "\n".join([*lines, "", f"print fmt: {self.print_format}", ""])

    def row(self) -> dict:
        return {"system": self.system, "event": self.name, "id": self.id, "format": self.text()}

    def data(self, tid: int, *values: object, flags: int = 1) -> bytes:
        values = tuple(
            part
            for value in values
            for part in (value if isinstance(value, list) else [value])
        )
        values = tuple(value.encode() if isinstance(value, str) else value for value in values)
        data = struct.pack(self.packing, self.id, flags, 0, tid, *values)
        return data + bytes(-len(data) % 8)


SWITCH = Kind(
    301,
    "sched",
    "sched_switch",
    [
        ("char", "prev_comm[16]", "16s"),
        ("pid_t", "prev_pid", "i"),
        ("int", "prev_prio", "i"),
        ("long", "prev_state", "q"),
        ("char", "next_comm[16]", "16s"),
        ("pid_t", "next_pid", "i"),
        ("int", "next_prio", "i"),
    ],
    '"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d'
    ' next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ?'
    f' __print_flags(REC->prev_state & 0xff, "|", {STATES}) : "R", REC->next_comm,'
    " REC->next_pid, REC->next_prio",
)
WAKEUP = Kind(
    302,
    "sched",
    "sched_wakeup",
    [
        ("char", "comm[16]", "16s"),
        ("pid_t", "pid", "i"),
        ("int", "prio", "i"),
        ("int", "target_cpu", "i"),
    ],
    '"comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu',
)
ENTER = Kind(
    303,
    "raw_syscalls",
    "sys_enter",
    [("long", "id", "q"), ("unsigned long", "args[6]", "6Q")],
    '"NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)", REC->id, REC->args[0], REC->args[1], REC->args[2],'
    " REC->args[3], REC->args[4], REC->args[5]",
)
EXIT = Kind(
    304,
    "raw_syscalls",
    "sys_exit",
    [("long", "id", "q"), ("long", "ret", "q")],
    '"NR %ld = %ld", REC->id, REC->ret',
)
CONTEND = Kind(
    305,
    "lock",
    "contention_begin",
    [("void *", "lock_addr", "Q"), ("unsigned int", "flags", "I")],
    '"%p (flags=%s)", REC->lock_addr,'
    ' __print_flags(REC->flags, "|", { 1, "SPIN" }, { 2, "READ" }, { 32, "MUTEX" })',
)
CONTENDED = Kind(
    306,
    "lock",
    "contention_end",
    [("void *", "lock_addr", "Q"), ("int", "ret", "i")],
    '"%p (ret=%d)", REC->lock_addr, REC->ret',
)
KMALLOC = Kind(
    307,
    "kmem",
    "kmalloc",
    [
        ("unsigned long", "call_site", "Q"),
        ("const void *", "ptr", "Q"),
        ("size_t", "bytes_req", "Q"),
        ("size_t", "bytes_alloc", "Q"),
        ("unsigned long", "gfp_flags", "Q"),
        ("int", "node", "i"),
    ],
    '"call_site=%pS ptr=%p bytes_req=%zu bytes_alloc=%zu gfp_flags=%s node=%d",'
    " (void *)REC->call_site, REC->ptr, REC->bytes_req, REC->bytes_alloc,"
    ' (REC->gfp_flags) ? __print_flags(REC->gfp_flags, "|", { 1, "X" }) : "none", REC->node',
)
KFREE = Kind(
    308,
    "kmem",
    "kfree",
    [("unsigned long", "call_site", "Q"), ("const void *", "ptr", "Q")],
    '"call_site=%pS ptr=%p", (void *)REC->call_site, REC->ptr',
)
KINDS = [SWITCH, WAKEUP, ENTER, EXIT, CONTEND, CONTENDED, KMALLOC, KFREE]

PAGE_BYTES = 4096


def record(kind: int, cycles: int, content: bytes) -> bytes:
    return struct.pack("<IHH", cycles & 0xFFFFFFFF, 8 + len(content), kind) + content


class Ring:
    """Makes the pages of a CPU's ring of events, as the kernel does."""

    def __init__(self, cpu: int, first: int = 0):
        self.cpu, self.first, self.next = cpu, first, first
        self.pages: list[bytes] = []
        self.cycles = 0

    def lose(self, nr: int) -> None:
        self.next += nr
        self.end_page()

    def end_page(self) -> None:
        if self.pages and 0 < len(self.pages[-1]) < PAGE_BYTES:
            room = PAGE_BYTES - len(self.pages[-1])
            self.pages[-1] += record(1, self.cycles, bytes(room - 8))

    def add(self, cycles: int, data: bytes) -> None:
        extension = b""
        if self.pages and cycles >> 32 != self.cycles >> 32:
            extension = record(2, cycles, struct.pack("<Q", cycles))
        more = extension + record(0, cycles, data)
        if not self.pages or len(self.pages[-1]) + len(more) > PAGE_BYTES:
            self.end_page()
            self.pages.append(struct.pack("<QQ", cycles, self.next))
            more = record(0, cycles, data)
        self.pages[-1] += more
        self.cycles, self.next = cycles, self.next + 1

    def row(self) -> dict:
        return {"cpu": self.cpu, "first": self.first, "next": self.next}

    def page_rows(self) -> list[dict]:
        return [
            {"cpu": self.cpu, "data": base64.b64encode(page).decode()} for page in self.pages
        ]


def files(rings: list[Ring], tasks: dict[int, tuple[int, str]], kinds: list[Kind]) -> dict:
    """Returns the rows of an export's files."""
    return {
        "trace_events.json": [kind.row() for kind in kinds],
        "trace_tasks.json": [
            {"tid": tid, "pid": pid, "task": comm} for tid, (pid, comm) in tasks.items()
        ],
        "trace_calls.json": [{"nr": nr, "syscall": name} for nr, name in CALLS.items()],
        "trace_cpus.json": [ring.row() for ring in rings],
        "trace_pages.json": [row for ring in rings for row in ring.page_rows()],
    }


CALLS = {0: "sys_read", 1: "sys_write", 60: "sys_exit"}
TASKS = {10: (10, "init"), 11: (11, "reader"), 12: (11, "writer")}
MS = 1_000_000


def small(has_gaps: bool = True) -> dict:
    """
    Returns an export of two CPUs with calls, switches, a lock, memory and gaps. Events are a
    millisecond apart.
    """
    zero, one = Ring(0), Ring(1, first=5)
    t = iter(range(1000 * MS, 9000 * MS, MS))

    def switch(ring: Ring, old: int, state: int, new: int) -> None:
        names = {0: "swapper"} | {tid: name for tid, (_, name) in TASKS.items()}
        data = SWITCH.data(old, names[old], old, 120, state, names[new], new, 120)
        ring.add(next(t), data)

    switch(zero, 0, 0, 11)
    zero.add(next(t), ENTER.data(11, 0, [3, 0x7FFF0000, 100, 0, 0, 0], flags=0))
    zero.add(next(t), KMALLOC.data(11, 0xFFFFFFFF81000100, 0xFFFF888000001000, 100, 128, 0, -1))
    zero.add(next(t), KMALLOC.data(11, 0xFFFFFFFF81000100, 0xFFFF888000002000, 30, 32, 1, -1))
    switch(zero, 11, 1, 0)
    one.lose(3 * has_gaps)
    switch(one, 0, 0, 12)
    one.add(next(t), CONTEND.data(12, 0xFFFFFFFF81800000, 32))
    one.add(next(t), CONTENDED.data(12, 0xFFFFFFFF81800000, 0))
    one.add(next(t), WAKEUP.data(12, "reader", 11, 120, 0))
    switch(zero, 0, 0, 11)
    zero.add(next(t), KFREE.data(11, 0xFFFFFFFF81000200, 0xFFFF888000001000))
    zero.add(next(t), EXIT.data(11, 0, 100, flags=0))
    one.lose(2 * has_gaps)
    for ret in -9, 4:
        one.add(next(t), ENTER.data(12, 1, [3, 0x7FFF0000, 4, 0, 0, 0], flags=0))
        one.add(next(t), EXIT.data(12, 1, ret, flags=0))
    # These times differ in the upper half of the TSC.
    zero.add(6000 * MS, ENTER.data(11, 60, [0] * 6, flags=0))
    switch_at = SWITCH.data(11, "reader", 11, 120, 16, "swapper", 0, 120)
    zero.add(6001 * MS, switch_at)
    zero.lose(7 * has_gaps)
    return files([zero, one], TASKS, KINDS)
