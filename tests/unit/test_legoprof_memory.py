# SPDX-License-Identifier: BSD-2-Clause
"""legoprof writes memory by call chain, and the kernel's memory by place."""

from __future__ import annotations

import gzip
import json

import pytest
from legoprof_shapes import seal
from test_legoprof import legoprof

TOUCHED = {
    **{"cpu": 0, "pages": 3, "bytes": 12288, "pid": 1, "comm": "a b", "kind": "heap"},
    **{"copied": 0, "syscall": None, "code_map": 0, "user": ["0x401000", "0x401101"]},
}
SITE = {
    **{"live_bytes": 640, "live_objects": 10, "allocated_bytes": 1280, "allocated_objects": 20},
    "place": "pipe_write (kernel/fs/pipe.c:20)",
}
MAPPED = TOUCHED | {"cpu": None, "pages": 0, "bytes": 0, "live_pages": 2, "live_bytes": 8192}
COPIED = TOUCHED | {"pages": 1, "bytes": 4096, "copied": 1, "syscall": "sys_read", "pid": 2}
LINES = [
    *({"file": "memory_chains.json"}, {"table": "Memory (all)"}),
    {"note": "not in the store: 2 pages of all threads, no room"},
    *({"file": "memory_stacks.json"}, {"table": "Memory touched first"}, TOUCHED, COPIED),
    *({"file": "memory.json"}, {"table": "Kernel Memory: pages (all)"}),
    SITE | {"place": "slab_create (kernel/mm/slab.c:9)", "live_bytes": 4096, "live_objects": 1},
    {"table": "Kernel Memory: pages by size"},
    {key: nr for key, nr in SITE.items() if key != "place"} | {"size_bytes": 4096},
    *({"table": "Kernel Memory: kmalloc (all)"}, SITE),
]


@pytest.fixture
def run(run_legoprof):
    """Returns a function that runs legoprof, for (status, output, stderr)."""
    return lambda *argv, lines=LINES: run_legoprof(seal(lines), *argv)


LOST = "2 of 6 pages were lost (33.33 %)\n"


def test_folded(run):
    """Weights are bytes, touched by programs, or live in the kernel."""
    status, data, err = run("folded", "--memory")
    chain = "a b;0x401100;0x401000"
    assert data.decode().splitlines() == [
        f"{chain};[heap] 12288",
        f"{chain};[sys_read];[heap, copied] 4096",
    ]
    assert (status, err) == (0, LOST)
    assert run("folded", "--memory", "--pid", "2")[1].endswith(b"[heap, copied] 4096\n")
    status, data, err = run("folded", "--kernel-memory")
    assert data.decode().splitlines() == [
        "pages;[slab_create (kernel/mm/slab.c:9)] 4096",
        "kmalloc;[pipe_write (kernel/fs/pipe.c:20)] 640",
    ]
    assert (status, err) == (0, "")


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Returns the fields of a message of protocol buffers, by number."""
    found: list[tuple[int, int | bytes]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7:
            length = varint()
            found.append((key >> 3, data[at : at + length]))
            at += length
        else:
            found.append((key >> 3, varint()))
    return found


def packed(data: bytes) -> list[int]:
    """Returns varints, read as those of a message with one field each."""
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


def profile(data: bytes) -> tuple[list[tuple[str, str]], list[list[int]]]:
    """Returns the sample types of a profile for pprof, and the values of its samples."""
    found = fields(gzip.decompress(data))
    strings = [body.decode() for field, body in found if field == 6]
    types = [dict(fields(body)) for field, body in found if field == 1]
    samples = [dict(fields(body)) for field, body in found if field == 2]
    assert all(sample[1] for sample in samples)  # a location at least
    return [(strings[one[1]], strings[one[2]]) for one in types], [packed(s[2]) for s in samples]


# Of a newer kernel: what one process had at its end, what one has now, and what nobody knows.
LIVE = [
    *({"file": "memory_stacks.json"}, {"table": "Memory touched first"}, MAPPED),
    TOUCHED | {"live_pages": 0, "live_bytes": 0},
    COPIED | {"live_pages": 1, "live_bytes": 4096},
    MAPPED | {"comm": "", "kind": "-", "user": [], "live_pages": 5, "live_bytes": 20480},
]


def test_live_memory_of_programs(run):
    _, data, _ = run("folded", "--memory", "--bytes", "live", lines=LIVE)
    assert data.decode().splitlines() == [
        "[unknown];[-] 20480",
        "a b;0x401100;0x401000;[heap] 8192",
        "a b;0x401100;0x401000;[sys_read];[heap, copied] 4096",
    ]
    folded = [run("folded", "--memory", *more, lines=LIVE)[1] for more in ([], BY_TOUCH)]
    assert folded[0] == folded[1] and folded[0].count(b"\n") == 2
    types, values = profile(run("pprof", "--memory", lines=LIVE)[1])
    assert len(types) == 4
    assert values == [[0, 0, 2, 8192], [3, 12288, 0, 0], [1, 4096, 1, 4096], [0, 0, 5, 20480]]
    status, _, err = run("folded", "--memory", "--bytes", "live")
    assert status == 2 and "does not say which memory was live" in err


BY_TOUCH = ["--bytes", "allocated"]


def test_growth(tmp_path, capsys):
    """What grew between two moments comes first, then what is less. Equal chains are left out."""
    old, new = tmp_path / "old.lego", tmp_path / "new.lego"
    other = MAPPED | {"user": ["0x402000"]}
    file, table, mapped, _, same, _ = LIVE
    *kernel, chain, before = CHAINS[len(LINES) :]
    lines = [file, table, mapped, other, same, *kernel, chain, before]
    old.write_bytes(seal(lines))
    grown_chain = chain | {"live_bytes": 1024, "allocated_bytes": 2048}
    lines = [mapped | {"live_bytes": 20480}, other | {"live_bytes": 4096}, same]
    lines = [file, table, *lines, *kernel, grown_chain, before]
    new.write_bytes(seal(lines))

    def grown(*argv: str) -> tuple[int, list[list[str]]]:
        status = legoprof.main(["diff", str(old), str(new), *argv])
        return status, [line.split() for line in capsys.readouterr().out.splitlines()]

    status, lines = grown("--memory")
    assert status == 1
    assert ["grown_bytes", "old_bytes", "new_bytes", "task", "chain"] in lines
    rows = [line for line in lines if "<" in line]
    assert rows[0][:3] == ["12288", "8192", "20480"]
    assert " ".join(rows[0][3:]) == "a b [heap] < 0x401000 < 0x401100"
    assert rows[1][:3] == ["-4096", "8192", "4096"] and len(rows) == 2
    assert len([line for line in grown("--memory", "--top", "1")[1] if "<" in line]) == 1
    _, lines = grown("--kernel-memory")
    (row,) = [line for line in lines if "<" in line]
    assert row[:4] == ["768", "256", "1024", "cat"]
    _, lines = grown("--kernel-memory", "--bytes", "allocated")
    assert [line[:3] for line in lines if "<" in line] == [["768", "1280", "2048"]]
    assert grown("--memory", *BY_TOUCH)[0] == 0  # nothing was touched meanwhile
    for argv, why in (
        (["--memory", "--fail-above", "2%"], "--fail-above is not for memory"),
        (["--pid", "1"], "choose with --memory"),
    ):
        assert legoprof.main(["diff", str(old), str(new), *argv]) == 2
        assert why in capsys.readouterr().err


def test_pprof_has_the_types_of_go(run):
    types, values = profile(run("pprof", "--kernel-memory")[1])
    kinds = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
    assert types == [(kind, "count" if "objects" in kind else "bytes") for kind in kinds]
    assert values == [[20, 1280, 1, 4096], [20, 1280, 10, 640]]
    types, values = profile(run("pprof", "--memory")[1])
    assert types == [("alloc_objects", "count"), ("alloc_space", "bytes")]
    assert values == [[3, 12288], [1, 4096]]


CHAIN = {
    **{"live_bytes": 256, "live_objects": 2, "allocated_bytes": 1280, "allocated_objects": 10},
    **{"freed_bytes": 1024, "freed_objects": 8, "peak_bytes": 512, "size_bytes": 128},
    **{"comm": "cat", "place": "pipe_write (kernel/fs/pipe.c:20)", "allocator": "kmalloc"},
    "kernel": ["0xffffffff81000101", "0xffffffff81000201"],
}
BEFORE = CHAIN | {"comm": None, "place": "[before switch-on]", "kernel": None, "size_bytes": None}
CHAINS = [*LINES, {"file": "kernel_stacks.json"}, {"table": "Kernel memory by call chain"}]
CHAINS += [CHAIN, BEFORE | {"live_bytes": 64, "live_objects": 1, "peak_bytes": 192}]


def test_chains_of_the_kernel(run):
    """With call chains, their rows replace those by place. All addresses are return addresses."""
    chain = "cat;0xffffffff81000200;0xffffffff81000100;[kmalloc: pipe_write (kernel/fs/pipe.c:20)]"
    for which, first, second in (("live", 256, 64), ("allocated", 1280, 1280), ("peak", 512, 192)):
        _, data, err = run("folded", "--kernel-memory", "--bytes", which, lines=CHAINS)
        found = data.decode().splitlines()
        assert found == [f"{chain} {first}", f"kmalloc;[[before switch-on]] {second}"] and not err
    _, values = profile(run("pprof", "--kernel-memory", lines=CHAINS)[1])
    assert values == [[10, 1280, 2, 256], [10, 1280, 1, 64]]
    _, data, _ = run("report", "--by", "task", "--kernel-memory", lines=CHAINS)
    assert data.split()[:5] == [b"bytes", b"by", b"task", b"bytes", b"percent"] and b"cat" in data
    _, data, _ = run("report", lines=CHAINS)
    assert b"Kernel memory by call chain" not in data  # a store


FREED = {
    **{"freed_bytes": 1024, "freed_objects": 8, "size_bytes": 128, "comm": "rm"},
    **{"freed_in": "a < b", "allocated_comm": "cat", "place": "pipe_write (kernel/fs/pipe.c:20)"},
    **{"allocator": "kmalloc", "kernel": ["0xffffffff81000301", "0xffffffff81000201"]},
    "allocated_kernel": ["0xffffffff81000101", "0xffffffff81000201"],
}
OFF = {key: None for key in FREED} | {"freed_bytes": 64, "freed_objects": 1}
OFF |= {"allocator": "kmalloc", "freed_in": "[while off]"}
FREES = [*CHAINS, {"file": "kernel_freed_stacks.json"}, {"table": "Kernel memory freed"}]
FREES += [FREED, OFF]


def test_who_frees(run):
    """The frames are of the code that frees; the last one is the place that had allocated."""
    chain = "rm;0xffffffff81000200;0xffffffff81000300;[kmalloc: pipe_write (kernel/fs/pipe.c:20)]"
    argv = ("--kernel-memory", "--bytes", "freed")
    status, data, err = run("folded", *argv, lines=FREES)
    found = [f"{chain} 1024", "kmalloc;[[while off]] 64"]
    assert not status and data.decode().splitlines() == found and not err
    assert b"Kernel memory freed" not in run("report", lines=FREES)[1]  # a store
    assert run("pprof", *argv, lines=FREES)[0] == 2
    assert "profile.kernel_chains=on counts it" in run("folded", *argv, lines=CHAINS)[2]
    assert run("folded", "--memory", "--bytes", "freed")[0] == 2


def test_peak_by_place(run):
    lines = [line | {"peak_bytes": 999} if "place" in line else line for line in LINES]
    _, data, _ = run("folded", "--kernel-memory", "--bytes", "peak", lines=lines)
    assert [line.split()[-1] for line in data.splitlines()] == [b"999", b"999"]
    assert b"999" in run("report", "--table", "memory", lines=lines)[1]


def test_other_formats(run):
    speedscope = json.loads(run("speedscope", "--memory")[1])["profiles"][0]
    assert (speedscope["unit"], speedscope["endValue"]) == ("bytes", 16384)
    assert b"events: Bytes\nsummary: 16384\n" in run("callgrind", "--memory")[1]
    _, data, _ = run("report", "--by", "task", "--memory")
    assert "bytes by task" in data.decode() and "16384" in data.decode()
    _, data, _ = run("report")
    assert b"Memory touched first" not in data  # a store


def test_refusals(run):
    for argv, why in (
        (["perf-data", "--memory"], "perf has no profile of memory: write pprof"),
        (["folded", "--memory", "--waits"], "one at a time: --waits, --memory or --kernel-memory"),
        (["folded", "--memory", "--bytes", "peak"], "--bytes is for --kernel-memory, or live"),
        (["folded", "--memory", "--tid", "9"], "memory has no tid and no system call to choose by"),
    ):
        status, data, err = run(*argv)
        assert status == 2 and not data and why in err
    for argv, why in (
        (["folded", "--memory"], "has no such memory: profile.memory_chains=on counts it"),
        (["folded", "--kernel-memory"], "has no such memory: CONFIG_PROFILE_MEMORY counts it"),
    ):
        assert why in run(*argv, lines=[])[2]


def test_flamegraph(run, tmp_path, monkeypatch):
    script = tmp_path / "flamegraph.pl"
    script.write_text('print "@ARGV\\n"; my @all = <STDIN>;')
    monkeypatch.setattr(legoprof.flamegraph, "find", lambda: str(script))
    text = run("flamegraph", "--memory")[1].decode()
    assert f"run.lego: 16384 bytes, {LOST.strip()} " in text
    assert text.endswith("--countname bytes --colors mem\n")
