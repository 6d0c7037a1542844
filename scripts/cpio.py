# SPDX-License-Identifier: BSD-2-Clause
"""Writes cpio archives in the newc format, for scripts/mkinitramfs and scripts/qemu.py."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

TRAILER = "TRAILER!!!"


class Entry(NamedTuple):
    mode: int
    data: bytes
    owner: int = 0  # user and group


Entries = dict[str, Entry]


def pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def record(ino: int, name: str, entry: Entry) -> bytes:
    """Returns a newc record: magic, thirteen fields of eight hex digits, name, data."""
    raw_name = os.fsencode(name) + b"\0"
    nlink = 2 if stat.S_ISDIR(entry.mode) else 1
    owner, nr_bytes = entry.owner, len(entry.data)
    fields = (ino, entry.mode, owner, owner, nlink, 0, nr_bytes, 0, 0, 0, 0, len(raw_name), 0)
    header = b"070701" + b"".join(b"%08x" % field for field in fields)
    return pad(header + raw_name) + pad(entry.data)


def archive(entries: Entries) -> bytes:
    # Sorted by path components, so that a directory comes before its contents.
    names = sorted(entries, key=lambda name: name.split("/"))
    records = [record(ino, name, entries[name]) for ino, name in enumerate(names, 1)]
    records.append(record(0, TRAILER, Entry(0, b"")))
    data = b"".join(records)
    return data + bytes(-len(data) % 512)
