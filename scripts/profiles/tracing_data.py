# SPDX-License-Identifier: BSD-2-Clause
"""Writes what trace.dat and perf.data have in common: formats of events, functions and tasks.

Format: trace-cmd.dat.v6(5) of trace-cmd 3.1, and tools/perf/util/trace-event-info.c of Linux 6.1,
which writes the same.
"""

from __future__ import annotations

import struct

from profiles.events import IDLE, PAGE_BYTES, Trace

HEADER_PAGE = f"""\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:{PAGE_BYTES - 16};\tsigned:1;
""".encode()
HEADER_EVENT = b"""\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
"""
FTRACE = "ftrace"  # the system of the tracers' events, which have a section of their own


def sized(size: str, data: bytes) -> bytes:
    return struct.pack(size, len(data)) + data


def write(trace: Trace, version: str) -> bytes:
    systems: dict[str, list[bytes]] = {FTRACE: []}
    for one in trace.formats.values():
        systems.setdefault(one.system, []).append(sized("<Q", one.text.encode()))
    ftrace = systems.pop(FTRACE)
    parts = [b"\x17\x08\x44tracing", version.encode(), b"\0"]
    parts.append(struct.pack("<BBI", 0, 8, PAGE_BYTES))  # little endian, size of long
    parts += [b"header_page\0", sized("<Q", HEADER_PAGE)]
    parts += [b"header_event\0", sized("<Q", HEADER_EVENT)]
    parts += [struct.pack("<I", len(ftrace)), *ftrace]
    parts.append(struct.pack("<I", len(systems)))
    for system, formats in systems.items():
        parts += [system.encode(), b"\0", struct.pack("<I", len(formats)), *formats]
    known = trace.functions
    functions = zip(known.addresses, known.names) if known else []
    lines = "".join(f"{address:016x} T {name}\n" for address, name in functions)
    parts.append(sized("<I", lines.encode()))
    parts.append(sized("<I", b""))  # texts of trace_printk()
    tasks = (f"{tid} {task.name}\n" for tid, task in trace.tasks.items() if tid != IDLE)
    parts.append(sized("<Q", "".join(tasks).encode()))
    return b"".join(parts)
