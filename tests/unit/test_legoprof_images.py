# SPDX-License-Identifier: BSD-2-Clause
"""Names of user code: the file that an address belongs to, and files that are refused."""

from __future__ import annotations

import gzip
import json
import re
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from test_legoprof import META, SAMPLE, legoprof, profile_export, run
from test_legoprof_fuzz import WAIT, whole

BASE = 0x5555_0000_0000
KERNEL = 0xFFFF_FFFF_8100_0000
SOURCE = """
void first(void) { asm volatile("nop; nop"); }
void _start(void) { first(); }
"""


def test_names_are_demangled():
    """Without the hashes of Rust: the third name is of its old mangling, the fourth of the new."""
    names = ["_ZN4shop4sellEi", "main", "_ZN4shop4sell17h0123456789abcdefE", "_RNvCs1_4shop4sell"]
    names += ["_ZN3fooC1Ev", "_Z"]
    expected = ["shop::sell(int)", "main", "shop::sell", "shop::sell", "foo::foo()", "_Z"]
    assert legoprof.profiles.symbols.demangle(names) == expected


@pytest.fixture
def build(tmp_path):
    """Returns a function that builds a program: (path, address of first(), its offset)."""

    def build_program(name: str, *flags: str, source: str = SOURCE) -> tuple[Path, int, int]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        command = ["gcc", "-O0", "-nostdlib", "-x", "c", "-", "-o", path, *flags]
        subprocess.run(command, input=source, text=True, check=True)
        symbols = legoprof.profiles.stacks.Symbols(path)
        address = symbols.addresses[symbols.names.index("first")]
        return path, address, address - symbols.start + symbols.offset

    return build_program


def image(path: Path, number: int = 1) -> dict:
    found = legoprof.profiles.stacks.Symbols(path)
    row = {"image": number, "path": f"/bin/{path.name}", "bytes": found.bytes}
    return row | {"build_id": found.build_id}


def area(number: int, image: int, start: int, offset: int, parent: int = 0):
    row = {"code_map": number, "parent": parent, "image": image}
    ends = {"start": start, "end": start + 4096, "offset": offset}
    return row | {key: f"{value:#018x}" for key, value in ends.items()}


def sample(address: int, code_map: int, **values: object) -> dict:
    row = SAMPLE | {"comm": "x", "syscall": None, "kernel": [], "class": "user"}
    return row | {"user": [f"{address:#x}"], "code_map": code_map} | values


def write(
    tmp_path: Path,
    images: list[dict],
    maps: list[dict],
    samples: list[dict],
    jit_maps: list[dict] | None = None,
    symbols: list[dict] | None = None,
) -> str:
    path = tmp_path / "run.lego"
    files = {"source.json": [{"hz": 1000}], "samples.json": samples}
    files |= {"images.json": images, "code_maps.json": maps, "jit_maps.json": jit_maps or []}
    files |= {"symbols.json": symbols or []}
    path.write_bytes(whole(META, {name: rows for name, rows in files.items() if rows}))
    return str(path)


ALIASES = """
void __libc_first(void) { asm volatile(".type $label, @notype; $label: nop"); }
void __first(void) __attribute__((alias("__libc_first")));
void first(void) __attribute__((alias("__libc_first")));
void _start(void) { first(); }
"""


def test_one_name_of_several(build):
    """The name with the fewest underscores in front is taken, and no label."""
    path, _, _ = build("program", "-static", source=ALIASES)
    names = legoprof.profiles.stacks.Symbols(path).names
    assert "first" in names and not {"__first", "__libc_first", "$label"} & set(names)


@pytest.mark.parametrize("flags", [["-static", "-no-pie"], ["-static-pie"], ["-shared", "-s"]])
def test_names_by_offset(build, tmp_path, capsys, flags):
    """
    Names are found wherever a program or a library is mapped. If it has no symbol table, exported
    symbols are used.
    """
    elf, _, offset = build("program", *flags)
    page = offset & -4096
    maps = [area(1, 1, BASE, page)]
    export = write(tmp_path, [image(elf)], maps, [sample(BASE + offset - page, 1)])
    argv = "folded", export, "--program", str(elf)
    assert run(capsys, *argv) == (0, "x;first 7\n", "")


def test_stripped_library(build, tmp_path, capsys):
    """Code between the exported functions of a library has the library's name."""
    source = "void first(void) {} static void own(void) {} void last(void) { own(); }"
    elf, _, offset = build("library.so", "-shared", "-s", source=source)
    page = offset & -4096
    samples = [sample(BASE + offset - page + i, 1, samples=1) for i in range(40)]
    export = write(tmp_path, [image(elf)], [area(1, 1, BASE, page)], samples)
    _, out, _ = run(capsys, "folded", export, "--program", str(elf))
    names = {line.split(";")[1].split()[0].partition("+")[0] for line in out.splitlines()}
    assert names == {"first", "library.so", "last"}


def test_newest_area_counts(build, tmp_path, capsys):
    """If areas overlap, the newest one counts, in a code map and in those that extend it."""
    elf, _, offset = build("program", "-static-pie")
    page, at = offset & -4096, BASE + offset % 4096
    maps = [area(1, 1, BASE, page), area(2, 2, BASE, page, parent=1), area(3, 1, 4096, 0, parent=2)]
    images = [image(elf), image(elf, 2) | {"path": "/bin/other", "build_id": "00"}]
    samples = [sample(at, nr, comm=str(nr)) for nr in range(4)]
    export = write(tmp_path, images, maps, samples)
    _, out, _ = run(capsys, "folded", export, "--program", str(elf))
    assert out.splitlines() == [
        f"0;{at:#x} 7",
        "1;first 7",
        f"2;other+{offset:#x} 7",
        f"3;other+{offset:#x} 7",
    ]


def test_wrong_program_is_refused(build, tmp_path, capsys):
    elf, _, offset = build("program", "-static-pie")
    wrong, *_ = build("other/program", "-static-pie", source=SOURCE + "int x = 1;")
    alien, *_ = build("alien", "-static-pie", source=SOURCE + "int y = 1;")
    export = write(tmp_path, [image(elf)], [area(1, 1, BASE, 0)], [sample(BASE + offset, 1)])
    for path, why in (wrong, "is not the program that ran: /bin/program ("), (
        alien,
        "did not run: the programs of this export are /bin/program\n",
    ):
        status, out, err = run(capsys, "folded", export, "--program", str(path))
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"legoprof: error: {path} (build id ") and why in err, err


def test_program_without_build_id(build, tmp_path, capsys):
    elf, _, offset = build("program", "-static", "-no-pie", "-Wl,--build-id=none")
    page = offset & -4096
    samples = [sample(BASE + offset - page, 1)]
    export = write(tmp_path, [image(elf)], [area(1, 1, BASE, page)], samples)
    status, out, err = run(capsys, "folded", export, "--program", str(elf))
    assert (status, out) == (0, "x;first 7\n")
    assert err.endswith("/bin/program has no build id: only its name and size identify it\n")
    elf.write_bytes(elf.read_bytes() + b"\0")
    assert "is not the program that ran" in run(capsys, "folded", export, "--program", str(elf))[2]


def test_mappings_without_room(tmp_path, capsys):
    """legoprof prints the kernel's note on lost mappings as a warning."""
    lost = {"note": "mappings of code without room"}
    export = write(tmp_path, [lost], [area(1, 0, BASE, 0)], [sample(BASE, 1)])
    out = run(capsys, "folded", export)
    assert out == (0, f"x;{BASE:#x} 7\n", f"legoprof: {export}: {lost['note']}\n")


def mmap_records(data: bytes) -> list[tuple[int, int, int, bytes, str]]:
    """Returns pid, start, offset, build id and path of each MMAP2 record in a perf.data."""
    at, size = struct.unpack_from("<QQ", data, 40)
    found, end = [], at + size
    while at < end:
        kind, misc, length = struct.unpack_from("<IHH", data, at)
        if kind == 10:
            pid, _, start, _, offset, nr = struct.unpack_from("<IIQQQB", data, at + 8)
            build_id = data[at + 44 : at + 44 + nr]
            assert bool(misc & 1 << 14) == bool(build_id)
            path = data[at + 72 : at + length].split(b"\0")[0].decode()
            found.append((pid, start, offset, build_id, path))
        at += length
    return found


def test_perf_maps(build, tmp_path, capsys):
    """
    perf.data has build ids even if no file is given, and unmaps a program when its process runs
    another one.
    """
    elf, *_ = build("elsewhere/program", "-static-pie")
    maps = [area(1, 1, BASE, 0x1000), area(2, 2, BASE * 2 // 3, 0)]
    images = [image(elf), {"image": 2, "path": "/lib/\033", "bytes": 5, "build_id": None}]
    samples = [sample(BASE, 1), sample(BASE, 2, pid=5), sample(BASE, 2), sample(BASE, 1, pid=5)]
    export, out = write(tmp_path, images, maps, samples), tmp_path / "perf.data"
    status, _, err = run(capsys, "perf-data", export, "-o", str(out))
    assert status == 0 and err.count("\n") == 1 and "/lib/? has no build id" in err
    build_id = bytes.fromhex(image(elf)["build_id"])
    program = BASE, 0x1000, build_id, "/bin/program"
    library = BASE * 2 // 3, 0, b"", "/lib/?"
    assert mmap_records(out.read_bytes()) == [
        (1, *program),
        *((1, BASE, 0x1000, b"", "//anon"), (1, *library)),
        (5, *program),
        *((5, BASE, 0x1000, b"", "//anon"), (5, *library)),
    ]
    run(capsys, "perf-data", export, "-o", str(out), "--program", str(elf))
    assert mmap_records(out.read_bytes())[0] == (1, BASE, 0x1000, build_id, str(elf))


def test_export_of_an_older_kernel(build, tmp_path, capsys):
    """
    The export has no images. A program is found by the name of the task, and its addresses are
    those in the ELF file.
    """
    elf, address, _ = build("program", "-static", "-no-pie")
    row = sample(address, 0, comm="program")
    del row["code_map"]
    export = write(tmp_path, [], [], [row, row | {"comm": "other"}])
    argv = "folded", export, "--program", str(elf)
    assert run(capsys, *argv) == (0, f"program;first 7\nother;{address:#x} 7\n", "")


@pytest.mark.parametrize("flags", [["-static", "-no-pie"], ["-static-pie"], ["-shared"]])
def test_split_debug_file(build, tmp_path, capsys, flags):
    """Its offsets are not those of the program, wherever the program's code begins in its file."""
    elf, _, offset = build("program", *flags)
    split = tmp_path / "program.debug"
    subprocess.run(["objcopy", "--only-keep-debug", elf, split], check=True)
    page = offset & -4096
    samples = [sample(BASE + offset - page, 1)]
    for shift in 0, 0x7000:  # GNU ld's offsets equal addresses, lld's do not
        export = write(tmp_path, [image(elf)], [area(1, 1, BASE, page + shift)], samples)
        argv = "folded", export, "--program", str(split)
        assert run(capsys, *argv) == (0, "x;first 7\n", "")


def test_notes_of_others_are_no_build_id(build):
    """A note of another owner may have the same type, as systemtap's have."""
    note = '.pushsection .note.example,"",@note; .balign 4; .long 8, 4, 3; .asciz "example"; '
    note += ".long 0x12345678; .popsection"
    elf, *_ = build("program", "-static", source=f"{SOURCE}asm({json.dumps(note)});")
    out = subprocess.run(["readelf", "-n", elf], capture_output=True, text=True, check=True).stdout
    assert "example" in out
    build_id = re.search(r"Build ID: (\w+)", out)[1]
    assert legoprof.profiles.stacks.Symbols(elf).build_id == build_id


def test_truncated_chains(tmp_path, capsys):
    """pprof and perf.data have a frame where the outer end of a chain is missing, as all others."""
    rows = [sample(BASE, 1, truncated=f"reason {i % 20}", pid=1 + i % 2) for i in range(80)]
    export = write(tmp_path, [], [area(1, 0, BASE, 0)], [*rows, sample(BASE, 1)])
    out = tmp_path / "out"
    assert run(capsys, "pprof", export, "-o", str(out)) == (0, "", "")
    names = re.findall(rb"\[cut: reason \d+\]", gzip.decompress(out.read_bytes()))
    assert sorted(names) == sorted(b"[cut: reason %d]" % i for i in range(20))
    assert run(capsys, "perf-data", export, "-o", str(out)) == (0, "", "")
    found = mmap_records(out.read_bytes())
    pages = [(pid, start, path) for pid, start, *_, path in found if path != "//anon"]
    assert len(pages) == len(set(pages)) and {start for _, start, _ in pages} == {
        4096 * i for i in range(1, 16)
    }
    assert (1, 4096, "[cut: reason 0]") in pages
    assert {path for *_, path in pages if "reasons" in path} == {"[cut: for other reasons]"}


def objdump_functions(path: Path) -> dict[str, int]:
    """Returns where functions begin, stubs of the linker included, as objdump finds them."""
    out = subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=True).stdout
    return {name: int(at, 16) for at, name in re.findall(r"^(\w+) <(.+)>:$", out, re.MULTILINE)}


@pytest.mark.parametrize("flags", [[], ["-fcf-protection"], ["-fno-plt"], ["-static"]])
def test_stubs_of_the_linker(tmp_path, flags):
    """A stub is called after the function that it jumps to, as objdump calls it."""
    path = tmp_path / "program"
    source = "#include <string.h>\n#include <stdlib.h>\nint main(int c, char **v)"
    source += '{ return atoi(v[0]) + strlen(v[0]) + !strchr(v[0], c); }'
    command = ["gcc", "-O1", "-fno-builtin", "-Wl,-z,lazy", "-x", "c", "-", "-o", path, *flags]
    subprocess.run(command, input=source, text=True, check=True)
    symbols = legoprof.profiles.stacks.Symbols(path)
    stubs = {name: at for name, at in objdump_functions(path).items() if name.endswith("@plt")}
    named = {name: at for name, at in stubs.items() if not name.startswith("*")}
    for name, at in named.items():
        assert symbols.function(at) == symbols.function(at + 6) == (at, name)
    assert {"strtol@plt", "strlen@plt"} <= named.keys() or flags in (["-fno-plt"], ["-static"])
    for at in stubs.values():  # those of a static program have no names in objdump
        assert symbols.function(at)[1].endswith("@plt")


ASSEMBLY = r"""
.globl outer; .type outer, @function; outer: nop; inside: nop; nop; ret; .size outer, . - outer
.globl bare; bare: nop; ret
.globl first; .type first, @function; first: nop; ret; .size first, . - first
.globl _start; _start: nop
"""


def test_labels_inside_functions(build):
    source = f"asm({json.dumps(ASSEMBLY)});"
    path, *_ = build("program", "-static", "-no-pie", source=source)
    symbols = legoprof.profiles.stacks.Symbols(path)
    assert symbols.names == ["outer", "bare", "first", "_start"]
    assert symbols.function(symbols.addresses[0] + 2)[1] == "outer"


@pytest.mark.parametrize("flags", [["-static"], ["-static", "-s"]])
def test_caller_of_a_signal_handler(tmp_path, capsys, flags):
    """It is the C library's return from the signal, which is not behind a call."""
    path = tmp_path / "program"
    source = "#include <signal.h>\nvoid f(int n) {}\nint main(void) { signal(2, f); }"
    command = ["gcc", "-x", "c", "-", "-no-pie", "-o", path]
    for more in [], flags:
        subprocess.run([*command, "-static", *more], input=source, text=True, check=True)
        if not more:
            at = objdump_functions(path)["__restore_rt"]
    offset = at - 0x401000 + 0x1000
    stack = sample(0x10, 1) | {"user": ["0x10", f"{BASE + offset % 4096:#x}"]}
    maps = [area(1, 1, BASE, offset & -4096)]
    export = write(tmp_path, [image(path)], maps, [stack])
    argv = "folded", export, "--program", str(path)
    assert run(capsys, *argv) == (0, "x;__restore_rt;0x10 7\n", "")


def test_one_name_in_kernel_and_program(build, tmp_path, capsys, monkeypatch):
    """The function of the program has its file, so that no format joins the two."""
    kernel, address, _ = build("vmlinux", "-static", "-no-pie", source=SOURCE + "int x = 3;")
    elf, _, offset = build("program", "-static")
    page = offset & -4096
    rows = [sample(BASE + offset - page, 1), sample(1, 0, user=[], kernel=[f"{address:#x}"])]
    monkeypatch.setitem(META, "build_id", image(kernel)["build_id"])
    export = write(tmp_path, [image(elf)], [area(1, 1, BASE, page)], rows)
    argv = export, "--kernel", str(kernel), "--program", str(elf)
    assert run(capsys, "folded", *argv) == (0, "x;first@program 7\nx;first 7\n", "")
    _, out, _ = run(capsys, "report", *argv, "--by", "function", "--format", "csv")
    assert out.splitlines()[1:] == ["7,50.00,first@program", "7,50.00,first"]


def test_mappings_of_pprof(tmp_path, capsys):
    """Two files that had the same path one after the other are two mappings, of whole pages."""
    images = [image_row(i, f"{i:02x}" * 20) for i in (1, 2)]
    maps = [area(i, i, BASE, 0x1000) for i in (1, 2)]
    export = write(tmp_path, images, maps, [sample(BASE + 9, i) for i in (1, 2)])
    out = tmp_path / "out"
    assert run(capsys, "pprof", export, "-o", str(out)) == (0, "", "")
    data = gzip.decompress(out.read_bytes())
    assert data.count(b"01" * 20) == data.count(b"02" * 20) == data.count(b"/bin/x") == 1
    profile = legoprof.pprof.Profile
    loaded = profile_export.load(export)
    names = legoprof.Names(loaded, [], [])
    found = profile(legoprof.profiles.stacks.read(loaded), names)
    assert len(found.mappings) == 3
    found.mapping("a", 0x201120, 0x202000, 0x120, None, None)
    assert ("a", 0x201000, 0, None) in found.mappings


def image_row(number: int, build_id: str | None, path: str = "/bin/x") -> dict:
    return {"image": number, "path": path, "bytes": 5, "build_id": build_id}


def test_perf_looks_up_calls(tmp_path, capsys):
    """perf takes addresses as they are, so that those of calls are written, not what follows."""
    row = sample(BASE + 9, 0) | {"user": [f"{BASE + 9:#x}", f"{BASE + 0x20:#x}", "0x0"]}
    export, out = write(tmp_path, [], [], [row]), tmp_path / "out"
    assert run(capsys, "perf-data", export, "-o", str(out)) == (0, "", "")
    assert struct.pack("<3Q", BASE + 9, BASE + 0x1F, 0) in out.read_bytes()


def symbol(image: int, address: int, offset: int, size: int, name: str | None) -> dict:
    numbers = {"address": f"{address:#018x}", "offset": f"{offset:#018x}", "bytes": size}
    return {"image": image, **numbers, "function": name}


def test_names_of_the_export(tmp_path, capsys):
    """Where the files that ran are not at hand, functions have the names that the kernel knew."""
    symbols = [
        symbol(1, 0x401200, 0x1200, 16, None),
        symbol(1, 0x401100, 0x1100, 64, "_ZN4shop4sellEi"),
        symbol(0, KERNEL, 0, 32, "schedule"),
        symbol(7, 0x401100, 0x1100, 64, "of no file"),
    ]
    rows = [sample(BASE + at, 1) for at in (0x110, 0x120, 0x205, 0x300)]
    rows += [sample(1, 0, user=[], kernel=[f"{at:#x}"]) for at in (KERNEL + 16, 9)]
    maps = [area(1, 1, BASE, 0x1000)]
    export = write(tmp_path, [image_row(1, "01" * 20)], maps, rows, symbols=symbols)
    found = Counter(dict(line.rsplit(" ", 1) for line in folded(capsys, export)))
    names = {"shop::sell(int)": "14", "x+0x1200": "7", "x+0x1300": "7", "schedule": "7", "0x9": "7"}
    assert found == {f"x;{name}": nr for name, nr in names.items()}
    assert "x;_ZN4shop4sellEi 14" in folded(capsys, export, "--no-demangle")
    _, out, _ = run(capsys, "report", export)
    assert "schedule" not in out and "symbols" not in out
    out = tmp_path / "out"
    for command in "pprof", "perf-data", "page":  # they take nothing for a file of this machine
        assert run(capsys, command, export, "-o", str(out)) == (0, "", "")
        assert command != "pprof" or b"schedule" in gzip.decompress(out.read_bytes())


def readelf(path: Path, *options: str) -> str:
    return subprocess.run(
        ["readelf", "-W", *options, path], capture_output=True, text=True, check=True
    ).stdout


def test_files_with_names_for_perf(tmp_path, capsys):
    """What is not at hand gets a file with the names of the export, and perf.data refers to it."""
    start = KERNEL + 0x1040
    symbols = [
        symbol(1, 0x401100, 0x1100, 64, "sell"),
        symbol(1, 0x405200, 0x4200, 16, "buy"),  # of another segment
        symbol(0, start, 0, 32, "schedule"),
        symbol(0, start + 0x2000, 0, 32, "wake"),
    ]
    rows = [sample(BASE + 0x110, 1, kernel=[f"{start:#x}"])]
    maps = [area(1, 1, BASE, 0x1000)]
    for name in "/bin/x", "/bin/../..", "/bin/a b", "":
        images = [image_row(1, "01" * 20, name)]
        export = write(tmp_path, images, maps, rows, symbols=symbols)
        out = tmp_path / f"of{name.replace('/', '_')}" / "out"
        out.parent.mkdir()
        assert run(capsys, "perf-data", export, "-o", str(out)) == (0, "", "")
        user = out.with_suffix(".symbols") / ("01" * 20) / ("x" if name == "/bin/x" else "file")
        kernel = out.with_suffix(".symbols") / META["build_id"] / "vmlinux"
        for path, build_id in (kernel, META["build_id"]), (user, "01" * 20):
            assert f"{path}\0".encode() in out.read_bytes()
            assert f"Build ID: {build_id}\n" in readelf(path, "-n")
        line = re.compile(r"([0-9a-f]{16}) +(\d+) FUNC +GLOBAL .* (\w+)$", re.MULTILINE)
        found = line.findall(readelf(user, "-s"))
        assert found == [("0000000000401100", "64", "sell"), ("0000000000405200", "16", "buy")]
        loads = re.findall(r"LOAD +0x(\w+) 0x0*(\w+) ", readelf(user, "-l"))
        assert loads == [("000000", "400000"), ("004000", "405000")]
        assert re.findall(r"LOAD +0x(\w+) 0x(\w+) ", readelf(kernel, "-l")) == [
            ("000000", f"{KERNEL + 0x1000:x}")
        ]


def test_no_files_beside_a_device(tmp_path, capsys):
    symbols = [symbol(1, 0x401100, 0x1100, 64, "sell")]
    export = write(
        tmp_path, [image_row(1, "01" * 20)], [area(1, 1, BASE, 0x1000)],
        [sample(BASE + 0x110, 1)], symbols=symbols,
    )  # fmt: skip
    assert run(capsys, "perf-data", export, "-o", "/dev/null") == (0, "", "")
    assert not Path("/dev/null.symbols").exists()


def test_one_name_without_files(tmp_path, capsys):
    """A user function is not joined with the kernel's of that name, also with exported names."""
    symbols = [symbol(1, 0x401100, 0x1100, 64, "write"), symbol(0, KERNEL, 0, 32, "write")]
    rows = [sample(BASE + 0x110, 1), sample(1, 0, user=[], kernel=[f"{KERNEL:#x}"])]
    maps = [area(1, 1, BASE, 0x1000)]
    export = write(tmp_path, [image_row(1, "01" * 20)], maps, rows, symbols=symbols)
    assert sorted(folded(capsys, export)) == ["x;write 7", "x;write@x 7"]


def folded(capsys, export: str, *options: str) -> list[str]:
    status, out, err = run(capsys, "folded", export, *options)
    assert (status, err) == (0, "")
    return out.splitlines()


def test_names_of_files_come_first(build, tmp_path, capsys):
    """A file has lines and inlined functions, which the export has not."""
    elf, address, offset = build("program", "-static")
    page = offset & -4096
    maps, rows = [area(1, 1, BASE, page)], [sample(BASE + offset - page, 1)]
    symbols = [symbol(1, address, offset, 16, "exported")]
    export = write(tmp_path, [image(elf)], maps, rows, symbols=symbols)
    elf = elf.rename(tmp_path / "other")
    assert folded(capsys, export) == ["x;exported 7"]
    assert folded(capsys, export, "--program", str(elf)) == ["x;first 7"]


def test_locks_of_the_export(tmp_path, capsys):
    """A lock in a variable has the name that the kernel knew; others, who waits for it."""
    maps = [area(1, 1, BASE, 0x1000)]
    wait = WAIT | {"what": "futex", "user": [f"{BASE + 0x110:#x}"], "code_map": 1}
    waits = [
        wait | {"address": "0x4bb360", "object": "totals_lock (x)"},
        wait | {"address": "0x4bb370", "object": None},
    ]
    symbols = [symbol(1, 0x401100, 0x1100, 64, "sell")]
    locks = [{"what": f"futex {row['address']} (pid 1)"} for row in waits]
    path = tmp_path / "run.lego"
    files = {"waits.json": locks, "waits_stacks.json": waits, "code_maps.json": maps}
    files |= {"images.json": [image_row(1, "01" * 20)], "symbols.json": symbols}
    path.write_bytes(whole(META, files))
    _, out, _ = run(capsys, "report", str(path), "--table", "waits", "--format", "csv")
    names = ["futex totals_lock (x)", "futex 0x4bb370 (in sell, pid 1)"]
    assert out.splitlines() == ["what", *names[:1], f'"{names[1]}"']
