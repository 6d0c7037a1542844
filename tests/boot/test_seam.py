# SPDX-License-Identifier: BSD-2-Clause
"""
kernel/profile/ compiles for another kernel (tests/seam/) with different types and names: each
profiler alone, and all together. Each needs no more lines of glue than porting.md promises, and
calls no function that tests/seam/kernel.h does not declare. With batteries/, so it does for a
kernel that has next to nothing (tests/seam/bare/).
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT, code_lines

sys.path.insert(0, str(ROOT / "scripts"))
import dist  # noqa: E402

SEAM = ROOT / "tests/seam"
PROFILE = ROOT / "kernel/profile"
# The parts of tests/seam/os.h, apart from common.h, and their options.
OPTIONS = {
    "strace": ["STRACE", "STRACE_DETAIL"],
    "live": ["STRACE_LIVE"],
    "samples": ["HEATMAP"],
    "chains": ["CALLCHAIN"],
    "trace": ["TRACE"],
    "waits": ["WAITS"],
    "files": ["FILES"],
    "path": ["PATH"],
    "export": ["EXPORT"],
    "images": ["IMAGES"],
    "memory": ["MEMORY", "MEMORY_CHAINS"],
    "working_set": ["WORKING_SET"],
    "functions": ["FUNCTIONS"],
    "selftest": ["SELFTEST"],
}
# Parts that need no header of their own, and those whose folder is called otherwise.
WITHOUT_HEADER = {"files", "path", "selftest"}
FOLDERS = {"live": "strace/live", "files": "strace/files"}
PARTS = {
    "points": [],
    "strace": ["strace"],
    "strace with live": ["strace", "live"],
    "samples": ["samples"],
    "samples with chains": ["samples", "chains"],
    "trace": ["trace"],
    "all": ["strace", "live", "samples", "chains", "trace"],
    "everything": list(OPTIONS),
}
SECTIONS = ("profile_points", "profilers", "trace_events", "tracers", "memory_sites")
SECTIONS += ("profile_params",)
MAX_GLUE = {
    "points": 30,
    "strace": 40,
    "strace with live": 50,
    "samples": 50,
    "samples with chains": 60,
    "trace": 40,
    "all": 80,
    "everything": 150,
}
COMPILERS = [name for name in ("gcc", "clang", "clang-14") if shutil.which(name)][:2]
HAVE_POINTS = ("points", "all", "everything")


def options(seam: str) -> list[str]:
    points = ["POINTS"] if seam in HAVE_POINTS else []
    return points + [option for part in PARTS[seam] for option in OPTIONS[part]]


def flags(
    compiler: str, seam: str, std: str = "gnu11", headers_in: Path = SEAM, general: bool = True
) -> list[str]:
    """general: without registers for floating point, an option that riscv64 does not have."""
    command = [compiler, "-print-file-name=include"]
    headers = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return [
        *(compiler, f"-std={std}", "-O2", "-ffreestanding", "-nostdinc", "-isystem", headers),
        *(["-mgeneral-regs-only"] if general else []),
        *("-fno-pic", "-fno-stack-protector", "-Wall", "-Wextra"),
        *("-Wformat=2", "-Wno-format-nonliteral", "-Wno-unused-parameter", "-Wno-sign-compare"),
        "-Wno-missing-field-initializers",
        *("-Werror", f"-I{headers_in}", f"-I{PROFILE}/include"),
        *("-DPROFILE_OS_HEADER=<os.h>", "-DPROFILE_OS_HOOKS_HEADER=<hooks.h>"),
        *(f"-DCONFIG_PROFILE_{option}=1" for option in options(seam)),
    ]


def run(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, command))}:\n{done.stderr[-3000:]}", False)
    return done.stdout


def check_by_clang(command: list[str], files: list[Path]) -> None:
    """
    Compiles the files, without output, by one process: clang takes longer to start than to read
    one. Only its inner command, `clang -cc1`, accepts several files.
    """
    first, *others = files
    words = [*command, "-fsyntax-only", first, "-###"]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=True)
    inner = shlex.split(done.stderr.splitlines()[-1])
    assert inner[1] == "-cc1" and inner[-1] == str(first), inner
    run(*inner, *others)


def sources(seam: str) -> list[Path]:
    folders = ["", "points"] if seam in HAVE_POINTS else [""]
    folders += [FOLDERS.get(part, part) for part in PARTS[seam]]
    return [source for folder in folders for source in sorted((PROFILE / folder).glob("*.c"))]


def undefined_symbols(seam: str, directory: Path, headers_in: Path = SEAM) -> set[str]:
    objects = []
    for source in sources(seam):
        objects.append(directory / f"{len(objects)}.o")
        command = flags("gcc", seam, headers_in=headers_in)
        run(*command, "-O0", "-c", source, "-o", objects[-1])
    run("ld", "-r", "-o", directory / "all.o", *objects)
    return set(re.findall(r" U (\w+)", run("nm", directory / "all.o")))


def supplied() -> set[str]:
    """Returns the functions that the other kernel declares, and the names from the linker."""
    text = "".join((SEAM / name).read_text() for name in ("kernel.h", "functions.h"))
    bounds = {f"__{end}_{name}" for end in ("start", "stop") for name in SECTIONS}
    return bounds | set(re.findall(r"(\w+)\(", text))


@pytest.mark.parametrize("seam", [seam for seam in PARTS if seam not in ("all", "everything")])
def test_links_without_the_rest(seam, tmp_path):
    """
    Every undefined symbol is one that the other kernel supplies. For "everything",
    test_per_cpu_arrays() tests that, and for "all", test_batteries().
    """
    undefined = undefined_symbols(seam, tmp_path)
    assert ("time_on" in undefined) == ("strace" in PARTS[seam])
    assert undefined <= supplied()


def copy_headers(directory: Path) -> Path:
    """Copies the other kernel's headers, to be changed."""
    headers = directory / "tests/seam"
    shutil.copytree(SEAM, headers)
    (directory / "kernel").symlink_to(ROOT / "kernel")
    return headers


def test_cpu_time_is_optional(tmp_path):
    """A kernel that does not know the CPU time of its threads leaves these two names out."""
    headers = copy_headers(tmp_path)
    for name in "hooks.h", "strace.h":
        lines = (headers / name).read_text().splitlines(keepends=True)
        left = [line for line in lines if not re.search("os_(off|task_exec)_cycles", line)]
        assert len(left) == len(lines) - 1
        (headers / name).write_text("".join(left))
    assert not {"time_on", "time_off"} & undefined_symbols("strace", tmp_path, headers)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("seam", PARTS)
def test_compiles(seam, compiler):
    if compiler != "gcc" and seam in ("points", "samples", "everything"):
        check_by_clang(flags(compiler, seam), sources(seam))
    for std in ("gnu89", "gnu11"):
        run(*flags(compiler, seam, std), "-fsyntax-only", SEAM / "gnu89.c")


def test_names_have_a_prefix():
    """What the hooks' headers define in all files of a kernel cannot clash with its own names."""
    headers = sorted([*PROFILE.glob("include/profile/*.h"), *PROFILE.glob("*/hooks.h")])
    text = re.sub(r"/\*.*?\*/", "", "".join(h.read_text() for h in headers), flags=re.DOTALL)
    names = set(re.findall(r"^#define (\w+)", text, re.M)) - set(re.findall(r"#undef (\w+)", text))
    names |= set(re.findall(r"^(?:struct|union|enum) (\w+) {", text, re.M))
    names |= set(re.findall(r"^[a-z][\w *]*?\b(\w+)\(", text, re.M))
    for members in re.findall(r"^enum (?:\w+ )?{(.*?)}", text, re.M | re.DOTALL):
        names |= set(re.findall(r"^\t(\w+)", members, re.M))
    controls = {"profile_task_init", "PROFILE_UNWIND_SP", "DEFINE_PROFILE_POINT"}
    assert len(headers) >= 9 and controls <= names
    pattern = re.compile(r"(__)?(DEFINE_|print_)?profile_", re.I)  # LegoOS has the last two
    assert not {name for name in names if not pattern.match(name)}


def four_cpus(directory: Path) -> Path:
    """Gives the other kernel CPUs, without per-CPU variables, and returns its headers."""
    headers = copy_headers(directory)
    for name, lines in {
        "kernel.h": "u32 cpu_number(void);\nvoid call_on_cpus(void (*fn)(void *), u32 nr);\n",
        "hooks.h": "#define OS_NR_CPUS 4\n#define os_cpu() cpu_number()\n",
        "common.h": "#define os_run_on_all_cpus(fn) call_on_cpus(fn, 4)\n"
        "#define os_run_on_boot_cpu(fn) call_on_cpus(fn, 1)\n",
    }.items():
        path = headers / name
        before, last, after = path.read_text().rpartition("#endif" if name == "kernel.h" else "#")
        path.write_text(before + lines + last + after)
    return headers


def test_per_cpu_arrays(tmp_path, monkeypatch):
    """
    OS_NR_CPUS and os_cpu() are enough: per-CPU variables are arrays by CPU number. The profiler of
    memory says that it needs more.
    """
    headers, own = four_cpus(tmp_path), {"cpu_number", "call_on_cpus"}
    command = [*flags("gcc", "everything", headers_in=headers), "-fsyntax-only"]
    done = subprocess.run([*command, headers / "gnu89.c"], capture_output=True, text=True)
    assert done.returncode and "MEMORY needs per-CPU variables" in done.stderr
    monkeypatch.setitem(PARTS, "everything", [part for part in OPTIONS if part != "memory"])
    undefined = undefined_symbols("everything", tmp_path, headers)
    assert own <= undefined <= own | supplied()
    sizes = run("nm", "-S", tmp_path / "all.o")
    assert int(re.search(r"^\w+ (\w+) \w profile_deadline$", sizes, re.MULTILINE)[1], 16) == 32
    for compiler, std in itertools.product(COMPILERS, ("gnu89", "gnu11")):
        run(*flags(compiler, "everything", std, headers), "-fsyntax-only", headers / "gnu89.c")


CONTRACTS = {"profile", "points", "strace", "live", "samples", "trace"}
DEFINE = re.compile(r"^#define (os_\w+|OS_\w+).*\n(?:(?<=\\\n).*\n)*", re.MULTILINE)


@pytest.mark.parametrize("cpus", [1, 4])
def test_missing_name_is_said(cpus, tmp_path):
    """Without one of its names, a kernel gets an error that names it, or a default."""
    headers = four_cpus(tmp_path) if cpus == 4 else copy_headers(tmp_path)
    source = tmp_path / "contracts.c"
    contracts = sorted(path for path in PROFILE.rglob("os.h") if path.parent.name in CONTRACTS)
    source.write_text("".join(f'#include "{header}"\n' for header in contracts))
    command = [*flags("gcc", "all", headers_in=headers), "-E", "-dD", source]
    said = set()
    for part in ("hooks", "common", *PARTS["all"]):
        path = headers / f"{part}.h"
        text = path.read_text()
        for define in DEFINE.finditer(text):
            path.write_text(text[: define.start()] + text[define.end() :])
            done = subprocess.run([*map(str, command)], capture_output=True, text=True)
            if done.returncode:
                errors = re.findall(r'#error "profile: define (\w+)', done.stderr)
                assert define[1] in errors, (define[1], done.stderr[:1000])
                said.add(define[1])
            else:
                assert f"#define {define[1]}" in done.stdout, define[1]
        path.write_text(text)
    assert {"os_cycles", "os_zalloc", "os_task_priority", "os_task_idle", "OS_TICK_HZ"} <= said
    assert ("os_run_on_all_cpus" in said) == (cpus == 4)
    assert ("OS_NR_CPUS" in said) == (cpus == 4)
    assert not {"os_task_comm", "os_symbol_lookup"} & said


def test_missing_option_is_said():
    """An option without another that it needs in Kconfig is an error."""
    kconfig = (PROFILE / "Kconfig").read_text()
    needs = re.findall(r"^config PROFILE_(\w+)\n.*\n\tdepends on (.+)$", kconfig, re.MULTILINE)
    assert len(needs) == 13
    for option, depends in needs:
        command = [*flags("gcc", "points"), f"-DCONFIG_PROFILE_{option}=1", "-E"]
        command = [flag for flag in command if flag != "-DCONFIG_PROFILE_POINTS=1"]
        done = subprocess.run([*command, PROFILE / "print.c"], capture_output=True, text=True)
        if "||" in depends:
            depends = "a profiler"
        for need in depends.split(" && "):
            what = need.replace("PROFILE_", "CONFIG_PROFILE_")
            assert f"CONFIG_PROFILE_{option} needs {what}" in done.stderr


def contracts() -> set[str]:
    """Returns the names that a kernel may define."""
    headers = [path for path in PROFILE.rglob("os*.h") if re.fullmatch(r"os(_\w+)?\.h", path.name)]
    text = "".join(path.read_text() for path in headers)
    return set(re.findall(r"^#ifndef (os_\w+|OS_\w+)$", text, re.MULTILINE))


def hooks() -> set[str]:
    """Returns the functions and macros of the hooks' headers that this kernel uses."""
    headers = [*PROFILE.glob("include/profile/*.h"), *PROFILE.glob("*/hooks.h")]
    declared = set(re.findall(r"\b(profile_\w+)\(", "".join(h.read_text() for h in headers)))
    used: set[str] = set()
    for folder in ("kernel", "arch"):
        for path in (ROOT / folder).rglob("*.[ch]"):
            if PROFILE not in path.parents:
                used |= set(re.findall(r"\b(profile_\w+)\(", path.read_text()))
    return declared & used


def test_porting_names_everything():
    """The guide has all contracts, hooks and options, and none that does not exist."""
    text = (PROFILE / "porting.md").read_text()
    words = set(re.findall(r"\b(?:os|OS|profile)_\w+", text))
    starts = tuple(re.findall(r"`((?:os|profile)_\w+)\*", text))
    options = set(re.findall(r"^config PROFILE_(\w+)", (PROFILE / "Kconfig").read_text(), re.M))
    wanted = contracts() | hooks()
    assert {"os_zalloc", "OS_TICK_HZ", "profile_nmi", "profile_spun"} <= wanted
    assert {name for name in wanted - words if not name.startswith(starts)} == set()
    missing = {name for name in options if not re.search(rf"[`_]{name}`", text)}
    assert missing == {"ANY"}
    sources = "".join(path.read_text() for path in PROFILE.rglob("*.[ch]"))
    exist = set(re.findall(r"\b(?:os|OS|profile)_\w+", sources)) | {"os_x"}
    assert {name for name in words - exist if not name.startswith(starts)} == set()


@pytest.mark.parametrize("seam", MAX_GLUE)
def test_glue_is_short(seam):
    parts = ["hooks", "common", *(part for part in PARTS[seam] if part not in WITHOUT_HEADER)]
    # os.h has a line for each part, and one for the defaults.
    nr_lines = sum(code_lines(SEAM / f"{part}.h") for part in parts) + len(parts)
    assert 10 < nr_lines <= MAX_GLUE[seam]


# Levels of porting.md with batteries: options, and the most lines of glue.
BARE = SEAM / "bare"
BATTERIES = sorted(path.stem for path in (PROFILE / "batteries").glob("*.c"))
LEVELS = {
    "points": ("POINTS", 30),
    "strace": ("STRACE STRACE_DETAIL", 40),
    "samples": ("HEATMAP CALLCHAIN", 50),
    "all": ("POINTS STRACE STRACE_DETAIL HEATMAP CALLCHAIN WAITS TRACE EXPORT", 70),
}


def lines_with(options: set[str], path: Path) -> int:
    """Counts the lines of a header that these options need: no comments, no other blocks."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    nr_lines, blocks = 0, []
    for line in text.splitlines():
        if found := re.match(r"#if(n?)def (?:CONFIG_PROFILE_)?(\w+)", line):
            blocks.append(bool(found[1]) or found[2] in options)
            nr_lines += blocks[-1]
        elif line == "#endif":
            nr_lines += blocks.pop()
        else:
            nr_lines += bool(line.strip()) and all(blocks)
    assert not blocks
    return nr_lines


@pytest.mark.parametrize("level", LEVELS)
def test_glue_with_batteries_is_short(level):
    options, limit = LEVELS[level]
    headers = [BARE / name for name in ("os.h", "os_hooks.h")]
    nr_lines = sum(lines_with(set(options.split()), header) for header in headers)
    assert limit / 2 < nr_lines <= limit


def makefile(directory: Path) -> Path:
    """Returns the package's Makefile, of a package that is made there of links to this tree."""
    return dist.link(directory / "package") / "Makefile"


def build_bare(level: str, directory: Path, arch: str = "", cflags: str = "") -> None:
    """Builds the profilers with batteries, and checks what the object needs and what it shows."""
    cflags += " -O2 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Werror -fno-pic"
    tools = [f"{name.upper()}={arch}{name}" for name in ("ld", "nm", "objcopy")]
    run(
        *("make", "-s", "-j2", "-f", makefile(directory), f"PORT={BARE}", f"O={directory}"),
        *(f"OPTIONS={LEVELS[level][0]}", f"BATTERIES={' '.join(BATTERIES)}"),
        *(f"CC={arch}gcc", *tools, f"CFLAGS={cflags}"),
    )
    declared = set(re.findall(r"(\w+)\(", (BARE / "kernel.h").read_text()))
    bounds = {f"__{end}_{name}" for end in ("start", "stop") for name in SECTIONS}
    table = {"battery_symbols", "battery_symbols_end"}
    wanted = set(re.findall(r" [Uw] (\w+)", run(f"{arch}nm", directory / "profile.o")))
    assert {"put_char", "this_task"} <= wanted <= declared | bounds | table
    shown = run(f"{arch}nm", "-g", "--defined-only", directory / "profile.o")
    names = set(re.findall(r" [A-Z] (\w+)$", shown, re.MULTILINE))
    assert {"profile_init", "battery_heap_init", "battery_cpu_tick"} <= names
    plain = set(re.findall(r"(\w+)\(", (PROFILE / "batteries/string.h").read_text()))
    assert {name for name in names if not name.startswith(("profile_", "battery_"))} == plain


@pytest.mark.parametrize("level", LEVELS)
def test_batteries(level, tmp_path):
    build_bare(level, tmp_path, cflags="-mgeneral-regs-only")


CXX = """
extern "C" {
#include "task.h"
#include <profile/syscall.h>
}
void hooks(task *one, const trap_frame *frame)
{
	profile_set("profile.hz=997");
	profile_init();
	profile_process_init(one->process);
	profile_task_init(one);
	profile_syscall_enter(1);
	profile_syscall_exit(-4);
	profile_tick(frame, 0);
	profile_task_runs(&one->profile);
	profile_switch_out(&one->profile, 0);
	profile_switch_in(0);
	profile_wake(one);
	profile_trace(sys_enter, 1);
	profile_task_exit(one);
	profile_process_exit(one->process);
	profile_report("why");
	profile_end_reports();
}
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", [name for name in ("g++", "clang++") if shutil.which(name)])
def test_hooks_in_cxx(compiler, level, tmp_path):
    """The headers of the hooks have no warning in C++, and structs are as large as in C."""
    size = "char size[sizeof(struct task)];"
    size = f'#include "task.h"\nextern {size}\n{size}'
    (tmp_path / "size.c").write_text(size)
    (tmp_path / "size.cpp").write_text(f'extern "C" {{\n{size}\n}}')
    (tmp_path / "hooks.cpp").write_text(CXX)
    options = [f"-DCONFIG_PROFILE_{option}=1" for option in LEVELS[level][0].split()]
    headers = [f"-I{path}" for path in (BARE, SEAM, f"{PROFILE}/include", PROFILE)]
    # clang++ warns of a size that is the same: sizes are compared below.
    flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-extern-c-compat"]
    flags += [*options, *headers]
    flags += ["-DPROFILE_OS_HOOKS_HEADER=<os_hooks.h>"]
    run(compiler, "-std=gnu++17", "-fsyntax-only", *flags, tmp_path / "hooks.cpp")
    sizes = []
    for command in ["gcc", "-std=gnu11", "size.c"], [compiler, "-std=gnu++17", "size.cpp"]:
        run(*command[:2], "-c", *flags, tmp_path / command[2], "-o", tmp_path / "o")
        sizes.append(re.search(r"^\w+ (\w+) . size$", run("nm", "-S", tmp_path / "o"), re.M)[1])
    assert sizes[0] == sizes[1]


def test_captured_name_is_said(tmp_path):
    """A macro of the glue that names a global would mean a local of that name, as hz here."""
    for header in BARE.iterdir():
        (tmp_path / header.name).write_text(header.read_text())
    kernel, glue = tmp_path / "kernel.h", tmp_path / "os.h"
    kernel.write_text(kernel.read_text().replace("u64 clock_rate(void);", "extern u64 hz;"))
    glue.write_text(glue.read_text().replace("clock_rate()", "hz"))
    target = tmp_path / "o/objects/samples/source.o"
    command = ["make", "-f", makefile(tmp_path), f"PORT={tmp_path}", f"O={tmp_path}/o", "CC=gcc"]
    command += ["OPTIONS=HEATMAP CALLCHAIN", "CFLAGS=-mgeneral-regs-only", target]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert re.search("declaration of .hz. shadows a global", done.stderr), done.stderr[-2000:]


def test_table_of_symbols(tmp_path):
    """symbols.awk makes a table of nm's output: functions, their ends, and no name twice."""
    nm = (
        "0000000000001000 T first\n0000000000001000 T alias\n0000000000001010 t second\n"
        "0000000000001020 R constant\n0000000000001030 R other\n0000000000002000 W last\n"
        "000000000010e900 t large\n000000000010e930 t larger\n"
        "                 U elsewhere\n"
    )
    (tmp_path / "nm").write_text(nm)
    table = run("awk", "-f", PROFILE / "batteries/symbols.awk", tmp_path / "nm")
    rows = re.findall(r"\.quad 0x0+(\w+), (\w+)", table)
    assert rows == [("1000", "1f"), ("1010", "1f"), ("1020", "0"), ("2000", "1f")] + [
        ("10e900", "1f"),
        ("10e930", "1f"),
    ]
    assert re.findall(r'\.asciz "(\w+)"', table) == ["first", "second", "last", "large", "larger"]
    for text in table, run("awk", "-f", PROFILE / "batteries/symbols.awk", "/dev/null"):
        (tmp_path / "symbols.S").write_text(text)
        run("gcc", "-c", tmp_path / "symbols.S", "-o", tmp_path / "symbols.o")
        names = run("nm", tmp_path / "symbols.o")
        assert " R battery_symbols\n" in names and " R battery_symbols_end\n" in names


def test_changed_options_build_again(tmp_path):
    """The object follows its options, flags and batteries, and is not built again without need."""
    command = ["make", "-f", makefile(tmp_path), f"PORT={BARE}", f"O={tmp_path}", "CC=gcc"]
    points, calls = [*command, "OPTIONS=POINTS"], [*command, "OPTIONS=POINTS STRACE"]
    assert "points/point.c" in run(*points, "CFLAGS=-O0")
    assert "profile_init" in run("nm", tmp_path / "profile.o")
    assert run(*points, "CFLAGS=-O0").startswith("make: ")
    assert "points/point.c" in run(*points, "CFLAGS=-O1", "-n")
    assert "points/point.c" in run(*calls, "CFLAGS=-O0")
    assert "strace_reset" in run("nm", tmp_path / "profile.o")
    assert "points/point.c" in run(*points, "CFLAGS=-O0")
    assert "strace_reset" not in run("nm", tmp_path / "profile.o")
