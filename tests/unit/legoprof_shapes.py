# SPDX-License-Identifier: BSD-2-Clause
"""
Makes exports that a hostile guest could print: of any size, and as costly to read as possible.

Each function returns about nr_bytes bytes. SHAPES has the commands to try for each, the one that
such an export costs most first.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Iterable

import trace_export

META = {
    **{"export": 1, "number": 1, "why": "power off", "compiler": "gcc 12", "build_id": "ab"},
    **{"clock": "instructions", "tsc_hz": 10**9, "cpus": 1, "end_ns": 5},
}
SOURCE = [{"file": "source.json"}, {"table": ""}, {"hz": 997}]
SAMPLE = {
    **{"cpu": 0, "samples": 7, "pid": 1, "tid": 1, "comm": "a", "class": "kernel", "code_map": 0},
    **{"syscall": None, "truncated": None, "kernel": [], "user": []},
}
MARK = "0123456789abcdef"
ANNOUNCED = f"[    0.500000] profile: lines of exports begin with export-{MARK}\n"


def compact(row: object) -> str:
    return json.dumps(row, separators=(",", ":"))


def seal(
    lines: Iterable[str | dict], meta: dict = META, lost: int = 0, run: dict | None = None
) -> bytes:
    """Returns a whole export with a right checksum. run: of the line that qemu-run adds."""
    texts = (line if isinstance(line, str) else compact(line) for line in [meta, *lines])
    body = "".join(text + "\n" for text in texts).encode()
    crc = f"{zlib.crc32(body):08x}"
    end = compact({"end": 1, "bytes": len(body), "crc32": crc, "lost_lines": lost})
    return body + f"{end}\n".encode() + (compact({"run": run}) + "\n" if run else "").encode()


def rows(nr_bytes: int, file: str, make: Callable[[int], object], before: list = ()) -> bytes:
    """Returns an export with as many rows as fit. make(i) is the line of a row, or the row."""
    lines = [compact(line) for line in [*before, {"file": file}, {"table": file}]]
    left = nr_bytes
    for i in itertools.count():
        row = make(i)
        lines.append(row if isinstance(row, str) else compact(row))
        left -= len(lines[-1]) + 1
        if left <= 0:
            return seal(lines)


def smallest_rows(n: int) -> bytes:
    return rows(n, "strace.json", lambda i: '{"":0}')


def small_rows(n: int) -> bytes:
    return rows(n, "strace.json", lambda i: '{"abcde":0}')


def small_dicts(n: int) -> bytes:
    return rows(n, "strace.json", lambda i: '{"abcde":{"abcdefghijkl":0}}')


def other_columns(n: int) -> bytes:
    return rows(n, "strace.json", lambda i: f'{{"{i:x}":0}}')


def many_tables(n: int) -> bytes:
    return rows(n, "strace.json", lambda i: '{"table":""}')


def nested_rows(n: int) -> bytes:
    inner = "[" * 100 + "]" * 100
    return rows(n, "strace.json", lambda i: f'{{"a":[{",".join([inner] * 100)}]}}')


def long_lists(n: int) -> bytes:
    return seal(['{"file":"strace.json"}', '{"table":""}', '{"a":[' + "[]," * (n // 3) + "0]}"])


def long_dict(n: int) -> bytes:
    items = ",".join(f'"{i:x}":{{}}' for i in range(n // 12))
    return seal(['{"file":"strace.json"}', '{"table":""}', f'{{"a":{{{items}}}}}'])


def duplicate_keys(n: int) -> bytes:
    return seal(['{"file":"strace.json"}', '{"table":""}', "{" + '"a":[1],' * (n // 8) + '"a":1}'])


def giant_number(n: int) -> bytes:
    sample = compact(SAMPLE | {"kernel": ["0x9"]})
    numbers = [f'{{"a":{"9" * 4000}}}' for _ in range(n // 8000)]
    number = sample.replace('"samples":7', f'"samples":{"9" * (n // 2)}')
    return seal(['{"file":"samples.json"}', '{"table":""}', *numbers, number])


def long_names(n: int) -> bytes:
    return rows(n, "samples.json", lambda i: SAMPLE | {"comm": "\u20ac" * (n // 40)}, SOURCE)


def other_addresses(n: int) -> bytes:
    def make(i: int) -> dict:
        return SAMPLE | {"kernel": [f"{1000 * i + j:#018x}" for j in range(1000)]}

    return rows(n, "samples.json", make, SOURCE)


def recursion(n: int) -> bytes:
    chain = [f"{9:#018x}"] * 1000
    return rows(n, "samples.json", lambda i: SAMPLE | {"kernel": chain, "pid": i}, SOURCE)


def other_names(n: int) -> bytes:
    return rows(
        n,
        "samples.json",
        lambda i: SAMPLE | {"comm": f"{i}", "pid": i, "truncated": f"{i}", "user": ["0x9"]},
        SOURCE,
    )


def many_samples(n: int) -> bytes:
    return rows(n, "samples.json", lambda i: SAMPLE | {"samples": 1 << 40}, SOURCE)


def deep_stacks(n: int) -> bytes:
    """As a long run has them: many chains, which differ, of few functions."""

    def make(i: int) -> dict:
        user = [f"0x{0x401000 + (i * 7 + depth * depth) % 500 * 64:016x}" for depth in range(20)]
        return SAMPLE | {"pid": i % 50, "kernel": user[:8], "user": user}

    return rows(n, "samples.json", make, SOURCE)


def deep_code_maps(n: int) -> bytes:
    """Half of it is a long chain of areas that all code maps share; each sample has another map."""
    area = {"start": "0x1000", "end": "0x2000", "offset": "0x0", "image": 1}
    nr = n // 200
    maps = [area | {"code_map": i + 1, "parent": min(i, 127)} for i in range(127 + nr)]
    images = [{"image": 1, "path": "/a", "bytes": 9, "build_id": None}]
    before = [{"file": "images.json"}, {"table": ""}, *images]
    before += [{"file": "code_maps.json"}, {"table": ""}, *maps, *SOURCE]
    return rows(
        n // 2,
        "samples.json",
        lambda i: SAMPLE | {"user": ["0x9"], "pid": i, "code_map": 128 + i % nr},
        before,
    )


def many_images(n: int) -> bytes:
    return rows(
        n, "images.json", lambda i: {"image": i, "path": "/a", "bytes": 9, "build_id": None}
    )


def many_symbols(n: int) -> bytes:
    """Functions of four images and the kernel. Each is at another distance from its place."""
    images = [{"image": i + 1, "path": f"/{i}", "bytes": 9, "build_id": None} for i in range(4)]
    area = {"start": "0x400000", "end": "0x80000000", "offset": "0x0"}
    maps = [area | {"code_map": i + 1, "parent": 0, "image": i + 1} for i in range(4)]
    samples = [
        SAMPLE | {"code_map": i + 1, "pid": i + 1, "user": ["0x400010"], "kernel": ["0x400010"]}
        for i in range(4)
    ]
    before = [{"file": "images.json"}, {"table": ""}, *images]
    before += [{"file": "code_maps.json"}, {"table": ""}, *maps, *SOURCE]
    before += [{"file": "samples.json"}, {"table": ""}, *samples]

    def make(i: int) -> dict:
        row = {"image": i % 5, "address": f"{16 * i + 4096 * i:#x}", "offset": f"{16 * i:#x}"}
        return row | {"bytes": 16, "function": f"_Z{i}"}

    return rows(n, "symbols.json", make, before)


def calls(n: int) -> bytes:
    row = {"calls": 1, "total_cycles": 1, "self_cycles": 1}
    return rows(
        n, "function_calls.json", lambda i: row | {"caller": f"{i}", "function": f"{i + 1}"}
    )


def waits(n: int) -> bytes:
    return rows(n, "waits.json", lambda i: {"what": i, "function": "", "waker": "", "waits": 1})


def many_runs(n: int) -> bytes:
    runs = {f"{i:x}": META for i in range(n // 200)}
    return seal(['{"file":"samples.json"}'], META | {"runs": runs})


def many_warnings(n: int) -> bytes:
    return seal([], META | {"warnings": [{}] * (n // 4)})


def events(n: int, data: Callable[[int], bytes], text: str | None = None) -> bytes:
    """Returns an export with pages full of events."""
    ring = trace_export.Ring(0)
    for i in range(n * 3 // 4 // (8 + len(data(0)))):
        ring.add(10**9 + i, data(i))
    kinds = trace_export.KINDS
    files = trace_export.files([ring], {}, kinds)
    if text:
        for row in files["trace_events.json"]:
            row["format"] = text
    lines = []
    for file, of_file in files.items():
        lines += [{"file": file}, {"table": ""}, *of_file]
    return seal(lines)


def small_events(n: int) -> bytes:
    text = 'name: a\nID: 1\nformat:\n\nprint fmt: "%d", 1'
    return events(n, lambda i: trace_export.CONTEND.data(12, i, 0)[:8], text)


def open_slices(n: int) -> bytes:
    """Half of the events begin slices. The others end none, or one of another thread."""
    half = n * 3 // 4 // 32 // 2

    def data(i: int) -> bytes:
        if i < half:
            return trace_export.CONTEND.data(12, i, 0)
        if i % 2:
            return trace_export.CONTENDED.data(i, 0, 0)
        return trace_export.EXIT.data(12, 0, 0)

    return events(n, data)


def gaps_between_events(n: int) -> bytes:
    """Every second event is of an unknown kind, so it is lost."""
    data = trace_export.CONTEND.data(12, 0, 0)
    return events(n, lambda i: data if i % 2 else b"\5\5" + data[2:])


def long_format(n: int) -> bytes:
    field = "\tfield:u64 a{};\toffset:8;\tsize:8;\tsigned:0;"
    fields = "\n".join(field.format(i) for i in range(n // 200))
    text = f'name: a\nID: 1\nformat:\n{fields}\n\nprint fmt: "%d", ' + "(" * 500 + "1" + ")" * 500
    return events(n // 2, lambda i: trace_export.CONTEND.data(12, i, 0), text)


def long_expression(n: int) -> bytes:
    text = 'name: a\nID: 1\nformat:\n\nprint fmt: "%d", ' + "+".join(["1"] * 900)
    return events(n // 8, lambda i: trace_export.CONTEND.data(12, i, 0), text)


def many_cpus(n: int) -> bytes:
    before = [{"file": "trace_events.json"}, {"table": ""}, trace_export.CONTEND.row()]
    return rows(
        n, "trace_cpus.json", lambda i: {"cpu": i % 4096, "first": 0, "next": 1 << 62}, before
    )


def piece(number: object, nr: object, place: str, text: str, mark: str = MARK) -> str:
    head = f"export-{mark} {number} {nr}{place} {text}"
    return f"{head} {zlib.crc32(head.encode()):08x}\n"


def console(n: int, make: Callable[[int], str]) -> bytes:
    found, left = [ANNOUNCED], n
    for i in itertools.count():
        found.append(make(i))
        left -= len(found[-1])
        if left <= 0:
            return "".join(found).encode()


def sparse_pieces(n: int) -> bytes:
    return console(n, lambda i: piece(1, 4_000_000_000 - 3 * i, "=", "{}"))


def repeated_pieces(n: int) -> bytes:
    return console(n, lambda i: piece(1, 0, "=", f"{i}"))


def endless_line(n: int) -> bytes:
    return console(n, lambda i: piece(1, i, "<-"[i > 0], "[" * 300))


def many_marks(n: int) -> bytes:
    def make(i: int) -> str:
        mark = f"{i:016x}"
        return ANNOUNCED.replace(MARK, mark) + piece(1, 0, "=", "{}", mark)

    return console(n, make)


def begun_pieces(n: int) -> bytes:
    return (ANNOUNCED + f"export-{MARK} 1 1= " * (n // 30)).encode() + b" " * 99


def digits(n: int) -> bytes:
    return f"{ANNOUNCED}export-{MARK} {'1' * n}".encode()


def many_starts(n: int) -> bytes:
    return b"x\n" + b'{"export":\n' * (n // 11)


def many_ends(n: int) -> bytes:
    end = b'{"end":1,"bytes":1,"crc32":"00000000","lost_lines":'
    return compact(META).encode() + b"\n" + end * (n // len(end))


REPORTS = ["report", "report --format csv", "diff"]
STACKS = ["report --by task,function", "folded", "stacks", "stacks --stap", "speedscope"]
STACKS += ["callgrind", "perf-data", "perf-data --each", "pprof"]
EVENTS = ["chrome", "perf-data --events", "trace-dat", "ftrace"]
SHAPES: dict[Callable[[int], bytes], list[str]] = {
    **dict.fromkeys([smallest_rows, small_rows, small_dicts, other_columns], REPORTS),
    **dict.fromkeys([many_tables, nested_rows], REPORTS),
    **dict.fromkeys([long_lists, long_dict, duplicate_keys, many_warnings], REPORTS),
    giant_number: ["folded", *REPORTS],
    **dict.fromkeys([long_names, other_addresses, recursion, many_samples], STACKS),
    other_names: ["callgrind", *STACKS],
    **dict.fromkeys([deep_code_maps, many_symbols], ["perf-data", *STACKS]),
    **dict.fromkeys([many_images, many_runs], STACKS),
    calls: ["callgrind --calls", "report"],
    waits: REPORTS,
    gaps_between_events: ["trace-dat", *EVENTS],
    **dict.fromkeys([small_events, open_slices, long_format], EVENTS),
    **dict.fromkeys([long_expression, many_cpus], EVENTS),
    **dict.fromkeys([sparse_pieces, repeated_pieces, endless_line, many_marks], ["report"]),
    **dict.fromkeys([begun_pieces, digits, many_starts, many_ends], ["report"]),
}
