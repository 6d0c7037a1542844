# SPDX-License-Identifier: BSD-2-Clause
"""Writes perf.data, the file of Linux's perf.

Formats: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h of
Linux 6.1. Each stack becomes one sample, with all of its time as the period.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace

from profiles import progress
from profiles.export import Export, ExportError, printable
from profiles.exported_symbols import ExportedSymbols
from profiles.images import Area, Image
from profiles.stacks import Names, Stack, Stacks, call_sites, cut_frame, kernel_range, task_name
from profiles.symbol_files import SymbolFiles
from profiles.symbols import Symbols

IP, TID, TIME, CALLCHAIN, CPU, PERIOD, IDENTIFIER = 1, 2, 4, 0x20, 0x80, 0x100, 0x10000
SAMPLE_TYPE = IP | TID | TIME | CALLCHAIN | CPU | PERIOD | IDENTIFIER
MMAP, COMM, SAMPLE, MMAP2, LOST_SAMPLES, BUILD_ID = 1, 3, 9, 10, 13, 67
MISC_KERNEL, MISC_USER, MISC_BUILD_ID_SIZE, MISC_MMAP_BUILD_ID = 1, 2, 1 << 15, 1 << 14
CONTEXT_KERNEL, CONTEXT_USER = 2**64 - 128, 2**64 - 512
FEATURE_BUILD_ID, FEATURE_HOSTNAME, FEATURE_OSRELEASE, FEATURE_VERSION = 2, 3, 4, 5
FEATURE_ARCH, FEATURE_NRCPUS, FEATURE_CPUDESC, FEATURE_CPUID = 6, 7, 8, 9
FEATURE_CMDLINE, FEATURE_EVENT_DESC = 11, 12
RELEASE = "6.1.0-lego"  # of system_name in kernel/process/info.c
ATTR_BYTES = 128
SAMPLE_ID_ALL = 1 << 18
SOFTWARE, CPU_CLOCK, BPF_OUTPUT = 1, 0, 10
ID = 1
KERNEL_PID = 2**32 - 1
MAX_EACH_BYTES = 100 << 20  # of samples with a record each
MAX_MAP_BYTES = 64 << 20  # of code maps
MAX_COMMAND_BYTES = 4096  # of the kernel's command line
PROT_READ_EXEC, MAP_PRIVATE = 5, 2
ANONYMOUS, KALLSYMS = "//anon", "[kernel.kallsyms]"
# A chain whose outer end is missing ends in an address of a page of its own, which is the mapping
# of a file called after the reason. No program has code in the first pages.
PAGE_BYTES = 4096
MAX_REASONS = 15
OTHER_REASON = "for other reasons"


def padded(text: str, unit: int = 8) -> bytes:
    data = printable(text).encode() + b"\0"
    return data + bytes(-len(data) % unit)


def record(kind: int, misc: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def trailer(pid: int, tid: int, time: int = 0, cpu: int = 0) -> bytes:
    """Returns TID, TIME, CPU and IDENTIFIER, which SAMPLE_ID_ALL appends to each record."""
    return struct.pack("<IIQIIQ", pid, tid, time, cpu, 0, ID)


def kernel_map(kernel: Symbols | None, chains: Iterable[list[int]]) -> bytes:
    """
    Returns a record that says where the kernel is. perf finds its file by its build id. chains:
    addresses of a kernel that is not here.
    """
    if kernel:
        return map_kallsyms(kernel.start, kernel.end, kernel.start)
    return map_kallsyms(*kernel_range(chains))


def map_kallsyms(start: int, end: int, text: int = 0) -> bytes:
    """text: the address of the symbol _text; 0: unknown. perf moves the kernel by it."""
    body = struct.pack("<IIQQQ", KERNEL_PID, 0, start, end - start, text)
    body += padded(f"{KALLSYMS}_text") + trailer(KERNEL_PID, 0)
    return record(MMAP, MISC_KERNEL, body)


def map_file(pid: int, area: Area, path: str, misc: int = MISC_USER) -> bytes:
    build_id = bytes.fromhex((area.image and area.image.build_id) or "")
    body = struct.pack("<IIQQQ", pid, pid, area.start, area.end - area.start, area.offset)
    body += struct.pack("<B3x20s", len(build_id), build_id)
    body += struct.pack("<II", PROT_READ_EXEC, MAP_PRIVATE) + padded(path)
    misc |= MISC_MMAP_BUILD_ID if build_id else 0
    return record(MMAP2, misc, body + trailer(pid, pid))


def kernel_area(names: Names, files: SymbolFiles) -> Area | None:
    """
    Returns where the kernel is, and the file that has its names, if there is one. perf finds the
    place in the file by itself, and hotspot wants to see the begin of the file there.
    """
    build_id, kernel = names.only_kernel()
    if kernel:
        return Area(kernel.start, kernel.end, 0, Image(kernel.full_path, kernel.bytes, build_id))
    known = names.kernel_of(build_id)
    found = files.add(known, "vmlinux", build_id) if isinstance(known, ExportedSymbols) else None
    if not found or not found[1]:
        return None
    path, (segment, *_) = found
    return Area(segment.start, segment.end, 0, Image(path, 0, build_id))


def map_kernel(area: Area, path: str) -> bytes:
    """
    Returns records that say where the kernel is, and which file has its names. perf takes those of
    [kernel.kallsyms] only from its cache of build ids, but those of a module from its file, too. So
    the kernel is a module here, and kallsyms is a page without samples.
    """
    page = max((area.start & -PAGE_BYTES) - 2 * PAGE_BYTES, 0)
    found = map_kallsyms(page, page + PAGE_BYTES)
    return found + map_file(KERNEL_PID, area, path, MISC_KERNEL)


def file_path(names: Names, files: SymbolFiles, image: Image) -> str:
    """Returns the path of the file with the image's names on this machine, or else the guest's."""
    symbols = names.functions_of(image)
    if isinstance(symbols, ExportedSymbols):
        found = files.add(symbols, image.name, image.build_id)
        return found[0] if found else image.path
    return symbols.full_path if symbols else image.path


class CodeMaps:
    """Tracks which code maps have been written for each process."""

    def __init__(self, names: Names, files: SymbolFiles):
        self.names = names
        self.paths: dict[Image, str] = {}  # of the files that are mapped
        self.files = files
        self.mapped: dict[int, list[Area]] = {}  # by pid
        self.nr_bytes = 0
        self.reasons: dict[str, int] = {}  # why chains are truncated, with the page of each
        self.cut_pages: set[tuple[int, int]] = set()  # pids, and their pages that have been written

    def cut(self, stack: Stack) -> tuple[bytes, list[int]]:
        """
        Returns the end of a truncated chain, and a record of its page, if its process has none.
        """
        if not stack.truncated:
            return b"", []
        reason = stack.truncated
        if reason not in self.reasons and len(self.reasons) >= MAX_REASONS - 1:
            reason = OTHER_REASON
        page = self.reasons.setdefault(reason, len(self.reasons) + 1) * PAGE_BYTES
        key, found = (task(stack)[0], page), b""
        if key not in self.cut_pages:
            self.cut_pages.add(key)
            found = map_file(key[0], Area(page, page + PAGE_BYTES, 0, None), cut_frame(reason))
        return found, [page + PAGE_BYTES // 2]

    def path(self, image: Image) -> str:
        if image not in self.paths:
            self.paths[image] = file_path(self.names, self.files, image)
        return self.paths[image]

    def switch(self, stack: Stack) -> bytes:
        """Returns records that change the map of the stack's process, if it has another one."""
        old, new = self.mapped.get(stack.pid, []), self.names.areas(stack)
        if not stack.user or old == new:
            return b""
        self.mapped[stack.pid] = new
        # First cover the old areas: they belong to an earlier program with this pid.
        found = [map_file(stack.pid, replace(area, image=None), ANONYMOUS) for area in old]
        for area in reversed(new):
            path = self.path(area.image) if area.image else ANONYMOUS
            found.append(map_file(stack.pid, area, path))
        self.nr_bytes += sum(map(len, found))
        if self.nr_bytes > MAX_MAP_BYTES:
            raise ExportError("there are too many code maps for perf.data")
        return b"".join(found)


def comm(pid: int, tid: int, name: str, time: int) -> bytes:
    body = struct.pack("<II", pid, tid) + padded(name) + trailer(pid, tid, time)
    return record(COMM, 0, body)


def task(stack: Stack) -> tuple[int, int]:
    """Returns pid and tid. The idle task is perf's swapper."""
    return (0, 0) if stack.is_idle else (stack.pid, stack.tid or stack.pid)


def sample(stack: Stack, names: Names, time: int, period_ns: int, end: list[int]) -> bytes:
    # perf looks up an address as it is, so a call that never returns must not point behind itself.
    kernel = call_sites(stack.kernel, stack.is_exact)
    user = [pc for pc, _ in names.user_places(stack)]
    chain = [CONTEXT_KERNEL, *kernel] if kernel else []
    chain += [CONTEXT_USER, *user, *end] if user or end else []
    ip = (kernel or user or end or [0])[0]
    body = struct.pack("<QQIIQ", ID, ip, *task(stack), time)
    body += struct.pack("<IIQ", stack.cpu, 0, stack.weight * period_ns)
    body += struct.pack(f"<Q{len(chain)}Q", len(chain), *chain)
    return record(SAMPLE, MISC_KERNEL if stack.kernel else MISC_USER, body)


def event_attribute(kind: int, config: int, period: int, sample_type: int) -> bytes:
    """Returns a struct perf_event_attr of 128 bytes (PERF_ATTR_SIZE_VER7)."""
    head = struct.pack("<IIQQQ", kind, ATTR_BYTES, config, period, sample_type)
    head += struct.pack("<QQ", 0, SAMPLE_ID_ALL)
    return head + bytes(ATTR_BYTES - len(head))


def attribute(stacks: Stacks) -> bytes:
    config = CPU_CLOCK if stacks.unit == "samples" else BPF_OUTPUT
    return event_attribute(SOFTWARE, config, stacks.period_ns, SAMPLE_TYPE)


def string(text: str) -> bytes:
    data = padded(text, 64)
    return struct.pack("<I", len(data)) + data


def event_descriptions(events: list[tuple[bytes, int, str]]) -> bytes:
    """events: attribute, id and name of each."""
    found = struct.pack("<II", len(events), ATTR_BYTES)
    for attr, number, name in events:
        found += attr + struct.pack("<I", 1) + string(name) + struct.pack("<Q", number)
    return found


def build_ids(kernel_id: str, kernel: str, files: list[tuple[str, str]]) -> bytes:
    """kernel: its name in the map of code. files: paths and build ids of programs, libraries."""

    def one(pid: int, misc: int, build_id: bytes, name: str) -> bytes:
        body = struct.pack("<i20sB3x", pid, build_id, len(build_id)) + padded(name, 64)
        return record(BUILD_ID, misc | MISC_BUILD_ID_SIZE, body)

    found = one(-1, MISC_KERNEL, bytes.fromhex(kernel_id), kernel)
    for path, build_id in files:
        found += one(0, MISC_USER, bytes.fromhex(build_id), path)
    return found


def sample_bytes(stack: Stack) -> int:
    """Returns about how many bytes the record of a stack takes."""
    return 100 + 8 * (len(stack.kernel) + len(stack.user))


def each_sample(stacks: Stacks) -> Stacks:
    """Returns stacks of one sample each."""
    nr_bytes = sum(stack.weight * sample_bytes(stack) for stack in stacks.stacks)
    if nr_bytes > MAX_EACH_BYTES:
        raise ExportError(f"{stacks.total()} samples are too many for a record each")
    found: list[Stack] = []
    for stack in stacks.stacks:
        found += [replace(stack, weight=1)] * stack.weight
    return replace(stacks, stacks=found)


def lost_samples(cpu: int, nr: int) -> bytes:
    return record(LOST_SAMPLES, 0, struct.pack("<Q", nr) + trailer(0, 0, 0, cpu))


def records(stacks: Stacks, code_maps: CodeMaps, kernel: Area | None) -> bytearray:
    image = kernel.image if kernel else None
    chains = (one.kernel for one in stacks.stacks)
    found = bytearray(
        map_kernel(kernel, image.path) if kernel and image else kernel_map(None, chains)
    )
    for cpu, nr in stacks.losses.lost.items():
        found += lost_samples(cpu or 0, nr) if nr else b""
    comms: dict[tuple[int, int], str] = {}
    time = 0  # the times of samples are unknown, so they follow one another
    # Sorted by process, so that maps change rarely.
    ordered = sorted(stacks.stacks, key=lambda one: (one.run or "", one.pid, one.code_map))
    for stack in progress.over(ordered, "writing stacks"):
        time += max(2, stack.weight * stacks.period_ns)
        found += code_maps.switch(stack)
        # Waits have no tid, so threads of a process differ by name: write each change of the name.
        name = task_name(stack)
        if not stack.is_idle and comms.get(task(stack)) != name:
            comms[task(stack)] = name
            found += comm(*task(stack), name, time - 1)
        cut_map, end = code_maps.cut(stack)
        found += cut_map + sample(stack, code_maps.names, time, stacks.period_ns, end)
    return found


def around(
    attrs: list[tuple[bytes, int]], data_bytes: int, features: dict[int, bytes]
) -> tuple[bytes, bytes]:
    """
    Returns what a file has before its records and after them. attrs: attributes and their ids.
    """
    attr_size, attrs_at = ATTR_BYTES + 16, 104
    ids_at = attrs_at + attr_size * len(attrs)
    data_at = ids_at + 8 * len(attrs)
    table = ids = b""
    for attr, number in attrs:
        table += attr + struct.pack("<QQ", ids_at + len(ids), 8)
        ids += struct.pack("<Q", number)
    features = dict(sorted(features.items()))
    at = data_at + data_bytes + 16 * len(features)
    places = b""
    for feature in features.values():
        places += struct.pack("<QQ", at, len(feature))
        at += len(feature)
    bits = sum(1 << number for number in features)
    header = struct.pack("<8sQQ", b"PERFILE2", 104, attr_size)
    header += struct.pack("<6Q", attrs_at, len(table), data_at, data_bytes, 0, 0)
    header += struct.pack("<4Q", bits, 0, 0, 0)
    return header + table + ids, b"".join([places, *features.values()])


def machine(export: Export) -> dict[int, bytes]:
    """
    Returns what an export says of its machine. Without it, `perf data convert` crashes, or perf
    takes the CPU of this machine for that of the run.
    """
    nr_cpus = export.meta.get("cpus")
    cpu, accelerator, command = (export.run.get(key) for key in ("cpu", "accel", "append"))
    emulator = f"QEMU {cpu} ({accelerator})"
    found = {
        FEATURE_HOSTNAME: string("lego"),  # readers find out the byte order of features by it
        FEATURE_OSRELEASE: string(RELEASE),
        FEATURE_VERSION: string("legoprof"),  # the program that has written the file
        FEATURE_ARCH: string("x86_64"),
        FEATURE_CPUDESC: string(emulator if isinstance(cpu, str) else "unknown"),
        FEATURE_CPUID: string("unknown,0,0,0"),  # perf annotate wants three numbers
    }
    if isinstance(nr_cpus, int) and 0 < nr_cpus < 1 << 12:
        found[FEATURE_NRCPUS] = struct.pack("<II", nr_cpus, nr_cpus)
    if isinstance(command, str):  # the kernel's
        words = command[:MAX_COMMAND_BYTES].split()
        found[FEATURE_CMDLINE] = struct.pack("<I", len(words)) + b"".join(map(string, words))
    return found


def write(export: Export, stacks: Stacks, names: Names, files: SymbolFiles) -> list[bytes]:
    """files: gets the files that are to be written, too."""
    kernel_id, _ = names.only_kernel()
    try:
        kernel, code_maps = kernel_area(names, files), CodeMaps(names, files)
        attr, data = attribute(stacks), records(stacks, code_maps, kernel)
        programs = [(path, one.build_id) for one, path in code_maps.paths.items() if one.build_id]
        path = kernel.image.path if kernel and kernel.image else KALLSYMS
        ids = build_ids(kernel_id, path, programs)
    except (struct.error, ValueError) as error:
        raise ExportError(f"a number does not fit perf.data: {error}") from error
    event = "cpu-clock" if stacks.unit == "samples" else "offcpu-time"
    features = {
        FEATURE_BUILD_ID: ids,
        FEATURE_EVENT_DESC: event_descriptions([(attr, ID, event)]),
    }
    before, after = around([(attr, ID)], len(data), features | machine(export))
    return [before, data, after]
