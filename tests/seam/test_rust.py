# SPDX-License-Identifier: BSD-2-Clause
"""
A program in Rust without std calls the hooks by `extern "C"`, with the package's object and the
glue of the example on the host. Its declarations are compared with the headers of C.
"""

from __future__ import annotations

import re

import pytest
import report
from harness import ROOT
from test_seam import SEAM, makefile, run

HOST = ROOT / "scripts/dist/host"
TYPES = {
    "*const u8": "const char *",
    "*mut Task": "struct task *",
    "*mut Process": "struct process *",
    "*mut Start": "struct profile_time *",
    "i32": "int",
    "i64": "long",
    "u64": "u64",
    "!": "void",
}


def declarations(rust: str) -> str:
    """Returns the functions of the blocks extern "C", as C declares them."""
    blocks = re.findall(r'^extern "C" {\n(.*?)^}', rust, re.MULTILINE | re.DOTALL)
    found = []
    for line in "".join(blocks).splitlines():
        name, arguments, result = re.fullmatch(r" +fn (\w+)\((.*)\)(?: -> (.+))?;", line).groups()
        types = [TYPES[one.partition(": ")[2]] for one in arguments.split(", ") if one]
        result = TYPES[result] if result else "void"
        found.append(f"extern {result} {name}({', '.join(types) or 'void'});\n")
    assert len(found) > 15
    return "".join(found)


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """Builds the object. Returns the compiler's options, of which the last is its directory."""
    directory = tmp_path_factory.mktemp("rust")
    command = ["make", "-s", "-j2", "-f", makefile(directory), f"PORT={HOST}", f"O={directory}"]
    run(*command, "OPTIONS=POINTS STRACE", "CC=gcc", "CFLAGS=-O2 -fno-pie")
    defines = [f"-DCONFIG_PROFILE_{option}=1" for option in ("POINTS", "STRACE")]
    includes = [f"-I{path}" for path in (HOST, directory / "package/include")]
    warnings = ["-Wall", "-Werror", "-DPROFILE_OS_HOOKS_HEADER=<os_hooks.h>"]
    return ["-O2", "-fno-pie", *warnings, *defines, *includes, directory]


def test_hooks(flags, tmp_path):
    """Pairs and calls are counted exactly, also pairs that end by an early return."""
    source = SEAM / "hooks.rs"
    rust = ["rustc", "--edition=2021", "-O", "-Cpanic=abort", "-Crelocation-model=static"]
    run(*rust, "-Dwarnings", "--crate-type=staticlib", source, "-o", tmp_path / "libhooks.a")
    *options, built = flags
    objects = [SEAM / "hooks.c", tmp_path / "libhooks.a", built / "profile.o"]
    run("gcc", "-no-pie", *options, *objects, "-o", tmp_path / "hooks")
    lines = run(tmp_path / "hooks").splitlines()
    of_process, last = report.parse("".join(f"[    1.000000] {line}\n" for line in lines))
    calls = {row.name: (row.nr_calls, row.nr_errors) for row in of_process.strace.rows}
    assert calls == {"sys_sum": (50, 50), "sys_fail": (50, 0)}
    for points in of_process.process_points, last.points:
        assert {row.name: row.nr for row in points.rows} == {"add_up": 100}


def test_declarations(flags, tmp_path):
    """C accepts what Rust declares beside its own headers. The control is one wrong type."""
    *options, _ = flags
    right = declarations((SEAM / "hooks.rs").read_text())
    wrong = right.replace("int profile_set(", "long profile_set(")
    for text, error in (right, ""), (wrong, "conflicting types for .profile_set.*\n"):
        source = tmp_path / "check.c"
        source.write_text((SEAM / "hooks.c").read_text() + "#include <stdlib.h>\n" + text)
        command = ["gcc", *options, "-fsyntax-only", source]
        if error:
            with pytest.raises(pytest.fail.Exception, match=error):
                run(*command)
        else:
            run(*command)
