#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads exports of the kernel's profilers (make run EXPORT=run.lego), or logs of a console.

  legoprof report run.lego --table functions --top 10
  legoprof flamegraph run.lego --kernel build/vmlinux -o run.svg
  legoprof diff old.lego new.lego --fail-above 2%

Several exports, each given as path or label=path, are read as one. Each row then has its label.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.dont_write_bytecode = not sys.pycache_prefix
import profiles.diff
import profiles.events
import profiles.export
import profiles.filters
import profiles.losses
import profiles.merge
import profiles.perf_map
import profiles.report
import profiles.stacks
from profiles import (
    chrome,
    ctf,
    flamegraph,
    ftrace,
    page,
    perf_data,
    perf_events,
    pprof,
    text,
    trace_dat,
    working_set,
)
from profiles.events import Trace
from profiles.export import Export, ExportError, printable
from profiles.filters import Filter
from profiles.finder import Finder
from profiles.stacks import Names, Options, Stacks, without_build_id
from profiles.symbol_files import SymbolFiles
from profiles.table_names import TableNames

# By command: the help text, whether the output is binary, and the function that writes it.
Writer = Callable[[argparse.Namespace, Export, Stacks, Names], bytes | Iterable[bytes]]
FORMATS: dict[str, tuple[str, bool, Writer]] = {
    "folded": (
        "folded stacks, for flamegraph.pl and others",
        False,
        lambda args, _, stacks, names: text.folded(stacks, names, args.wakers),
    ),
    "stacks": (
        "stacks as bcc's profile prints them, or SystemTap",
        False,
        lambda args, _, stacks, names: (text.stap if args.stap else text.bcc)(
            stacks, names, args.delimited
        ),
    ),
    "perf-data": (
        "perf.data, for perf report, annotate, script, diff and hotspot",
        True,
        lambda *arguments: make_perf_data(*arguments),
    ),
    "pprof": (
        "a profile for go tool pprof",
        True,
        lambda args, _, stacks, names: pprof.write(stacks, names),
    ),
    "speedscope": (
        "JSON for speedscope",
        False,
        lambda args, _, stacks, names: text.speedscope(stacks, names, title(args)),
    ),
    "callgrind": (
        "a profile for callgrind_annotate and kcachegrind",
        False,
        lambda args, _, stacks, names: text.callgrind(stacks, names),
    ),
}

# The same for events.
Output = Iterable[bytes] | dict[str, list[bytes]]  # a dict: the files of a directory
EVENT_FORMATS: dict[str, tuple[str, bool, Callable[[Trace], Output]]] = {
    "trace-dat": ("events as trace.dat, for trace-cmd and kernelshark", True, trace_dat.write),
    "ftrace": ("events as text, as /sys/kernel/tracing/trace has them", False, ftrace.write),
    "chrome": (
        "events as JSON, for Perfetto and chrome://tracing",
        False,
        chrome.write,
    ),
    "ctf": (
        "events as CTF into a directory, with LTTng's names, for lttng-analyses and babeltrace2",
        True,
        ctf.write,
    ),
}


def warn(message: str) -> None:
    print(f"legoprof: {printable(message)}", file=sys.stderr)


def load(path: str, args: argparse.Namespace) -> Export:
    export = profiles.export.load(path, args.damaged)
    for warning in export.warnings:
        warn(f"{path}: {warning}")
    return export


def merge_all(args: argparse.Namespace) -> Export:
    labels = profiles.merge.labels(args.exports)
    return profiles.merge.merge({label: load(path, args) for label, path in labels})


def load_all(args: argparse.Namespace) -> Export:
    return load(args.exports[0], args) if len(args.exports) == 1 else merge_all(args)


def read_stacks(export: Export, args: argparse.Namespace) -> tuple[Stacks, int]:
    """
    Returns the stacks that the user has chosen, and how many samples of idle time are not. The
    export loses the rows that it read, which take most of the memory.
    """
    waits = args.waits or args.wakers
    memory_of = "programs" if args.memory else "kernel" if args.kernel_memory else None
    if (waits and memory_of) or (args.memory and args.kernel_memory):
        raise ExportError("one at a time: --waits, --memory or --kernel-memory")
    if args.bytes and (not memory_of or (args.memory and args.bytes in ("peak", "freed"))):
        raise ExportError("--bytes is for --kernel-memory, or live or allocated for --memory")
    if args.bytes == "freed":
        if args.command == "pprof":
            raise ExportError("pprof has no type for memory that was freed: write folded")
        memory_of = "freed"
    stacks = profiles.stacks.read(export, waits, memory_of, takes=True)
    if args.bytes == "live" and not stacks.has_live:
        raise ExportError(f"{export.path} does not say which memory was live")
    if args.bytes and args.bytes != "freed":
        stacks.weigh(f"{args.bytes}_bytes")
    if args.memory and args.command not in ("pprof", "diff"):  # which need all kinds of bytes
        stacks.stacks = [stack for stack in stacks.stacks if stack.weight]
    for file in profiles.stacks.FILES:
        for table in export.files.get(file, []):
            table.rows.clear()
    if memory_of and not stacks.stacks:
        how = "profile.memory_chains=on" if args.memory else "CONFIG_PROFILE_MEMORY"
        how = "profile.kernel_chains=on" if memory_of == "freed" else how
        raise ExportError(f"{export.path} has no such memory: {how} counts it")
    nr_idle = Filter.of(args).choose_stacks(stacks)
    if lost := str(stacks.losses):
        warn(f"{export.path}: {lost}")
    if stacks.nr_damaged:
        warn(f"{export.path}: {stacks.nr_damaged} damaged rows are left out")
    if not waits and not memory_of and (ns := profiles.stacks.other_rate_ns(export)):
        warn(f"{export.path}: for {ns / 1e9:.3f} s samples were taken at another rate, by profile")
    return stacks, nr_idle


def read_events(args: argparse.Namespace, export: Export) -> Trace:
    finder = Finder([export], args.search, not args.no_demangle, warn)
    kernels = profiles.stacks.read_kernels(args.kernel, [export], finder)
    trace = profiles.events.read(export, kernels[0] if kernels else None)
    options = Options(demangles=not args.no_demangle)
    trace.exported = Names(export, [], [], options).kernel_of(trace.build_id)
    if trace.nr_damaged:
        warn(f"{export.path}: {trace.nr_damaged} damaged rows are left out")
    Filter.of(args).choose_events(trace)
    for number, cpu in trace.cpus.items():
        if cpu.lost:
            nr = len(cpu.events)
            warn(f"{export.path}: CPU {number}: {cpu.lost} events were lost, {nr} are there")
    return trace


def make_names(args: argparse.Namespace, exports: list[Export]) -> list[Names]:
    finder = Finder(exports, args.search, not args.no_demangle, warn)
    kernels = profiles.stacks.read_kernels(args.kernel, exports, finder)
    programs = profiles.stacks.read_programs(args.program, exports, finder)
    perf_maps = profiles.perf_map.read_files(args.perf_map)
    options = Options(finder, perf_maps, not args.no_demangle, args.lines, args.inline)
    return [Names(export, kernels, programs, options) for export in exports]


def find_names(
    args: argparse.Namespace, exports: list[Export], stacks: list[Stacks]
) -> list[Names]:
    """Returns the names for the stacks of each export."""
    found = make_names(args, exports)
    for export, names, one in zip(exports, found, stacks):
        for warning in names.images.warnings:
            warn(f"{export.path}: {warning}")
        for image in without_build_id(one.stacks, names):
            is_given = names.symbols.get(image)
            what = "only its name and size identify it" if is_given else "give its file: --program"
            warn(f"{export.path}: {image.path} has no build id: {what}")
    return found


def title(args: argparse.Namespace) -> str:
    return ", ".join(Path(path).name for path in args.exports) + str(Filter.of(args))


def put(data: bytes | Iterable[bytes], output: Path | None) -> int:
    parts = [data] if isinstance(data, (bytes, bytearray)) else data
    if not output:
        sys.stdout.buffer.writelines(parts)
        return 0
    try:
        with output.open("wb") as file:
            file.writelines(parts)
    except OSError as error:
        raise ExportError(f"{output}: {error.strerror}") from error
    return 0


def put_files(files: dict[str, list[bytes]], directory: Path) -> int:
    """Writes files into new directories: readers of a trace read all that is there."""
    for parent in {(directory / name).parent for name in files}:
        try:
            parent.mkdir(parents=True)
        except OSError as error:
            raise ExportError(f"{parent}: {error.strerror}") from error
    for name, data in files.items():
        put(data, directory / name)
    return 0


def make_perf_data(
    args: argparse.Namespace, export: Export, stacks: Stacks, names: Names
) -> list[bytes]:
    """Also writes files with names beside the output, unless that is a device or a pipe."""
    is_file = args.output.is_file() or not args.output.exists()
    files = SymbolFiles(Path(f"{args.output}.symbols") if is_file else None)
    stacks = perf_data.each_sample(stacks) if args.each else stacks
    data = perf_data.write(export, stacks, names, files)
    for path, content in files.files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(f"{path.parent}: {error.strerror}") from error
        put(content, path)
    return data


def report(args: argparse.Namespace) -> int:
    export = load_all(args)
    if args.by:
        stacks, _ = read_stacks(export, args)
        (names,) = find_names(args, [export], [stacks])
        tables = [profiles.report.view(stacks, names, args.by.split(","))]
    else:
        Filter.of(args).refuse("tables are of all samples, without --by")
        (names,) = make_names(args, [export])
        tables = profiles.report.choose(export, args.table, TableNames(export, names).tables)
    profiles.report.print_tables(tables, args.format, args.sort, args.top)
    return 0


def write_events(args: argparse.Namespace) -> int:
    _, _, make = EVENT_FORMATS[args.command]
    made = make(read_events(args, load(args.exports[0], args)))
    return put_files(made, args.output) if isinstance(made, dict) else put(made, args.output)


def write_calls(export: Export, args: argparse.Namespace) -> int:
    Filter.of(args).refuse("calls are counted for the whole machine")
    if not (rows := export.rows("function_calls.json")):
        raise ExportError(f"{export.path} has no calls: profile.function_calls=on counts them")
    if lost := str(profiles.losses.of_calls(export)):
        warn(f"{export.path}: {lost}")
    data, nr_damaged = text.callgrind_of_calls(rows, lost)
    if nr_damaged:
        warn(f"{export.path}: {nr_damaged} damaged rows are left out")
    return put(data, args.output)


def write_stacks(args: argparse.Namespace) -> int:
    if args.events:
        if len(args.exports) > 1:
            raise ExportError("several runs: convert the events of each export by itself")
        export = load(args.exports[0], args)
        return put(perf_events.write(export, read_events(args, export)), args.output)
    if args.command == "stacks" and args.stap and (args.lines or args.inline):
        raise ExportError("SystemTap's format has no lines: leave out --lines and --inline")
    export = load_all(args)
    if args.calls:
        return write_calls(export, args)
    stacks, _ = read_stacks(export, args)
    if args.command == "perf-data" and stacks.unit == "bytes":
        raise ExportError("perf has no profile of memory: write pprof")
    if args.command in ("perf-data", "pprof") and not stacks.period_ns:
        raise ExportError(f"{export.path} does not say how often samples were taken")
    _, _, make = FORMATS[args.command]
    (names,) = find_names(args, [export], [stacks])
    return put(make(args, export, stacks, names), args.output)


def draw(args: argparse.Namespace) -> int:
    if len(args.exports) > 2:
        raise ExportError("a flame graph has one export, or an old and a new one: merge others")
    exports = [load(path, args) for path in args.exports]
    stacks, nr_idle = zip(*(read_stacks(export, args) for export in exports))
    heading = title(args)
    if any(nr_idle):
        heading += f", without {sum(nr_idle)} idle samples"
    runs = list(zip(stacks, find_names(args, exports, list(stacks))))
    return put(flamegraph.draw(runs, heading, args.wakers, args.reverse), args.output)


def draw_working_set(args: argparse.Namespace) -> int:
    export = load(args.exports[0], args)
    cells, nr_damaged = working_set.read(export)
    if nr_damaged:
        warn(f"{export.path}: {nr_damaged} damaged rows are left out")
    if args.pid is not None:
        cells = {pid: found for pid, found in cells.items() if pid == args.pid}
    return put(working_set.draw(export, cells), args.output)


def write_page(args: argparse.Namespace) -> int:
    paths = [args.export, *([args.old] if args.old else [])]
    exports = [load(path, args) for path in paths]
    names = make_names(args, exports)
    trace = None
    if exports[0].rows("trace_cpus.json") and "runs" not in exports[0].meta:
        trace = profiles.events.read(exports[0], names[0].only_kernel()[1])
        trace.exported = names[0].kernel_of(trace.build_id)
    return put(page.make(exports, names, trace), args.output)


def merge(args: argparse.Namespace) -> int:
    return put(profiles.merge.write(merge_all(args)), args.output)


def diff_memory(args: argparse.Namespace) -> int:
    """Prints what has grown between two moments of a run, or is more in another run."""
    if args.fail_above is not None:
        raise ExportError("--fail-above is not for memory")
    exports = [load(path, args) for path in (args.old, args.new)]
    stacks = [read_stacks(export, args)[0] for export in exports]
    if not args.bytes and all(one.has_live for one in stacks):
        for one in stacks:
            one.weigh("live_bytes")
    table = profiles.report.growth(*zip(stacks, find_names(args, exports, stacks)))
    profiles.report.print_tables([table], "text", None, args.top)
    return 1 if table.rows else 0


def diff(args: argparse.Namespace) -> int:
    if args.memory or args.kernel_memory:
        return diff_memory(args)
    Filter.of(args).refuse("differences are of all samples: choose with --memory")
    # One after the other, so that the tables of one export at a time are in memory.
    both = [profiles.diff.summary(load(path, args)) for path in (args.old, args.new)]
    found = profiles.diff.differences(*both)
    for line in [one.text for one in found] or ["no difference"]:
        print(printable(line))
    if args.fail_above is None:
        return 1 if found else 0
    return 1 if any(one.percent > args.fail_above for one in found) else 0


def percent(argument: str) -> float:
    return float(argument.removesuffix("%"))


def row_count(argument: str) -> int:
    if not argument.isdecimal() or not int(argument):
        raise argparse.ArgumentTypeError(f"{argument} is not a number of rows, 1 or more")
    return int(argument)


def add_symbols(
    parser: argparse.ArgumentParser,
    has_user: bool = True,
    has_lines: bool = True,
    has_perf_map: bool = True,
) -> None:
    """
    Adds the options that say where names come from, and how they are written. perf and pprof find
    lines by themselves, and perf the functions of JIT compilers.
    """
    files = [
        ("--kernel", "VMLINUX", "names functions of the kernel; one for each kernel"),
        ("--search", "DIR", "look for the kernel, programs and debug files there, too"),
    ]
    if has_user:
        files.append(("--program", "ELF", "names functions of a program or library"))
    if has_user and has_perf_map:
        files.append(("--perf-map", "FILE", "perf-<pid>.map: names code that a JIT compiler made"))
    parser.set_defaults(lines=False, inline=False, perf_map=[])
    if has_user and has_lines:
        parser.add_argument("--lines", action="store_true", help="add file:line to functions")
        parser.add_argument("--inline", action="store_true", help="frames of inlined functions")
    parser.add_argument("--no-demangle", action="store_true", help="names as in the ELF file")
    for name, metavar, what in files:
        parser.add_argument(
            name, type=Path, action="append", default=[], metavar=metavar, help=what
        )


def add_memory(parser: argparse.ArgumentParser) -> None:
    what = "bytes by the user code that touched them first, not samples"
    parser.add_argument("--memory", action="store_true", help=what)
    what = "live bytes by the place in the kernel that allocated them, or by its call chain"
    parser.add_argument("--kernel-memory", action="store_true", help=what)
    what = "live, or all that were allocated (or touched), or those of the kernel at the peak, or"
    what += " freed, by the code of the kernel that freed them"
    choices = ("live", "allocated", "peak", "freed")
    parser.add_argument("--bytes", choices=choices, help=what)


def add_stacks(
    parser: argparse.ArgumentParser,
    is_binary: bool,
    has_wakers: bool = False,
    has_perf_map: bool = True,
    **options: bool,
) -> None:
    parser.add_argument("exports", nargs="+", metavar="export")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", required=is_binary)
    parser.add_argument("--waits", action="store_true", help="time waited, not samples")
    add_memory(parser)
    add_symbols(parser, has_lines=not is_binary, has_perf_map=has_perf_map)
    if has_wakers:
        parser.add_argument("--wakers", action="store_true", help="waits, with their wakers")
    else:
        parser.set_defaults(wakers=False)
    parser.set_defaults(events=False, calls=False)
    profiles.filters.add_options(parser, **options)


def parse(argv: list[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="legoprof",
        description=__doc__,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, 2, 16, 100),
    )
    commands = p.add_subparsers(metavar="COMMAND", dest="command")

    c = commands.add_parser("report", help="print the tables")
    c.add_argument("exports", nargs="+", metavar="export")
    c.add_argument("--table", metavar="NAME", help="only this one: strace, points, waits ...")
    c.add_argument("--by", metavar="KEYS", help="count samples by task, or function,syscall ...")
    c.add_argument("--waits", action="store_true", help="with --by: time waited, not samples")
    add_memory(c)
    c.add_argument("--sort", metavar="COLUMN", help="largest first, by this column")
    c.add_argument("--top", type=row_count, metavar="N", help="the first N rows of each")
    c.add_argument("--format", choices=("text", "json", "csv"), default="text")
    add_symbols(c)
    profiles.filters.add_options(c)
    c.set_defaults(run=report, wakers=False)

    c = commands.add_parser("flamegraph", help="draw SVG; two exports: the changes")
    add_stacks(c, is_binary=False, has_wakers=True, with_idle=False)
    c.add_argument("--reverse", action="store_true", help="callers above the functions they call")
    c.set_defaults(run=draw)

    c = commands.add_parser("working-set", help="draw SVG: which memory was used when")
    c.add_argument("exports", nargs=1, metavar="export")
    c.add_argument("-o", "--output", type=Path, metavar="FILE")
    c.add_argument("--pid", type=int, metavar="PID", help="only this process")
    c.set_defaults(run=draw_working_set)

    c = commands.add_parser("page", help="write an HTML file to look at; two exports: compared")
    c.add_argument("export")
    c.add_argument("old", nargs="?", help="an older run, to compare with")
    c.add_argument("-o", "--output", type=Path, metavar="FILE", required=True)
    add_symbols(c, has_lines=False)
    c.set_defaults(run=write_page)

    for name, (what, is_binary, _) in FORMATS.items():
        c = commands.add_parser(name, help=f"write {what}")
        is_perf = name == "perf-data"
        add_stacks(c, is_binary, name == "folded", has_perf_map=not is_perf, has_times=is_perf)
        if name == "stacks":
            c.add_argument("--stap", action="store_true", help="as SystemTap's kp.out")
            c.add_argument(
                "--delimited",
                action="store_true",
                help="a line -- between frames of kernel and program; with --stap, a line !",
            )
        if name == "perf-data":
            c.add_argument(
                "--each",
                action="store_true",
                help="a record for each sample, for readers that ignore the period",
            )
            c.add_argument("--events", action="store_true", help="events, not samples")
        if name == "callgrind":
            c.add_argument("--calls", action="store_true", help="all calls of kernel functions")
        c.set_defaults(run=write_stacks)

    for name, (what, is_binary, _) in EVENT_FORMATS.items():
        c = commands.add_parser(name, help=f"write {what}")
        c.add_argument("exports", nargs=1, metavar="export")
        c.add_argument("-o", "--output", type=Path, metavar="FILE", required=is_binary)
        add_symbols(c, has_user=False)
        profiles.filters.add_options(c, has_times=True)
        c.set_defaults(run=write_events)

    c = commands.add_parser("merge", help="write one export of several runs or machines")
    c.add_argument("exports", nargs="+", metavar="[label=]export")
    c.add_argument("-o", "--output", type=Path, metavar="FILE", required=True)
    c.set_defaults(run=merge)

    c = commands.add_parser("diff", help="compare two runs; exit status 1 if they differ")
    c.add_argument("old")
    c.add_argument("new")
    add_memory(c)
    c.add_argument("--top", type=row_count, metavar="N", help="of memory, the N that grew most")
    add_symbols(c)
    profiles.filters.add_options(c)
    c.add_argument(
        "--fail-above",
        type=percent,
        metavar="PERCENT",
        help="exit status 1 only if a cost or a count grows by more, or a function's share of all "
        "samples by more percentage points",
    )
    c.set_defaults(run=diff, waits=False, wakers=False)
    for c in commands.choices.values():
        c.add_argument(
            "--damaged",
            action="store_true",
            help="read the rest of a damaged export; its numbers may be wrong",
        )
    return p.parse_args(argv or ["--help"])


def main(argv: list[str]) -> int:
    args = parse(argv)
    try:
        return args.run(args)
    except ExportError as error:
        warn(f"error: {error}")
        return 2


def run() -> int:
    """Runs the command. If its output has no room or no place, says so in one line."""
    gc.disable()  # a run makes no garbage that has cycles, only many objects to look through
    # A closed stdout becomes one that refuses output; a closed stderr loses the warnings.
    sys.stdout = sys.stdout or open(os.open(os.devnull, os.O_RDONLY), "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            status = main(sys.argv[1:])
        except SystemExit as end:  # argparse has printed help, or what is wrong
            status = int(end.code or 0)
        sys.stdout.flush()
        return status
    except OSError as error:
        warn(f"error: {error.filename or 'standard output'}: {error.strerror}")
    except MemoryError:
        warn("error: there is not enough memory")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still buffered
    return 1


if __name__ == "__main__":
    sys.exit(run())
