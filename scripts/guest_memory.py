# SPDX-License-Identifier: BSD-2-Clause
"""Takes exports of the profiler out of a guest's memory, which QEMU keeps in a file.

<profile/abi.h> describes their layout in memory.
"""

from __future__ import annotations

import struct
from pathlib import Path

from profiles.elf import PT_LOAD, SHT_SYMTAB, ElfError, open_elf
from profiles.export import ExportError

MAGIC = b"LEGOPROF"
VERSION = 1
RANGE_BYTES = 1 << 20
HEADER = struct.Struct("<8sIIIIQ")  # struct profile_export, without its ranges
COMPLETE = 2
FOUR_GIB = 1 << 32


def file_offset(physical: int, ram_bytes: int) -> int:
    """Returns the offset of a physical address in QEMU's RAM file. q35 has a hole below 4 GiB.

    See QEMU 7.2, hw/i386/pc_q35.c, pc_q35_init().
    """
    below = 0x80000000 if ram_bytes >= 0xB0000000 else min(ram_bytes, 0xB0000000)
    return physical if physical < below else physical - FOUR_GIB + below


def physical_address(kernel: Path, name: str) -> int | None:
    """Returns the physical address of a variable of the kernel, None if it has no such variable."""
    try:
        elf = open_elf(kernel)
        symbols = [one for table in elf.of_type(SHT_SYMTAB) for one in elf.symbols(table)]
        found = next((one.value for one in symbols if one.name == name), None)
    except (ElfError, struct.error, OverflowError) as error:
        raise ExportError(f"{kernel} is not a kernel: {error}") from error
    if found is None:
        return None
    for one in elf.segments:
        if one.type == PT_LOAD and one.vaddr <= found < one.vaddr + one.memsz:
            return found - one.vaddr + one.paddr
    raise ExportError(f"{kernel} is not a kernel: {name} is in no segment")


def from_memory(kernel: Path, ram: Path) -> bytes:
    """Returns the text of the last export in a file of a guest's RAM."""
    size = ram.stat().st_size

    def read(physical: int, n: int) -> bytes:
        file.seek(file_offset(physical, size))
        return file.read(n)

    at = physical_address(kernel, "profile_export")
    if at is None:
        raise ExportError(f"{kernel} makes no exports: CONFIG_PROFILE_EXPORT is off")
    with ram.open("rb") as file:
        data = read(at, HEADER.size)
        if len(data) < HEADER.size or data[:8] != MAGIC:
            raise ExportError(f"{kernel} is not in the guest's memory")
        _, version, state, number, nr_ranges, nr_bytes = HEADER.unpack(data)
        if version != VERSION:
            raise ExportError(f"exports of version {version}: this tool knows {VERSION}")
        if not number:
            raise ExportError("the kernel has made no export (profile.export= gives it memory)")
        if nr_bytes > nr_ranges * RANGE_BYTES or nr_bytes > size:
            raise ExportError("the description of the export is damaged")
        nr_used = -(-nr_bytes // RANGE_BYTES)
        ranges = struct.unpack(f"<{nr_used}Q", read(at + HEADER.size, 8 * nr_used))
        text = b"".join(read(physical, RANGE_BYTES) for physical in ranges)
    if state != COMPLETE:
        raise ExportError(f"export {number} is incomplete: the kernel stopped while writing it")
    return text[:nr_bytes]
