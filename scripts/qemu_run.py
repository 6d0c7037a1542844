#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Boots a kernel in QEMU, shows its console, and exits 0 only if it powered off with status 0.

If init ends with another status, it exits with that; after any other failure with 1.
On a terminal, Ctrl-] B sends a BREAK (then p, h, t, z or c for sysrq), Ctrl-] X ends QEMU; all
other keys, Ctrl-A and Ctrl-C too, are the guest's, which is told how large the terminal is (but not
with --icount, as a run would depend on it). Without a terminal, the first SIGINT is a Ctrl-C for
the guest, and the second one ends QEMU. A guest with a user (--interactive) may power off with any
status, which is not an error.
"""

import argparse
import contextlib
import fcntl
import math
import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

sys.dont_write_bytecode = not sys.pycache_prefix
import qemu
import terminal


def parse(argv: list[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="qemu-run", description=__doc__.splitlines()[0])
    p.add_argument("--kernel", type=Path, help="vmlinux")
    p.add_argument("--initrd", type=Path, help="initramfs (cpio newc)")
    p.add_argument("--cdrom", type=Path, help="boot from this CD image instead")
    p.add_argument("--smp", type=int, default=4, help="CPUs (default 4)")
    p.add_argument("--mem", help="memory (default 512M, or 4 times the initramfs if that is more)")
    p.add_argument("--append", default="", metavar="CMDLINE", help="kernel command line")
    p.add_argument("--icount", action="store_true", help="count instructions: reproducible runs")
    p.add_argument("--accel", choices=("tcg", "kvm"), default="tcg")
    p.add_argument("--cpu", default="max", help="CPU model (default max)")
    p.add_argument("--qemu", help="the QEMU to use (default $QEMU or qemu-system-x86_64)")
    p.add_argument("--timeout", type=float, default=900, metavar="S", help="for the whole run")
    p.add_argument("--silence", type=float, default=180, metavar="S", help="without any output")
    p.add_argument("--export", type=Path, metavar="FILE", help="write the profiler's export to it")
    get_help = "copy this file or directory of the guest to the host after the run"
    p.add_argument("--get", action="append", default=[], metavar="/PATH", help=get_help)
    folder_help = "where the files go (build/files)"
    p.add_argument("--get-folder", type=Path, default=Path("build/files"), help=folder_help)
    host_help = "copy files in this directory when they are closed, too; it may stay empty"
    p.add_argument("--host", metavar="/PATH", help=host_help)
    host_path_help = "tell legoprof where a program is, or a directory with programs"
    p.add_argument("--host-path", type=Path, action="append", default=[], help=host_path_help)
    operations_help = "add to the export the costs that operations.c prints, and what the code is"
    p.add_argument("--operations", action="store_true", help=operations_help)
    stdin_help = "give init what a file or a pipe on standard input has, to its end"
    p.add_argument("--stdin", action="store_true", help=stdin_help)
    p.add_argument("--log", type=Path, help="write the console to this file, too")
    page_help = "write a page to look at beside the log, and the export that it is made of"
    p.add_argument("--page", action="store_true", help=page_help)
    p.add_argument(
        "--interactive",
        action="store_true",
        help="require a terminal, and wait for its user without a time limit",
    )
    p.add_argument("--quiet", action="store_true", help="do not show the console")
    p.add_argument("--qemu-arg", action="append", default=[], metavar="ARG", help="for QEMU")
    return p.parse_args(argv)


def fail(text: str) -> int:
    print(f"qemu-run: error: {text}", file=sys.stderr)
    return 1


def terminal_size(append: str) -> str:
    """Puts the size of this terminal, if it has one, first: later arguments may replace it."""
    size = os.get_terminal_size(sys.stdout.fileno())
    known = size.columns and size.lines
    return f"tty_size={size.columns}x{size.lines} {append}" if known else append


def open_log(path: Path) -> BinaryIO:
    """Opens a log that no other run is writing: that with this name, or one of its own."""
    for name in path, path.with_name(f"{path.stem}.{os.getpid()}{path.suffix}"):
        log = name.open("ab")
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            log.close()
            continue
        log.truncate(0)
        if name != path:
            print(f"qemu-run: another run writes {path}, so this log is {name}", file=sys.stderr)
        return log
    raise qemu.QemuError(f"cannot lock {path}")


def handle_signals(guest: qemu.Guest, has_keyboard: bool) -> None:
    """SIGTERM and SIGHUP end QEMU. The first SIGINT is a Ctrl-C for the guest."""

    def end(number: int, _: object) -> None:
        raise KeyboardInterrupt

    def interrupt(number: int, _: object) -> None:
        signal.signal(signal.SIGINT, end)
        text = "the program was sent Ctrl-C; another Ctrl-C ends QEMU"
        print(f"qemu-run: {text}", file=sys.stderr)
        guest.send("\3")

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)
    if not has_keyboard and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)


def run(args: argparse.Namespace, log: BinaryIO | None) -> qemu.Result:
    """Runs the guest. Its console goes to standard output and to the log."""
    has_terminal = terminal.is_usable()
    if args.interactive and not has_terminal:
        text = "this needs a terminal: for a script, make run CMD='...' runs a command"
        raise qemu.QemuError(text)
    has_keyboard = args.interactive or (has_terminal and not args.quiet)
    if has_keyboard and (args.interactive or not args.icount):
        args.append = terminal_size(args.append)
    ends = qemu.LineEnds()

    def show(data: bytes) -> None:
        if log:
            log.write(ends.plain(data))
            log.flush()
        if not args.quiet:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    options = qemu.Options(
        kernel=args.kernel,
        initrd=args.initrd,
        cdrom=args.cdrom,
        smp=args.smp,
        mem=args.mem,
        append=args.append,
        cpu=args.cpu,
        accel=args.accel,
        icount=args.icount,
        qemu=args.qemu,
        timeout=math.inf if args.interactive else args.timeout,
        silence=math.inf if args.interactive else args.silence,
        export=args.export,
        host_paths=args.host_path,
        operations=args.operations,
        get=args.get,
        host=args.host,
        get_folder=args.get_folder,
        stdin=terminal.read_stdin() if args.stdin else None,
        extra=args.qemu_arg,
    )
    if has_keyboard and not args.interactive:
        print("qemu-run: Ctrl-C ends the program, Ctrl-] X ends QEMU at once", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        keyboard = stack.enter_context(terminal.Keyboard()) if has_keyboard else None
        guest = stack.enter_context(qemu.Guest(options, show, keyboard))
        handle_signals(guest, has_keyboard)
        result = guest.wait()
    if log:
        log.write(ends.rest())
    return result


def write_page(export: Path, page: Path) -> None:
    """Writes the page, and says where it is. Without one, the run is what it was."""
    import legoprof  # here, as most runs make no page

    if not legoprof.main(["page", str(export), "-o", str(page)]):
        print(f"page: {page}: open it in a browser", flush=True)


def main(argv: list[str]) -> int:
    args = parse(argv)
    wants_export, page = args.export is not None, None
    try:
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(open_log(args.log)) if args.log else None
            if args.page and log:
                page = Path(log.name).with_suffix(".html")
                args.export = args.export or page.with_suffix(".lego")
            result = run(args, log)
    except qemu.QemuError as error:
        return fail(str(error))
    except OSError as error:
        return fail(str(error))
    except KeyboardInterrupt:
        return fail("interrupted")
    if result.export_error and wants_export:
        fail(f"no export: {result.export_error}")
    elif wants_export:
        print(f"export: {args.export}: open it with scripts/legoprof report {args.export}")
    for problem in result.get_problems if args.get or result.got else ():
        fail(f"not copied: {problem}")
    if result.got:
        names = ", ".join(result.got[:5]) + (", ..." if result.got[5:] else "")
        print(f"files: {len(result.got)} in {args.get_folder}: {names}")
    status = end_status(args, result, wants_export)
    if args.get and not result.got:
        status = status or 1
    if page and not result.export_error:
        write_page(args.export, page)
    return status


def end_status(args: argparse.Namespace, result: qemu.Result, wants_export: bool) -> int:
    """Returns the exit status, and says what went wrong."""
    if result.ok:
        return 1 if result.export_error and wants_export else 0
    if args.interactive and result.verdict and not result.verdict.complaint(result.log):
        print(f"the guest ended with status {result.status}")
        return 0
    if args.quiet:
        print(result.tail(), file=sys.stderr)
    fail(result.error or "unknown")
    return result.status or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
