# SPDX-License-Identifier: BSD-2-Clause
"""
Files that legoprof finds by itself, on this machine, and the names that it takes from them: in all
formats, those that nm, gdb and addr2line have.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from test_legoprof import META, legoprof, run
from test_legoprof_fuzz import whole
from test_legoprof_images import BASE, area, image, sample, write

from profiles import symbols as elf_symbols  # noqa: E402

finder = legoprof.profiles.finder
SOURCE = """
#include <stddef.h>
int turns;
int waiting_lock;
static inline __attribute__((always_inline)) int inner(int n)
{
	return n * turns; /* line 7 */
}
__attribute__((noinline)) int hot(int n)
{
	return inner(n) + 1; /* line 11 */
}
int main(void) { return hot(3) + waiting_lock; }
"""


def command(*argv: object) -> str:
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, check=True)
    return done.stdout


def address_of(path: Path, name: str) -> int:
    """Returns the address of a function, as nm has it."""
    return next(int(at, 16) for at, _, one in map(str.split, nm(path)) if one == name)


def nm(path: Path) -> list[str]:
    return [line for line in command("nm", path).splitlines() if line[0] != " "]


def gdb_function(path: Path, address: int) -> str:
    out = command("gdb", "-batch", "-nx", "-ex", f"info symbol {address:#x}", path)
    return out.split()[0]


def offset_of(path: Path, address: int) -> int:
    """Returns the offset in the file of an address, by readelf's list of segments."""
    for line in command("readelf", "-lW", path).splitlines():
        if match := re.match(r" *LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", line):
            offset, start, size = (int(one, 16) for one in match.groups())
            if start <= address < start + size:
                return address - start + offset
    raise AssertionError(f"{path} has no {address:#x}")


class Built:
    """A program that is built in a directory, and the export of a sample in its function hot()."""

    def __init__(self, tmp_path: Path, flags: list[str], source: str = SOURCE, kind: str = "c"):
        self.path = tmp_path / "made" / "hotter"
        self.path.parent.mkdir()
        self.source = self.path.with_suffix(f".{kind}")
        self.source.write_text(source)
        self.compile(flags)
        self.image = image(self.path)
        code = command("objdump", "-d", self.path).split("hot>:", 1)[-1].split("hotEi>:", 1)[-1]
        self.at = int(re.search(r"(\w+):\t.*\timul ", code)[1], 16)
        self.offset = offset_of(self.path, self.at)
        self.page = self.offset & -4096
        self.address = BASE + self.offset - self.page
        self.directory = tmp_path / "elsewhere"
        self.directory.mkdir()

    def compile(self, flags: list[str], out: Path | None = None) -> None:
        compiler = "g++" if self.source.suffix == ".cc" else "gcc"
        # The path of the source is in the debug information, and so in the build id.
        command(compiler, "-O2", *flags, self.source, "-o", out or self.path)

    def export(self, guest_path: str = "/bin/hotter", more: list[dict] = []) -> str:
        rows = [sample(self.address, 1), *more]
        images = [self.image | {"path": guest_path}]
        return write(self.directory, images, [area(1, 1, BASE, self.page)], rows)

    def split(self, debug: Path) -> None:
        """Moves the symbols and lines to another file."""
        debug.parent.mkdir(parents=True, exist_ok=True)
        command("objcopy", "--only-keep-debug", self.path, debug)
        command("strip", self.path)


@pytest.fixture(autouse=True)
def away(tmp_path, monkeypatch):
    """The machine's own debug files, and what is below the current directory, do not count."""
    monkeypatch.setattr(finder, "DEBUG", tmp_path / "debug")
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")


LINKS = {
    "static": ["-static", "-no-pie"],
    "static-pie": ["-static-pie"],
    "pie": ["-pie"],
    "lld": ["-pie", "-fuse-ld=lld"],
    "lld-static": ["-static", "-fuse-ld=lld"],
}
needs_lld = pytest.mark.skipif(not shutil.which("ld.lld"), reason="no lld")


@pytest.mark.parametrize(
    "link", [pytest.param(one, marks=needs_lld if "lld" in one else ()) for one in LINKS]
)
def test_recorded_path(tmp_path, capsys, link):
    built = Built(tmp_path, ["-g", *LINKS[link]])
    export = built.export(str(built.path))
    assert addr2line(built.path, built.at)[-1][0] == "hot"
    if shutil.which("gdb"):
        assert gdb_function(built.path, built.at) == "hot"
    assert run(capsys, "folded", export) == (0, "x;hot 7\n", "")


@pytest.mark.parametrize("place", ["", "build", "build/user"])
def test_beside_the_export(tmp_path, capsys, place):
    built = Built(tmp_path, ["-pie"])
    (built.directory / place).mkdir(parents=True, exist_ok=True)
    built.path.rename(built.directory / place / "hotter")
    assert run(capsys, "folded", built.export()) == (0, "x;hot 7\n", "")


@pytest.mark.parametrize("name", ["hotter", "usr/lib/hotter"])
def test_given_directory(tmp_path, capsys, name):
    """It may be a copy of the guest's root, or a directory of programs."""
    built = Built(tmp_path, ["-pie"])
    place = tmp_path / "root" / name
    place.parent.mkdir(parents=True)
    built.path.rename(place)
    export = built.export("/usr/lib/hotter")
    assert run(capsys, "folded", export)[1] == f"x;hotter+{built.offset:#x} 7\n"
    argv = "folded", export, "--search", str(tmp_path / "root")
    assert run(capsys, *argv) == (0, "x;hot 7\n", "")


def test_path_that_the_host_wrote(tmp_path, capsys):
    """qemu-run writes the paths of the kernel, the program and its files."""
    built = Built(tmp_path, ["-pie"])
    for host_path in built.path, built.path.parent:
        export = Path(built.export())
        with export.open("a") as file:
            file.write(json.dumps({"host_paths": [str(host_path), 5]}) + "\n")
        assert run(capsys, "folded", str(export)) == (0, "x;hot 7\n", "")


def test_kernel(tmp_path, capsys, monkeypatch):
    """It is found beside the export, and where the host says. Another one is refused in a line."""
    built = Built(tmp_path, ["-static", "-no-pie"])
    kernel = tmp_path / "elsewhere" / "build" / "vmlinux"
    kernel.parent.mkdir()
    built.path.rename(kernel)
    monkeypatch.setitem(META, "build_id", built.image["build_id"])
    row = sample(1, 0, user=[], kernel=[f"{built.at:#x}"], **{"class": "kernel"})
    export = Path(write(built.directory, [], [], [row]))
    assert run(capsys, "folded", str(export)) == (0, "x;hot 7\n", "")
    out = run(capsys, "report", str(export), "--table", "samples", "--format", "json")[1]
    assert json.loads(out)["kernel"] == ["hot"]
    elsewhere = tmp_path / "made" / "vmlinux"
    kernel.rename(elsewhere)
    assert run(capsys, "folded", str(export)) == (0, f"x;{built.at:#x} 7\n", "")
    with export.open("a") as file:
        file.write(json.dumps({"host_paths": [str(elsewhere)]}) + "\n")
    assert run(capsys, "folded", str(export)) == (0, "x;hot 7\n", "")
    built.compile(["-static", "-Wl,--build-id=0x1234"], elsewhere)
    status, out, err = run(capsys, "folded", str(export))
    assert (status, out) == (0, f"x;{built.at:#x} 7\n") and err.count("\n") == 1
    assert err.startswith(f"legoprof: {elsewhere} is not the kernel that ran (build id ")


def test_replaced_file_is_refused(tmp_path, capsys):
    """A program that was compiled again has other code: one line says so."""
    built = Built(tmp_path, ["-pie"])
    export = built.export(str(built.path))
    built.source.write_text(SOURCE.replace("n * turns", "n / turns"))
    built.compile(["-pie"])
    status, out, err = run(capsys, "folded", export)
    assert (status, out) == (0, f"x;hotter+{built.offset:#x} 7\n")
    new = re.search(r"Build ID: (\w+)", command("readelf", "-n", built.path))[1]
    expected = f"legoprof: {built.path} (build id {new}) is not the file that ran: {built.path} ("
    assert err.startswith(expected) and err.count("\n") == 1
    assert f"build id {built.image['build_id']})" in err
    built.path.unlink()  # deleted
    assert run(capsys, "folded", export) == (0, f"x;hotter+{built.offset:#x} 7\n", "")
    os.mkfifo(built.path)  # it has no writer: to open it would take forever
    assert run(capsys, "folded", export) == (0, f"x;hotter+{built.offset:#x} 7\n", "")


def test_file_without_build_id_is_not_looked_for(tmp_path, capsys):
    built = Built(tmp_path, ["-pie", "-Wl,--build-id=none"])
    status, out, err = run(capsys, "folded", built.export(str(built.path)))
    assert (status, out) == (0, f"x;hotter+{built.offset:#x} 7\n")
    assert "has no build id" in err


def build_id_path(built: Built) -> str:
    build_id = built.image["build_id"]
    return f".build-id/{build_id[:2]}/{build_id[2:]}.debug"


DEBUG_FILES = {
    "build id": lambda built, root: root / "debug" / build_id_path(built),
    "build id beside": lambda built, root: built.directory / build_id_path(built),
    "path": lambda built, root: root / f"debug{built.path}.debug",
    "link": lambda built, root: built.path.with_name("odd"),
    "link in .debug": lambda built, root: built.path.parent / ".debug/odd",
    "link of the system": lambda built, root: root / f"debug{built.path.parent}/odd",
}


@pytest.mark.parametrize(
    "place, link, has_program",
    [*((place, "pie", True) for place in DEBUG_FILES)]
    + [("path", "pie", False), ("build id", "static", True), ("build id", "static", False)]
)
def test_debug_files(tmp_path, capsys, place, link, has_program):
    """Names are in a file of their own, whether there is a stripped program or none."""
    built = Built(tmp_path, ["-g", *LINKS[link]])
    export = built.export(str(built.path))
    debug = DEBUG_FILES[place](built, tmp_path)
    built.split(debug)
    if "link" in place:
        command("objcopy", f"--add-gnu-debuglink={debug}", built.path)
    if not has_program:
        built.path.unlink()
    assert run(capsys, "folded", export) == (0, "x;hot 7\n", "")
    out = run(capsys, "folded", export, "--lines", "--inline")[1]
    assert out == "x;hot hotter.c:11;inner (inlined) hotter.c:7 7\n"


def test_debug_file_of_another_build(tmp_path, capsys):
    built = Built(tmp_path, ["-g", "-pie"])
    export = built.export(str(built.path))
    other = built.path.with_name("other")
    built.compile(["-g", "-pie", "-Wl,--build-id=0x" + "12" * 20], other)
    built.split(tmp_path / "unused")
    debug = DEBUG_FILES["build id"](built, tmp_path)
    debug.parent.mkdir(parents=True)
    other.rename(debug)
    assert run(capsys, "folded", export) == (0, "x;[hotter] 7\n", "")


def test_debuginfod(tmp_path, capsys, monkeypatch):
    """The user's servers are asked, if the user has named any, and only for what is not here."""
    built = Built(tmp_path, ["-g", "-pie"])
    export, debug, asked = built.export(), tmp_path / "downloaded", tmp_path / "asked"
    built.split(debug)
    built.path.unlink()
    script = tmp_path / "tools" / "debuginfod-find"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "$@" >> {asked}\necho {debug}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=":")
    unnamed = f"x;hotter+{built.offset:#x} 7\n"
    assert run(capsys, "folded", export) == (0, unnamed, "") and not asked.exists()
    monkeypatch.setenv("DEBUGINFOD_URLS", "https://example.org")
    assert run(capsys, "folded", export) == (0, "x;hot 7\n", "")
    wanted = {built.image["build_id"], META["build_id"]}
    assert {tuple(line.split()) for line in asked.read_text().splitlines()} == {
        ("debuginfo", one) for one in wanted
    }


def all_formats(capsys, export: str, out: Path) -> dict[str, str]:
    """Returns the text of each format that has names of its own."""
    found = {}
    for name in "folded", "stacks", "speedscope", "callgrind":
        status, found[name], err = run(capsys, name, export)
        assert (status, err) == (0, "")
    found["stap"] = run(capsys, "stacks", export, "--stap")[1]
    found["by"] = run(capsys, "report", export, "--by", "function", "--format", "csv")[1]
    found["samples"] = run(capsys, "report", export, "--table", "samples")[1]
    assert run(capsys, "pprof", export, "-o", str(out)) == (0, "", "")
    found["pprof"] = gzip.decompress(out.read_bytes()).decode("latin1")
    return found


def test_all_formats(tmp_path, capsys):
    built = Built(tmp_path, ["-pie"])
    found = all_formats(capsys, built.export(str(built.path)), tmp_path / "out")
    for name, text in found.items():
        assert "hot" in text.replace("hotter", ""), (name, text)
    out = tmp_path / "perf.data"
    assert run(capsys, "perf-data", built.export(str(built.path)), "-o", str(out)) == (0, "", "")
    assert f"{built.path}\0".encode() in out.read_bytes()


@pytest.mark.parametrize("is_cxx", [True, False])
def test_no_demangle(tmp_path, capsys, is_cxx):
    """c++filt knows the names of C++ and of Rust."""
    cxx = "namespace shop { __attribute__((noinline)) int hot(int n) { return n * n; } }"
    rust = '__attribute__((noinline)) int hot(int n) asm("_RNvCs1234_7mycrate3hot");'
    rust += "__attribute__((noinline)) int hot(int n) { return n * n; } int main(int c)"
    if is_cxx:
        cxx += "int main(int c, char **) { return shop::hot(c); }"
        built = Built(tmp_path, ["-pie"], cxx, "cc")
        names = "_ZN4shop3hotEi", "shop::hot(int)"
    else:
        name = "_RNvCs1234_7mycrate3hot"
        built = Built(tmp_path, ["-pie", "-Wl,--defsym,hot=" + name], rust + "{ return hot(c); }")
        names = name, command("c++filt", name).strip()
        assert re.fullmatch(r"mycrate\[\w+\]::hot", names[1])
        names = name, "mycrate::hot"
    export = built.export(str(built.path))
    assert run(capsys, "folded", export)[1] == f"x;{names[1]} 7\n"
    assert run(capsys, "folded", export, "--no-demangle")[1] == f"x;{names[0]} 7\n"


def test_library_without_symbols_is_one_frame(tmp_path, capsys):
    built = Built(tmp_path, ["-pie"])
    more = [sample(built.address + i, 1) for i in range(1, 9)]
    export = built.export(str(built.path), more)
    command("strip", built.path)
    assert run(capsys, "folded", export) == (0, "x;[hotter] 63\n", "")
    out = run(capsys, "report", export, "--by", "function", "--format", "csv")[1]
    assert out.splitlines()[1:] == ["63,100.00,[hotter]"]


def addr2line(path: Path, address: int) -> list[tuple[str, str]]:
    lines = command("addr2line", "-f", "-i", "-s", "-e", path, f"{address:#x}").splitlines()
    return list(zip(lines[::2], lines[1::2]))


def test_lines_and_inlined_functions(tmp_path, capsys):
    built = Built(tmp_path, ["-g", "-pie"])
    export = built.export(str(built.path))
    (inner, at_inner), (outer, at_outer) = addr2line(built.path, built.at)
    assert (inner, at_inner, outer, at_outer) == ("inner", "hotter.c:7", "hot", "hotter.c:11")
    for options, expected in (
        (["--lines"], f"hot {at_inner}"),
        (["--inline"], "hot;inner (inlined)"),
        (["--lines", "--inline"], f"hot {at_outer};inner (inlined) {at_inner}"),
    ):
        assert run(capsys, "folded", export, *options) == (0, f"x;{expected} 7\n", "")


def test_lines_where_there_are_none(tmp_path, capsys):
    """A format that cannot have lines does not accept the options."""
    export = write(tmp_path, [], [], [sample(BASE, 1)])
    status, out, err = run(capsys, "stacks", export, "--stap", "--lines")
    assert (status, out, err.count("\n")) == (2, "", 1) and "has no lines" in err
    options = [("pprof", "--lines"), ("perf-data", "--inline"), ("perf-data", "--perf-map")]
    for name, option in options:
        with pytest.raises(SystemExit):
            run(capsys, name, export, "-o", str(tmp_path / "out"), option)
        assert option in capsys.readouterr().err


def test_names_of_pprof_with_lines(tmp_path, capsys):
    """pprof may read the profile on a machine that has no such file."""
    built = Built(tmp_path, ["-g", "-pie"])
    export, out = built.export(str(built.path)), tmp_path / "out"
    assert run(capsys, "pprof", export, "-o", str(out)) == (0, "", "")
    assert b"\x03hot" in gzip.decompress(out.read_bytes())


def test_lines_of_a_file_without_lines(tmp_path, capsys):
    built = Built(tmp_path, ["-pie"])
    export = built.export(str(built.path))
    assert run(capsys, "folded", export, "--lines", "--inline") == (0, "x;hot 7\n", "")


MAP = """\
555500000000 100 first
555500000100 80 Main.run(int) with blanks
not a line
555500000040 20 inside
555500000f00 ffffffffffffffff end;less\033[2J
"""


def test_perf_map(tmp_path, capsys):
    """It names code of no file, in the process of its number. Later lines count."""
    path = tmp_path / "perf-7.map"
    path.write_text(MAP)
    places = [0, 0x3F, 0x40, 0x5F, 0x60, 0x17F, 0x180, 0xF01]
    rows = [sample(BASE + at, 1, pid=7, samples=1, comm=str(i)) for i, at in enumerate(places)]
    rows.append(sample(BASE, 1, pid=8, comm="other"))
    export = write(tmp_path, [], [area(1, 0, BASE, 0)], rows)
    status, out, err = run(capsys, "folded", export, "--perf-map", str(path))
    assert (status, err) == (0, "")
    assert dict(line.rsplit(" ", 1)[0].split(";") for line in out.splitlines()) == {
        **{"0": "first", "1": "first", "2": "inside", "3": "inside", "4": f"{BASE + 0x60:#x}"},
        **{"5": "Main.run(int) with blanks", "6": f"{BASE + 0x180:#x}", "7": "end\\x3bless?[2J"},
        "other": f"{BASE:#x}",
    }
    for name in "folded", "stacks", "speedscope", "callgrind":
        assert "Main.run(int)" in run(capsys, name, export, "--perf-map", str(path))[1]
    wrong = run(capsys, "folded", export, "--perf-map", str(tmp_path / "x.map"))
    assert wrong[0] == 2 and wrong[2].count("\n") == 1 and "perf-<pid>.map" in wrong[2]


def test_maps_in_exports(tmp_path, capsys):
    """The export has them by process, in characters that stand for bytes; files come first."""
    rows = [sample(BASE, 1, pid=pid, comm=f"p{pid}") for pid in (7, 8, 9)]
    lines = [(7, f"{BASE:x} 80 caf\xc3\xa9"), (8, f"{BASE:x} 80 eight"), (8, "not a line")]
    damaged = [{"pid": "x", "line": "1 1 x"}, {"pid": 9}, {"pid": 9, "line": "\u20ac"}]
    maps = [{"pid": pid, "line": line} for pid, line in lines] + damaged
    export = write(tmp_path, [], [area(1, 0, BASE, 0)], rows, maps)
    status, out, err = run(capsys, "folded", export)
    assert (status, err) == (0, "")
    names = {line.rsplit(" ", 1)[0] for line in out.splitlines()}
    assert names == {"p7;caf\u00e9", "p8;eight", f"p9;{BASE:#x}"}
    (tmp_path / "perf-8.map").write_text(f"{BASE:x} 80 other\n")
    out = run(capsys, "folded", export, "--perf-map", str(tmp_path / "perf-8.map"))[1]
    assert "p8;other" in out and "p7;caf" in out


def test_plugin_at_a_reused_address(tmp_path, capsys):
    """dlclose, then dlopen of another library at the same address: each has its own names."""
    plugins = []
    for i in range(2):
        path = tmp_path / f"plugin{i}.so"
        source = f"int first{i}(int n) {{ return n * {i + 3}; }}"
        compiler = ["gcc", "-O2", "-shared", "-x", "c", "-", "-o", path]
        subprocess.run(compiler, input=source, text=True, check=True)
        plugins.append((path, offset_of(path, address_of(path, f"first{i}"))))
    page = plugins[0][1] & -4096
    assert page == plugins[1][1] & -4096
    images = [image(path, i + 1) | {"path": str(path)} for i, (path, _) in enumerate(plugins)]
    maps = [area(1, 1, BASE, page), area(2, 2, BASE, page, parent=1)]
    rows = [sample(BASE + at - page, i + 1, comm=f"{i}") for i, (_, at) in enumerate(plugins)]
    export = write(tmp_path, images, maps, rows)
    assert run(capsys, "folded", export)[1].splitlines() == ["0;first0 7", "1;first1 7"]


def wait_row(address: str, user: list[int], pid: int = 1) -> dict:
    row = {"cpu": 0, "waits": 3, "asleep_ns": 900, "ready_ns": 5, "longest_ns": 9, "pid": pid}
    row |= {"comm": "x", "what": "futex", "address": address, "code_map": 1, "kernel": []}
    row |= {"user": [f"{at:#x}" for at in user], "waker_comm": None, "waker_code_map": 0}
    return row | {"waker_kernel": None, "waker_user": None}


def table_export(built: Built, lock: int, user: list[int]) -> str:
    """Returns an export with the tables of a kernel that could not read the file."""
    path = built.directory / "tables.lego"
    at, page = built.offset, built.page
    block = at & -256
    what = f"futex {lock:#x} (in hotter+{at:#x} < hotter+{at + 1:#x})"
    files = {
        "source.json": [{"hz": 1000}],
        "samples.json": [sample(built.address, 1)],
        "user_functions.json": [
            {"address": "0x1", "function": f"+{block:#x}", "samples": 7, "file": "/bin/hotter"}
        ],
        "waits.json": [
            {"wait_ns": 905, "what": what, "function": "f", "waker": "w (x)"},
            {"note": f"row 1 waits in hotter+{at:#x} < other+0x10 < hotter+0x0"},
        ],
        "waits_locks.json": [{"wait_ns": 905, "lock": f"futex {lock:#x} (pid 1)"}],
        "waits_stacks.json": [wait_row(f"{lock:#018x}", user)],
        "images.json": [built.image | {"path": "/bin/hotter"}],
        "code_maps.json": [area(1, 1, BASE, page)],
    }
    path.write_bytes(whole(META, files))
    return str(path)


def table(capsys, export: str, name: str, *options: str) -> list[str]:
    argv = "report", export, "--table", name, "--format", "csv", *options
    status, out, err = run(capsys, *argv)
    assert (status, err) == (0, "")
    return out.splitlines()[1:]


def test_tables(tmp_path, capsys):
    """The kernel had a stripped file. This machine has one with symbols."""
    built = Built(tmp_path, ["-pie"])
    lock = address_of(built.path, "waiting_lock")
    lock_at = lock - built.at + built.address  # all segments are moved by the same distance
    export = table_export(built, lock_at, [built.address])
    unnamed = run(capsys, "report", export)[1]
    assert f"hotter+{built.offset:#x}" in unnamed and "waiting_lock" not in unnamed
    built.path.rename(built.directory / "hotter")
    assert table(capsys, export, "user_functions") == [f"{built.at:#018x},hot,7,/bin/hotter"]
    assert table(capsys, export, "waits") == ["905,futex waiting_lock (hotter),f,w (x)"]
    assert table(capsys, export, "waits_locks") == ["905,futex waiting_lock (hotter)"]
    assert "row 1 waits in hot < other+0x10 < hotter+0x0\n" in run(capsys, "report", export)[1]


def test_tables_of_locks_on_the_heap(tmp_path, capsys):
    """They are named by the function that waits, and its caller."""
    built = Built(tmp_path, ["-pie"])
    main = address_of(built.path, "main") - built.at + built.address
    export = table_export(built, 0x7000_1000, [built.address, main + 1])
    built.path.rename(built.directory / "hotter")
    names = "in hot < main"
    assert table(capsys, export, "waits") == [f"905,futex 0x70001000 ({names}),f,w (x)"]
    assert table(capsys, export, "waits_locks") == [f'905,"futex 0x70001000 ({names}, pid 1)"']


def test_names_that_the_kernel_has_cut(tmp_path, capsys):
    """A name of C++ with more than 127 characters is whole, if one in the export begins so."""
    names = [f"_Z5sells{'N1b1cE' * 20}{end}" for end in "il"] + [f"_Z3buy{'i' * 130}"]
    symbols = [
        {"image": 1, "address": f"{0x1000 + at:#x}", "offset": f"{at:#x}", "bytes": 8}
        | {"function": name}
        for at, name in enumerate(names)
    ]
    path = tmp_path / "run.lego"
    rows = [{"function": name[:127], "calls": 1} for name in names]
    files = {"images.json": [{"image": 1, "path": "/bin/x", "bytes": 5, "build_id": "01" * 20}]}
    path.write_bytes(whole(META, files | {"symbols.json": symbols, "strace.json": rows}))
    _, out, _ = run(capsys, "report", str(path), "--table", "strace", "--format", "json")
    found = [json.loads(line)["function"] for line in out.splitlines()]
    assert found == [names[0][:127], names[1][:127], f"buy({', '.join(['int'] * 130)})"]


def test_long_names_in_sentences():
    for name, short in {
        "sell(int)": "sell(int)",
        f"sell<{'int, ' * 20}>(int)": "sell<...>(...)",
        f"a::{{lambda({'int, ' * 20})#1}}::operator()": "a::{...}::operator(...)",
        f"operator<< <{'int, ' * 20}>(int)": f"operator<< <{'int, ' * 20}>(int)"[:79] + "~",
        "x" * 90: "x" * 79 + "~",
    }.items():
        assert elf_symbols.shortened(name) == short


def test_user_functions_stay_if_samples_are_missing(tmp_path, capsys):
    built = Built(tmp_path, ["-pie"])
    export = Path(table_export(built, 1, []))
    rows = {"user_functions.json": [{"function": "+0x1", "samples": 8, "file": "/bin/hotter"}]}
    files = {"samples.json": [sample(built.address, 1)], **rows}
    files |= {"images.json": [built.image], "code_maps.json": [area(1, 1, BASE, built.page)]}
    export.write_bytes(whole(META, files))
    built.path.rename(built.directory / "hotter")
    assert table(capsys, str(export), "user_functions") == ["'+0x1,8,/bin/hotter"]


HOSTILE_NAMES = [
    "a;b", "a b 9", "9", "(1) x", "\x1b[2Jx", "a\nb 7", "\r", "\t", "[x]", "--", "fn=evil", "a'2",
    "%s%n", "<b>&", '"', "\\", "caf\u00e9", "\u202eabc", "\x7f", "x" * 5000, "_Z", "_ZN", "_R",
    "_Z" + "N" * 500, "_ZN4shop3hotE" + "i" * 300, "@", "@@V", "a@@V1.2", "$", ".",
]  # fmt: skip


def test_hostile_names(tmp_path, capsys):
    """Each format has one frame for a function, whatever its name is, and no control characters."""
    built = Built(tmp_path, ["-pie"])
    export, longest = built.export(str(built.path)), max(map(len, HOSTILE_NAMES)) * 2
    command("objcopy", f"--redefine-sym=hot={'q' * longest}", built.path)
    whole_file = built.path.read_bytes()
    at = whole_file.index(b"q" * longest)
    for name in HOSTILE_NAMES:
        data = name.encode().ljust(longest, b"\0")
        built.path.write_bytes(whole_file[:at] + data + whole_file[at + longest :])
        for kind, text in all_formats(capsys, export, tmp_path / "out").items():
            assert kind == "pprof" or not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text), kind
        status, out, err = run(capsys, "folded", export)
        assert (status, err, out.count("\n")) == (0, "", 1)
        assert re.fullmatch(r"x;[^;\x00-\x1f\x7f]+ 7\n", out)
        _, out, _ = run(capsys, "callgrind", export)
        assert len(re.findall(r"^fn=", out, re.MULTILINE)) == 2 and "totals: 7" in out


def damaged(data: bytes, seed: int) -> bytes:
    """Returns an ELF file whose tables are damaged, or which ends too early."""
    chance = random.Random(seed)
    found = bytearray(data)
    shoff = int.from_bytes(data[40:48], "little")
    places = [range(16, 64), range(64, 64 + 56 * 12), range(shoff, len(data))]
    for _ in range(1 + seed % 7):
        at = chance.choice(chance.choice(places))
        value = chance.choice([0, 1, 255, 2**31, 2**32 - 1, 2**63, 2**64 - 1])
        found[at : at + 8] = value.to_bytes(8, "little")[: max(len(found) - at, 0)]
    return bytes(found[: chance.randrange(len(found))] if seed % 5 == 0 else found)


def test_hostile_files(tmp_path, capsys):
    """A damaged file is refused in one line, or read: its numbers lead to no endless work."""
    built = Built(tmp_path, ["-g", "-pie"])
    export, data = built.export(str(built.path)), built.path.read_bytes()
    results = set()
    for seed in range(120):
        built.path.write_bytes(damaged(data, seed))
        for options in [], ["--program", str(built.path)]:
            status, out, err = run(capsys, "folded", export, *options)
            results.add((status, out))
            assert status in (0, 2) and err.count("\n") <= 1 and out.count("\n") == (status == 0)
    assert {(0, "x;hot 7\n"), (2, "")} <= results


@pytest.mark.parametrize(
    "start,names",
    [
        ("_stext", ["_stext", "send", "get", "get.part.0", "main.part"]),
        ("_start", ["_start", "send", "get", "get", "main.part"]),
    ],
)
def test_functions_have_the_names_of_reports(tmp_path, start, names):
    """What compilers append is left out; in kernels, unless that makes two names equal."""
    source, program = tmp_path / "code.s", tmp_path / "code"
    functions = [start, "send.constprop.0", "get", "get.part.0", "main.part"]
    source.write_text(f".globl {start}\n" + "".join(f"{one}: ret\n" for one in functions))
    command = ["gcc", "-nostdlib", "-static", f"-Wl,-e,{start}", source, "-o", program]
    subprocess.run(command, check=True)
    assert legoprof.profiles.symbols.Symbols(program).names == names
