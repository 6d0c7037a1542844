#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes an initramfs (a cpio archive, newc format) for programs to run on the kernel.

An ITEM is one of
    ./prog             a program: becomes /bin/prog
    ./dir              a directory: what is in it goes to the root
    /data/in=./file    a file or a directory, under the name before the =
    /data/=./file      the same, under its own name in /data
A file that exists is meant, even if there is a = in its name.

Files keep their mode, links in a directory stay links. Equal input gives equal bytes: entries are
sorted, owned by root (except by --dir), dated 0 and numbered in order. An item wins over a package
that has the same file, a later item over an earlier one. @FILE is replaced by the arguments in
FILE, one per line.

    mkinitramfs -o my.cpio ./prog /data/=./input
    mkinitramfs -o my.cpio --busybox --package hello ./root --symlink /bin/ed=vi
    mkinitramfs -o my.cpio --busybox --debian sqlite3 --debian python3-minimal
"""

from __future__ import annotations

import argparse
import os
import re
import stat
import struct
import sys
from pathlib import Path, PurePosixPath
from typing import Iterator

sys.dont_write_bytecode = not sys.pycache_prefix
import packages
from cpio import Entries, Entry, archive
from packages import Error

MAX_FILE_BYTES = 0xFFFFFFFF
PT_INTERP = 3
EM_X86_64 = 62
MACHINES = {3: "32-bit x86", 40: "32-bit ARM", 183: "AArch64", 243: "RISC-V"}
ET_REL = 1
DYNAMIC_LINKER = re.compile(r"/lib(64)?/ld-[\w.-]+")  # it is run, to list libraries
MAX_LINKS = 40
SOURCE_SUFFIXES = {".c": "gcc", ".S": "gcc", ".s": "gcc", ".cc": "g++", ".cpp": "g++"}
# Programs that run others. Those of busybox prefer its own applets to any program.
LAUNCHERS = {"coreutils": ("env", "nice", "nohup", "timeout"), "findutils": ("find", "xargs")}
PROGRAM_PLACES = ("bin", "sbin", "usr/bin", "usr/sbin")


NEW_DIR = Entry(stat.S_IFDIR | 0o755, b"")
TMP_DIR = Entry(stat.S_IFDIR | 0o1777, b"")  # everybody makes files in it


def warn(text: str) -> None:
    print(f"mkinitramfs: warning: {text}", file=sys.stderr)


def clean_name(name: str) -> str:
    """Returns the name in the archive: relative to the root, without `.` and doubled slashes."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Error(f"{name}: a name in the image has no ..")
    return "/".join(parts)


# Reading the host's files


def elf_problem(data: bytes) -> str | None:
    """Returns why the kernel cannot run an ELF file, or None."""
    if len(data) < 64 or data[:4] != b"\x7fELF":
        return None
    kind, machine = struct.unpack_from("<HH", data, 16)
    if data[4:6] != b"\x02\x01" or machine != EM_X86_64:
        name = MACHINES.get(machine)
        return f"for {name}, not for x86-64" if name else "not for x86-64"
    if kind == ET_REL:
        return "an object file: link it, with -static"
    return None


def elf_parts(data: bytes) -> Iterator[tuple[int, int, int]]:
    """
    Yields the type, offset and size of each part of an ELF program that is used to run it: the
    table of program headers, as type 0, and what each of them describes.
    """
    (phoff,) = struct.unpack_from("<Q", data, 32)
    phentsize, phnum = struct.unpack_from("<HH", data, 54)
    yield 0, phoff, phentsize * phnum
    for at in range(phoff, phoff + phentsize * phnum, phentsize or 1):
        if at + 40 <= len(data):
            kind, offset, size = struct.unpack_from("<I4xQ16xQ", data, at)
            yield kind, offset, size


def elf_interpreter(data: bytes) -> str | None:
    """Returns the dynamic linker that an ELF file names."""
    if len(data) < 64 or data[:4] != b"\x7fELF" or elf_problem(data):
        return None
    for kind, offset, nr_bytes in elf_parts(data):
        if kind == PT_INTERP:
            return os.fsdecode(data[offset : offset + nr_bytes].split(b"\0")[0])
    return None


def find_entry(entries: Entries, path: str, nr_links: int = 0) -> Entry | None:
    """Returns the entry of a path in the image, following links."""
    parts = clean_name(path).split("/")
    for nr in range(1, len(parts) + 1):
        name = "/".join(parts[:nr])
        entry = entries.get(name)
        if entry and stat.S_ISLNK(entry.mode) and nr_links < MAX_LINKS:
            target = os.path.join("/", os.path.dirname(name), os.fsdecode(entry.data), *parts[nr:])
            return find_entry(entries, os.path.normpath(target), nr_links + 1)
    return entries.get("/".join(parts))


def first_of(names: list[str]) -> str:
    return names[0] + (f" (and {len(names) - 1} more)" if len(names) > 1 else "")


def warn_of_problems(entries: Entries) -> None:
    """Prints one line for each kind of problem: a package may have a hundred of one kind."""
    found: dict[str, list[str]] = {}
    for name, entry in sorted(entries.items()):
        if not stat.S_ISREG(entry.mode):
            continue
        # Packages of compilers have object files; nobody executes them.
        why = elf_problem(entry.data) if entry.mode & 0o111 else None
        interpreter = elf_interpreter(entry.data)
        if interpreter and not find_entry(entries, interpreter):
            why = f"linked dynamically, and {interpreter} is not in the image: add --debian libc6"
        if why:
            found.setdefault(why, []).append(f"/{name}")
    for why, names in found.items():
        warn(f"{first_of(names)}: {why}")


def add_entry(entries: Entries, name: str, entry: Entry) -> None:
    old = entries.get(name)
    if old and stat.S_ISDIR(old.mode) != stat.S_ISDIR(entry.mode):
        raise Error(f"/{name} would be a directory and a file")
    entries[name] = entry


def add_path(entries: Entries, name: str, path: Path, follow: bool = False) -> None:
    """Adds one file, link or directory of the host, the latter without its contents."""
    status = path.stat() if follow else path.lstat()
    mode = stat.S_IFMT(status.st_mode) | stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(mode):
        add_entry(entries, name, Entry(stat.S_IFLNK | 0o777, os.fsencode(os.readlink(path))))
    elif stat.S_ISDIR(mode):
        if name:
            add_entry(entries, name, Entry(mode, b""))
    elif stat.S_ISREG(mode):
        if status.st_size > MAX_FILE_BYTES:
            raise Error(f"{path}: the format has no files of 4 GiB and more")
        add_entry(entries, name, Entry(mode, path.read_bytes()))
    else:
        warn(f"{path}: left out, it is neither a file nor a directory nor a link")


def add_tree(entries: Entries, name: str, path: Path) -> None:
    """Adds a file, or a directory with its contents."""
    add_path(entries, name, path, follow=True)
    if not path.is_dir():
        return
    for parent, dirs, files in os.walk(path, onerror=raise_error):
        for child in dirs + files:
            full = Path(parent, child)
            add_path(entries, clean_name(f"{name}/{full.relative_to(path)}"), full)


def raise_error(error: OSError) -> None:
    raise error


def add_item(entries: Entries, item: str) -> None:
    name, sep, source = item.partition("=")
    if Path(item).exists():  # its own name has an =
        name = sep = ""
    path = Path(source if sep else item)
    if sep and (not name or not source):
        raise Error(f"{item}: neither a path nor NAME=PATH")
    if not path.exists():
        raise Error(f"{path}: no such file or directory")
    if not sep and not path.is_dir():
        if not path.stat().st_mode & stat.S_IXUSR:
            raise Error(f"{path} is no program: say where it goes, as in /data/{path.name}={path}")
        name = f"bin/{path.name}"
    elif not sep:
        name = ""
    elif name.endswith("/"):
        name += path.name
    name = clean_name(name)
    if not name and not path.is_dir():
        raise Error(f"{item}: the root is a directory")
    add_tree(entries, name, path)


def program_problem(path: Path) -> str | None:
    """Returns why the kernel cannot run a file of the host, or None."""
    if not path.exists():
        return "no such file"
    if path.is_dir():
        return "a directory, not a program"
    if not path.is_file():
        return "not a regular file"
    data = path.read_bytes()
    if not data.startswith((b"\x7fELF", b"#!")):
        compiler = SOURCE_SUFFIXES.get(path.suffix)
        if compiler:
            return f"a source, not a program: {compiler} -static -O2 -o {path.stem} {path}"
        return "neither an ELF program nor a script that starts with #!"
    if data[:4] == b"\x7fELF" and len(data) < 64:
        return "an ELF file that is cut off"
    if why := elf_problem(data):
        return why
    is_elf = data[:4] == b"\x7fELF"
    if is_elf and any(offset + nr_bytes > len(data) for _, offset, nr_bytes in elf_parts(data)):
        return "an ELF file that is cut off"
    if not path.stat().st_mode & stat.S_IXUSR:
        return f"not executable: chmod +x {path}"
    return None


def add_program(entries: Entries, source: str) -> None:
    path = Path(source)
    if why := program_problem(path):
        raise Error(f"{source}: {why}")
    add_path(entries, clean_name(f"bin/{path.name}"), path, follow=True)


def add_libraries(entries: Entries, source: str) -> None:
    """Adds a dynamic program's libraries from this machine, unless the image has them."""
    interpreter = elf_interpreter(Path(source).read_bytes())
    if not interpreter:
        return
    if not DYNAMIC_LINKER.fullmatch(interpreter) or not Path(interpreter).exists():
        raise Error(f"{source}: needs {interpreter}, which is not on this machine: use -static")
    listed = packages.run(interpreter, "--list", str(Path(source).resolve()))
    missing = re.findall(r"^\s*(\S+) => not found", listed.stdout, re.MULTILINE)
    if missing or listed.returncode:
        what = ", ".join(missing) or listed.stderr.strip() or "its libraries"
        raise Error(f"{source}: not on this machine: {what}")
    paths = re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", listed.stdout, re.MULTILINE)
    for path in [interpreter, *paths]:
        if not find_entry(entries, path):
            add_path(entries, clean_name(path), Path(path), follow=True)


def check_interpreters(entries: Entries, programs: list[str]) -> None:
    """Checks that the image has the interpreters of the scripts among the programs."""
    for source in programs:
        words = Path(source).read_bytes().split(b"\n", 1)[0].removeprefix(b"#!").split()
        name = os.fsdecode(words[0]) if words else ""
        if Path(source).read_bytes().startswith(b"#!") and not find_entry(entries, name):
            raise Error(f"{source}: a script for {name or 'nothing'}, which is not in the image")


def add_dir(entries: Entries, item: str) -> None:
    path, sep, owner = item.partition(":")
    name = clean_name(path)
    if sep and not owner.isdecimal():
        raise Error(f"--dir {item}: {owner} is not the number of a user")
    entry = TMP_DIR if name == "tmp" else NEW_DIR
    add_entry(entries, name, entry._replace(owner=int(owner or 0)))


def add_symlink(entries: Entries, item: str) -> None:
    name, sep, target = item.partition("=")
    if not sep or not clean_name(name) or not target:
        raise Error(f"--symlink {item}: not NAME=TARGET")
    add_entry(entries, clean_name(name), Entry(stat.S_IFLNK | 0o777, os.fsencode(target)))


# Debian packages


def add_package(entries: Entries, package: str, cache: Path) -> None:
    """A host may have removed files: the image goes without them, unless they are code."""
    missing = []
    for path, source in packages.package_files(package, cache):
        try:
            add_path(entries, clean_name(str(path)), source)
        except FileNotFoundError as error:
            if clean_name(str(path.parent)) in PROGRAM_PLACES or ".so" in path.suffixes:
                raise Error(f"package {package}: {path} is missing: install it again") from error
            missing.append(str(path))
    if missing:
        warn(f"package {package}: left out, because it is missing here: {first_of(missing)}")


def add_busybox(entries: Entries, cache: Path) -> None:
    """Adds busybox, and a link in /bin for each applet that no package provides."""
    add_package(entries, "busybox-static", cache)
    program = Path("/bin/busybox")
    if packages.installed_files("busybox-static") is None:
        program = packages.downloaded_root("busybox-static", cache) / "bin/busybox"
    applets = packages.run(str(program), "--list").stdout.split()
    if "sh" not in applets:
        raise Error(f"{program} has no shell")
    for applet in applets:
        if not any(f"{place}/{applet}" in entries for place in PROGRAM_PLACES):
            add_entry(entries, f"bin/{applet}", Entry(stat.S_IFLNK | 0o777, b"busybox"))


def add_launchers(entries: Entries, cache: Path) -> None:
    """Adds programs that run others, with the libraries that the image lacks."""
    for package, names in LAUNCHERS.items():
        for path, source in packages.package_files(package, cache):
            if path.name in names and clean_name(str(path.parent)) in PROGRAM_PLACES:
                add_path(entries, clean_name(str(path)), source)
                add_libraries(entries, str(source))


# The archive


def add_parents(entries: Entries) -> None:
    for name in list(entries):
        for parent in PurePosixPath(name).parents:
            if str(parent) == ".":
                continue
            if not stat.S_ISDIR(entries.setdefault(str(parent), NEW_DIR).mode):
                raise Error(f"/{name}: /{parent} is not a directory")


def collect(args: argparse.Namespace) -> Entries:
    cache = args.cache or args.output.resolve().parent / "packages"
    theirs: Entries = {}
    # Busybox's shell prefers its own applets, too; Debian's does not.
    shell = ["dash"] if args.debian and args.busybox else []
    wanted = packages.with_dependencies([*args.debian, *shell])
    for package in dict.fromkeys([*wanted, *args.package]):
        add_package(theirs, package, cache)
    if args.busybox and args.debian:
        add_launchers(theirs, cache)
    if args.busybox:
        add_busybox(theirs, cache)
    own: Entries = {}
    for item in args.dir:
        add_dir(own, item)
    for item in args.item:
        add_item(own, item)
    for program in args.program:
        add_program(own, program)
    for item in args.symlink:
        add_symlink(own, item)
    entries = {**theirs, **own}
    for program in args.program:
        add_libraries(entries, program)
    add_parents(entries)
    check_interpreters(entries, args.program)
    return entries


def parse(argv: list[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="mkinitramfs",
        description=__doc__.splitlines()[0],
        epilog=__doc__.split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars="@",
        allow_abbrev=False,
    )
    package_help = "a Debian package's files, installed or downloaded, not those it depends on"
    p.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="the archive")
    p.add_argument("item", nargs="*", metavar="ITEM", help="files and directories, see below")
    program_help = "a program for /bin, which the kernel must be able to run, and its libraries"
    p.add_argument("--program", action="append", default=[], metavar="FILE", help=program_help)
    dir_help = "an empty directory, root's or that user's; /tmp is for everybody"
    p.add_argument("--dir", action="append", default=[], metavar="NAME[:UID]", help=dir_help)
    p.add_argument("--symlink", action="append", default=[], metavar="NAME=TARGET", help="a link")
    p.add_argument("--package", action="append", default=[], metavar="NAME", help=package_help)
    debian_help = "the same, and all packages that it depends on; with --busybox, dash as sh"
    p.add_argument("--debian", action="append", default=[], metavar="NAME", help=debian_help)
    p.add_argument("--busybox", action="store_true", help="busybox-static, all applets in /bin")
    p.add_argument("--cache", type=Path, metavar="DIR", help="for downloads (OUT's packages/)")
    return p.parse_intermixed_args(argv)


def main(argv: list[str]) -> int:
    args = parse(argv)
    try:
        entries = collect(args)
        if not entries:
            raise Error("nothing to put into the image: name a program, see --help")
        warn_of_problems(entries)
        args.output.write_bytes(archive(entries))
    except (Error, OSError) as error:
        text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
        print(f"mkinitramfs: error: {text}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
