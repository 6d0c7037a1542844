# SPDX-License-Identifier: BSD-2-Clause
"""Files that leave a guest: right ones are copied, and no list leads out of the folder."""

from __future__ import annotations

import os
import random
import struct
import time
import zlib
from pathlib import Path
from typing import Iterator

import pytest

import guest_files

ROOT = Path(__file__).resolve().parents[2]

PAGE = 4096
NR_PAGES = 64
HEADER_AT = 100
LIST_AT = 40  # page
DATA = {5: b"a" * PAGE, 6: b"b" * PAGE, 9: b"c" * PAGE}


def ram_of(text: bytes, **fields: int) -> bytes:
    """Returns a guest's memory with pages of data and a list; fields replace those of its head."""
    ram = bytearray(NR_PAGES * PAGE)
    for frame, data in DATA.items():
        ram[frame * PAGE : (frame + 1) * PAGE] = data
    room = PAGE - 8
    for nr, at in enumerate(range(0, max(len(text), 1), room)):
        page = (LIST_AT + nr) * PAGE
        chunk = text[at : at + room]
        after = page + PAGE if len(text) > at + room else 0
        ram[page : page + 8 + len(chunk)] = struct.pack("<Q", after) + chunk
    head = dict(version=2, state=2, nr_bytes=len(text), first=LIST_AT * PAGE, crc=zlib.crc32(text))
    head |= fields
    packed = guest_files.HEADER.pack(b"LEGOFILE", *head.values())
    ram[HEADER_AT : HEADER_AT + len(packed)] = packed
    return bytes(ram)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Returns a function that copies the files of a memory into tmp_path/out."""
    monkeypatch.setattr(guest_files, "address_of_header", lambda kernel: HEADER_AT)
    (tmp_path / "out").mkdir()
    (tmp_path / "outside").write_text("untouched")

    def run(ram: bytes) -> tuple[list[str], list[str]]:
        (tmp_path / "ram").write_bytes(ram)
        return guest_files.get(Path("vmlinux"), tmp_path / "ram", tmp_path / "out")

    return run


def entry(name: str, nr_bytes: int, *runs: tuple[int, int, int], mode: str = "644") -> bytes:
    """Returns the lines of a file whose checksum is right."""
    crc = 0
    for index, frame, nr in runs:
        for page in range(nr):
            data = DATA.get(frame + page, bytes(PAGE))
            crc = zlib.crc32(data[: max(0, nr_bytes - (index + page) * PAGE)], crc)
    lines = [f"file {name} {mode} {nr_bytes}"]
    lines += [f"data {index} {frame} {nr}" for index, frame, nr in runs]
    return "\n".join([*lines, f"sum {crc:08x}\n"]).encode()


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_copies_files(copy, tmp_path):
    text = entry("/tmp/x", 2 * PAGE - 1, (0, 5, 2)) + entry("/tmp/d/e%20f", 0, mode="755")
    text += entry("/hole", 3 * PAGE + 7, (1, 9, 1)) + b"left /tmp/l link\nnone /nosuch%0A 2\n"
    text += b"left /proc/1/maps made-when-read\n"
    copied, problems = copy(ram_of(text))
    assert copied == ["/tmp/x", "/tmp/d/e%20f", "/hole"]
    assert problems == [
        "/tmp/l: a link",
        "/nosuch%0A: No such file or directory",
        "/proc/1/maps: made when it is read: use cat in the guest",
    ]
    assert tree(tmp_path / "out") == {
        "tmp/x": b"a" * PAGE + b"b" * (PAGE - 1),
        "tmp/d/e%20f": b"",
        "hole": bytes(PAGE) + b"c" * PAGE + bytes(PAGE + 7),
    }
    assert (tmp_path / "out/tmp/d/e%20f").stat().st_mode & 0o7777 == 0o755
    # Another run replaces the files, and keeps the others.
    (tmp_path / "out/tmp/mine").write_text("stays")
    copy(ram_of(entry("/tmp/x", 3, (0, 9, 1))))
    assert tree(tmp_path / "out")["tmp/x"] == b"ccc"
    assert tree(tmp_path / "out")["tmp/mine"] == b"stays"


def test_long_list(copy, tmp_path):
    """A list of many pages."""
    text = b"".join(entry(f"/f/{nr}", nr % 7 and 1, *[(0, 5, 1)][: nr % 7]) for nr in range(2000))
    copied, problems = copy(ram_of(text))
    assert len(copied) == len(tree(tmp_path / "out")) == 2000 and not problems


def test_damaged_content_is_told(copy):
    text = entry("/x", 10, (0, 5, 1)).replace(b"sum ", b"sum 0")[:-2] + b"\n"
    copied, (problem,) = copy(ram_of(text))
    assert not copied and problem.startswith("/x: its checksum is wrong")


@pytest.mark.parametrize(
    "name",
    ["/..", "/../outside", "/tmp/../../outside", "/.", "/./x", "/tmp/.", "/", "/" + "n" * 256],
)
def test_names_that_lead_away(copy, tmp_path, name):
    copied, problems = copy(ram_of(entry(name, 3, (0, 5, 1)) + entry("/good", 3, (0, 5, 1))))
    assert copied == ["/good"] and len(problems) == 1
    assert tree(tmp_path / "out") == {"good": b"aaa"}
    assert (tmp_path / "outside").read_text() == "untouched"


@pytest.mark.parametrize("name", ["x", "//x", "/x/", "/a b", "/a\\b", "/\x1b[2J", "/%2f", "/%", ""])
def test_names_that_the_kernel_does_not_write(copy, tmp_path, name):
    with pytest.raises(guest_files.GetError, match="damaged: an unknown line"):
        copy(ram_of(entry(name, 3, (0, 5, 1))))
    assert not tree(tmp_path / "out")


def test_links_in_the_folder(copy, tmp_path):
    """A link that is there already, to a file or a directory, is replaced or refused."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out/file").symlink_to(tmp_path / "outside")
    (tmp_path / "out/dir").symlink_to(tmp_path / "elsewhere")
    text = entry("/file", 3, (0, 5, 1)) + entry("/dir/x", 3, (0, 5, 1))
    copied, (problem,) = copy(ram_of(text))
    assert copied == ["/file"] and problem.startswith("/dir/x: ")
    assert (tmp_path / "out/file").read_text() == "aaa"
    assert not (tmp_path / "out/file").is_symlink()
    assert (tmp_path / "outside").read_text() == "untouched" and not tree(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    "runs",
    [
        [(0, 5, 1), (0, 6, 1)],  # a page twice
        [(1, 5, 1), (0, 6, 1)],
        [(0, 5, 0)],
        [(2, 5, 1)],  # behind the end
        [(0, 5, 3)],
        [(0, 63, 2)],  # memory that is not there
        [(0, 10**11, 1)],
    ],
)
def test_pages_that_cannot_be(copy, runs):
    copied, problems = copy(ram_of(entry("/x", 2 * PAGE, *runs)))
    assert not copied and len(problems) == 1 and problems[0].startswith("/x: ")


def test_no_more_bytes_than_memory(copy):
    """The same pages in many files fill no disk, nor do holes beyond a limit."""
    text = b"".join(entry(f"/{nr}", 3 * PAGE, (0, 5, 2), (2, 9, 1)) for nr in range(100))
    copied, problems = copy(ram_of(text))
    assert len(copied) == NR_PAGES // 3 and len(problems) == 100 - len(copied)
    copied, problems = copy(ram_of(entry("/hole", (1 << 40) + 1)))
    assert problems == ["/hole: too large"]


@pytest.mark.parametrize(
    "fields, why",
    [
        (dict(version=3), "of version 3"),
        (dict(state=0), "did not end by itself"),
        (dict(state=1), "no memory"),
        (dict(state=3), "did not end by itself"),
        (dict(nr_bytes=1 << 60), "its size"),
        (dict(nr_bytes=5000), "its checksum"),
        (dict(first=NR_PAGES * PAGE - 8), "does not have"),
        (dict(first=1 << 63), "does not have"),
        (dict(crc=1), "its checksum"),
    ],
)
def test_damaged_heads(copy, fields, why):
    with pytest.raises(guest_files.GetError, match=why):
        copy(ram_of(entry("/x", 3, (0, 5, 1)), **fields))


@pytest.fixture
def watch(tmp_path):
    """Returns a function that shows a Copier the memory of a running guest; .copier is the one."""
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "outside").write_text("untouched")
    copier = guest_files.Copier(Path("vmlinux"), tmp_path / "ram", tmp_path / "out")

    def look(text: bytes, **fields: int) -> dict[str, bytes]:
        (tmp_path / "ram").write_bytes(ram_of(text, **(dict(state=3) | fields)))
        copier.look(HEADER_AT)
        return tree(tmp_path / "out")

    look.copier = copier
    return look


def test_running_guest(watch, tmp_path):
    """A list that grows and begins again gives each file once, and the newest of a name."""
    text = entry("/host/x", 3, (0, 5, 1)) + entry("/host/d/y", 0)
    assert watch(text) == {"host/x": b"aaa", "host/d/y": b""}
    (tmp_path / "out/host/x").write_text("mine")
    text += entry("/host/z", 2, (0, 6, 1)) + entry("/host/z", 1, (0, 9, 1))
    assert watch(text) == {"host/x": b"mine", "host/d/y": b"", "host/z": b"c"}
    assert watch(entry("/host/x", 1, (0, 6, 1)))["host/x"] == b"b"
    assert set(watch.copier.held) == {"/host/x", "/host/d/y", "/host/z"}


def test_running_guest_changes_a_file(watch):
    """What has changed since it was listed is not in the folder, nor does it replace a copy."""
    old = entry("/x", 3, (0, 5, 1))
    wrong = entry("/x", 2, (0, 5, 1)).replace(b"sum ", b"sum 0")[:-2] + b"\n"
    assert watch(wrong) == {}
    assert watch(wrong + old) == {"x": b"aaa"}
    assert watch(wrong + old + wrong) == {"x": b"aaa"}
    assert watch(wrong + old + wrong + old + b"left /l link\n") == {"x": b"aaa"}


@pytest.mark.parametrize("fields", [dict(crc=1), dict(state=0), dict(state=1), dict(state=2)])
def test_running_guest_writes_the_list(watch, fields):
    """A list that is being written is read when it is complete."""
    text = entry("/x", 3, (0, 5, 1))
    with pytest.raises(guest_files.GetError):
        watch(text, **fields)
    assert watch(text) == {"x": b"aaa"}


def test_running_guest_fills_no_disk(watch):
    """Files that the guest removes again stay; together they have at most the memory's size."""
    for nr in range(3 * NR_PAGES):
        found = watch(entry(f"/{nr}", nr % 2, *[(0, 5, 1)] * (nr % 2)))
    assert NR_PAGES / 2 < len(found) < NR_PAGES
    assert watch(entry("/0", 3, (0, 9, 1)))["0"] == b"ccc"  # this one has its room


def test_copier_has_a_thread(copy, watch, tmp_path):
    (tmp_path / "ram").write_bytes(ram_of(entry("/x", 3, (0, 5, 1)), state=3))
    watch.copier.thread.start()
    end = time.monotonic() + 30
    while not tree(tmp_path / "out") and time.monotonic() < end:
        time.sleep(0.05)
    while "/x" not in watch.copier.held and time.monotonic() < end:
        time.sleep(0.05)
    assert watch.copier.stop() == ["/x"] and not watch.copier.thread.is_alive()


def test_fuzz_of_a_running_guest(watch, tmp_path):
    rng = random.Random(2)
    outcomes = set()
    for text in changed_lists(rng, 1500):
        nr = len(watch.copier.held)
        try:
            watch(text, first=rng.choice([LIST_AT * PAGE] * 9 + [rng.getrandbits(64)]))
            outcomes.add("new" if len(watch.copier.held) > nr else "old")
        except guest_files.GetError:
            outcomes.add("refused")
    assert outcomes == {"new", "old", "refused"}
    assert {path.name for path in tmp_path.iterdir()} == {"out", "outside", "ram"}
    assert (tmp_path / "outside").read_text() == "untouched"
    assert not list((tmp_path / "out").rglob(guest_files.PART))


def changed_lists(rng: random.Random, nr: int) -> Iterator[bytes]:
    """Yields lists with some bytes changed."""
    text = entry("/tmp/x", 2 * PAGE, (0, 5, 2)) + entry("/d/y", 5 * PAGE, (1, 9, 1))
    text += b"left /l link\nnone /no 2\n"
    words = [b"/..", b"/", b"%2F", b"\n", b" ", b"file ", b"data 0 5 1\n", b"sum ", b"9" * 13, b"-"]
    for _ in range(nr):
        changed = bytearray(text)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(changed))
            end = at + rng.randint(0, 3)
            changed[at:end] = rng.choice([bytes([rng.randrange(256)]), *words])
        yield bytes(changed)


def test_fuzz(copy, tmp_path):
    """Whatever bytes change, nothing is written outside the folder, and no other error comes."""
    outcomes = set()
    for text in changed_lists(random.Random(1), 1500):
        try:
            copied, problems = copy(ram_of(text))
            outcomes |= {len(copied), f"{len(problems)} problems"}
            assert all(line.isprintable() for line in [*copied, *problems])
        except guest_files.GetError as error:
            outcomes.add("refused")
            assert str(error).isprintable()
    assert {1, 2, "refused", "2 problems", "3 problems"} <= outcomes
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {"out", "outside", "ram"}
    assert (tmp_path / "outside").read_text() == "untouched"
    assert not any(os.path.islink(path) for path in (tmp_path / "out").rglob("*"))


def test_boot_parameter():
    assert guest_files.option("get", ["/tmp/x", "/a b,c"]) == "get=/tmp/x,/a%20b%2Cc"
    with pytest.raises(guest_files.GetError):
        guest_files.option("get", ["tmp"])


def test_layout_is_the_kernels():
    """The header has the fields and constants that this tool uses."""
    source = (ROOT / "include/lego/files_out.h").read_text()
    assert f'"{guest_files.MAGIC.decode()}"' in source
    assert f"FILES_OUT_VERSION {guest_files.VERSION}\n" in source
    fields = source[source.index("struct files_out {") : source.index("};", source.index("magic"))]
    names = [line.split(";")[0].split()[-1] for line in fields.splitlines()[1:]]
    assert names == ["magic[8]", "version", "state", "bytes", "first", "crc32"]
