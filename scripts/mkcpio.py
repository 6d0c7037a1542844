#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Write an initramfs: a cpio archive in the newc format.

usage: mkcpio.py OUT NAME=HOSTFILE[:MODE]... NAME/...

NAME is the path in the archive; NAME/ makes an empty directory; parents are made as needed. MODE
is octal; without it, 755 for a file its owner may execute and 644 for others. Equal contents
give equal bytes: entries are sorted, owned by root, dated 0 and numbered in order.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path, PurePosixPath
from typing import NamedTuple

TRAILER = "TRAILER!!!"


class Entry(NamedTuple):
    mode: int
    data: bytes


def parse_argument(arg: str) -> tuple[str, Entry]:
    """What one command line argument puts into the archive."""
    if arg.endswith("/"):
        return arg.strip("/"), Entry(stat.S_IFDIR | 0o755, b"")
    name, sep, source = arg.partition("=")
    if not sep or not name.strip("/") or not source:
        sys.exit(f"mkcpio: {arg!r} is neither NAME=HOSTFILE[:MODE] nor NAME/")
    path, sep, mode_text = source.rpartition(":")
    if sep and mode_text and all(c in "01234567" for c in mode_text):
        mode = int(mode_text, 8)
    else:
        path = source
        mode = 0o755 if Path(path).stat().st_mode & stat.S_IXUSR else 0o644
    return name.strip("/"), Entry(stat.S_IFREG | mode, Path(path).read_bytes())


def add_parents(entries: dict[str, Entry]) -> None:
    for name in list(entries):
        for parent in PurePosixPath(name).parents:
            if str(parent) != ".":
                entries.setdefault(str(parent), Entry(stat.S_IFDIR | 0o755, b""))


def pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def record(ino: int, name: str, entry: Entry) -> bytes:
    """One newc record: magic, thirteen fields of eight hex digits, name, data."""
    raw_name = name.encode() + b"\0"
    nlink = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (ino, entry.mode, 0, 0, nlink, 0, len(entry.data), 0, 0, 0, 0, len(raw_name), 0)
    header = b"070701" + b"".join(b"%08x" % field for field in fields)
    return pad(header + raw_name) + pad(entry.data)


def archive(entries: dict[str, Entry]) -> bytes:
    # Sorted by path components, so that a directory comes before what is in it.
    names = sorted(entries, key=lambda name: name.split("/"))
    records = [record(ino, name, entries[name]) for ino, name in enumerate(names, 1)]
    records.append(record(0, TRAILER, Entry(0, b"")))
    data = b"".join(records)
    return data + bytes(-len(data) % 512)


def main(argv: list[str]) -> None:
    if len(argv) < 3:
        sys.exit(__doc__)
    entries = dict(parse_argument(arg) for arg in argv[2:])
    add_parents(entries)
    Path(argv[1]).write_bytes(archive(entries))


if __name__ == "__main__":
    main(sys.argv)
