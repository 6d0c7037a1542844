# SPDX-License-Identifier: BSD-2-Clause
"""Reads the stacks of an export, of samples, waits or memory, and names their functions."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from profiles import exported_symbols, losses, progress
from profiles.export import Export, ExportError, taken
from profiles.finder import Finder
from profiles.images import Area, Image, Images, label, number
from profiles.lines import Lines
from profiles.perf_map import PerfMap, read_export
from profiles.symbols import PAGE_BYTES, Symbols, shortened


OF_REPORT = "in a report of the profiler"  # why a chain is truncated


@dataclass(slots=True)
class Stack:
    """Chains have the innermost address first. In a sample, the others are return addresses."""

    weight: int  # samples, ns of waits, or bytes of memory
    kernel: list[int]
    user: list[int]
    comm: str
    pid: int
    tid: int = 0
    cpu: int = 0
    call: str | None = None
    is_exact: bool = True  # False, in waits: the first kernel address is a return address, too
    truncated: str | None = None  # the reason
    what: str | None = None  # what the task waited for, or the kind of memory
    address: int = 0  # of that, if it is a lock of users
    object: str | None = None  # the variable there, if the kernel knew it
    waker: "Stack | None" = None
    kind: str | None = None  # of a sample: user, kernel, interrupt, idle
    run: str | None = None  # the label of a run, in a merged export
    code_map: int = 0  # of the user addresses; 0: unknown
    nr_objects: int = 0  # of memory: pages, or objects of kmalloc
    live: tuple[int, int] = 0, 0  # objects and bytes that are live
    allocated_bytes: int = 0  # of memory
    peak_bytes: int = 0  # of the kernel's memory: live at the peak

    @property
    def live_bytes(self) -> int:
        return self.live[1]

    @property
    def is_idle(self) -> bool:
        return self.kind == "idle"

    @property
    def is_of_report(self) -> bool:
        return self.truncated == OF_REPORT


@dataclass
class Stacks:
    unit: str  # samples, nanoseconds, bytes
    period_ns: int  # of one unit of weight; 0: unknown
    stacks: list[Stack] = field(default_factory=list)
    nr_damaged: int = 0
    losses: losses.Losses = field(default_factory=losses.Losses)
    has_live: bool = False  # it is known which memory is live

    def total(self) -> int:
        return sum(stack.weight for stack in self.stacks)

    def weigh(self, key: str) -> None:
        """Makes other bytes of memory the weights: live_bytes, allocated_bytes or peak_bytes."""
        for stack in self.stacks:
            stack.weight = getattr(stack, key)

    def drop_idle(self) -> int:
        """Leaves out samples of idle CPUs, and returns their number."""
        before = self.total()
        self.stacks = [stack for stack in self.stacks if not stack.is_idle]
        return before - self.total()


@functools.cache
def address(pc: object) -> int:
    return number(pc, 64)


def addresses(row: dict, key: str) -> list[int]:
    """Equal addresses in all stacks share their memory."""
    return [address(pc) for pc in row[key] or []]


def sample(row: dict) -> Stack:
    return Stack(
        weight=number(row["samples"], 48),
        kernel=addresses(row, "kernel"),
        user=addresses(row, "user"),
        comm=str(row["comm"]),
        pid=number(row["pid"], 32),
        tid=number(row["tid"], 32),
        cpu=number(row["cpu"], 32),
        call=row["syscall"] and str(row["syscall"]),
        kind=str(row["class"]),
        truncated=row["truncated"] and str(row["truncated"]),
        run=label(row),
        code_map=number(row.get("code_map", 0), 32),
    )


def wait(row: dict) -> Stack:
    waker = None
    if row["waker_kernel"] is not None:
        waker = Stack(
            weight=0,
            kernel=addresses(row, "waker_kernel"),
            user=addresses(row, "waker_user"),
            comm=str(row["waker_comm"] or "interrupt"),
            pid=0,
            is_exact=False,
            run=label(row),
            code_map=number(row.get("waker_code_map", 0), 32),
        )
    return Stack(
        weight=number(row["asleep_ns"], 62) + number(row["ready_ns"], 62),
        kernel=addresses(row, "kernel"),
        user=addresses(row, "user"),
        comm=str(row["comm"]),
        pid=number(row["pid"], 32),
        cpu=number(row["cpu"], 32),
        is_exact=False,
        what=str(row["what"] or "?"),
        address=number(row.get("address") or 0, 64),
        object=row.get("object") and str(row["object"]),
        waker=waker,
        run=label(row),
        code_map=number(row.get("code_map", 0), 32),
    )


def memory(row: dict) -> Stack:
    """
    Makes a stack of memory that user code has touched first. What is live now, and not at the end
    of a process, has rows of its own, without a CPU and touched bytes.
    """
    return Stack(
        weight=number(row["bytes"], 62),
        kernel=[],
        user=addresses(row, "user"),
        comm=str(row["comm"]) or "[unknown]",
        pid=number(row["pid"], 32),
        cpu=number(row["cpu"] or 0, 32),
        call=row["syscall"] and str(row["syscall"]),
        what=f"{row['kind']}, copied" if number(row["copied"], 8) else str(row["kind"]),
        run=label(row),
        code_map=number(row.get("code_map", 0), 32),
        nr_objects=number(row["pages"], 50),
        live=(number(row.get("live_pages", 0), 50), number(row.get("live_bytes", 0), 62)),
        allocated_bytes=number(row["bytes"], 62),
    )


def of_kernel(row: dict, what: str, comm: str | None, only_in: str) -> Stack:
    """
    Makes a stack of a call chain that has allocated or freed the kernel's memory; without a
    program, of a row that only says where.
    """
    allocator = str(row["allocator"])
    return Stack(
        weight=number(row["live_bytes" if what == "allocated" else "freed_bytes"], 62),
        kernel=[] if comm is None else addresses(row, "kernel"),
        user=[],
        comm=allocator if comm is None else str(comm),
        pid=0,
        is_exact=False,
        what=only_in if comm is None else f"{allocator}: {row['place']}",
        run=label(row),
        nr_objects=number(row[f"{what}_objects"], 62),
    )


def kernel_memory(row: dict) -> Stack:
    """Makes a stack of code in the kernel that allocates. Its weight is what is live."""
    stack = of_kernel(row, "allocated", row.get("comm"), str(row["place"]))
    stack.live = number(row["live_objects"], 62), number(row["live_bytes"], 62)
    stack.allocated_bytes = number(row["allocated_bytes"], 62)
    stack.peak_bytes = number(row.get("peak_bytes", 0), 62)
    return stack


def kernel_freed(row: dict) -> Stack:
    """Makes a stack of code that has freed the kernel's memory, which a place had allocated."""
    return of_kernel(row, "freed", row["comm"], str(row.get("freed_in")))


def kernel_memory_rows(export: Export) -> list[dict]:
    """Returns the rows by call chain; without any, those of the tables by place."""
    found = export.rows("kernel_stacks.json")
    if found:
        return found
    for table in export.files.get("memory.json", []):
        if "by size" not in table.title and (kind := table.title.partition(": ")[2]):
            found += [row | {"allocator": kind.partition(" ")[0]} for row in table.rows]
    return found


def period_ns(export: Export) -> int:
    """Returns the time between two samples of a CPU; 0: unknown."""
    rates = {row["hz"] for row in export.rows("source.json") if isinstance(row.get("hz"), int)}
    if len(rates) > 1:
        raise ExportError(f"{export.path}: its runs have different rates of samples")
    hz = rates.pop() if rates else 0
    return round(1_000_000_000 / hz) if hz > 0 else 0


def other_rate_ns(export: Export) -> int:
    """Returns for how long samples were taken at a rate other than that of period_ns()."""
    times = [row.get("other_rate_ns") for row in export.rows("source.json")]
    return max([ns for ns in times if isinstance(ns, int)], default=0)


FILES = ["samples.json", "waits_stacks.json", "memory_stacks.json", "kernel_stacks.json"]
FILES += ["kernel_freed_stacks.json"]


def read(
    export: Export, waits: bool = False, memory_of: str | None = None, takes: bool = False
) -> Stacks:
    """
    Returns the stacks of samples, of waits, or of the memory of "programs" or of the "kernel", or
    of those who "freed" the latter. Damaged rows are left out, and counted. takes: takes the rows,
    which are large, out of the export.
    """
    if memory_of == "programs":
        rows, make = export.rows("memory_stacks.json"), memory
        has_live = all("live_bytes" in row for row in rows)  # else of an older kernel
        found = Stacks("bytes", 1, losses=losses.of_memory(export), has_live=has_live)
    elif memory_of == "freed":
        found = Stacks("bytes", 1)
        rows, make = export.rows("kernel_freed_stacks.json"), kernel_freed
    elif memory_of:
        found = Stacks("bytes", 1, has_live=True)
        rows, make = kernel_memory_rows(export), kernel_memory
    elif waits:
        found, rows, make = Stacks("nanoseconds", 1), export.rows("waits_stacks.json"), wait
        found.losses = losses.of_waits(export)
    else:
        found = Stacks("samples", period_ns(export), losses=losses.of_samples(export))
        rows, make = export.rows("samples.json"), sample
    for row in progress.over_some(taken(rows) if takes else rows, "reading stacks", len(rows)):
        try:
            found.stacks.append(make(row))
        except (KeyError, TypeError, ValueError, OverflowError):
            found.nr_damaged += 1
    find_processes(found.stacks)
    return found


def find_processes(stacks: list[Stack]) -> None:
    """Sets the pids of samples of ending threads, which have left their process: 0 in exports."""
    pids = {(one.run, one.tid, one.comm): one.pid for one in stacks if one.tid and one.pid}
    for one in stacks:
        one.pid = one.pid or pids.get((one.run, one.tid, one.comm), 0)


def build_id(meta: dict) -> str:
    return str(meta.get("build_id") or "")


@dataclass(frozen=True)
class Place:
    """The place of a user address: an area of a file, and the ELF file's symbols if given."""

    address: int  # in the ELF file, if it is given
    area: Area | None = None
    symbols: Symbols | None = None

    offset: int = 0  # in the file of the area

    def name(self, others: frozenset[str] | set[str] = frozenset()) -> str:
        """
        Returns the function; if it is unknown, file+offset; else the address. A function of the
        program whose name is one of the others, too, has its file, as in the kernel's reports.
        """
        image = self.area.image if self.area else None
        if self.symbols and (found := self.symbols.function(self.address)):
            return f"{found[1]}@{image.name}" if image and found[1] in others else found[1]
        if image and self.symbols and not self.symbols.has_symbols:
            return f"[{image.name}]"
        return f"{image.name}+{self.offset:#x}" if image else f"{self.address:#x}"


@dataclass(frozen=True)
class Options:
    """How names are found and written."""

    finder: Finder | None = None
    perf_maps: dict[int, PerfMap] = field(default_factory=dict)  # by process
    demangles: bool = True
    lines: bool = False
    inline: bool = False


def without_build_id(stacks: list[Stack], names: "Names") -> list[Image]:
    """Returns the images of the stacks' addresses that have no build id."""
    used = {(stack.run, stack.code_map): stack for stack in stacks if stack.user}
    images = {area.image for stack in used.values() for area in names.areas(stack) if area.image}
    return sorted((one for one in images if not one.build_id), key=str)


class Names:
    """Names for the frames of stacks; addresses where no ELF file is given."""

    def __init__(
        self,
        export: Export,
        kernels: list[Symbols],
        programs: list[Symbols],
        options: Options = Options(),
    ):
        self.options = options
        self.build_ids = {run: build_id(meta) for run, meta in export.runs().items()}
        self.kernels = {kernel.build_id: kernel for kernel in kernels}
        self.images = Images(export)
        self.perf_maps = read_export(export)
        self.programs = programs
        known = exported_symbols.read(
            export, self.images, self.build_ids, options.demangles
        )
        self.exported, self.exported_kernels = known
        self.symbols: dict[Image, Symbols | None] = {}
        self.lines: dict[str, Lines] = {}  # by the path of the ELF file
        # Each address is looked up once: by kernel, and by what known_sites() depends on.
        self.kernel_sites: dict[tuple[Symbols | None, int], list[str]] = {}
        self.sites: dict[tuple, dict[int, tuple[int, Place, list[str]]]] = {}
        for program in programs:
            images = self.images.files_like(program) if self.images.is_known else []
            self.symbols |= dict.fromkeys(images or [image_of(program)], program)

    def symbols_of(self, image: Image | None) -> Symbols | None:
        """Returns the symbols of an image, given or found."""
        if image and image not in self.symbols and self.options.finder:
            self.symbols[image] = self.options.finder.find(image)
        return self.symbols.get(image) if image else None

    def functions_of(self, image: Image) -> Symbols | None:
        """Returns the symbols of an image, or the functions that the kernel has named."""
        return self.symbols_of(image) or self.exported.get(image)

    def kernel(self, stack: Stack) -> Symbols | None:
        """Returns the symbols of the stack's kernel, or the functions that it has named itself."""
        return self.kernel_of(self.build_ids.get(stack.run))

    def kernel_of(self, build_id: str | None) -> Symbols | None:
        return self.kernels.get(build_id) or self.exported_kernels.get(build_id or "")

    def only_kernel(self) -> tuple[str, Symbols | None]:
        """Returns the build id of the kernel, if all runs have the same one, and its symbols."""
        found = set(self.build_ids.values())
        if len(found) != 1:
            raise ExportError("these runs are of different kernels: convert each by itself")
        (one,) = found
        return one, self.kernels.get(one)

    def areas(self, stack: Stack) -> list[Area]:
        """Returns the areas of code of the stack's process. The first with an address counts."""
        if self.images.is_known:
            return self.images.areas(stack.run, stack.code_map)
        # An older kernel writes only the name of the task: 15 bytes of the program's name.
        return [
            Area(program.start, program.end, program.offset, image_of(program))
            for program in reversed(self.programs)
            if program.path.name[:15] == stack.comm
        ]

    def perf_map(self, stack: Stack) -> PerfMap | None:
        """Returns the functions that the stack's process has made, from a given file first."""
        return self.options.perf_maps.get(stack.pid) or self.perf_maps.get((stack.run, stack.pid))

    def place(self, stack: Stack, address: int) -> Place:
        """Finds the place of a user address in a stack."""
        for area in self.areas(stack):
            if area.start <= address < area.end:
                if not area.image:
                    return Place(address, area, self.perf_map(stack))
                symbols = self.functions_of(area.image)
                offset = address - area.start + area.offset
                first = self.images.first_offsets.get(area.image)
                own = symbols.address_at(offset, first) if symbols else address
                return Place(own, area, symbols, offset)
        return Place(address, None, self.perf_map(stack))

    def object(self, stack: Stack, address: int) -> str | None:
        """Returns the name of the object at an address of data, with its file."""
        for area in self.areas(stack):
            symbols = self.symbols_of(area.image)
            # All segments of a file are moved by the same distance.
            start = symbols.address_of_area(area.offset) if symbols else None
            if symbols and area.image and start is not None:
                if found := symbols.object(address - area.start + start):
                    return f"{found} ({area.image.name})"
        return None

    def waiting_functions(self, stack: Stack) -> str:
        """
        Returns the function that a thread waits in, and its caller. Functions that the first one
        calls in its library have no symbol, or a reserved name, as known_frame() of the kernel.
        """
        places = [place for _, place in self.user_places(stack)]
        images = [place.area.image if place.area else None for place in places]
        first = 0
        for i, place in enumerate(places):
            found = place.symbols and place.symbols.function(place.address)
            if found and not found[1].startswith("__"):
                first = i if images[i] == images[0] else i - 1
                break
            if images[i] != images[0]:
                break
        return " < ".join(shortened(place.name()) for place in places[first : first + 2])

    def user_site(self, stack: Stack, pc: int, is_return: bool) -> tuple[int, Place]:
        """
        Returns the call site of a user address, and its place. The first address of a stack is no
        return address: in a system call, it is where the call continues. Nor is that of a C
        library's return from a signal, which is not behind a call.
        """
        place = self.place(stack, pc)
        if is_return and not (place.symbols and place.address in place.symbols.restorers):
            pc = max(pc - 1, 0)
            place = self.place(stack, pc)
        return pc, place

    def known_sites(self, stack: Stack) -> list[tuple[int, Place, list[str]]]:
        """Returns the call sites of a stack's user addresses, their places, and their frames."""
        comm = None if self.images.is_known else stack.comm
        space = stack.run, stack.code_map, comm, self.perf_map(stack)
        known = self.sites.setdefault(space, {})
        kernel = self.kernel(stack)
        others = kernel.known_names if kernel else frozenset()
        found = []
        for i, pc in enumerate(stack.user):
            key = pc << 1 | (i > 0)
            if key not in known:
                site, place = self.user_site(stack, pc, i > 0)
                name = place.name(others)
                frames = self.with_lines(place.symbols, place.address, name)
                known[key] = site, place, frames
            found.append(known[key])
        return found

    def user_places(self, stack: Stack) -> list[tuple[int, Place]]:
        """Returns the call sites of a stack's user addresses, and their places."""
        return [(site, place) for site, place, _ in self.known_sites(stack)]

    def with_lines(self, symbols: Symbols | None, address: int, name: str) -> list[str]:
        """
        Returns the frame of an address with its line, if asked for. Functions that the compiler has
        inlined there are frames of their own, before it.
        """
        options = self.options
        if not (options.lines or options.inline) or not symbols:
            return [name]
        if not (symbols.debug or symbols).has_lines:
            return [name]
        path = symbols.full_path
        if path not in self.lines:
            self.lines[path] = Lines(symbols, options.demangles)
        found = self.lines[path].find(address)
        if not options.inline:  # one frame, with the line that the address is of
            found = found[:1]
        texts = [f"{one.function} (inlined)" for one in found[:-1]] + [name]
        places = [one.place if options.lines else None for one in found] or [None]
        return [f"{text} {place}" if place else text for text, place in zip(texts, places)]

    def kernel_frames(self, stack: Stack) -> list[str]:
        symbols = self.kernel(stack)
        known, found = self.kernel_sites, []
        for pc in call_sites(stack.kernel, stack.is_exact):
            key = symbols, pc
            if key not in known:
                known[key] = self.with_lines(symbols, pc, frame_name(symbols, pc))
            found += known[key]
        return found

    def user_frames(self, stack: Stack) -> list[str]:
        return [frame for _, _, frames in self.known_sites(stack) for frame in frames]


def image_of(program: Symbols) -> Image:
    return Image(program.full_path, program.bytes, program.build_id)


def read_kernels(paths: list[Path], exports: list[Export], finder: Finder) -> list[Symbols]:
    """Returns the symbols of kernels. Each must be the kernel of one of the exports."""
    build_ids = {build_id(meta) for export in exports for meta in export.runs().values()}
    kernels = [finder.load(path) for path in paths]
    for kernel in kernels:
        if "" in build_ids and kernel.build_id not in build_ids:
            finder.warn(f"the export has no build id: is {kernel.path} the kernel that ran?")
            kernel.build_id = ""
        if kernel.build_id not in build_ids:
            wanted = ", ".join(sorted(build_ids))
            raise ExportError(f"{kernel.path} is not the kernel of this export (build id {wanted})")
    others = sorted(build_ids - {kernel.build_id for kernel in kernels})
    return kernels + [found for one in others if (found := finder.kernel(one))]


def read_programs(paths: list[Path], exports: list[Export], finder: Finder) -> list[Symbols]:
    """Returns the symbols of programs and libraries. Each must be in one of the exports."""
    known = [images for images in map(Images, exports) if images.is_known]
    programs = [finder.load(path) for path in paths]
    for program in programs if len(known) == len(exports) else []:
        if any(images.files_like(program) for images in known):
            continue
        wrong = f"{program.path} (build id {program.build_id or 'none'}, {program.bytes} bytes)"
        files = {image for images in known for image in images.images.values()}
        if same_name := sorted(str(one) for one in files if one.name == program.path.name):
            raise ExportError(f"{wrong} is not the program that ran: {', '.join(same_name)}")
        names = ", ".join(sorted({image.path for image in files})) or "none"
        raise ExportError(f"{wrong} did not run: the programs of this export are {names}")
    return programs


def call_sites(chain: list[int], is_exact: bool) -> list[int]:
    """
    Subtracts one from return addresses: a call may be the last instruction of its function, and the
    return address then belongs to the next function.
    """
    return [max(pc - (i > 0 or not is_exact), 0) for i, pc in enumerate(chain)]


def kernel_range(chains: Iterable[list[int]]) -> tuple[int, int]:
    """Returns the pages that have the addresses of a kernel whose file is not here."""
    found = {pc & -PAGE_BYTES for chain in chains for pc in chain}
    return (min(found), max(found) + PAGE_BYTES) if found else (0, PAGE_BYTES)


def frame_name(symbols: Symbols | None, pc: int) -> str:
    function = symbols.function(pc) if symbols else None
    return function[1] if function else f"{pc:#x}"


def task_name(stack: Stack) -> str:
    return f"{stack.run}:{stack.comm}" if stack.run else stack.comm


def cut_frame(reason: str) -> str:
    """Returns the outermost frame of a chain whose outer end is missing."""
    return f"[cut: {reason}]"


def kinds_of_frames(stack: Stack, names: Names) -> list[tuple[str, str]]:
    """Returns the frames of a stack, outermost first, each with its kind, a word."""
    found = [("task", stack.run)] if stack.run else []
    found.append(("task", stack.comm))
    if stack.truncated:
        found.append(("cut", cut_frame(stack.truncated)))
    found += [("user", name) for name in reversed(names.user_frames(stack))]
    if stack.call:
        found.append(("call", f"[{stack.call}]"))
    found += [("kernel", name) for name in reversed(names.kernel_frames(stack))]
    if stack.what:
        found.append(("wait", f"[{stack.what}]"))
    return found


def frames(stack: Stack, names: Names) -> list[str]:
    """Returns a stack as in /proc/profile/stacks and /proc/profile/waits, outermost first."""
    return [name for _, name in kinds_of_frames(stack, names)]


def waker_frames(stack: Stack, names: Names) -> list[str]:
    if not stack.waker:
        return []
    return ["--", *frames(stack.waker, names)[stack.waker.run is not None :]]
