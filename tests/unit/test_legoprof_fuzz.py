# SPDX-License-Identifier: BSD-2-Clause
"""On damaged exports, legoprof never prints a wrong number and never a traceback.

For a longer run with other damage, set FUZZ_ROUNDS=100000 and FUZZ_SEED=7 in the environment. With
FUZZ_BYTES=10000000, all commands read hostile exports of that size.
"""

from __future__ import annotations

import base64
import os
import random
import sys
import tracemalloc
import zlib

import pytest
import trace_export
from legoprof_shapes import SHAPES, deep_stacks, events, seal, small_dicts

from test_legoprof import META, OPEN, READ, SAMPLE, legoprof, profile_export

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", 40))
SEED = int(os.environ.get("FUZZ_SEED", 15))
SAMPLE = SAMPLE | {"code_map": 2}
WAIT = {
    **{"cpu": 0, "waits": 2, "asleep_ns": 5000, "ready_ns": 70, "longest_ns": 4000, "pid": 1},
    **{"comm": "a b", "what": "futex", "address": None, "user": ["0x0000000000401000"]},
    **{"kernel": ["0xffffffff81000010"], "waker_comm": "init"},
    **{"waker_kernel": ["0xffffffff81000010"], "waker_user": ["0x401000"]},
    **{"code_map": 1, "waker_code_map": 2},
}
FILES = {
    "strace.json": [READ, OPEN],
    "source.json": [{"cpu": 0, "source": "timer", "hz": 997, "expected": 7, "taken": 7}],
    "samples.json": [SAMPLE, SAMPLE | {"cpu": 1, "class": "idle", "user": [], "samples": 90}],
    "heatmap.json": [{"function": "f", "samples": 7}, {"function": "g", "samples": 90}],
    "waits.json": [{"what": "futex", "function": "f", "waker": "init", "waits": 2}],
    "waits_stacks.json": [WAIT, WAIT | {"waker_kernel": None, "waker_user": None}],
    "images.json": [{"image": 1, "path": "/bin/a", "bytes": 9, "build_id": "0a1b"}],
    "code_maps.json": [
        {"code_map": i + 1, "parent": i, "image": i, "start": "0x400000", "end": "0x402000"}
        | {"offset": "0x1000"}
        for i in range(2)
    ],
    "symbols.json": [  # of no stack here
        {"image": i, "address": "0x7fff000", "offset": "0x7fff000", "bytes": 9, "function": "h"}
        for i in range(2)
    ],
    "points.json": [{"point": "p", "pairs": 3, "oncpu_ns": 40, "pairs_by_log2_cycles": {"7": 3}}],
    **trace_export.small(has_gaps=False),
}
CALLS = {"caller": "f", "function": "g", "calls": 4, "total_cycles": 90, "self_cycles": 30}
TOUCHED = {"cpu": 0, "pages": 3, "bytes": 12288, "pid": 1, "comm": "a", "kind": "heap"}
TOUCHED |= {"copied": 0, "syscall": None, "code_map": 1, "user": ["0x401000"]}
FILES["memory_stacks.json"] = [TOUCHED, TOUCHED | {"copied": 1, "user": []}]
ALLOCATED = {"allocator": "pages", "comm": "a", "place": "f (a.c:1)"}
ALLOCATED["kernel"] = ["0xffffffff81000009"]
ALLOCATED |= {f"{key}_{unit}": 9 for key in ("live", "allocated") for unit in ("bytes", "objects")}
FILES["kernel_stacks.json"] = [ALLOCATED, ALLOCATED | {"comm": None, "kernel": None}]
FREED = ALLOCATED | {"freed_bytes": 9, "freed_objects": 9, "freed_in": "g < h"}
FILES["kernel_freed_stacks.json"] = [FREED, FREED | {"comm": None, "kernel": None, "place": None}]
USED = {"pid": 1, "ns": 9, "start": "0x400000", "end": "0x402000", "accessed_percent": 90}
USED |= {"written_percent": 5}
FILES["working_set_history.json"] = [USED, USED | {"ns": 12}, USED | {"start": "0x401000"}]
FILES["function_calls.json"] = [CALLS, CALLS | {"caller": "h"}]
COMMANDS = [
    ["report"],
    ["report", "--format", "csv", "--sort", "samples"],
    ["report", "--by", "task,function"],
    ["report", "--by", "run,wait", "--waits", "--format", "json"],
    ["folded", "--wakers"],
    ["stacks"],
    ["stacks", "--stap"],
    ["speedscope"],
    ["callgrind", "--waits"],
    ["callgrind", "--calls"],
    ["perf-data"],
    ["perf-data", "--each"],
    ["pprof"],
    ["pprof", "--memory"],
    ["folded", "--memory"],
    ["pprof", "--kernel-memory"],
    ["working-set"],
    ["folded", "--kernel-memory", "--bytes", "peak"],
    ["folded", "--kernel-memory", "--bytes", "freed"],
    ["page"],
    ["folded", "--pid", "1", "--cpu", "0", "--no-idle"],
]
EVENT_COMMANDS = [["perf-data", "--events"], ["trace-dat"], ["ftrace"], ["chrome"]]
EVENT_COMMANDS += [["ftrace", "--syscall", "read", "--tid", "11", "--to", "2"]]
COMMANDS += EVENT_COMMANDS
BINARY = ("perf-data", "pprof", "trace-dat", "page")


def whole(meta: dict, files: dict[str, list[dict]]) -> bytes:
    lines: list[dict] = []
    for name, rows in files.items():
        lines += [{"file": name}, {"table": name}, *rows]
        lines += [{"note": "n"}] if name != "images.json" else []  # its notes are warnings
    return seal(lines, meta)


@pytest.fixture
def run(tmp_path, capsysbinary):
    """Returns a function that runs legoprof, for (status, what it printed or wrote, stderr)."""
    path, output = tmp_path / "run.lego", tmp_path / "out"

    def run_legoprof(data: bytes, command: list[str]) -> tuple[int, bytes, str]:
        path.write_bytes(data)
        output.unlink(missing_ok=True)
        argv = [command[0], str(path), *command[1:]]
        argv += ["-o", str(output)] if command[0] in BINARY else []
        status = legoprof.main(argv)
        out, err = capsysbinary.readouterr()
        return status, out + (output.read_bytes() if output.exists() else b""), err.decode()

    return run_legoprof


def must_be_one_line(status: int, out: bytes, err: str, path: str = "run.lego") -> None:
    assert status == 2 and not out
    assert err.startswith("legoprof: error: ") and err.count("\n") == 1 and path in err, err


def damage(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(rng.randint(1, 4)):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.randrange(7)
        line = bytearray(lines[i])
        if kind == 0:
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == 1:
            lines.insert(i, lines[j])
        elif kind == 2 and line:
            line[rng.randrange(len(line))] ^= 1 << rng.randrange(8)
        elif kind == 3 and line:
            line[rng.randrange(len(line))] = rng.randrange(256)
        elif kind == 4:
            del line[rng.randrange(len(line) + 1) :]
        elif kind == 5 and len(lines) > 1:
            del lines[i]
            continue
        elif kind == 6:
            line[rng.randrange(len(line) + 1) :] = bytes(rng.randrange(256) for _ in range(9))
        if kind in (2, 3, 4, 6):
            lines[i] = bytes(line)
    return b"".join(lines)


def test_no_wrong_number(run):
    """The output for a damaged export equals that for the intact one, or is a one-line error."""
    rng, good = random.Random(SEED), whole(META, FILES)
    expected = [run(good, command) for command in COMMANDS]
    assert all(status == 0 and out and not err for status, out, err in expected)
    nr_refused = 0
    for i in range(ROUNDS):
        bad = damage(rng, good)
        bad = bad.replace(b"\n", b"\r\n") if i % 3 == 0 else bad
        at = i % len(COMMANDS)
        found = run(bad, COMMANDS[at])
        if found != expected[at]:
            must_be_one_line(*found)
            nr_refused += 1
    assert nr_refused > ROUNDS // 2


def test_damaged_keeps_complete_lines(run):
    """With --damaged, legoprof prints only rows of the intact export, and a warning."""
    rng, good = random.Random(SEED), whole(META, FILES)
    _, lines, _ = run(good, ["report", "--format", "json"])
    for i in range(ROUNDS):
        bad = good[: rng.randrange(len(good) - 1)]
        status, out, err = run(bad, ["report", "--format", "json", "--damaged"])
        if status:
            must_be_one_line(status, out, err)
        else:
            assert set(out.splitlines()) <= set(lines.splitlines()) and "has no end" in err
        status, _, err = run(bad, [*COMMANDS[i % len(COMMANDS)], "--damaged"])
        assert status == 2 or "numbers may be wrong" in err


def on_console(data: bytes) -> bytes:
    """Returns an export as the kernel prints it on the console, in pieces of 60 bytes."""
    lines = [MARKS]
    for line in data.splitlines():
        for at in range(0, len(line), 60):
            place = "-><="[2 * (at == 0) + (at + 60 >= len(line))]
            head = f"export-{MARK} 1 {len(lines) - 1}{place} ".encode() + line[at : at + 60]
            lines.append(b"[    1.000000] %b %08x" % (head, zlib.crc32(head)))
    return b"\n".join([*lines, b""])


MARK = "0123456789abcdef"
MARKS = f"[    0.5] profile: lines of exports begin with export-{MARK}".encode()


def test_console_keeps_complete_rows(run, tmp_path):
    """From a damaged log, --damaged reads most rows, all of them right and in their tables."""
    path = tmp_path / "run.lego"
    rng, log = random.Random(SEED), on_console(whole(META, FILES))
    command = ["report", "--format", "json"]
    status, expected, err = run(log, command)
    assert (status, expected, err) == (0, run(whole(META, FILES), command)[1], "")
    nr_all = nr_found = 0
    for _ in range(ROUNDS):
        bad = damage(rng, log)
        status, out, err = run(bad, command)
        if status:
            must_be_one_line(status, out, err)
        else:
            assert out == expected
        status, out, err = run(bad, [*command, "--damaged"])
        assert status in (0, 2)
        for name, rows in FILES.items() if status == 0 else []:
            found = profile_export.load(path, damaged=True).rows(name)
            assert all(row in rows for row in found), (name, found)
        nr_found += len(out.splitlines())
        nr_all += len(expected.splitlines())
    assert nr_found > nr_all * 0.6


ODD = [None, True, -1, 2**70, 1.5, 1e999, "", "x", "0x", "\ud800", "-9" * 30]
ODD += [[], [1], {}, {"a": []}, "9" * 5000, [[[1]]], "x" * 5000, {"a": {"b": 1}}]


def replace_something(rng: random.Random, value: object) -> object:
    """Returns the value with one of its parts removed or replaced by an odd one."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.2:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: replace_something(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        i = rng.randrange(len(value))
        return [*value[:i], replace_something(rng, value[i]), *value[i + 1 :]]
    return rng.choice(ODD)


def test_no_traceback(run, tmp_path):
    """Values may have any type although the checksum is right, as from a modified kernel."""
    rng, other = random.Random(SEED), tmp_path / "other"
    other.write_bytes(whole(META, FILES))
    for _ in range(ROUNDS):
        meta, files = META, {name: list(rows) for name, rows in FILES.items()}
        for _ in range(rng.randint(1, 3)):
            if rng.random() < 0.1:
                meta = replace_something(rng, META | {"runs": {"a": META}, "warnings": ["w"]})
            rows = files[rng.choice(list(files))]
            i = rng.randrange(len(rows))
            rows[i] = replace_something(rng, rows[i])
        if isinstance(meta, dict):
            data = whole(meta, files)
            for command in COMMANDS:
                status, out, err = run(data, command)
                assert all(line.startswith("legoprof: ") for line in err.splitlines())
                assert status == 0 or (status == 2 and not out and "legoprof: error: " in err)
            status, out, err = run(data, ["diff", str(other)])
            assert status in (0, 1, 2) and bool(out) == (status < 2)


def test_damaged_events(run):
    """Pages and formats may have wrong bytes although the checksum is right."""
    rng = random.Random(SEED)
    for i in range(ROUNDS):
        files = trace_export.small(has_gaps=False)
        for row in rng.sample(files["trace_pages.json"] + files["trace_events.json"], 5):
            key = "data" if "data" in row else "format"
            data = base64.b64decode(row[key]) if key == "data" else row[key].encode()
            data = bytearray(data)
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            row[key] = base64.b64encode(data) if key == "data" else data
            row[key] = row[key].decode("latin-1")
        for command in EVENT_COMMANDS:
            status, out, err = run(whole(META, files), command)
            assert status == 0 or (status == 2 and not out and "legoprof: error: " in err)


def test_lines_that_nest(run):
    data = b'{"export":' + b"[" * 200_000
    must_be_one_line(*run(data, ["report"]))


NR_BYTES = int(os.environ.get("FUZZ_BYTES", 60_000))
MAX_MEMORY = 36  # bytes, for a byte of the export
FEW_BYTES = 8 << 20


def must_be_lines(status: int, err: str) -> None:
    assert status in (0, 1, 2) and all(one.startswith("legoprof: ") for one in err.splitlines())
    assert all(len(one) < 1000 for one in err.splitlines())


def count_steps(run, data: bytes, command: list[str]) -> int:
    """Runs legoprof, and returns how many functions it has called."""
    nr = 0

    def step(*_: object) -> None:
        nonlocal nr
        nr += 1

    sys.setprofile(step)
    try:
        status, _, err = run(data, command)
    finally:
        sys.setprofile(None)
    must_be_lines(status, err)
    return nr


def peak_memory(run, data: bytes, command: list[str]) -> int:
    tracemalloc.start()
    try:
        run(data, command)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_steps_and_memory(run, tmp_path, shape):
    """Four times as large an export takes four times as many steps, and bounded memory."""
    commands = [command.split() for command in SHAPES[shape]]
    few, many = shape(NR_BYTES // 4), shape(NR_BYTES)
    if "FUZZ_BYTES" not in os.environ:
        commands = [c for c in commands if c == commands[0] or c == ["diff"]]
    for command in commands:
        command += [str(tmp_path / "run.lego")] if command == ["diff"] else []
        steps = [count_steps(run, data, command) for data in (few, many)]
        assert steps[1] < 4.5 * steps[0], (command, steps)
        peak = peak_memory(run, many, command)
        assert peak < MAX_MEMORY * NR_BYTES + FEW_BYTES, (command, peak)


@pytest.mark.parametrize(
    "command", ["folded", "stacks", "pprof", "callgrind", "speedscope", "perf-data"]
)
def test_memory_for_stacks(run, monkeypatch, command):
    """
    The text of a large export is not in memory, nor are rows of which there are stacks. Addresses
    that stacks share are there once.
    """
    data = deep_stacks(50 * NR_BYTES)
    monkeypatch.setattr(profile_export, "MAX_READ_BYTES", 0)
    peak = peak_memory(run, data, [command])
    assert peak < 1.9 * len(data), peak / len(data)


@pytest.mark.parametrize("command", ["perf-data --events", "trace-dat", "ftrace", "chrome"])
def test_memory_for_events(run, monkeypatch, command):
    """Neither a large export nor the output is in memory, except for the pages of trace.dat."""
    data = events(50 * NR_BYTES, lambda i: trace_export.KFREE.data(12, i, i))
    monkeypatch.setattr(profile_export, "MAX_READ_BYTES", 0)
    peak = peak_memory(run, data, [*command.split(), "-o", os.devnull])
    assert peak < 2.25 * len(data), peak / len(data)


def test_diff_has_one_export_in_memory(run, tmp_path):
    """Two exports of 10 MB take less than 300 MB, as one does."""
    data = small_dicts(10 * NR_BYTES)
    report, diff = (
        peak_memory(run, data, command)
        for command in (["report"], ["diff", str(tmp_path / "run.lego")])
    )
    assert diff < 1.2 * report, (diff / len(data), report / len(data))
