# SPDX-License-Identifier: BSD-2-Clause
"""Finds the hottest instructions for a page: disassembled, with lines of source, by objdump.

Samples have exact addresses. The code of the functions with most samples is disassembled once, when
the page is made, if their ELF file is at hand.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from profiles.export import printable
from profiles.page_data import Tree
from profiles.stacks import Names, Stack, Stacks
from profiles.symbols import Symbols

MAX_FUNCTIONS = 24
MIN_SHARE = 0.002  # of all samples
MIN_SAMPLES = 5  # one or two say nothing of a function's instructions
MAX_BYTES = 64 << 10  # of one function
MAX_LINES = 400  # of one function
MAX_SECONDS = 60  # for all functions; on a busy host, others have no instructions
AROUND = 3  # instructions before and after one with samples
INSTRUCTION = re.compile(r"^ *([0-9a-f]+):\t(.*)$")
PLACE = re.compile(r"^(/?[^\s()<>][^()<>]*?):(\d+)(?: \(discriminator \d+\))?$")


@dataclass
class Function:
    symbols: Symbols
    start: int
    end: int
    samples: Counter[int] = field(default_factory=Counter)  # by address


def place_of(stack: Stack, names: Names) -> tuple[str, Symbols, int] | None:
    """Returns the kind, the ELF file and the address of the interrupted instruction."""
    if stack.kernel:
        symbols = names.kernel(stack)
        # Other kinds of symbols are of no ELF file.
        return ("kernel", symbols, stack.kernel[0]) if type(symbols) is Symbols else None
    place = names.place(stack, stack.user[0]) if stack.user else None
    if place and type(place.symbols) is Symbols:
        return "user", place.symbols, place.address
    return None


def hottest(stacks: Stacks, names: Names, tree: Tree) -> dict[int, Function]:
    """Returns the functions with most samples, by frame."""
    found: dict[int, Function] = {}
    sums: Counter[int] = Counter()
    for stack in stacks.stacks:
        if stack.is_idle or not (known := place_of(stack, names)):
            continue
        kind, symbols, address = known
        at = symbols.index(address)
        if at is None:
            continue
        frames = names.kernel_frames(stack) if kind == "kernel" else names.user_frames(stack)
        frame = tree.frame(kind, frames[0])
        one = found.setdefault(frame, Function(symbols, symbols.addresses[at], symbols.ends[at]))
        one.samples[address] += stack.weight
        sums[frame] += stack.weight
    enough = max(MIN_SHARE * sums.total(), MIN_SAMPLES)
    return {frame: found[frame] for frame, nr in sums.most_common(MAX_FUNCTIONS) if nr >= enough}


def disassemble(one: Function, end_s: float) -> list[tuple[int, str, str]]:
    """
    Returns address, text and line of source of each instruction; nothing without objdump, or if it
    has not ended at this time.
    """
    path, left_s = one.symbols.full_path, end_s - time.monotonic()
    if not shutil.which("objdump") or one.end - one.start > MAX_BYTES or left_s <= 0:
        return []
    command = ["objdump", "-dl", "--no-show-raw-insn", f"--start-address={one.start:#x}"]
    command += [f"--stop-address={one.end:#x}", path]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=left_s
        )
    except subprocess.TimeoutExpired:
        return []
    found, line = [], ""
    for text in done.stdout.splitlines():
        if match := INSTRUCTION.match(text):
            found.append((int(match[1], 16), printable(" ".join(match[2].split())), line))
        elif match := PLACE.match(text):
            line = printable(f"{match[1]}:{match[2]}")
    return found


def source(line: str, cache: dict[str, list[str]]) -> str:
    """Returns the text of a line of source, if its file is at hand."""
    path, _, number = line.rpartition(":")
    if path not in cache:
        try:
            cache[path] = Path(path).read_text("utf-8", "replace").splitlines()
        except (OSError, ValueError):
            cache[path] = []
    at = int(number) - 1
    return printable(cache[path][at].strip().expandtabs(4)) if at < len(cache[path]) else ""


def near(rows: list[tuple[int, str, str]], samples: Counter[int]) -> list[int]:
    """Returns the indexes of the instructions with samples and of those around them."""
    hot = [i for i, row in enumerate(rows) if samples[row[0]]]
    kept = {j for i in hot for j in range(i - AROUND, i + AROUND + 1) if 0 <= j < len(rows)}
    if len(kept) > MAX_LINES:
        most = sorted(hot, key=lambda i: -samples[rows[i][0]])[:MAX_LINES]
        kept = set(most)
    return sorted(kept)


def write(stacks: Stacks, names: Names, tree: Tree) -> dict[int, dict]:
    """
    Returns by frame: the file, the number of samples, and rows of address, samples, instruction,
    line and its text. A gap between two rows is where instructions without samples are left out.
    """
    found: dict[int, dict] = {}
    cache: dict[str, list[str]] = {}
    end_s = time.monotonic() + MAX_SECONDS
    for frame, one in hottest(stacks, names, tree).items():
        rows = disassemble(one, end_s)
        if not rows:
            continue
        kept, last, lines = near(rows, one.samples), None, []
        for i in kept:
            address, text, line = rows[i]
            if last is not None and i > last + 1:
                lines.append([0, 0, f"({i - last - 1} instructions without samples)", "", ""])
            last = i
            file, _, number = line.rpartition(":")
            shown = f"{Path(file).name}:{number}" if line else ""
            code = source(line, cache) if line else ""
            lines.append([address - one.start, one.samples[address], text, shown, code])
        found[frame] = {
            "file": printable(one.symbols.path.name),
            "start": f"{one.start:#x}",
            "samples": one.samples.total(),
            "rows": lines,
        }
    return found
