# SPDX-License-Identifier: BSD-2-Clause
"""Exports in the log of a console: intact lines are read, and missing lines are named."""

from __future__ import annotations

import json
import random
import zlib

import pytest

from profiles import console
from profiles.export import ExportError, load

MARK = "0123456789abcdef"
HEAD = [f"[    0.100000] profile: lines of exports begin with export-{MARK}"]


def text(number: int, calls: int = 7) -> bytes:
    rows = [{"syscall": f"sys_{nr}", "calls": calls, "pad": "x" * 70} for nr in range(20)]
    lines = [{"export": 1, "number": number}, {"file": "strace.json"}, {"table": "T"}, *rows]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    end = f'{{"end":{number},"bytes":{len(body)},"crc32":"{zlib.crc32(body):08x}","lost_lines":0}}'
    return body + end.encode() + b"\n"


def printed(number: int, calls: int = 7, mark: str = MARK) -> list[str]:
    """Returns an export as kernel/profile/export/export.c prints it, in pieces of 40 bytes."""
    found: list[str] = []
    for line in text(number, calls).decode().splitlines():
        for at in range(0, len(line), 40):
            place = "-><="[2 * (at == 0) + (at + 40 >= len(line))]
            head = f"export-{mark} {number} {len(found)}{place} {line[at : at + 40]}"
            found.append(f"[    1.000000] {head} {zlib.crc32(head.encode()):08x}")
    return found


@pytest.fixture
def read(tmp_path):
    def load_log(lines: list[str], end: str = "\n", damaged: bool = False):
        path = tmp_path / "log"
        path.write_bytes(end.join([*lines, ""]).encode())
        return load(path, damaged)

    return load_log


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_other_lines_between(read, end):
    lines = [new for line in printed(1) for new in (line, "$ ls", "[    2.0] kernel")]
    lines[0] = "no newline" + lines[0]
    export = read(HEAD + lines, end)
    assert not export.warnings and len(export.rows("strace.json")) == 20


def test_without_times(read):
    """Not all kernels print times. Where some lines have them, only those announce exports."""
    lines = [line.partition("] ")[2] for line in HEAD + printed(1)]
    assert not read(lines).warnings
    forged = lines[0].replace(MARK, "f" * 16)
    assert not read([*HEAD, forged, *printed(1)]).warnings
    with pytest.raises(ExportError, match="marks of several boots"):
        read([*lines, forged])


def test_swapped_and_repeated(read):
    lines = printed(1) * 2
    random.Random(1).shuffle(lines)
    export = read(HEAD + lines)
    assert not export.warnings and [row["calls"] for row in export.rows("strace.json")] == [7] * 20


def test_the_last_of_several(read):
    export = read(HEAD + printed(1) + printed(2, 8) + HEAD + printed(2, 9))
    assert {row["calls"] for row in export.rows("strace.json")} == {9}
    found, _ = console.snapshots("\n".join(printed(1) + printed(2, 8) + printed(2, 9)).encode())
    assert [snapshot.text() for snapshot in found] == [text(1), text(2, 8), text(2, 9)]


def test_lines_are_missing(read):
    """The error names the missing lines. With `damaged`, all complete rows are read."""
    lines = printed(1)
    del lines[20:23], lines[30]
    with pytest.raises(ExportError, match=r"of export 1, lines 20 to 22, 33 are missing"):
        read(HEAD + lines)
    rows = read(HEAD + lines, damaged=True).rows("strace.json")
    assert 16 <= len(rows) < 20 and all(row["calls"] == 7 for row in rows)


def test_cut_at_the_end(read):
    with pytest.raises(ExportError, match="has no end: its last lines are missing"):
        read(HEAD + printed(1)[:-3])


def test_cut_at_the_begin(read):
    with pytest.raises(ExportError, match="of export 1, lines 0 to 2 are missing"):
        read(HEAD + printed(1)[3:])


def test_flipped(read):
    """A damaged line counts as missing."""
    lines = printed(1)
    lines[9] = lines[9].replace("sys_", "sys-").replace("xx", "xy", 1)
    message = "of export 1, lines 9 are missing; 1 lines of exports are damaged"
    with pytest.raises(ExportError, match=message):
        read(HEAD + lines)


def test_a_program_may_have_printed_it(read):
    (warning,) = read(printed(1)).warnings
    assert warning.endswith("a program may have printed this one")


FORGED = "f" * 16


def test_a_program_cannot_use_the_marks_of_the_boot(read):
    """Lines with another mark are neither the export, nor damaged lines of it."""
    noise = [f"export-{FORGED} {i}" for i in range(993)]
    for lines in (
        printed(1) + printed(1, 1000, FORGED),
        printed(2, 1000, FORGED) + printed(1) + noise,
    ):
        export = read(HEAD + lines)
        assert not export.warnings
        assert {row["calls"] for row in export.rows("strace.json")} == {7}


def test_a_program_announces_its_own_mark(read):
    """It is not believed: neither if the kernel has printed an export, too, nor if not."""
    forged = [HEAD[0].replace(MARK, FORGED), *printed(1, 1000, FORGED)]
    for lines in HEAD + printed(1) + forged, forged + HEAD + printed(1), HEAD + forged:
        with pytest.raises(ExportError, match=f"export-{MARK} and export-{FORGED}. Keep the log"):
            read(lines)
    with pytest.raises(ExportError, match="only exports that the log does not announce"):
        read(HEAD + forged[1:])


def test_giant_numbers(read):
    """Steps and memory depend on the pieces that are there, not on their numbers."""
    for number, nr in ("1", "3000000000"), ("9" * 9, "9" * 9), ("1" * 5000, "0"):
        head = f"export-{MARK} {number} {nr}= {{}}"
        line = f"{head} {zlib.crc32(head.encode()):08x}"
        with pytest.raises(ExportError):
            read([*HEAD, line])
        console.snapshots(line.encode())
    lines = [f"export-{MARK} 1 {2 * i}= {{}}" for i in range(1000)]
    lines = [f"{line} {zlib.crc32(line.encode()):08x}" for line in lines]
    with pytest.raises(ExportError, match="lines 1, 3, .* 17, and 990 other places are missing"):
        read([*HEAD, printed(1)[0], *lines[1:]])
