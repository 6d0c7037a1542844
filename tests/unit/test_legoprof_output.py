# SPDX-License-Identifier: BSD-2-Clause
"""What legoprof prints: names that try to forge output, and outputs that take none."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter

import pytest

from legoprof_shapes import seal
from test_legoprof import META, READ, SAMPLE, SCRIPTS, legoprof, text
from test_legoprof_fuzz import BINARY, COMMANDS, FILES, WAIT, whole

EVIL = "=1+1\x1b[2J\n0 0 0\r\x7f\x85\u202e;(1) x 5"
CONTROL = set(map(chr, [*range(32), 127, *range(128, 160), 0x202E])) - {"\n", "\t"}
LEGOPROF = [sys.executable, str(SCRIPTS / "legoprof")]


def evil_files() -> dict[str, list[dict]]:
    task = SAMPLE | {"comm": EVIL, "kernel": [], "user": [], "code_map": 0, "truncated": EVIL}
    files = FILES | {
        "strace.json": [READ | {"syscall": EVIL, EVIL: 5}, READ | {"syscall": "-1"}],
        "samples.json": [task | {"class": "user", "syscall": None}, task | {"kernel": ["0x9"]}],
        "waits_stacks.json": [WAIT | {"comm": EVIL, "what": EVIL, "waker_comm": EVIL}],
        "images.json": [{"image": 1, "path": f"/{EVIL}", "bytes": 9, "build_id": None}],
        "function_calls.json": [FILES["function_calls.json"][0] | {"caller": EVIL}],
    }
    tasks = [row | {"task": EVIL} for row in files["trace_tasks.json"]]
    return files | {"trace_tasks.json": tasks}


@pytest.fixture
def evil(tmp_path):
    path = tmp_path / "evil"
    path.write_bytes(whole(META, evil_files()))
    return str(path)


def run_all(evil: str, command: list[str], capsysbinary, tmp_path) -> bytes:
    out = tmp_path / "out"
    argv = [command[0], evil, *command[1:]] + (["-o", str(out)] if command[0] in BINARY else [])
    assert legoprof.main(argv) == 0
    printed, err = capsysbinary.readouterr()
    assert not CONTROL & set(err.decode())
    return out.read_bytes() if out.exists() else printed


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_name_has_control_characters(evil, command, capsysbinary, tmp_path):
    """In each format, a name stays on its line and cannot change a terminal."""
    data = run_all(evil, command, capsysbinary, tmp_path)
    if command[0] == "pprof":
        data = gzip.decompress(data)
    if command[0] in BINARY:
        for part in "\x1b[2J", "\x85", "\u202e", "\n0 0 0", "0 0\r":
            assert part.encode() not in data
    elif command[0] in ("chrome", "speedscope"):
        assert json.loads(data)
    else:
        assert not CONTROL & set(data.decode())
        assert b"\n0 0 0" not in data


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_numbers_that_json_lacks(tmp_path, capsys, number):
    path = tmp_path / "run.lego"
    lines = '{"file":"a.json"}', '{"table":""}', '{"a":1}', f'{{"a":{number}}}', '{"a":0.5}'
    path.write_bytes(seal(lines))
    assert legoprof.main(["report", str(path), "--table", "a", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert out == '{"a": 1}\n{"a": 0.5}\n' and "1 damaged lines" in err


def test_formulas(evil, capsys):
    """A spreadsheet calculates no name, and reads numbers as numbers."""
    assert legoprof.main(["report", evil, "--table", "strace", "--format", "csv"]) == 0
    head, row, other = csv.reader(io.StringIO(capsys.readouterr().out))
    assert row[0] == head[-1] == "'=1+1?[2J?0 0 0????;(1) x 5"
    assert row[1:] == ["40000", "0", "30000000", "5"] and other[0] == "'-1" and other[-1] == "-"


def test_folded_weights(evil, capsys):
    """A name that ends in a number does not become a weight, nor two frames."""
    assert legoprof.main(["folded", evil]) == 0
    name = r"=1+1?[2J?0 0 0????\x3b(1) x"
    assert set(capsys.readouterr().out.splitlines()) == {
        f"{name} 5;[cut: {name} 5];[read];0x9 7",
        f"{name} 5;[cut: {name} 5] 7",
    }
    assert legoprof.text.fold(("a 1", "b 2.5")) == r"a 1;b\x202.5"


def test_callgrind_names():
    name = legoprof.text.callgrind_name
    expected = [r"\x281) f", "f(1)", r"\empty", r"\x20f", r"a\x5c"]
    assert [name(text) for text in ("(1) f", "f(1)", "", " f", "a\\")] == expected


ALIKE = ["a b", "a;b", "a?b", "a<b", "a\\x3bb", "a 1", "a?1", "(1) a", "?(1) a", "a : b", "b"]


FOLDED = re.compile(r"(.*)\s+?(\d+(?:\.\d*)?)")  # as flamegraph.pl reads a stack and a weight


def strings_of(data: bytes) -> list[str]:
    """Returns the strings of a pprof profile: fields 6."""
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        size = varint()
        if key & 7 == 2:
            found += [data[at : at + size].decode()] if key >> 3 == 6 else []
            at += size
    return found


def test_names_stay_apart(tmp_path, capsys):
    """Each name is one entry in each format, with the samples of its own."""
    path, out = tmp_path / "run.lego", tmp_path / "out"
    bare = SAMPLE | {"kernel": [], "user": [], "syscall": None}
    source = {"cpu": 0, "hz": 1000}
    rows = [bare | {"comm": name, "samples": 2**i} for i, name in enumerate(ALIKE)]
    path.write_bytes(whole(META, {"samples.json": rows, "source.json": [source]}))
    weights = {2**i for i in range(len(ALIKE))}

    def convert(*argv: str) -> bytes:
        out.unlink(missing_ok=True)
        assert legoprof.main([*argv, str(path), "-o", str(out)]) == 0
        return out.read_bytes()

    lines = convert("folded").decode().splitlines()
    stacks = dict(FOLDED.fullmatch(line).groups() for line in lines)
    assert {int(weight) for weight in stacks.values()} == weights
    assert not any(";" in stack or FOLDED.fullmatch(stack) for stack in stacks)
    blocks = convert("stacks").decode().split("\n\n")
    assert {int(block.split()[-1]) for block in blocks if block.strip()} == weights
    names = [one["name"] for one in json.loads(convert("speedscope"))["shared"]["frames"]]
    assert sorted(names) == sorted(ALIKE)
    found = inclusive(convert("callgrind").decode())
    assert set(found.values()) == weights and len(found) == len(ALIKE)
    assert set(ALIKE) <= set(strings_of(gzip.decompress(convert("pprof"))))
    data = convert("perf-data")
    assert all(name.encode() + b"\0" in data for name in ALIKE)
    assert legoprof.main(["report", "--by", "task", "--format", "json", str(path)]) == 0
    printed = map(json.loads, capsys.readouterr().out.splitlines())
    assert {row["task"] for row in printed} == set(ALIKE)


def test_systemtap_names():
    """stackcollapse-stap.pl keeps what is between ` : ` and the last `+`, without blanks."""
    Place, line = legoprof.profiles.stacks.Place, legoprof.text.stap_line

    class Symbols:
        def place(self, address: int) -> str:
            return f"{name}+0x1/0x2"

    found = set()
    names = "a : b", "b", "operator+", "a\\x3ab", "vector<a>"
    for name in names:
        text = line(16, Place(16, None, Symbols()), "libc++")
        found.add(re.sub(r".* : ", "", re.sub(r"\+[^+]*$", "", text)))
    assert found == {r"a \x3a b", "b", "operator+", r"a\x5cx3ab", "vector<a>"}


def test_flame_graph_shows_names(tmp_path, monkeypatch):
    """flamegraph.pl gets names without what it would replace; the picture has them as they are."""
    script = tmp_path / "flamegraph.pl"
    script.write_text("my @a = @ARGV; print \"$a[1]\\n\"; print <STDIN>;")
    monkeypatch.setattr(legoprof.flamegraph, "find", lambda: str(script))
    path, out = tmp_path / "run.lego", tmp_path / "\u00e9<&>.svg"
    rows = [SAMPLE | {"comm": name, "kernel": [], "user": [], "syscall": None} for name in ALIKE]
    path.write_bytes(whole(META, {"samples.json": [*rows, SAMPLE | {"comm": "c"}]}))
    (tmp_path / "a<&\u00e9").write_bytes(path.read_bytes())
    for options in [], ["--reverse"]:
        argv = ["flamegraph", str(tmp_path / "a<&\u00e9"), "-o", str(out), *options]
        assert legoprof.main(argv) == 0
        title, *lines = out.read_text().splitlines()
        assert title == f"a&lt;&amp;\u00e9: {7 * (len(ALIKE) + 1)} samples"
        shown = {line.removesuffix(" 7") for line in lines}
        assert {name.replace("<", "&lt;") for name in ALIKE} < shown
        frames = ["c", "0x401000", "[read]", "0xffffffff81000020", "0xffffffff81000010"]
        assert ";".join(frames[::-1] if options else frames) in shown


def run(*argv: object, **options: object) -> tuple[int, str]:
    command = [*LEGOPROF, *map(str, argv)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, **options)
    return done.returncode, done.stderr


def test_output_without_room(tmp_path):
    """One line says that nothing could be written; a status says that there was nobody to read."""
    path = tmp_path / "run.lego"
    path.write_bytes(text())
    for argv in ["report", path], ["folded", path], ["diff", path, path]:
        with open("/dev/full", "w") as full:
            status, err = run(*argv, stdout=full)
        assert (status, err) == (
            1,
            "legoprof: error: standard output: No space left on device\n",
        )
    status, err = run("report", path, preexec_fn=lambda: os.close(1))
    assert (status, err) == (1, "legoprof: error: standard output: Bad file descriptor\n")
    assert run("report", "--help", preexec_fn=lambda: os.close(1)) == (status, err)
    status, err = run("folded", path, "-o", "/dev/full", stdout=subprocess.DEVNULL)
    assert status == 2 and err == "legoprof: error: /dev/full: No space left on device\n"
    reader, writer = os.pipe()
    os.close(reader)
    assert run("report", path, stdout=writer) == (-signal.SIGPIPE, "")
    os.close(writer)


def test_other_surroundings(tmp_path):
    """A locale without a name's letters, no stderr, and Ctrl-C give no traceback."""
    path, out = tmp_path / "run.lego", tmp_path / "out"
    path.write_bytes(text(samples=(SAMPLE | {"comm": "\u00e9", "samples": "x"},)))
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    with out.open("w") as file:
        assert run("report", path, stdout=file, env=environment)[0] == 0
        assert run("folded", path, "-o", out, preexec_fn=lambda: os.close(2))[0] == 0
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen(
        [*LEGOPROF, "report", str(tmp_path / "fifo")], stderr=subprocess.PIPE
    ) as process:
        with open(tmp_path / "fifo", "wb"):  # returns when legoprof has opened it
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (-signal.SIGINT, b"")


def inclusive(data: str) -> Counter[str]:
    """Returns each function's cost with its calls, as callgrind_annotate adds them up."""
    found: Counter[str] = Counter()
    function = ""
    for line in data.splitlines():
        if line.startswith("fn="):
            function = line[3:]
        elif line.startswith("0 "):
            found[function] += int(line[2:])
    return found


def test_callgrind_recursion(tmp_path, capsys):
    """A function costs no more with its calls than there are samples, however it is called."""
    chain = {name: f"{address:#x}" for name, address in zip("abc", (0x10, 0x20, 0x30))}
    user = [[chain[name] for name in reversed(names)] for names in ("abac", "aaab", "c")]
    path = tmp_path / "run.lego"
    samples = [SAMPLE | {"kernel": [], "syscall": None, "user": one} for one in user]
    path.write_bytes(text(samples=samples))
    assert legoprof.main(["callgrind", str(path)]) == 0
    found = inclusive(capsys.readouterr().out)
    assert found["a b"] == found.most_common(1)[0][1] == 21
    assert [found[name] for name in ("0xf", "0xf'2", "0xf'3", "0x30")] == [14, 14, 7, 14]
    row = {"caller": "f", "function": "f", "calls": 9, "total_cycles": 90, "self_cycles": 40}
    data, _ = legoprof.text.callgrind_of_calls([row, row | {"caller": "main"}])
    assert inclusive(b"".join(data).decode()) == {"f": 80, "main": 90}
