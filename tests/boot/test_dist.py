# SPDX-License-Identifier: BSD-2-Clause
"""
The package for other kernels (make dist), unpacked elsewhere: its example builds and runs, its
tools read exports, its sizes are those in its README.md.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile

import pytest
from harness import ROOT, code_lines

sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "tests/unit"))
import dist  # noqa: E402
import legoprof_shapes  # noqa: E402

VERSION = re.search(r"^VERSION := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]


def run(*command: object, cwd=None) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=cwd)
    assert not done.returncode, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dist")
    archive = directory / "package.tar.gz"
    dist.pack(VERSION, archive)
    first = archive.read_bytes()
    dist.pack(VERSION, archive)
    assert archive.read_bytes() == first
    with tarfile.open(archive) as tar:
        tar.extractall(directory)
    return directory / f"lego-profile-{VERSION}"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_example(package, compiler, tmp_path):
    """The example counts its calls and pairs exactly. Its object shows nothing but hooks."""
    out = run("make", "-s", "run", f"CC={compiler}", f"O={tmp_path}", cwd=package / "examples/host")
    assert re.search(r"example \(pid 1\) exited", out)
    calls = re.findall(r" (\d+) +(\d+) sys_(sum|fail)$", out, re.MULTILINE)
    assert sorted(calls) == [("100", "0", "sum"), ("7", "7", "fail")], out
    assert re.search(r"^ *on +add_up +\d\.\d+ +100 ", out, re.MULTILINE), out
    visible = run("nm", "-g", "--defined-only", tmp_path / "profile.o")
    names = {line.split()[2] for line in visible.splitlines()}
    assert "profile_init" in names and all(name.startswith("profile_") for name in names)


@pytest.mark.parametrize(
    "options, said", [("", "name some of"), ("POINTS WAIT", "there is no WAIT, but")]
)
def test_wrong_options(package, options, said, tmp_path):
    command = ["make", "-f", package / "src/Makefile", f"OPTIONS={options}", f"O={tmp_path}"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode and f"OPTIONS: {said} STRACE " in done.stderr
    assert not list(tmp_path.iterdir())


def test_makefile_is_short(package):
    assert 10 < code_lines(package / "src/Makefile") <= 20


def test_level_0(package, tmp_path):
    """Points work without hooks of tasks, and without a current task, as porting.md says."""
    options = ["OPTIONS=POINTS", "CC=gcc", f"O={tmp_path}"]
    out = run("make", "-s", "run", *options, cwd=package / "examples/host")
    assert re.search(r"report 1: level 0\n(.*\n)*.* on +add_up +\d\.\d+ +100 ", out), out
    assert "strace" not in out


def test_is_complete(package):
    """Every link leads to a file; the parts that README.md names are there."""
    for path in package.rglob("*"):
        assert path.exists(), path
    for name in re.findall(r"^\| `(.+?)` \|", (package / "README.md").read_text(), re.MULTILINE):
        assert (package / name).exists(), name
    assert (package / "VERSION").read_text() == f"{VERSION}\n"
    assert (package / "port/os.h").samefile(package / "src/os.h")
    assert (package / "port/waits_os.h").samefile(package / "src/waits/os.h")


def test_changes(package):
    """CHANGES has the entries of CHANGELOG.md about other kernels, and no others."""
    text = (package / "CHANGES").read_text()
    entries = re.findall(r"^- .*", text, re.MULTILINE)
    assert entries and all(entry.startswith("- Other kernels") for entry in entries)
    assert len(entries) == (ROOT / "CHANGELOG.md").read_text().count("\n- Other kernels")
    assert "PROFILE_PORT_API" in text


def test_legoprof(package, tmp_path):
    """legoprof works without the tree, and without other packages of Python (-S)."""
    export = tmp_path / "run.lego"
    rows = [legoprof_shapes.compact(row) for row in ({"file": "strace.json"}, {"table": ""})]
    export.write_bytes(legoprof_shapes.seal(iter([*rows, '{"name":"sys_read","calls":3}'])))
    command = [sys.executable, "-S", package / "host/legoprof"]
    assert re.search(r"sys_read +3", run(*command, "report", export, cwd=tmp_path))
    assert not list(package.rglob("__pycache__"))


def test_kernel_example(package, tmp_path):
    """The package has all that its kernel needs. test_port.py boots it, with optimized code."""
    words = [f"BUILD={tmp_path}", "DEBUG_INFO=-g0", "OPTIMIZE=-O0"]
    run("make", "-s", *words, cwd=package / "examples/kernel")
    assert (tmp_path / "kernel").exists()


def numbers(line: str) -> list[int]:
    return [int(n.replace(",", "")) for n in re.findall(r"[\d,]+(?= \|)", line)]


@pytest.mark.parametrize("option", ["points", "samples with chains"])
def test_sizes(option):
    """The table in README.md is right to 3 %: compilers differ. Points are small."""
    (made,) = [line for line in dist.sizes([option]).splitlines() if option in line]
    text = (ROOT / "scripts/dist/README.md").read_text()
    (written,) = [line for line in text.splitlines() if line.startswith(f"| {option} |")]
    assert len(numbers(made)) == 4
    assert numbers(written) == pytest.approx(numbers(made), rel=0.03)
    if option == "points":
        code, _, _, bss = numbers(made)
        assert code < 16 << 10 and bss < 8 << 10


# A program in place of main.c of examples/host/. Points are on or off in each of its reports.
SET = r"""
#include "task.h"

#include <stdio.h>

struct task *current;
DEFINE_PROFILE_POINT(one)
DEFINE_PROFILE_POINT(two)

u64 clock_ns(void)
{
	static u64 now;

	return now += 1000;
}

static void set(const char *words)
{
	bool failed = profile_set(words);

	printf("%s: %s\n", words, failed ? "refused" : "done");
	if (!failed) {
		PROFILE_SCOPE(one);
		PROFILE_SCOPE(two);
	}
	profile_report(words);
}

int main(void)
{
	char word[16 + 256] = "profile.points=";

	memset(word + 15, 'x', 256);
	profile_set(word);
	word[15 + 255] = '\0';
	profile_set(word);
	profile_set("quiet profile.points=one profile.top=0");
	profile_init();
	set("profile.top=all");
	set("profile.points=-one,two");
	set("quiet profile.selftest=on");
	set("profile.points=unknown");
	set("profile.points=reset,one");
	return 0;
}
"""


def test_profile_set(package, tmp_path):
    """
    Before profile_init(), parameters are set. Later, those with a control file change as by a write
    to that file, and others are refused. No value is cut.
    """
    host = package / "examples/host"
    (tmp_path / "set.c").write_text(SET)
    command = ["make", "-s", "OPTIONS=POINTS SELFTEST", f"O={tmp_path}"]
    run(*command, f"{tmp_path}/profile.o", cwd=host)
    flags = ["-DCONFIG_PROFILE_POINTS=1", "-DPROFILE_OS_HOOKS_HEADER=<os_hooks.h>", "-no-pie"]
    flags += [f"-I{path}" for path in (host, package / "include")]
    run("gcc", *flags, tmp_path / "set.c", tmp_path / "profile.o", "-o", tmp_path / "set")
    out = run(tmp_path / "set")
    boot, *reports = re.split(r"^(.*): (done|refused)$", out, flags=re.MULTILINE)
    assert boot.splitlines() == [
        "profile: profile.points= has more than 255 bytes",
        "profile: profile.top=0: not valid; accepted: <rows>|all",
    ]
    found = [
        (words, result, dict(re.findall(r"^ +(?:on|off) +(\w+) +\S+ +(\d+) +\d+$", text, re.M)))
        for words, result, text in zip(*[iter(reports)] * 3)
    ]
    assert found == [
        ("profile.top=all", "done", {"one": "1"}),
        ("profile.points=-one,two", "done", {"one": "1", "two": "1"}),
        ("quiet profile.selftest=on", "refused", {"one": "1", "two": "1"}),
        ("profile.points=unknown", "refused", {"one": "1", "two": "1"}),
        ("profile.points=reset,one", "done", {"one": "1", "two": "1"}),
    ]
    assert "profile: profile.selftest= has to be set before profile_init()\n" in out
    assert "profile: profile.points=unknown: not valid; accepted: reset|" in out
    assert re.search(r"^at least one point is off since \S+ s, by the kernel: ", out, re.M)


@pytest.mark.parametrize(
    "defined, said", [(None, "define PROFILE_PORT_API 1"), (2, "the contracts have version 1")]
)
def test_version_of_the_contracts(package, defined, said, tmp_path):
    """Headers for other contracts, or for none, are refused."""
    glue = package / "examples/host"
    text = (glue / "os_hooks.h").read_text()
    line = f"#define PROFILE_PORT_API {defined}\n" if defined else ""
    (tmp_path / "os_hooks.h").write_text(text.replace("#define PROFILE_PORT_API 1\n", line))
    command = ["gcc", "-fsyntax-only", f"-I{tmp_path}", f"-I{package}/include"]
    command += ["-DPROFILE_OS_HOOKS_HEADER=<os_hooks.h>", "-x", "c", package / "src/os_hooks.h"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode and said in done.stderr
