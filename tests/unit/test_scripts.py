# SPDX-License-Identifier: BSD-2-Clause
"""
Tests the tools of the build: symbol table, image maker, packages, test summary, QEMU runner, system
call table.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import subprocess
from pathlib import Path

import pytest

import cpio
import frameless
import kallsyms
import mkinitramfs
import mktext
import packages
import qemu
import syscalltbl

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
summary = importlib.import_module("test-summary")

BASE = kallsyms.KERNEL_VIRT
TEXT_SHA256 = "7a9b9b60a2d9c2994ca3b3ad3b2d3449105141cd52d25dd362ad96261efa1954"
NM = f"""\
{BASE + 0x1000:x} T _stext
{BASE + 0x1000:x} T start
{BASE + 0x1010:x} t a_local
{BASE + 0x1010:x} T z_global
{BASE + 0x1010:x} T y_global
{BASE + 0x1020:x} W weak
{BASE + 0x1024:x} t .L42
{BASE + 0x1028:x} t $x
{BASE + 0x1030:x} t part.0
{BASE + 0x1040:x} D data
                 w undefined_weak
{BASE + 0x1040:x} T _etext
{BASE + 0x1050:x} T after
"""


def symbols(nm: str) -> list[kallsyms.Symbol]:
    return kallsyms.text_symbols(kallsyms.parse_nm(nm.splitlines()))


def test_kallsyms_keeps_one_name_for_each_function() -> None:
    assert [(s.addr - BASE, s.name) for s in symbols(NM)] == [
        (0x1000, "start"),
        (0x1010, "y_global"),
        (0x1020, "weak"),
        (0x1030, "part.0"),
    ]


def test_kallsyms_names_the_files_of_functions_of_one_name() -> None:
    nm = f"""\
{BASE + 0x1000:x} T _stext
{BASE + 0x1000:x} t .text
0000000000000000 a slab.c
{BASE + 0x1000:x} t alloc
{BASE + 0x1010:x} t free
0000000000000000 a pipe.c
{BASE + 0x1020:x} t alloc
{BASE + 0x1030:x} T free
{BASE + 0x1040:x} T _etext
"""
    assert [s.name for s in symbols(nm)] == ["alloc@slab", "free@slab", "alloc@pipe", "free"]


def test_kallsyms_leaves_out_what_compilers_append() -> None:
    names = ["send.constprop.0", "get", "get.part.0", "copy.isra.0", "copy.part.0", "a.part.0.cold"]
    assert list(kallsyms.plain_names([*names, "odd.0", "send.constprop.0"]).values()) == [
        *["send", "get", "get.part.0", "copy.isra.0", "copy.part.0", "a", "odd.0"]
    ]
    nm = f"""\
{BASE + 0x1000:x} T _stext
0000000000000000 a slab.c
{BASE + 0x1000:x} t alloc.isra.0
0000000000000000 a pipe.c
{BASE + 0x1020:x} t alloc.isra.0
{BASE + 0x1030:x} t free.constprop.0
{BASE + 0x1040:x} T _etext
"""
    assert [s.name for s in symbols(nm)] == ["alloc@slab", "alloc@pipe", "free"]


# The first path through early() needs no frame; asm() never makes one, framed_asm() does.
FRAMELESS_SOURCE = """
int count;
void __attribute__((noinline)) other(void) { asm volatile("" ::: "memory"); }
int early(int x) { if (x < count) return x + 1; other(); count = x; other(); return 0; }
int two(int x, int y) { other(); return x + y; }
asm(".type asm, @function; asm: nop; ret; "
    ".type framed_asm, @function; framed_asm: push %rbp; mov %rsp, %rbp; leave; ret");
"""


def frameless_names(flags: str) -> list[str]:
    """Compiles the source, and returns the functions of all ranges without a frame."""
    Path("source.c").write_text(FRAMELESS_SOURCE)
    options = ["-O2", "-fno-pic", "-mcmodel=kernel", "-fasynchronous-unwind-tables", *flags.split()]
    options += ["-nostdlib", "-static", "-no-pie", "-fno-optimize-sibling-calls"]
    bounds = f"--defsym=_stext={BASE:#x},--defsym=_etext={BASE + 4096:#x}"
    options.append(f"-Wl,-e,0,-Ttext={BASE:#x},{bounds}")
    subprocess.run(["gcc", *options, "source.c", "-o", "elf"], check=True)
    nm = subprocess.run(["nm", "-ap", "elf"], capture_output=True, text=True, check=True).stdout
    ranges, _ = frameless.generate("elf", nm.splitlines())
    table = symbols(nm)
    return [[name for addr, name in table if addr <= start][-1] for start, _ in ranges]


def test_frameless_finds_code_without_a_frame(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    framed = "-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-shrink-wrap"
    assert frameless_names(f"{framed} -fno-schedule-insns2") == ["asm"]
    assert frameless_names(framed) == ["asm", "early", "two"]  # instructions before MOV
    assert frameless_names(f"{framed} -fno-schedule-insns2 -fshrink-wrap") == ["asm", "early"]
    with pytest.raises(SystemExit, match="but pushed registers"):
        frameless_names("-fomit-frame-pointer -fno-ipa-ra")


# .cfi_signal_frame makes a second CIE.
TWO_CIES = """
.cfi_startproc
push %rbp
.cfi_def_cfa_offset 16
ret
.cfi_endproc
.cfi_startproc
.cfi_signal_frame
ret
.cfi_endproc
"""


def test_frameless_ignores_the_rows_of_cies(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("source.s").write_text(TWO_CIES)
    link = ["-nostdlib", "-static", "-no-pie", f"-Wl,-e,0,-Ttext={BASE:#x}"]
    subprocess.run(["gcc", *link, "source.s", "-o", "elf"], check=True)
    rows, functions = frameless.read_rows("elf")
    cfas = ["rsp+8", "rsp+16", "rsp+8"]
    assert rows == [(BASE + i, BASE + i + 1, cfa) for i, cfa in enumerate(cfas)]
    assert functions == {BASE, BASE + 2}


def test_frameless_needs_readelf(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="^frameless: .*readelf"):
        frameless.read_rows("elf")


def test_kallsyms_keeps_stext_where_no_function_is() -> None:
    assert symbols(NM.replace(f"{BASE + 0x1000:x} T start\n", ""))[0].name == "_stext"


def test_kallsyms_needs_the_bounds() -> None:
    with pytest.raises(SystemExit, match="_etext"):
        symbols(NM.replace("_etext", "etext"))


def test_kallsyms_reports_every_kind_of_difference() -> None:
    good = symbols(NM)
    assert not kallsyms.differences(good, good)
    assert kallsyms.differences(good[:-1], good)
    assert kallsyms.differences(good, good[:-1])
    assert kallsyms.differences(good[::-1], good)
    assert kallsyms.differences([good[0]._replace(name="other"), *good[1:]], good)
    assert kallsyms.differences([], [])


def parse_cpio(data: bytes) -> list[tuple[str, int, int, bytes]]:
    """Returns (name, mode, ino, data) of every record up to the trailer."""
    out, at = [], 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        size, name_size = fields[6], fields[11]
        name = data[at + 110 : at + 110 + name_size - 1].decode()
        at = (at + 110 + name_size + 3) & ~3
        if name == cpio.TRAILER:
            return out
        assert fields[5] == 0
        out.append((name, fields[1], fields[0], data[at : at + size]))
        at = (at + size + 3) & ~3


@pytest.fixture
def image(tmp_path: Path, monkeypatch, capsys):
    """
    Returns a function that runs mkinitramfs in a directory with a few files, for (records without
    ino, stderr).
    """
    monkeypatch.chdir(tmp_path)
    program = Path("program")
    program.write_bytes(b"\x7fELF!")
    program.chmod(0o750)
    Path("text").write_bytes(b"hello\n")
    Path("text").chmod(0o600)
    (Path("dir") / "sub" / "empty").mkdir(parents=True)
    (Path("dir") / "sub" / "empty").chmod(0o1777)
    (Path("dir") / "text").write_bytes(b"other\n")
    (Path("dir") / "link").symlink_to("sub/../text")
    (Path("dir") / "to-dir").symlink_to("sub")

    def make(*arguments: str, ok: bool = True):
        out = Path("out.cpio")
        out.unlink(missing_ok=True)
        status = mkinitramfs.main(["-o", str(out), *arguments])
        said = capsys.readouterr().err
        assert (status == 0) == ok == out.exists(), said
        if not ok:
            assert said.startswith("mkinitramfs: error: ") and said.count("\n") == 1
            return said
        records = parse_cpio(out.read_bytes())
        assert [ino for _, _, ino, _ in records] == list(range(1, len(records) + 1))
        return [(name, mode, data) for name, mode, _, data in records], said

    return make


def test_mkinitramfs_writes_what_it_is_given(image) -> None:
    assert image("--dir", "/tmp", "/data/a/text=text", "program", "/data/=text") == (
        [
            ("bin", 0o40755, b""),
            ("bin/program", 0o100750, b"\x7fELF!"),
            ("data", 0o40755, b""),
            ("data/a", 0o40755, b""),
            ("data/a/text", 0o100600, b"hello\n"),
            ("data/text", 0o100600, b"hello\n"),
            ("tmp", 0o41777, b""),
        ],
        "",
    )


def test_mkinitramfs_copies_directories(image) -> None:
    os.chmod("dir/text", 0o644)
    for path in ("dir", "dir/sub"):
        os.chmod(path, 0o755)
    at_root = [
        ("link", 0o120777, b"sub/../text"),
        ("sub", 0o40755, b""),
        ("sub/empty", 0o41777, b""),
        ("text", 0o100644, b"other\n"),
        ("to-dir", 0o120777, b"sub"),
    ]
    assert image("dir")[0] == at_root
    below = [(f"x/y/{name}", mode, data) for name, mode, data in at_root]
    assert image("/x/y=dir/")[0] == [("x", 0o40755, b""), ("x/y", 0o40755, b""), *below]


def test_mkinitramfs_order_and_time_do_not_matter(image) -> None:
    first = image("program", "dir", "--symlink", "/bin/a=program", "--dir", "z")
    bytes_of_first = Path("out.cpio").read_bytes()
    os.utime("program", (1, 1))
    assert image("--dir", "/z/", "--symlink", "bin/a=program", "dir", "program") == first
    assert Path("out.cpio").read_bytes() == bytes_of_first


def test_mkinitramfs_later_items_win(image) -> None:
    assert image("/a=text", "/a=dir/text")[0][0][2] == b"other\n"


def test_mkinitramfs_takes_a_file_with_an_equals_sign(image) -> None:
    """It is the file, not another one under the name before the sign."""
    Path("a=text").write_bytes(b"#!/bin/sh\n")
    Path("a=text").chmod(0o755)
    (entry,) = [one for one in image("./a=text")[0] if one[0] != "bin"]
    assert entry[0] == "bin/a=text" and entry[2] == b"#!/bin/sh\n"
    assert image("/b/=a=text")[0][-1][0] == "b/a=text"


def test_mkinitramfs_reads_a_list(image) -> None:
    Path("list").write_text("program\n--symlink\n/bin/with space=program\n")
    assert ("bin/with space", 0o120777, b"program") in image("@list")[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to put"),
        (["nowhere"], "nowhere: no such file"),
        (["text"], "text is no program"),
        (["/x="], "neither a path nor NAME=PATH"),
        (["/.=text"], "the root is a directory"),
        (["/../x=text"], "no .."),
        (["/x=dir", "/x=text"], "a directory and a file"),
        (["/x=text", "/x/y=text"], "/x is not a directory"),
        (["--symlink", "/x"], "not NAME=TARGET"),
        (["--package", "../x"], "not a valid package name"),
        (["--package", "no-such-package-here"], "package no-such-package-here is not installed"),
    ],
)
def test_mkinitramfs_says_what_is_wrong(image, arguments, words) -> None:
    assert words in image(*arguments, ok=False)


def test_mkinitramfs_warns_of_dynamic_programs(image) -> None:
    records, said = image("/bin/true=/bin/true")
    assert records[-1][2] == Path("/bin/true").read_bytes()
    assert "/bin/true: linked dynamically" in said
    assert "/bin/false (and 1 more): linked" in image("/bin/true", "/bin/false=/bin/false")[1]
    assert image("/bin/busybox=/bin/busybox")[1] == ""
    # The linker is in the image under its own name, then behind links, then in a loop of links.
    linker = "lib64/ld-linux-x86-64.so.2"
    assert image("/bin/true", f"/{linker}=text")[1] == ""
    links = ["--symlink", "lib64=usr/lib64", "--symlink", f"/usr/{linker}=../lib/ld.so"]
    assert image("/bin/true", "/usr/lib/ld.so=text", *links)[1] == ""
    assert "linked dynamically" in image("/bin/true", *links)[1]
    assert "linked dynamically" in image("/bin/true", "--symlink", "lib64=lib64")[1]


def test_mkinitramfs_warns_of_files_that_cannot_run(image) -> None:
    Path("crt1.o").write_bytes(b"\x7fELF\x02\x01" + bytes(10) + b"\1\0\x3e\0" + bytes(44))
    Path("crt1.o").chmod(0o644)
    assert image("/lib/=crt1.o")[1] == ""
    Path("crt1.o").chmod(0o755)
    assert "/lib/crt1.o: an object file" in image("/lib/=crt1.o")[1]


def test_mkinitramfs_takes_packages(image) -> None:
    records = {name: (mode, data) for name, mode, data in image("--busybox", "/bin/vi=text")[0]}
    assert records["bin/busybox"] == (0o100755, Path("/bin/busybox").read_bytes())
    assert records["bin/sh"] == (0o120777, b"busybox")
    assert records["bin/vi"] == (0o100600, b"hello\n")
    assert not [name for name in records if "doc" in name]


def test_mkinitramfs_downloads_packages(image, monkeypatch) -> None:
    """A fake apt-get is asked for the package, and only once."""
    asked = []

    def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
        asked.append(command[0])
        if command[0] == "apt-get":
            (cwd / "tool_1_amd64.deb").write_bytes(b"")
        elif command[0] == "dpkg-deb":
            program = Path(command[-1]) / "usr" / "bin" / "tool"
            program.parent.mkdir(parents=True)
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
        return subprocess.CompletedProcess(command, command[0] == "dpkg-query", "", "")

    monkeypatch.setattr(packages, "run", run)
    first = image("--package", "tool")
    assert ("usr/bin/tool", 0o100755, b"#!/bin/sh\n") in first[0]
    assert image("--package", "tool") == first
    assert asked == ["dpkg-query", "apt-get", "dpkg-deb", "dpkg-query"]


@pytest.mark.parametrize("code", ["/usr/bin/tool2", "/usr/lib/libtool.so.1"])
def test_mkinitramfs_goes_without_removed_files(image, monkeypatch, code) -> None:
    """A host may have removed a package's configuration and documentation, but not its code."""
    removed = Path("no-file")
    files = [(Path("/etc/tool.conf"), removed), (Path("/bin/tool"), Path("text"))]
    files += [(Path("/usr/lib/tool/.toolrc"), removed)]
    monkeypatch.setattr(packages, "package_files", lambda package, cache: files)
    records, said = image("--package", "tool")
    assert ("bin/tool", 0o100600, b"hello\n") in records
    why = "package tool: left out, because it is missing here: /etc/tool.conf (and 1 more)"
    assert said == f"mkinitramfs: warning: {why}\n"
    files.append((Path(code), removed))
    assert f"{code} is missing: install it" in image("--package", "tool", ok=False)


DEPENDENCIES = """\
tool
  PreDepends: libc6
 |Depends: other-awk
  Depends: <awk>
    gawk
    mawk
  Depends: dpkg
 |Depends: debconf
  Depends: <debconf-2.0>
    cdebconf
libc6
gawk
  Depends: libc6
mawk
other-awk
<awk>
<nothing>
lonely
  Depends: <nothing>
"""


def test_dependencies_of_packages(monkeypatch) -> None:
    """
    apt-cache is a fake. Of alternatives, a wanted package comes first, then an installed one, then
    the first in the list.
    """
    installed = {"mawk"}

    def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
        if command[0] == "apt-cache":
            return subprocess.CompletedProcess(command, 0, DEPENDENCIES, "")
        states = "gone config-files\n" + "".join(f"{name} installed\n" for name in installed)
        return subprocess.CompletedProcess(command, 0, states, "")

    monkeypatch.setattr(packages, "run", run)
    assert packages.read_dependencies(DEPENDENCIES)["tool"] == [
        ["libc6"],
        ["other-awk", "gawk", "mawk"],
        ["dpkg"],
        ["debconf", "cdebconf"],
    ]
    assert packages.with_dependencies(["tool"]) == ["tool", "libc6", "mawk"]
    assert packages.with_dependencies(["gawk", "tool"]) == ["gawk", "tool", "libc6"]
    installed.clear()
    assert packages.with_dependencies(["tool"]) == ["tool", "libc6", "other-awk"]
    for wanted, why in ("nope", "called nope:"), ("../x", "called ../x:"), ("lonely", "no package"):
        with pytest.raises(packages.Error, match=why):
            packages.with_dependencies([wanted])
    assert packages.with_dependencies([]) == []


def test_mkinitramfs_takes_packages_with_dependencies(image) -> None:
    records, said = image("--busybox", "--debian", "hostname")
    names = {name: data for name, _, data in records}
    assert said == "" and names["bin/hostname"] == Path("/bin/hostname").read_bytes()
    assert "lib64/ld-linux-x86-64.so.2" in names and names["bin/sh"] == b"dash"
    # With busybox's, `timeout ps` would run its own ps even if the image has Debian's.
    for name in ("timeout", "env", "nice", "nohup", "xargs", "find"):
        assert names[f"usr/bin/{name}"] == Path(f"/usr/bin/{name}").read_bytes()
        assert f"bin/{name}" not in names


def test_mkinitramfs_gives_a_directory_to_a_user(tmp_path, capsys) -> None:
    out = tmp_path / "out.cpio"
    assert mkinitramfs.main(["-o", str(out), "--dir", "/home/user:1000"]) == 0
    data = out.read_bytes()
    owners = {}
    for name in (b"home\0", b"home/user\0"):
        header = data[data.index(name) - 110 :]
        owners[name] = int(header[22:30], 16), int(header[30:38], 16)
    assert owners == {b"home\0": (0, 0), b"home/user\0": (1000, 1000)}
    assert mkinitramfs.main(["-o", str(out), "--dir", "/home/user:me"]) == 1
    assert "--dir /home/user:me: me is not the number of a user" in capsys.readouterr().err


def test_mktext_is_the_same_everywhere_and_ends_with_a_complete_line(tmp_path: Path) -> None:
    """README.md shows counts of calls of a program that reads the text."""
    out = tmp_path / "out"
    mktext.main(["mktext", str(out), "130"])
    assert out.read_text() == (
        "dobe be womube gaja muse kebefu galoga or indo injahé civa.\n"
        "doke inci ja wogaci nowo va qui ke be be mu.\n"
    )
    mktext.main(["mktext", str(out), "5000000"])
    assert hashlib.sha256(out.read_bytes()).hexdigest() == TEXT_SHA256


@pytest.mark.parametrize(
    ("text", "status", "passed", "failed", "skipped"),
    [
        ("1..2\nok 1 - a\nok 2 - b\n", 0, 2, 0, 0),
        ("1..2\nok 1 - a\nnot ok 2 - b\n", 1, 1, 1, 0),
        ("1..2\nok 1 - a\nnot ok 2 # SKIP b\n", 0, 1, 0, 1),
        ("1..3\nok 1 - a\nAddressSanitizer: ...\n", 1, 1, 2, 0),
        ("1..1\nok 1 - a\nleak\n", 23, 1, 1, 0),
        ("1..1\nok 1 - a\n1..1\nok 1 - b\n", 0, 2, 0, 0),
        ("", 0, 0, 1, 0),
    ],
    ids=["pass", "fail", "skip", "crash", "leak", "groups", "nothing"],
)
def test_summary_counts(text: str, status: int, passed: int, failed: int, skipped: int) -> None:
    assert summary.count_tap(text, status) == summary.Count(passed, failed, skipped)


def test_a_failed_runs_tail_begins_with_its_complaints():
    lines = [f"line {i}" for i in range(100)]
    lines[20:22] = ["    # sleep: 3 of 4", "    not ok 2 sleep"]
    lines[23] = "WARNING: kernel/x.c:1"
    result = qemu.Result("\n".join(lines), 1, 3, 1.0, "status 1")
    assert result.tail(10).splitlines() == lines[16:24] + lines[90:]
    lines[20:24] = ["fine"] * 4
    assert qemu.Result("\n".join(lines), 0, 1, 1.0, None).tail(10).splitlines() == lines[90:]


GOOD = "verdict: status=0 panic=0 bugs=0 warnings=0 reports_cut=0 console_lost=0\n"
FORGED = """Kernel panic: no
BUG: no
WARNING: kernel/x.c:1 no
reboot: power off, status 3
"""


def end_of(log: str, verdict: str, exit_code: int = 0) -> str | None:
    """Returns what judge() finds wrong with a run that ended by itself."""
    found = qemu.Verdict.parse(verdict)
    status = found.status if found and not found.panic else None
    return qemu.judge(qemu.Result(log, status, exit_code, 1.0, None, found), "")


@pytest.mark.parametrize(
    ("verdict", "exit_code", "error"),
    [
        (GOOD, 0, None),
        (GOOD, 1, "the kernel powered off with status 0, but QEMU's exit code is 1"),
        (GOOD.replace("status=0", "status=5"), 11, "init ended with status 5"),
        (
            "verdict: status=127 panic=1 bugs=1 warnings=2 reports_cut=1 console_lost=0"
            " why=BUG: kernel/x.c:3 x\n",
            255,
            "Kernel panic: BUG: kernel/x.c:3 x",
        ),
        (GOOD.replace("status=0 panic=0", "status=127 panic=1"), 255, "Kernel panic"),
        (
            GOOD.replace("warnings=0", "warnings=2"),
            0,
            "warnings of the kernel: 2, first WARNING: kernel/x.c:1 no",
        ),
        (GOOD.replace("cut=0", "cut=1"), 0, "reports that are incomplete: 1"),
        (
            GOOD.replace("lost=0", "lost=9"),
            0,
            "the console lost 9 bytes, which QEMU's reader did not take",
        ),
    ],
)
def test_the_verdict_says_how_a_run_ended(verdict: str, exit_code: int, error: str | None) -> None:
    assert end_of(FORGED, verdict, exit_code) == error


@pytest.mark.parametrize("verdict", ["", GOOD[:-1], GOOD[1:], "status=0\n", GOOD + GOOD])
def test_without_a_whole_verdict_a_run_has_failed(verdict: str) -> None:
    assert qemu.Verdict.parse(verdict) is None
    assert end_of(FORGED, verdict) == "Kernel panic: no"
    error = "no verdict of the kernel: QEMU ended with exit code 0"
    assert end_of("reboot: power off, status 0\n", verdict) == error


def test_line_ends_become_plain_however_they_are_cut() -> None:
    data = b"one\r\ntwo\r\r\n\rthree\n\r"
    plain = b"one\ntwo\r\n\rthree\n\r"
    for at in range(len(data) + 1):
        for to in range(at, len(data) + 1):
            ends = qemu.LineEnds()
            pieces = [ends.plain(piece) for piece in (data[:at], data[at:to], data[to:])]
            assert b"".join([*pieces, ends.rest()]) == plain


def test_the_port_is_named_unless_the_user_does() -> None:
    line = qemu.Options(append="a=b init=/x -- qemu_exit=1").command_line()
    assert line == "qemu_exit=0xf4 a=b init=/x -- qemu_exit=1"
    assert qemu.Options(append="qemu_exit=1").command_line() == "qemu_exit=1"


def test_every_decoder_is_of_a_call_that_is_implemented() -> None:
    live = SCRIPTS.parent / "kernel/profile/strace/live"
    calls = syscalltbl.parse((SCRIPTS.parent / "arch/x86/entry/syscalls.tbl").read_text(), "table")
    implemented = [call for call in calls if call.entry != syscalltbl.NO_ENTRY]
    words = " ".join(argument for call in implemented for argument in call.arguments)
    tables = set(re.findall(r"^\tX\((\w+), ", (live / "xlat.h").read_text(), re.MULTILINE))
    code = "".join(path.read_text() for path in live.glob("*.c"))
    assert len(tables) > 50
    assert tables <= set(re.findall(r"LIVE_XLAT_(\w+)", words + code))
    types = set(re.findall(r"^\tLIVE_ARG_(\w+),", (live / "live.h").read_text(), re.MULTILINE))
    assert len(types) > 40
    assert types - {"end", "raw"} == set(re.findall(r"LIVE_ARG\((\w+),", words))


def test_parameters_of_calls() -> None:
    """Each call that there is, and no other, has parameters for its events. Errors are told."""
    text = (SCRIPTS.parent / "arch/x86/entry/syscalls.tbl").read_text()
    calls = syscalltbl.parse(text, "table")
    for call in calls:
        assert bool(call.parameters) == (call.entry != syscalltbl.NO_ENTRY), call
    row = "0\tread\tsys_read\t-\tfd"
    (call,) = syscalltbl.parse(f"{row}\tother(int fd, char *const *a)", "table")
    assert '\tX(0, "other(int fd, char *const *a)")' in syscalltbl.render([call])
    assert syscalltbl.parse(row, "table")[0].parameters == ""
    for wrong in ("()x", "(int)", "(int fd,)", "(int fd, )", "(int fd", 'a"(int b)', "", "(" * 2):
        with pytest.raises(SystemExit, match="are no parameters"):
            syscalltbl.parse(f"{row}\t{wrong}", "table")
    with pytest.raises(SystemExit, match="are too many"):
        syscalltbl.parse(f"{row}\t({', '.join(f'int a{nr}' for nr in range(7))})", "table")
