# SPDX-License-Identifier: BSD-2-Clause
"""The names that the kernel knew of functions, for files that are not on this machine.

kernel/profile/formats.md describes symbols.json. It has only the functions that stacks need.
"""

from __future__ import annotations

import bisect
from pathlib import Path

from profiles.export import Export, printable
from profiles.images import Image, Images, label, number
from profiles.symbols import Symbols, demangle

Row = tuple[int, int, int, str | None]  # offset in the file, address in the ELF file, bytes, name


KERNEL = Image("[kernel]", 0, None)


class ExportedSymbols(Symbols):
    """The functions of a file of the guest. There is no such file here."""

    def __init__(self, image: Image, found: set[Row], demangles: bool):
        rows = sorted(found, key=lambda row: row[:3])
        self.clear(Path(image.name))
        self.full_path = image.path
        self.offsets = [offset for offset, *_ in rows]
        self.starts = [address for _, address, *_ in rows]
        self.start = self.starts[0]
        by_address = sorted(rows, key=lambda row: row[1:3])
        self.addresses = [address for _, address, _, _ in by_address]
        self.ends = [address + size for _, address, size, _ in by_address]
        self.names = [name or f"{image.name}+{at:#x}" for at, _, _, name in by_address]
        self.names = demangle(self.names) if demangles else self.names
        self.has_symbols = True
        self.known_names = frozenset(self.names)

    def address_at(self, offset: int, first_offset: int | None) -> int:
        at = max(bisect.bisect_right(self.offsets, offset) - 1, 0)
        return max(offset - self.offsets[at] + self.starts[at], 0)

    def address_of_area(self, offset: int) -> int | None:
        return None  # the kernel has named the objects, too


def read(
    export: Export, images: Images, build_ids: dict[str | None, str], demangles: bool
) -> tuple[dict[Image, ExportedSymbols], dict[str, ExportedSymbols]]:
    """
    Returns the functions of files, and those of kernels by build id. build_ids: those of the
    kernels, by the label of the run.
    """
    files: dict[Image, set[Row]] = {}
    kernels: dict[str, set[Row]] = {}
    for row in export.rows("symbols.json"):
        try:
            run, image = label(row), number(row["image"], 32)
            rows = files.setdefault(images.images[run, image], set()) if image else None
            rows = kernels.setdefault(build_ids[run], set()) if rows is None else rows
            name = row["function"] and printable(str(row["function"]))
            offset, address, size = (number(row[key], 64) for key in ("offset", "address", "bytes"))
            rows.add((offset, address, size, name or None))
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return (
        {image: ExportedSymbols(image, rows, demangles) for image, rows in files.items() if rows},
        {key: ExportedSymbols(KERNEL, rows, demangles) for key, rows in kernels.items() if rows},
    )
