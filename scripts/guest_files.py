# SPDX-License-Identifier: BSD-2-Clause
"""Copies files out of a guest's memory into a folder (make run GET='/tmp/x', cp x /host/).

The kernel's list says which page of memory has which part of which file (<lego/files_out.h>). get()
copies the files of a guest that has ended, Copier those that are closed in a running one.

The list is a guest's, so nothing in it is trusted: names cannot lead out of the folder, nor through
a link in it, what is written has at most the size of the memory (holes aside; twice that with the
files of the running guest), and each file and the list itself have a checksum. A file has its name
in the folder only when it is complete.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import threading
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Iterator

import guest_memory
from profiles.export import ExportError

HEADER = struct.Struct("<8sIIQQI")  # struct files_out
MAGIC = b"LEGOFILE"
VERSION = 2
NONE_YET, WRITING, COMPLETE, LIVE = range(4)  # enum files_out_state
PAGE_BYTES = 4096
MAX_LIST_BYTES = 64 << 20
POLL_S = 0.2  # how often Copier looks
PART = "%part"  # a file that is being copied; no name of the guest has a % without two digits
MAX_FILE_BYTES = 1 << 40  # with holes
NAME_MAX = 255  # bytes of a name, on the host
SAFE = {ord(c) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.:=@~+-"}
NAME = rb"((?:/(?:[\w.,:=@~+-]|%[0-9A-F]{2})+)+|/)"
FILE = re.compile(rb"file " + NAME + rb" ([0-7]{1,3}) (\d{1,13})")
DATA = re.compile(rb"data (\d{1,12}) (\d{1,12}) (\d{1,12})")
SUM = re.compile(rb"sum ([0-9a-f]{8})")
LEFT = re.compile(rb"left " + NAME + rb" (link|made-when-read|no-file)")
NONE = re.compile(rb"none ([!-~]+) (\d{1,4})")
WHY_LEFT = {
    "link": "a link",
    "made-when-read": "made when it is read: use cat in the guest",
    "no-file": "neither a file nor a directory",
}


class GetError(Exception):
    """Files cannot be copied; the message is one line."""


@dataclass
class File:
    name: str  # as in the list: an absolute path, escaped
    mode: int
    nr_bytes: int
    runs: list[tuple[int, int, int]] = field(default_factory=list)  # index, frame, number
    checksum: int | None = None


@dataclass
class Listing:
    files: list[File] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # a line for each that is left out


def option(name: str, paths: list[str]) -> str:
    """Returns the kernel's boot parameter with this name for these paths of the guest."""
    for path in paths:
        if not path.startswith("/"):
            raise GetError(f"{path}: not an absolute path of the guest")
    escaped = (
        "".join(chr(b) if b in SAFE else f"%{b:02X}" for b in os.fsencode(path)) for path in paths
    )
    return f"{name}={','.join(escaped)}"


def address_of_header(kernel: Path) -> int:
    try:
        at = guest_memory.physical_address(kernel, "files_out")
    except ExportError as error:
        raise GetError(str(error)) from error
    if at is None:
        raise GetError(f"{kernel} cannot give files to the host")
    return at


class Memory:
    """The guest's memory, in a file of the host."""

    def __init__(self, file: BinaryIO):
        self.file = file
        self.nr_bytes = file.seek(0, os.SEEK_END)

    def read(self, physical: int, nr_bytes: int) -> bytes:
        at = guest_memory.file_offset(physical, self.nr_bytes)
        if not 0 <= at <= self.nr_bytes - nr_bytes:
            raise GetError("the list of files names memory that the guest does not have")
        self.file.seek(at)
        return self.file.read(nr_bytes)


def read_list(memory: Memory, header_at: int, wanted: int = COMPLETE) -> bytes:
    """Returns the text of the list, which has to be in the wanted state."""
    data = memory.read(header_at, HEADER.size)
    magic, version, state, nr_bytes, at, checksum = HEADER.unpack(data)
    if magic != MAGIC:
        raise GetError("the kernel is not in the guest's memory")
    if version != VERSION:
        raise GetError(f"a list of files of version {version}: this tool knows {VERSION}")
    if state != wanted:
        is_writing = state == WRITING
        why = "the kernel had no memory for it" if is_writing else "the run did not end by itself"
        raise GetError(f"there is no list of files: {why}")
    if nr_bytes > min(MAX_LIST_BYTES, memory.nr_bytes):
        raise GetError("the list of files is damaged: its size")
    text = bytearray()
    while len(text) < nr_bytes:
        page = memory.read(at, PAGE_BYTES)
        at = int.from_bytes(page[:8], "little")
        text += page[8:]
    del text[nr_bytes:]
    if zlib.crc32(text) != checksum:
        raise GetError("the list of files is damaged: its checksum")
    return bytes(text)


def read_listing(text: bytes) -> Listing:
    """Reads the list. Whatever a line says, it is one of the known kinds, or an error."""
    listing = Listing()
    for line in text.splitlines():
        last = listing.files[-1] if listing.files else None
        is_open = last is not None and last.checksum is None
        if is_open != line.startswith((b"data ", b"sum ")):
            raise GetError("the list of files is damaged: the order of its lines")
        if match := FILE.fullmatch(line):
            listing.files.append(File(match[1].decode(), int(match[2], 8), int(match[3])))
        elif last and (match := DATA.fullmatch(line)):
            index, frame, nr = map(int, match.groups())
            last.runs.append((index, frame, nr))
        elif last and (match := SUM.fullmatch(line)):
            last.checksum = int(match[1], 16)
        elif match := LEFT.fullmatch(line):
            listing.problems.append(f"{match[1].decode()}: {WHY_LEFT[match[2].decode()]}")
        elif match := NONE.fullmatch(line):
            listing.problems.append(f"{match[1].decode()}: {os.strerror(int(match[2]))}")
        else:
            raise GetError("the list of files is damaged: an unknown line")
    if listing.files and listing.files[-1].checksum is None:
        raise GetError("the list of files is damaged: it has no end")
    return listing


def check_file(file: File, room_bytes: int) -> int:
    """Checks what the list says of a file. Returns how many bytes of memory it has."""
    nr_pages = -(-file.nr_bytes // PAGE_BYTES)
    nr_bytes = end = 0
    names = file.name[1:].split("/")
    if any(name in ("", ".", "..") for name in names):
        raise GetError("not a name of a file")
    if any(len(name) > NAME_MAX for name in names):
        raise GetError("the name is too long for the host")
    for index, _, nr in file.runs:
        if index < end or not 0 < nr <= nr_pages - index:
            raise GetError("damaged: the places of its pages")
        end = index + nr
        nr_bytes += min(nr * PAGE_BYTES, file.nr_bytes - index * PAGE_BYTES)
    if file.nr_bytes > MAX_FILE_BYTES:
        raise GetError("too large")
    if nr_bytes > room_bytes:
        raise GetError("damaged: files with more pages than the memory has")
    return nr_bytes


@contextlib.contextmanager
def directory_of(folder: int, name: str) -> Iterator[tuple[int, str]]:
    """
    Makes the directories on the way to a file below a folder. Follows no link. Returns a descriptor
    of the last directory, and the file's name there.
    """
    *parents, last = name[1:].split("/")
    with contextlib.ExitStack() as stack:
        at = folder
        for parent in parents:
            with contextlib.suppress(FileExistsError):
                os.mkdir(parent, 0o755, dir_fd=at)
            at = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            stack.callback(os.close, at)
        yield at, last


def open_part(directory: int, mode: int) -> int:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(PART, dir_fd=directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.open(PART, flags, 0o644 | mode & 0o111, dir_fd=directory)


def copy_content(memory: Memory, file: File, out: BinaryIO) -> bool:
    """Returns true if the checksum is right."""
    crc = 0
    for index, frame, nr in file.runs:
        for page in range(nr):
            at = (index + page) * PAGE_BYTES
            data = memory.read((frame + page) * PAGE_BYTES, PAGE_BYTES)
            data = data[: file.nr_bytes - at]
            crc = zlib.crc32(data, crc)
            out.seek(at)
            out.write(data)
    out.truncate(file.nr_bytes)
    return crc == file.checksum


def copy_file(memory: Memory, file: File, folder: int, keep_damaged: bool) -> None:
    """Copies a file, which replaces one that was there. One whose checksum is wrong may stay."""
    is_right = keeps = False
    with directory_of(folder, file.name) as (directory, last):
        try:
            with open(open_part(directory, file.mode), "wb") as out:
                is_right = copy_content(memory, file, out)
            keeps = is_right or keep_damaged
            if keeps:
                os.rename(PART, last, src_dir_fd=directory, dst_dir_fd=directory)
        finally:
            if not keeps:
                os.unlink(PART, dir_fd=directory)
    if not is_right:
        raise GetError("its checksum is wrong: a thread wrote to it at the end of the run")


class Copier:
    """
    Copies the files that are closed in host= of a running guest. It has a thread of its own, as a
    long copy must not keep the console's reader from its work. It says nothing: what it cannot
    copy, or what changes meanwhile, comes out after the run, with the reason if there is one.
    """

    def __init__(self, kernel: Path, ram: Path, folder: Path):
        self.kernel, self.ram, self.folder = kernel, ram, folder
        self.header, self.text = b"", b""  # of the list that was read last
        self.held: dict[str, int] = {}  # bytes of each file in the folder
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def stop(self) -> list[str]:
        """Ends the thread. Returns the names of the files that it has copied."""
        self.stopped.set()
        self.thread.join()
        return list(self.held)

    def run(self) -> None:
        with contextlib.suppress(GetError):  # get() says why
            header_at = address_of_header(self.kernel)
            while not self.stopped.wait(POLL_S):
                with contextlib.suppress(GetError, OSError):
                    self.look(header_at)

    def look(self, header_at: int) -> None:
        with self.ram.open("rb") as stream:
            memory = Memory(stream)
            header = memory.read(header_at, HEADER.size)
            if header == self.header:
                return
            text = read_list(memory, header_at, LIVE)
            new = text.removeprefix(self.text)
            self.header, self.text = header, text
            listing = read_listing(new)
            files = {file.name: file for file in listing.files}  # the newest of each name
            with open_folder(self.folder) as directory:
                for file in files.values():
                    self.copy(memory, file, directory)

    def copy(self, memory: Memory, file: File, directory: int) -> None:
        others = sum(self.held.values()) - self.held.get(file.name, 0)
        with contextlib.suppress(GetError, OSError):
            if self.stopped.is_set():
                return
            # Empty files take room, too, so that there cannot be any number of them.
            room_bytes = memory.nr_bytes - others - PAGE_BYTES
            nr_bytes = check_file(file, room_bytes)
            copy_file(memory, file, directory, keep_damaged=False)
            self.held[file.name] = nr_bytes + PAGE_BYTES


@contextlib.contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def get(kernel: Path, ram: Path, folder: Path) -> tuple[list[str], list[str]]:
    """Copies all files. Returns the names of those in the folder, and a line for each problem."""
    copied = []
    folder.mkdir(parents=True, exist_ok=True)
    with ram.open("rb") as stream:
        memory = Memory(stream)
        listing = read_listing(read_list(memory, address_of_header(kernel)))
        room_bytes = memory.nr_bytes
        with open_folder(folder) as directory:
            for file in listing.files:
                try:
                    room_bytes -= check_file(file, room_bytes)
                    copy_file(memory, file, directory, keep_damaged=True)
                    copied.append(file.name)
                except GetError as error:
                    listing.problems.append(f"{file.name}: {error}")
                except OSError as error:
                    listing.problems.append(f"{file.name}: {error.strerror}")
    return copied, listing.problems
