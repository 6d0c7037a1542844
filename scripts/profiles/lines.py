# SPDX-License-Identifier: BSD-2-Clause
"""Finds lines of source, and functions that the compiler has inlined: by binutils' addr2line.

There is one process for each ELF file. It answers one address after the other.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import NamedTuple

from profiles.export import ExportError
from profiles.symbols import Symbols

# The answer to a text that is no address. It ends the answer before it, whose length is unknown.
END = "0x0000000000000000"
NO_ADDRESS = ","
RESULT = re.compile(r"(.*):(\d+|\?)(?: \(discriminator \d+\))?$")


class Line(NamedTuple):
    function: str
    place: str | None  # file:line; None: unknown


class Lines:
    def __init__(self, symbols: Symbols, demangles: bool):
        command = shutil.which("addr2line")
        if not command:
            raise ExportError("no addr2line, for lines of source: apt-get install binutils")
        options = ["-a", "-f", "-i", "-s", *(["-C"] if demangles else [])]
        self.process = subprocess.Popen(
            [command, *options, "-e", (symbols.debug or symbols).full_path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
        )
        self.cache: dict[int, list[Line]] = {}

    def read(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise ExportError("addr2line ended without an answer")
        return line.rstrip("\n")

    def find(self, address: int) -> list[Line]:
        """Returns the inlined functions at an address, innermost first, and the one around them."""
        if address not in self.cache:
            assert self.process.stdin
            self.process.stdin.write(f"{address:#x}\n{NO_ADDRESS}\n")
            self.process.stdin.flush()
            self.read()  # the address
            found: list[Line] = []
            while (function := self.read()) != END:
                match = RESULT.match(self.read())
                known = match and match[2] not in ("0", "?")
                found.append(Line(function, f"{match[1]}:{match[2]}" if match and known else None))
            for _ in range(2):  # the rest of the answer to the text that is no address
                self.read()
            self.cache[address] = found
        return self.cache[address]
