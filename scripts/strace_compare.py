#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the kernel's system call tables with the host's strace of the same program.

    strace-compare [--smp N] [--files FILE...] -- ./prog ARGS...
    strace-compare [--smp N] [--files FILE...] --cmd 'ls / | wc -l' [-- ./prog]
    strace-compare [--smp N] [--debian PACKAGE...] --cmd 'sqlite3 :memory: "select 1"'
    strace-compare TRACE LOG [--program NAME]

The first form runs a program in one initramfs image twice, as process 1: on the host under
strace, in namespaces and a root directory of its own, and in QEMU with build/vmlinux. FILEs are in
/data. The next two do so with a command under busybox' shell, with prog, or Debian packages, in
reach. The last reads what is there already: the output of strace -f -o, and a console. If that is
not of a run with profile.on_exit=all, the last table of the console is compared with the first
process.

There is a table for each process, and it begins anew with each execve. Processes are matched by
name, then by order of creation; where several have the same name, equal ones find each other, for
the order of those that several processes make is a matter of luck.

Calls and errors of every row must be equal, and in wide reports the names of the errors, except for
what the exceptions file lists: one line per system call, `name bound reason...`, bound being the
largest difference that is accepted in calls and in errors, or `any`. Lines below a `[program...]`
line are for these programs only (patterns as the shell's).

Exits 0 if all is equal, 1 if not (each difference is a line, and so is each report that is not
whole, which is left out), 2 if an input is unusable.
"""

from __future__ import annotations

import argparse
import functools
import re
import subprocess
import sys
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
SCRIPTS = Path(__file__).resolve().parent
BOOT_TESTS = SCRIPTS.parent / "tests" / "boot"
sys.path.insert(0, str(BOOT_TESTS))
import host_run
import qemu
import report
import report_lines
import report_strace
from strace_log import Counts, InputError, Process, read_processes

Exceptions = dict[str, tuple[float, str]]
Pair = tuple[Process, Process]

EXCEPTIONS = BOOT_TESTS / "strace-exceptions.txt"
EXIT = re.compile(
    r"(.*) \(pid (\d+)\) (?:exited with status|was killed by signal) \d+ after \d+\.\d+ s"
)
EXIT_OF_ALL = re.compile(r"Command line: (?:.* )?profile\.on_exit=all\b")


def count_strace(trace: str) -> Counts:
    """Returns calls and errors by name of the first process."""
    return read_processes(trace)[0].counts


def read_reports(log: str, damaged: list[str] | None = None) -> list[Process]:
    """
    The processes that a console log has a table of, in the order in which they ended. A line for
    each report that is not whole goes to damaged; without that list one is an error.
    """
    reports, wrong = report.parse_whole(log)
    if wrong and damaged is None:
        raise InputError(f"a report is damaged: {wrong[0]}")
    if damaged is not None:
        damaged += wrong
    tables = [(found.why, found.straces[0]) for found in reports if len(found.straces) == 1]
    processes = []
    for why, table in tables:
        if match := EXIT.fullmatch(why):
            process = Process(match[1], int(match[2]))
            if any(report_lines.is_rest(row.name) for row in table.rows):
                raise InputError(f"the table of {match[1]} lacks rows: boot with profile.top=all")
            for row in table.rows:
                if row.name == report_strace.RETURN_TO_USER:
                    continue
                name = row.name.removeprefix("sys_")
                process.calls[name], process.errors[name] = row.nr_calls, row.nr_errors
                if row.wide and "other" not in row.wide.errors:
                    process.error_names[name] = row.wide.errors
            processes.append(process)
    if not processes:
        raise InputError("there is no strace table of a process in the console log")
    return processes


def count_report(log: str) -> Counts:
    """Returns calls and errors by name of the last process to end in a console log."""
    return read_reports(log)[-1].counts


@functools.cache
def read_exceptions(text: str, program: str | None = None) -> Exceptions:
    """Returns the exceptions for every program and for this one."""
    exceptions: Exceptions = {}
    applies = True
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if match := re.fullmatch(r"\[(.+)\]", line):
            applies = any(fnmatchcase(program or "", word) for word in match[1].split())
            continue
        words = line.split(None, 2)
        if len(words) != 3 or not (words[1] == "any" or words[1].isdigit()):
            raise InputError(f"exceptions, line {number}: expected `name bound reason`: {line!r}")
        if applies:
            bound = float("inf") if words[1] == "any" else int(words[1])
            exceptions[words[0]] = (bound, words[2])
    return exceptions


def compare(host: Counts, guest: Counts, exceptions: Exceptions) -> list[str]:
    """Returns a line for every difference that no exception covers."""
    wrong = []
    for name in sorted(host.keys() | guest.keys()):
        for what, a, b in zip(("calls", "errors"), host.get(name, (0, 0)), guest.get(name, (0, 0))):
            if a == b:
                continue
            if name not in exceptions:
                wrong.append(f"{name}: {what}: strace counts {a}, the kernel {b}")
            elif abs(a - b) > exceptions[name][0]:
                bound = exceptions[name][0]
                wrong.append(f"{name}: {what}: {a} and {b} differ by more than {bound}")
    return wrong


def name_errors(errors: dict[str, int]) -> str:
    return ", ".join(f"{name} {nr}" for name, nr in sorted(errors.items()))


def compare_all(host: Process, guest: Process, exceptions: Exceptions) -> list[str]:
    """The same for two processes. As many errors of a call must be the same errors, too."""
    wrong = compare(host.counts, guest.counts, exceptions)
    for name, errors in sorted(guest.error_names.items()):
        of_host = host.error_names.get(name, {})
        same_number = sum(errors.values()) == sum(of_host.values())
        if same_number and errors != of_host and name not in exceptions:
            told = f"strace counts {name_errors(of_host)}, the kernel {name_errors(errors)}"
            wrong.append(f"{name}: errors: {told}")
    return wrong


def by_pid(process: Process) -> int:
    return process.pid


def pair_equal(host: list[Process], guest: list[Process], exceptions: Exceptions) -> list[Pair]:
    """Removes pairs without differences, except for exceptions, from both lists."""
    pairs = []
    for one in list(host):
        for other in guest:
            if not compare_all(one, other, exceptions):
                pairs.append((one, other))
                host.remove(one)
                guest.remove(other)
                break
    return pairs


def compare_processes(
    host: list[Process], guest: list[Process], text: str = ""
) -> tuple[list[Pair], list[str]]:
    """
    Which process is which, and a line for every difference that the text of the exceptions file
    does not cover. Equal ones of one name find each other first, then those that are equal but for
    exceptions; what is left is paired in order of creation.
    """
    pairs: list[Pair] = []
    wrong = []
    for name in sorted({process.name for process in host + guest}):
        exceptions = read_exceptions(text, name)
        left = [sorted((p for p in side if p.name == name), key=by_pid) for side in (host, guest)]
        if len(left[0]) != len(left[1]):
            nrs = f"{len(left[0])} on the host, {len(left[1])} in the kernel"
            wrong.append(f"{name}: not as many processes: {nrs}")
        pairs += pair_equal(left[0], left[1], {})
        pairs += pair_equal(left[0], left[1], exceptions)
        for one, other in zip(*left):
            pairs.append((one, other))
            lines = compare_all(one, other, exceptions)
            wrong += [f"process {other.pid} ({name}): {line}" for line in lines]
    return sorted(pairs, key=lambda pair: by_pid(pair[1])), wrong


def show(pairs: list[Pair], text: str) -> None:
    for one, other in pairs:
        host, guest = one.counts, other.counts
        exceptions = read_exceptions(text, one.name)
        print(f"process {other.pid} ({other.name}): calls and errors, host and kernel")
        for name in sorted(host.keys() | guest.keys()):
            a, b = host.get(name, (0, 0)), guest.get(name, (0, 0))
            note = "" if a == b else "  (exception)" if name in exceptions else "  DIFFERENT"
            print(f"{name:20} {a[0]:8} {a[1]:6}   {b[0]:8} {b[1]:6}{note}")


# Runs


def make_image(args: argparse.Namespace, program: list[str], directory: Path) -> Path:
    """Makes the image of `make run`, with PROGRAM=, FILES= and CMD=."""
    image = directory / "image.cpio"
    root = SCRIPTS / "shell"
    items = ["--program", program[0]] if program else []
    items += [word for package in args.debian for word in ("--debian", package)]
    items += [f"/data/={file}" for file in args.files]
    if args.cmd is not None:
        (directory / "command").write_text(args.cmd)
        items += ["--busybox", str(root), f"/command={directory / 'command'}"]
    dirs = [f"--dir=/{name}" for name in ("dev", "proc", "root", "tmp")]
    command: list[str | Path] = [SCRIPTS / "mkinitramfs", "-o", image, *dirs]
    command.append(f"--cache={args.build / 'packages'}")
    if subprocess.run([*command, *items]).returncode:
        raise InputError("there is no image to run")
    return image


def run_host(image: Path, arguments: list[str], smp: int) -> list[Process]:
    """Returns the processes of a run on the host. Prints their output."""
    trace = image.with_name("trace")
    try:
        output, status = host_run.run(host_run.command(image, arguments, trace), smp)
        lines = trace.read_text(errors="replace")
    except (host_run.HostError, OSError) as error:
        raise InputError(f"on the host: {error}") from error
    print(f"--- on the host: status {status}\n{output}", end="")
    try:
        return read_processes(lines, arguments[0])
    except InputError as error:
        raise InputError(f"{arguments[0]} did not run on the host: {error}") from error


def run_guest(
    image: Path, arguments: list[str], args: argparse.Namespace, damaged: list[str]
) -> list[Process]:
    """Returns the processes of a run in QEMU."""
    append = "profile.on_exit=all profile.top=all profile.report=wide "
    append += f"{args.append} init={arguments[0]}"
    if arguments[1:]:
        append += f" -- {' '.join(arguments[1:])}"
    options = qemu.Options(args.build / "vmlinux", image, smp=args.smp, mem=args.mem, append=append)
    try:
        result = qemu.run(options)
    except qemu.QemuError as error:
        raise InputError(f"in QEMU: {error}") from error
    print(f"--- in QEMU: status {result.status}\n{result.log}", end="")
    if result.status is None:
        raise InputError(f"in QEMU: {result.error}")
    return read_reports(result.log, damaged)


def run_both(
    args: argparse.Namespace, program: list[str], damaged: list[str]
) -> tuple[list[Process], list[Process]]:
    if not program and args.cmd is None:
        raise InputError("name a program to run after the --")
    if args.cmd is not None and program[1:]:
        raise InputError("with --cmd, arguments belong into the command")
    if any(not word or re.search(r"\s|^--$", word) for word in program):
        raise InputError("the kernel's command line cannot have this argument: use --cmd")
    with tempfile.TemporaryDirectory(prefix="strace-compare-") as name:
        image = make_image(args, program, Path(name))
        arguments = ["/init"]
        if args.cmd is None:
            arguments = [f"/bin/{Path(program[0]).name}", *program[1:]]
        host = run_host(image, arguments, args.smp)
        return host, run_guest(image, arguments, args, damaged)


def read_both(
    args: argparse.Namespace, damaged: list[str]
) -> tuple[list[Process], list[Process]]:
    host = read_processes(args.trace.read_text(errors="replace"))
    log = args.log.read_text(errors="replace")
    guest = read_reports(log, damaged)
    if not EXIT_OF_ALL.search(log):
        host, guest = host[:1], guest[-1:]
    if args.program:
        host[0].name = args.program
    if not EXIT_OF_ALL.search(log) or args.program:
        guest[0].name = host[0].name
    return host, guest


def parse(argv: list[str], runs: bool) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="strace-compare",
        usage=__doc__.split("\n\n")[1].strip(),
        description=__doc__.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.add_argument("--exceptions", type=Path, help="differences that are accepted")
    p.add_argument("--program", help="the first process's name, as far as exceptions go")
    p.add_argument("--cmd", metavar="COMMAND", help="run this under busybox' shell")
    p.add_argument("--files", nargs="+", default=[], metavar="FILE", help="have them in /data")
    debian_help = "have these Debian packages in the image, with all that they depend on"
    p.add_argument("--debian", nargs="+", default=[], metavar="PACKAGE", help=debian_help)
    p.add_argument("--smp", type=int, default=2, help="CPUs (default 2)")
    p.add_argument("--mem", help="the guest's memory (default as of qemu-run)")
    p.add_argument("--append", default="", metavar="CMDLINE", help="for the kernel's command line")
    default = SCRIPTS.parent / "build"
    p.add_argument("--build", type=Path, default=default, help="where vmlinux is (build)")
    if not runs:
        p.add_argument("trace", type=Path, metavar="TRACE", help="output of strace -f -o")
        p.add_argument("log", type=Path, metavar="LOG", help="the kernel's console")
    return p.parse_args(argv)


def main(argv: list[str]) -> int:
    options, program = argv, []
    if "--" in argv:
        at = argv.index("--")
        options, program = argv[:at], argv[at + 1 :]
    runs = "--" in argv or any(re.match(r"--cmd(=|$)", word) for word in argv)
    args = parse(options, runs)
    exceptions = args.exceptions or (EXCEPTIONS if runs else None)
    damaged: list[str] = []
    try:
        text = exceptions.read_text() if exceptions else ""
        read_exceptions(text)
        host, guest = run_both(args, program, damaged) if runs else read_both(args, damaged)
    except (InputError, OSError) as error:
        print(f"strace-compare: error: {error}", file=sys.stderr)
        return 2
    pairs, wrong = compare_processes(host, guest, text)
    show(pairs, text)
    wrong += [f"left out, because it is incomplete: {line}" for line in damaged]
    for line in wrong:
        print(f"strace-compare: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
