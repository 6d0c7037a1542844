# SPDX-License-Identifier: BSD-2-Clause
"""What qemu-run takes from its standard input: keys of a terminal, or a file or a pipe."""

from __future__ import annotations

import os
import select
import stat
import sys
import termios
from typing import Any, Iterator

ESCAPE = 29  # Ctrl-]: Ctrl-A, which is QEMU's own choice, is for the guest's shell
QUIT, BREAK = object(), object()
NULL_DEVICE = os.makedev(1, 3)


class Keyboard:
    """
    A terminal whose keys, Ctrl-C too, are the guest's. A context manager: it gives the terminal its
    settings back at the end.
    """

    def __init__(self, fd: int = 0) -> None:
        self.fd = fd
        self.escaped = False

    def __enter__(self) -> "Keyboard":
        self.saved = termios.tcgetattr(self.fd)
        mode = termios.tcgetattr(self.fd)
        mode[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.ISTRIP | termios.IXON)
        mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self.fd, termios.TCSADRAIN, mode)
        return self

    def __exit__(self, *exc: object) -> None:
        termios.tcsetattr(self.fd, termios.TCSADRAIN, self.saved)

    def fileno(self) -> int:
        return self.fd

    def read(self) -> Iterator[Any]:
        """Yields keys for the guest, BREAK after Ctrl-] B, and QUIT after Ctrl-] X."""
        try:
            data = os.read(self.fd, 1024)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            yield QUIT
        keys = bytearray()
        for byte in data:
            if not self.escaped and byte == ESCAPE:
                self.escaped = True
                continue
            command = {ord("x"): QUIT, ord("b"): BREAK}.get(byte | 0x20) if self.escaped else None
            if command:
                yield bytes(keys)
                keys.clear()
                yield command
            elif not self.escaped or byte == ESCAPE:
                keys.append(byte)
            self.escaped = False
        yield bytes(keys)


def is_usable() -> bool:
    """Returns whether a user sits at a terminal, and this process is not in the background."""
    try:
        return sys.stdin.isatty() and sys.stdout.isatty() and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # not the controlling terminal
        return False


def read_stdin() -> bytes | None:
    """Returns all of a file or pipe, and nothing of /dev/null; None for anything else."""
    try:
        status = os.fstat(0)
    except OSError:
        return None
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == NULL_DEVICE:
        return b""
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
        return None
    data = bytearray()
    told = False
    while True:
        if not told and not select.select([0], [], [], 2.0)[0]:
            told = True
            text = "waiting for the end of standard input, which the program gets (or </dev/null)"
            print(f"qemu-run: {text}", file=sys.stderr)
        chunk = os.read(0, 1 << 20)
        if not chunk:
            return bytes(data)
        data += chunk
