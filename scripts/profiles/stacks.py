# SPDX-License-Identifier: BSD-2-Clause
"""The stacks of an export: of samples, or of waits; and the names of their functions."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from profiles import progress
from profiles.export import Export, ExportError


@dataclass
class Stack:
    """Chains have the innermost address first. The first was hit; the others are returns."""

    weight: int  # samples, or ns of waits
    kernel: list[int]
    user: list[int]
    comm: str
    pid: int
    tid: int = 0
    cpu: int = 0
    call: str | None = None
    is_exact: bool = True  # the first address was hit; of waits it is a return address, too
    truncated: str | None = None
    what: str | None = None  # what was waited for
    waker: "Stack | None" = None
    kind: str | None = None  # of samples: user, kernel, interrupt, idle
    run: str | None = None  # the label of a run, in a merged export

    @property
    def is_idle(self) -> bool:
        return self.kind == "idle"


@dataclass
class Stacks:
    unit: str  # samples, nanoseconds
    period_ns: int  # of one unit of weight; 0: not known
    stacks: list[Stack] = field(default_factory=list)
    nr_damaged: int = 0

    def total(self) -> int:
        return sum(stack.weight for stack in self.stacks)

    def drop_idle(self) -> int:
        """Leaves out samples of idle CPUs, and returns their number."""
        before = self.total()
        self.stacks = [stack for stack in self.stacks if not stack.is_idle]
        return before - self.total()


def number(value: object, bits: int) -> int:
    """Returns a number that fits into as many bits, or raises ValueError."""
    found = int(str(value), 0)
    if found >> bits:
        raise ValueError(value)
    return found


def label(row: dict) -> str | None:
    return str(row["run"]) if "run" in row else None


def addresses(row: dict, key: str) -> list[int]:
    return [number(pc, 64) for pc in row[key] or []]


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
    )


def wait(row: dict) -> Stack:
    waker = None
    if row["waker_kernel"] is not None:
        waker = Stack(
            weight=0,
            kernel=addresses(row, "waker_kernel"),
            user=addresses(row, "waker_user"),
            comm=str(row["waker_comm"] or "interrupt"),
            pid=number(row["waker_pid"], 32),
            is_exact=False,
            run=label(row),
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
        waker=waker,
        run=label(row),
    )


def period_ns(export: Export) -> int:
    """Returns the time between two samples of a CPU; 0: not known."""
    rates = {row["hz"] for row in export.rows("source.json") if isinstance(row.get("hz"), int)}
    if len(rates) > 1:
        raise ExportError(f"{export.path}: its runs have different rates of samples")
    hz = rates.pop() if rates else 0
    return round(1_000_000_000 / hz) if hz > 0 else 0


def other_rate_ns(export: Export) -> int:
    """Returns for how long samples were taken at another rate than period_ns() says."""
    times = [row.get("other_rate_ns") for row in export.rows("source.json")]
    return max([ns for ns in times if isinstance(ns, int)], default=0)


def read(export: Export, waits: bool = False) -> Stacks:
    """Returns the stacks of samples, or of waits. Damaged rows are left out, and counted."""
    if waits:
        found, rows, make = Stacks("nanoseconds", 1), export.rows("waits_stacks.json"), wait
    else:
        found = Stacks("samples", period_ns(export))
        rows, make = export.rows("samples.json"), sample
    for row in progress.over(rows, "reading stacks"):
        try:
            found.stacks.append(make(row))
        except (KeyError, TypeError, ValueError, OverflowError):
            found.nr_damaged += 1
    return found


class Symbols:
    """The functions of an ELF file, by address."""

    def __init__(self, path: Path):
        self.path, self.full_path = path, str(path.resolve())
        try:
            with path.open("rb") as file:
                self.read(ELFFile(file))
        except OSError as error:
            raise ExportError(f"{path}: {error.strerror}") from error
        except ELFError as error:
            raise ExportError(f"{path} is not an ELF file: {error}") from error

    def read(self, elf: ELFFile) -> None:
        self.build_id = None
        for section in elf.iter_sections("SHT_NOTE"):
            for note in section.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    self.build_id = note["n_desc"]
        table = elf.get_section_by_name(".symtab")
        if table is None:
            raise ExportError(f"{self.path} has no symbols")
        code = [
            (segment["p_vaddr"], segment["p_vaddr"] + segment["p_memsz"], segment["p_offset"])
            for segment in elf.iter_segments("PT_LOAD")
            if segment["p_flags"] & 1
        ]
        if not code:
            raise ExportError(f"{self.path} has no code")
        self.start, self.end, self.offset = code[0]
        self.has_lines = elf.get_section_by_name(".debug_line") is not None
        found = {}
        for symbol in table.iter_symbols():
            kind, address = symbol["st_info"]["type"], symbol["st_value"]
            if kind in ("STT_FUNC", "STT_NOTYPE") and symbol.name:
                if self.start <= address < self.end:
                    found.setdefault(address, symbol.name)
        self.addresses = sorted(found)
        self.names = [found[address] for address in self.addresses]

    def function(self, address: int) -> tuple[int, str] | None:
        """Returns the start and the name of the function at an address."""
        at = bisect.bisect_right(self.addresses, address) - 1
        if at < 0 or not self.start <= address < self.end:
            return None
        return self.addresses[at], self.names[at]

    def place(self, address: int) -> str:
        """Returns function+offset/size. A function ends where the next one starts."""
        at = bisect.bisect_right(self.addresses, address) - 1
        if at < 0 or not self.start <= address < self.end:
            return f"{address:#x}"
        start, end = [*self.addresses, self.end][at : at + 2]
        return f"{self.names[at]}+{address - start:#x}/{end - start:#x}"


def build_id(meta: dict) -> str:
    return str(meta.get("build_id") or "")


class Names:
    """Names for the frames of stacks; addresses where no ELF file is given."""

    def __init__(self, export: Export, kernels: list[Symbols], programs: list[Path]):
        self.build_ids = {run: build_id(meta) for run, meta in export.runs().items()}
        self.kernels = {kernel.build_id: kernel for kernel in kernels}
        # The kernel keeps 15 bytes of a name.
        self.programs = {path.name[:15]: Symbols(path) for path in programs}

    def kernel(self, stack: Stack) -> Symbols | None:
        return self.kernels.get(self.build_ids.get(stack.run))

    def only_kernel(self) -> tuple[str, Symbols | None]:
        """Returns the build id and the symbols of the kernel, if all runs have the same one."""
        found = set(self.build_ids.values())
        if len(found) != 1:
            raise ExportError("these runs are of different kernels: convert each by itself")
        (one,) = found
        return one, self.kernels.get(one)

    def program(self, stack: Stack) -> Symbols | None:
        return self.programs.get(stack.comm)

    def kernel_frames(self, stack: Stack) -> list[str]:
        return frame_names(self.kernel(stack), stack.kernel, stack.is_exact)

    def user_frames(self, stack: Stack) -> list[str]:
        # An interrupted system call returns to the first user address: it is exact.
        return frame_names(self.program(stack), stack.user, True)


def read_kernels(paths: list[Path], exports: list[Export]) -> list[Symbols]:
    """Returns the symbols of kernels, each of which must be that of one of the exports."""
    build_ids = {build_id(meta) for export in exports for meta in export.runs().values()}
    kernels = [Symbols(path) for path in paths]
    for kernel in kernels:
        if kernel.build_id not in build_ids:
            wanted = ", ".join(sorted(build_ids))
            raise ExportError(f"{kernel.path} is not the kernel of this export (build id {wanted})")
    return kernels


def call_sites(chain: list[int], is_exact: bool) -> list[int]:
    """A return address may belong to the next function: the byte before it is the caller's."""
    return [pc - (i > 0 or not is_exact) for i, pc in enumerate(chain)]


def frame_names(symbols: Symbols | None, chain: list[int], is_exact: bool) -> list[str]:
    found = []
    for pc in call_sites(chain, is_exact):
        function = symbols.function(pc) if symbols else None
        found.append(function[1] if function else f"{pc:#x}")
    return found


def task_name(stack: Stack) -> str:
    return f"{stack.run}:{stack.comm}" if stack.run else stack.comm


def frames(stack: Stack, names: Names) -> list[str]:
    """A stack as /proc/profile/stacks and /proc/profile/waits have it: outermost first."""
    found = [stack.run, stack.comm] if stack.run else [stack.comm]
    if stack.truncated:
        found.append(f"[cut: {stack.truncated}]")
    found += reversed(names.user_frames(stack))
    if stack.call:
        found.append(f"[{stack.call}]")
    found += reversed(names.kernel_frames(stack))
    if stack.what:
        found.append(f"[{stack.what}]")
    return found


def waker_frames(stack: Stack, names: Names) -> list[str]:
    if not stack.waker:
        return []
    return ["--", *frames(stack.waker, names)[stack.waker.run is not None :]]
