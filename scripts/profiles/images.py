# SPDX-License-Identifier: BSD-2-Clause
"""Finds the file that a user address belongs to, by the images and code maps of an export.

kernel/profile/formats.md describes images.json and code_maps.json.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from profiles.export import Export, printable
from profiles.symbols import Symbols


@dataclass(frozen=True)
class Image:
    path: str  # in the guest, printable
    bytes: int
    build_id: str | None

    @property
    def name(self) -> str:
        return os.path.basename(self.path) or self.path

    def __str__(self) -> str:
        return f"{self.path} ({self.bytes} bytes, build id {self.build_id or 'none'})"


@dataclass(frozen=True)
class Area:
    start: int
    end: int
    offset: int  # of start, in the file
    image: Image | None  # None: unknown


def number(value: object, bits: int) -> int:
    """Returns a number that fits into this many bits, or raises ValueError."""
    found = int(str(value), 0)
    if found >> bits:
        raise ValueError(value)
    return found


MAX_DEPTH = 128  # areas of an address space: MAX_CODE_MAP_DEPTH of the kernel
Key = tuple[str | None, int]  # the label of a run, and the number of an image or map in it


class Images:
    """The images and code maps of all runs of an export."""

    def __init__(self, export: Export):
        self.is_known = "code_maps.json" in export.files  # older kernels do not write it
        self.warnings = [
            note for table in export.files.get("images.json", []) for note in table.notes
        ]
        self.images: dict[Key, Image] = {}
        self.parents: dict[Key, tuple[int, Area]] = {}
        self.depths: dict[Key, int] = {}
        self.first_offsets: dict[Image, int] = {}  # where the code of an image begins
        self.cache: dict[Key, list[Area]] = {}
        nr_damaged = 0
        for read, file in (self.read_image, "images.json"), (self.read_map, "code_maps.json"):
            for row in export.rows(file):
                try:
                    read(row)
                except (KeyError, TypeError, ValueError, OverflowError):
                    nr_damaged += 1
        if nr_damaged:
            self.warnings.append(f"{nr_damaged} damaged rows of images are left out")

    def read_image(self, row: dict) -> None:
        key = label(row), number(row["image"], 32)
        build_id = row["build_id"]
        if build_id is not None:
            build_id = bytes.fromhex(build_id)[:20].hex()
        path = printable(str(row["path"]))
        self.images[key] = Image(path, number(row["bytes"], 63), build_id)

    def read_map(self, row: dict) -> None:
        run, parent = label(row), number(row["parent"], 32)
        key = run, number(row["code_map"], 32)
        start, end, offset = (number(row[name], 63) for name in ("start", "end", "offset"))
        depth = 1 + self.depths.get((run, parent), 0)
        if parent >= key[1] or start >= end or depth > MAX_DEPTH:
            raise ValueError(row)
        self.depths[key] = depth
        image = self.images.get((run, row["image"]))
        self.parents[key] = parent, Area(start, end, offset, image)
        if image:
            self.first_offsets[image] = min(offset, self.first_offsets.get(image, offset))

    def files_like(self, elf: Symbols) -> list[Image]:
        """Returns the images of an ELF file, by build id, or by name and size without one."""
        key = elf.build_id or (elf.path.name, elf.bytes)
        return [
            image
            for image in self.images.values()
            if key == (image.build_id or (image.name, image.bytes))
        ]

    def areas(self, run: str | None, code_map: int) -> list[Area]:
        """Returns the areas of a code map, newest first. The first one with an address counts."""
        key = run, code_map
        if key not in self.cache:
            found: list[Area] = []
            while (run, code_map) in self.parents:
                code_map, area = self.parents[run, code_map]
                found.append(area)
            self.cache[key] = found
        return self.cache[key]


def label(row: dict) -> str | None:
    return str(row["run"]) if "run" in row else None
