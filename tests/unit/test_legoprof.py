# SPDX-License-Identifier: BSD-2-Clause
"""Tests legoprof on exports that are made here: intact ones, and damaged ones."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import guest_memory
import legoprof
from legoprof_shapes import META, seal
from profiles import export as profile_export

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
RUN = {"qemu": ["QEMU 7.2"], "icount": True}
READ = {"syscall": "sys_read", "calls": 40000, "errors": 0, "cpu_ns": 40000 * 750}
OPEN = {"syscall": "sys_openat", "calls": 3, "errors": 1, "cpu_ns": 4000}
SAMPLE = {
    "cpu": 0,
    "samples": 7,
    "pid": 1,
    "tid": 1,
    "comm": "a b",
    "class": "kernel",
    "syscall": "read",
    "irqs_off": 0,
    "truncated": None,
    "kernel": ["0xffffffff81000010", "0xffffffff81000021"],
    "user": ["0x0000000000401000"],
}


def text(calls=(READ, OPEN), meta=META, run=RUN, samples=(SAMPLE,), lost=0) -> bytes:
    lines = [{"file": "strace.json"}, {"table": "Kernel strace"}, *calls]
    lines += [{"note": "Calls of: all"}]
    lines += [{"file": "samples.json"}, {"table": "Samples"}, *samples]
    return seal(lines, meta, lost, run)


@pytest.fixture
def write(tmp_path):
    """Writes a file and returns its path."""
    names = iter("abcdefgh")

    def write_file(data: bytes) -> str:
        path = tmp_path / next(names)
        path.write_bytes(data)
        return str(path)

    return write_file


def run(capsys, *argv: str) -> tuple[int, str, str]:
    status = legoprof.main(list(argv))
    out, err = capsys.readouterr()
    return status, out, err


def test_report(write, capsys):
    status, out, err = run(capsys, "report", write(text()))
    assert (status, err) == (0, "")
    assert out.splitlines()[1:] == [
        "Kernel strace",
        "syscall     calls  errors    cpu_ns",
        "sys_read    40000       0  30000000",
        "sys_openat      3       1      4000",
        "Calls of: all",
    ]


@pytest.mark.parametrize("top", ["-3", "0", "1.5", "x"])
def test_report_refuses_a_top_that_is_no_number_of_rows(write, capsys, top):
    with pytest.raises(SystemExit):
        run(capsys, "report", write(text()), "--top", top)
    assert f"--top: {top} is not a number of rows, 1 or more" in capsys.readouterr().err


def test_rows_with_a_column_called_file(write, capsys):
    """Such a row is not the begin of another file."""
    path = write(text(calls=[READ | {"file": "/bin/a"}, READ | {"file": "/bin/b"}]))
    _, out, _ = run(capsys, "report", path, "--table", "strace", "--format", "csv")
    assert [line.split(",")[-1] for line in out.splitlines()] == ["file", "/bin/a", "/bin/b"]


def test_report_as_json_and_csv(write, capsys):
    path = write(text())
    _, out, _ = run(capsys, "report", path, "--table", "strace", "--format", "json", "--top", "1")
    assert json.loads(out) == READ
    argv = "--table", "strace", "--format", "csv", "--sort", "errors"
    _, out, _ = run(capsys, "report", path, *argv)
    assert out.splitlines() == [
        "syscall,calls,errors,cpu_ns",
        "sys_openat,3,1,4000",
        "sys_read,40000,0,30000000",
    ]


def test_line_ends_of_a_serial_line(write, capsys):
    data = text().replace(b"\n", b"\r\n")
    assert run(capsys, "report", write(data))[0::2] == (0, "")


def test_log_of_a_console(write, capsys):
    """A log may have other lines between those of an export. legoprof reads the last export."""
    older = text((OPEN,)).splitlines(keepends=True)
    lines = text().splitlines(keepends=True)[:-1]
    for at in 5, 3, 1:
        lines.insert(at, b"[    1.234567] something else\n")
    log = b"".join([b"lego:~# cat export\n", *older, b"\n", *lines, b"[    2.0] reboot\nbye\n"])
    expected = run(capsys, "report", write(text()))
    assert run(capsys, "report", write(log.replace(b"\n", b"\r\n"))) == expected
    assert "checksum is wrong" in run(capsys, "report", write(log.replace(b"40000", b"40001")))[2]


def test_equal_runs(write, capsys):
    assert run(capsys, "diff", write(text()), write(text())) == (0, "no difference\n", "")


def test_three_instructions_more(write, capsys):
    slower = READ | {"cpu_ns": READ["cpu_ns"] + 3 * 40000}
    argv = "diff", write(text()), write(text((slower, OPEN)))
    line = "sys_read: +3 instructions a call (+0.4 %), 40000 calls\n"
    assert run(capsys, *argv) == (1, line, "")
    assert run(capsys, *argv, "--fail-above", "0.5%") == (0, line, "")
    assert run(capsys, *argv, "--fail-above", "0.3") == (1, line, "")
    faster = "diff", *reversed(argv[1:])
    assert run(capsys, *faster)[0] == 1
    assert run(capsys, *faster, "--fail-above", "0.1%")[0] == 0


def with_operation(cost: int, functions: object, user: int = 100, **run) -> bytes:
    """Returns an export with what `make check-perf` adds, and an account of the whole machine."""
    accounts = {"owner": "user", "cycles": user}
    row = {"operation": "pipe", "rounds": 200, "instructions": cost}
    lines = [{"operations": [row]}, {"functions": functions}]
    more = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return with_table("accounts.json", [accounts], META, RUN | run) + more


def test_an_operation_and_the_code(write, capsys):
    """Code and accounts explain a difference, but are none by themselves."""
    code = {"f": [10, 1], "g": [20, 2], "gone": [5, 3]}
    old = write(with_operation(4000, code))
    other = {"f": [11, 7], "g": [20, 8], "h": [5, 3]}
    same = write(with_operation(4000, other, user=102))
    assert run(capsys, "diff", old, same) == (0, "no difference\n", "")
    status, out, _ = run(capsys, "diff", old, write(with_operation(4200, other, user=102)))
    assert (status, out.splitlines()) == (
        1,
        [
            "operation pipe: +1 instructions a round (+5.0 %), 200 rounds",
            "account user: 100 -> 102 cycles (+2, +2.0 %)",
            "code that differs: f (+1), g, gone (-5), h (+5)",
        ],
    )
    assert "pipe" in run(capsys, "report", old, "--table", "operations")[1]
    for damaged in 3, {"f": 3}, {"f": ["x", 1]}:
        out = run(capsys, "diff", old, write(with_operation(4200, damaged)))[1]
        assert out.startswith("operation pipe: +1 ") and "code" not in out
    status, _, err = run(capsys, "diff", old, write(with_operation(4000, code, program="x")))
    assert status == 2 and "not comparable: program was None, is x" in err


def test_counts_that_differ(write, capsys):
    more = READ | {"calls": 40001, "cpu_ns": 40001 * 750}
    new = write(text((more, {**OPEN, "errors": 3, "syscall": "sys_open"})))
    status, out, _ = run(capsys, "diff", write(text()), new)
    assert status == 1
    assert out.splitlines() == [
        "sys_open: 0 -> 3 calls (+3)",
        "sys_openat: 3 -> 0 calls (-3, -100.0 %)",
        "sys_read: 40000 -> 40001 calls (+1, +0.003 %)",
        "sys_open: 0 -> 3 errors (+3)",
        "sys_openat: 1 -> 0 errors (-1, -100.0 %)",
    ]


@pytest.mark.parametrize("key", ["compiler", "clock", "cpus", "qemu"])
def test_not_comparable(write, capsys, key):
    is_host = key == "qemu"
    other = text(run={**RUN, key: "x"}) if is_host else text(meta={**META, key: "x"})
    status, _, err = run(capsys, "diff", write(text()), write(other))
    assert status == 2 and f"not comparable: {key} was" in err


def with_heatmap(samples: dict[str, int]) -> bytes:
    rows = [{"function": name, "samples": nr} for name, nr in samples.items()]
    return with_table("heatmap.json", rows)


def with_table(file: str, rows: list[dict], meta=META | {"clock": "TSC"}, run=None) -> bytes:
    """Returns an export with one table, by default of a run without -icount."""
    return seal([{"file": file}, {"table": file}, *rows], meta, run=run)


def test_samples_that_moved(write, capsys):
    """
    2 % of the time moves from one function to another. The changes of `h` and `rare` are within
    chance, and idle time does not count.
    """
    old = {"f": 10000, "g": 10000, "h": 30000, "rare": 9, "cpu_idle": 70000}
    new = {"f": 11000, "g": 9000, "h": 30100, "rare": 3, "cpu_idle": 10}
    status, out, _ = run(capsys, "diff", write(with_heatmap(old)), write(with_heatmap(new)))
    assert status == 1
    assert out.splitlines() == [
        "f: 20.00 -> 21.95 % of samples (+1.96 +-0.26)",
        "g: 20.00 -> 17.96 % of samples (-2.03 +-0.25)",
    ]
    twice = {name: 2 * nr for name, nr in old.items()}
    argv = "diff", write(with_heatmap(old)), write(with_heatmap(twice))
    assert run(capsys, *argv)[:2] == (0, "no difference\n")


def test_callgrind_of_calls(write, capsys):
    row = {"caller": "f", "function": "g", "calls": 40, "total_cycles": 900, "self_cycles": "300"}
    rows = [row, row | {"caller": "h", "calls": 2}, row | {"calls": None}]
    path = write(with_table("function_calls.json", rows))
    status, out, err = run(capsys, "callgrind", "--calls", path)
    assert status == 0 and "1 damaged rows are left out" in err
    assert "fn=g\n0 600\n" in out and "fn=f\n0 0\ncfi=???\ncfn=g\ncalls=40 0\n0 900\n" in out
    assert "cfn=g\ncalls=2 0\n0 900\n" in out and out.endswith("totals: 600\n")
    status, _, err = run(capsys, "callgrind", "--calls", write(text()))
    assert status == 2 and "has no calls" in err


def test_folded_without_a_kernel(write, capsys):
    status, out, _ = run(capsys, "folded", write(text()))
    assert status == 0
    assert out == "a b;0x401000;[read];0xffffffff81000020;0xffffffff81000010 7\n"


def test_systemtap(write, capsys):
    _, out, _ = run(capsys, "stacks", "--stap", write(text()))
    assert out.splitlines() == [
        " 0xffffffff81000010 : 0xffffffff81000010 [kernel]",
        " 0xffffffff81000021 : 0xffffffff81000021 [kernel]",
        " 0x401000 : 0x401000 [a b]",
        "\t7",
    ]


def test_views(write, capsys):
    rows = SAMPLE, SAMPLE | {"cpu": 1, "samples": 2}, SAMPLE | {"comm": "c", "samples": 1}
    path = write(text(samples=rows))
    _, out, _ = run(capsys, "report", path, "--by", "task,cpu", "--format", "csv")
    assert out.splitlines() == [
        "samples,percent,task,cpu",
        "7,70.00,a b,0",
        "2,20.00,a b,1",
        "1,10.00,c,0",
    ]
    _, out, _ = run(capsys, "report", path, "--by", "function", "--top", "1")
    assert out.splitlines()[3:] == ["     10   100.00  0xffffffff81000010", "total: 10"]
    assert "stacks have no 'x', but run, task" in run(capsys, "report", path, "--by", "x")[2]
    assert "no column is called 'x'" in run(capsys, "report", path, "--sort", "x")[2]


def test_merge(write, capsys, tmp_path):
    """Each row of a merged export has the label of its run, and commands read it as any other."""
    one, two = write(text()), write(text((OPEN,), samples=(SAMPLE | {"samples": 5},)))
    merged = str(tmp_path / "merged")
    assert run(capsys, "merge", one, f"x y={two}", "-o", merged) == (0, "", "")
    argv = "report", merged, "--table", "strace", "--format", "csv"
    status, out, err = run(capsys, *argv)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "run,syscall,calls,errors,cpu_ns",
        "a,sys_read,40000,0,30000000",
        "a,sys_openat,3,1,4000",
        "x y,sys_openat,3,1,4000",
    ]
    assert run(capsys, "report", one, f"x y={two}", *argv[2:])[1] == out
    _, out, _ = run(capsys, "folded", merged)
    assert [line.partition(";")[0] + line[-2:] for line in out.splitlines()] == ["a 7", "x y 5"]
    assert "is merged already" in run(capsys, "merge", merged, one, "-o", merged)[2]
    assert "compare each by itself" in run(capsys, "diff", merged, merged)[2]
    assert "label 'a' is not unique" in run(capsys, "merge", one, one, "-o", merged)[2]


def test_merge_keeps_warnings(write, capsys, tmp_path):
    merged = str(tmp_path / "merged")
    lost, tsc = write(text(lost=5)), write(with_heatmap({"f": 1}))
    run(capsys, "merge", lost, tsc, "-o", merged)
    assert f"{merged}: a: 5 lines had no room" in run(capsys, "report", merged)[2]
    assert "is not complete" in run(capsys, "diff", merged, merged)[2]


def test_merged_machines(write, capsys, tmp_path):
    """Runs of different kernels, or with different sampling rates, are not converted together."""
    merged = str(tmp_path / "merged")
    run(capsys, "merge", write(text()), write(text(meta=META | {"build_id": "cd"})), "-o", merged)
    assert profile_export.load(merged).runs()["b"]["build_id"] == "cd"
    export = profile_export.load(merged)
    names = legoprof.Names(export, [], [])
    with pytest.raises(legoprof.ExportError, match="of different kernels"):
        names.only_kernel()
    export.files["source.json"] = [profile_export.Table("", [{"hz": 10, "other_rate_ns": 5000000}])]
    args = legoprof.parse(["folded", merged])
    legoprof.read_stacks(export, args)
    assert "for 0.005 s samples were taken at another rate, by profile" in capsys.readouterr().err
    export.files["source.json"] = [profile_export.Table("", [{"hz": 10}, {"hz": 20}])]
    with pytest.raises(legoprof.ExportError, match="different rates"):
        legoprof.read_stacks(export, args)


def test_merged_runs_are_compared(write, capsys, tmp_path):
    """A change that may be chance in one run is significant in ten merged ones."""
    old, new = with_heatmap({"f": 100, "g": 100}), with_heatmap({"f": 120, "g": 80})
    paths = []
    for i, data in enumerate((old, new)):
        assert run(capsys, "diff", write(old), write(data))[1] == "no difference\n"
        one, paths = write(data), [*paths, str(tmp_path / str(i))]
        run(capsys, "merge", *(f"{i}={one}" for i in range(10)), "-o", paths[-1])
    status, out, _ = run(capsys, "diff", *paths)
    assert status == 1 and out.startswith("f: 50.00 -> 60.00 % of samples (+10.00 ")
    assert run(capsys, "diff", *paths, "--fail-above", "10.1%")[0] == 0


def test_flame_graph_needs_its_program(write, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(legoprof.flamegraph, "DEBIAN", "/nothing")
    assert "apt-get install" in run(capsys, "flamegraph", write(text()))[2]
    assert "merge others" in run(capsys, "flamegraph", "a", "b", "c")[2]


def test_flame_graph_without_idle_time(write, capsys, monkeypatch):
    idle = SAMPLE | {"class": "idle", "samples": 90}
    path = write(text(samples=(SAMPLE, idle)))
    drawn = []
    monkeypatch.setattr(legoprof.flamegraph, "draw", lambda *args: drawn.append(args) or b"")
    for argv in [], ["--idle"]:
        assert run(capsys, "flamegraph", path, *argv) == (0, "", "")
    found = [(heading, runs[0][0].total()) for runs, heading, *_ in drawn]
    assert found == [("a, without 90 idle samples", 7), ("a", 97)]


def test_two_columns():
    """The weights of the old run are scaled to the total of the new one."""
    old, new = {("a", "b;c"): 30, ("d",): 10}, {("a", "b;c"): 10, ("e",): 10}
    data = legoprof.flamegraph.two_columns(*map(legoprof.flamegraph.Counter, (old, new)))
    assert data == "a;b\ue002c 15.00 10\nd 5.00 0\ne 0.00 10\n"


def test_progress(write, capsys, monkeypatch):
    """The progress of long work is shown only on a terminal."""
    monkeypatch.setattr(legoprof.profiles.progress, "PATIENCE_S", -1)
    path = write(text())
    assert run(capsys, "folded", path)[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert f"\rlegoprof: reading {path}: 0 %\r" in run(capsys, "folded", path)[2]


def test_pipe(write, capsys):
    """A pipe cannot be mapped, but read."""
    data = text()
    read_end, write_end = os.pipe()
    os.write(write_end, data)
    os.close(write_end)
    found = run(capsys, "folded", f"/dev/fd/{read_end}")
    os.close(read_end)
    assert found[:2] == run(capsys, "folded", write(data))[:2]


def test_help(capsys):
    with pytest.raises(SystemExit) as end:
        legoprof.main([])
    assert end.value.code == 0
    assert capsys.readouterr().out.count("\n  legoprof ") == 3


def test_runs_in_any_thread(write):
    """Only the main thread may set signal handlers, and xdist may run tests in another one."""
    with ThreadPoolExecutor() as pool:
        assert pool.submit(legoprof.main, ["report", str(write(text()))]).result() == 0


def test_folded_refuses_other_files_as_kernel(write, capsys):
    status, _, err = run(capsys, "folded", write(text()), "--kernel", write(b"nothing"))
    assert status == 2 and "is not an ELF file" in err


def test_newer_version(write, capsys):
    status, _, err = run(capsys, "report", write(text(meta={**META, "export": 2})))
    assert status == 2 and "of version 2: this tool knows 1" in err


def test_no_export(write, capsys):
    for data in b"", b"\n", b"nothing\n", b"[1]\n", bytes(range(256)):
        status, _, err = run(capsys, "report", write(data))
        assert status == 2 and "is not an export" in err


def test_truncated(write, capsys):
    """A truncated export is refused. --damaged reads its complete lines, but diff refuses it."""
    data = text()
    path = write(data[: data.index(b'"sys_openat"') + 20])
    status, out, err = run(capsys, "report", path)
    assert (status, out) == (2, "") and "has no end" in err and "--damaged" in err
    status, out, err = run(capsys, "report", path, "--damaged")
    assert status == 0 and "sys_read" in out and "sys_openat" not in out
    assert "has no end" in err and "1 damaged lines" in err
    status, _, err = run(capsys, "diff", path, path, "--damaged")
    assert status == 2 and "is not complete" in err


def test_file_that_is_truncated_while_it_is_read(write):
    path = write(text())
    data = profile_export.contents(path)
    os.truncate(path, 0)
    assert data[:] == text()


def test_large_file(write, capsys, monkeypatch):
    """It is mapped."""
    monkeypatch.setattr(profile_export, "MAX_READ_BYTES", 0)
    path = write(text().replace(b"\n", b"\r\n"))
    assert "sys_openat" in run(capsys, "report", path)[1]
    path = write(text())
    assert not isinstance(profile_export.contents(path), bytes)
    assert "sys_openat" in run(capsys, "report", path)[1]


def test_flipped_bit(write, capsys):
    path = write(text().replace(b"40000", b"40001"))
    status, out, err = run(capsys, "report", path)
    assert (status, out) == (2, "") and "checksum is wrong" in err
    status, out, err = run(capsys, "report", path, "--damaged")
    assert status == 0 and "40001" in out and "numbers may be wrong" in err


def test_lost_lines(write, capsys):
    assert "5 lines had no room" in run(capsys, "report", write(text(lost=5)))[2]


def test_memory_has_a_hole():
    mib = 1 << 20
    assert guest_memory.file_offset(5 * mib, 512 * mib) == 5 * mib
    assert guest_memory.file_offset((4096 + 1) * mib, 4096 * mib) == (2048 + 1) * mib
    assert guest_memory.file_offset(1024 * mib, 4096 * mib) == 1024 * mib


def test_header_is_that_of_the_kernel():
    """Version and size agree with struct profile_export."""
    header = SCRIPTS.parent / "kernel/profile/include/profile/abi.h"
    source = header.read_text()
    assert f"PROFILE_EXPORT_VERSION\t   {guest_memory.VERSION}\n" in source
    assert guest_memory.HEADER.size == 8 + 4 * 4 + 8


def test_formats_that_need_the_rate(write, capsys, tmp_path):
    for name in "perf-data", "pprof":
        status, _, err = run(capsys, name, write(text()), "-o", str(tmp_path / "out"))
        assert status == 2 and "how often samples were taken" in err


@pytest.mark.parametrize("name", ["folded", "stacks", "speedscope", "callgrind"])
def test_damaged_samples(write, capsys, tmp_path, name):
    """Rows with a missing key, or with a value of a wrong type, are left out and counted."""
    bad = [{k: v for k, v in SAMPLE.items() if k != key} for key in ("samples", "kernel", "comm")]
    bad += [SAMPLE | {"samples": "x"}, SAMPLE | {"kernel": 5}, SAMPLE | {"user": ["y"]}]
    path = write(text(samples=(SAMPLE, *bad)))
    status, _, err = run(capsys, name, path, "-o", str(tmp_path / "o"))
    assert status == 0 and err.count(f"{len(bad)} damaged rows are left out") == 1
    assert "401000" in (tmp_path / "o").read_text()


@pytest.mark.parametrize(
    "name", ["folded", "stacks", "speedscope", "callgrind", "report", "pprof", "perf-data"]
)
def test_chains_that_were_given_up(write, capsys, tmp_path, name):
    """A long run keeps of rare user code of ended programs only how often it was sampled."""
    bare = SAMPLE | {"class": "user", "kernel": [], "user": [], "syscall": None, "pid": 0}
    body = text(samples=(SAMPLE, bare | {"tid": 0, "truncated": "to make room"}))
    rate = {"cpu": 0, "hz": 1000, "expected": 14, "taken": 14, "lost": 0}
    lines = [*body.decode().splitlines()[1:-2], {"file": "source.json"}, {"table": "Sources"}, rate]
    path = write(seal(lines, run=RUN))
    target = [] if name == "report" else ["-o", str(tmp_path / "out")]
    status, _, err = run(capsys, name, path, *target)
    assert status == 0 and "damaged" not in err
