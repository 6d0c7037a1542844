# SPDX-License-Identifier: BSD-2-Clause
"""Writes profile.proto, the file of pprof (github.com/google/pprof, proto/profile.proto).

It has the names of functions. `go tool pprof file` replaces them by its own, with lines, where it
finds a file with line numbers.
"""

from __future__ import annotations

import gzip
from functools import lru_cache

from profiles import progress
from profiles.export import printable
from profiles.stacks import Names, Place, Stack, Stacks, call_sites, cut_frame, kernel_range
from profiles.symbols import PAGE_BYTES, Symbols

# Field numbers of message Profile.
SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING = 1, 2, 3, 4, 5, 6
PERIOD_TYPE, PERIOD, COMMENT = 11, 12, 13


@lru_cache(1 << 16)
def varint(value: int) -> bytes:
    value &= 2**64 - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value) if value else b""


def message(field: int, body: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(body)) + body


def packed(field: int, values: list[int]) -> bytes:
    return message(field, b"".join(map(varint, values)))


class Profile:
    def __init__(self, stacks: Stacks, names: Names):
        self.strings = {"": 0}
        self.locations: dict[tuple[int, int], int] = {}  # (mapping, address): id
        self.mappings: dict[tuple[str, int, int, str | None], int] = {}
        self.functions: dict[tuple[int, int], int] = {}  # (mapping, start): id
        self.labels: dict[tuple[int, int], bytes] = {}  # of samples, by key and value
        self.names = names
        self.body = bytearray()
        kernel_id, kernel = names.only_kernel()
        self.kernel_symbols = known = names.kernel_of(kernel_id)
        self.kernel_names = known.known_names if known else frozenset()
        chains = (one.kernel for one in stacks.stacks)
        start, end = (kernel.start, kernel.end) if kernel else kernel_range(chains)
        path = kernel.full_path if kernel else "[kernel.kallsyms]"
        offset = kernel.offset if kernel else 0
        self.kernel = self.mapping(path, start, end, offset, kernel_id, known)
        self.add_types(stacks)
        self.body += number(COMMENT, self.string(str(stacks.losses)))
        for stack in progress.over(stacks.stacks, "writing stacks"):
            self.add(stack, stacks.period_ns)

    def string(self, text: str) -> int:
        text = printable(text)
        return self.strings.setdefault(text, len(self.strings))

    def mapping(
        self,
        path: str,
        start: int,
        end: int,
        offset: int,
        build_id: str | None,
        symbols: Symbols | None,
    ) -> int:
        # A mapping is of whole pages, wherever the file's segment begins in its first one.
        offset, start = offset - start % PAGE_BYTES, start & -PAGE_BYTES
        key = path, start, offset, build_id
        if key not in self.mappings:
            self.mappings[key] = len(self.mappings) + 1
            body = number(1, self.mappings[key]) + number(2, start) + number(3, end)
            body += number(4, offset) + number(5, self.string(path))
            body += number(6, self.string(build_id or ""))
            body += number(7, symbols is not None and not symbols.has_lines)  # has_functions
            self.body += message(MAPPING, body)
        return self.mappings[key]

    def user_mapping(self, place: Place) -> int:
        area, symbols = place.area, place.symbols
        if not area or not area.image:
            return 0
        path = symbols.full_path if symbols else area.image.path
        return self.mapping(
            path, area.start, area.end, area.offset, area.image.build_id, symbols
        )

    def add_types(self, stacks: Stacks) -> None:
        def value_type(kind: str, unit: str) -> bytes:
            return number(1, self.string(kind)) + number(2, self.string(unit))

        self.has_live, self.is_memory = stacks.has_live, stacks.unit == "bytes"
        self.has_count = stacks.unit == "samples"
        if self.is_memory:
            # As in Go's profiles of the heap. Older kernels do not know what programs have freed.
            for kind in ("alloc", "inuse") if stacks.has_live else ("alloc",):
                self.body += message(SAMPLE_TYPE, value_type(f"{kind}_objects", "count"))
                self.body += message(SAMPLE_TYPE, value_type(f"{kind}_space", "bytes"))
            self.body += message(PERIOD_TYPE, value_type("space", "bytes")) + number(PERIOD, 1)
            return
        time = "cpu" if stacks.unit == "samples" else "offcpu"
        if stacks.unit == "samples":
            self.body += message(SAMPLE_TYPE, value_type("samples", "count"))
        self.body += message(SAMPLE_TYPE, value_type(time, "nanoseconds"))
        self.body += message(PERIOD_TYPE, value_type(time, "nanoseconds"))
        self.body += number(PERIOD, stacks.period_ns)

    def function(self, mapping: int, start: int, name: str) -> int:
        key = mapping, start
        if key not in self.functions:
            self.functions[key] = len(self.functions) + 1
            text = self.string(name)
            body = number(1, self.functions[key]) + number(2, text) + number(3, text)
            self.body += message(FUNCTION, body)
        return self.functions[key]

    def location(self, mapping: int, address: int, place: Place) -> int:
        """Returns the id of an address, whose place is known."""
        key = mapping, address
        if key not in self.locations:
            self.locations[key] = len(self.locations) + 1
            body = number(1, self.locations[key]) + number(2, mapping) + number(3, address)
            symbols = place.symbols
            if symbols and (found := symbols.function(place.address)):
                name = found[1] if mapping == self.kernel else place.name(self.kernel_names)
                body += message(4, number(1, self.function(mapping, found[0], name)))
            self.body += message(LOCATION, body)
        return self.locations[key]

    def cut_location(self, name: str) -> int:
        """Returns the location of a frame that has a name, but no address."""
        key = 0, -self.string(name)
        if key not in self.locations:
            self.locations[key] = len(self.locations) + 1
            line = message(4, number(1, self.function(*key, name)))
            self.body += message(LOCATION, number(1, self.locations[key]) + line)
        return self.locations[key]

    def label(self, key: int, field: int, value: int) -> bytes:
        """Returns a label of a sample. key: the number of a string."""
        if (key, value) not in self.labels:
            self.labels[key, value] = message(3, number(1, key) + number(field, value))
        return self.labels[key, value]

    def values(self, stack: Stack, period_ns: int) -> list[int]:
        if self.has_live:
            return [stack.nr_objects, stack.allocated_bytes, *stack.live]
        if self.is_memory:
            return [stack.nr_objects, stack.weight]
        return [*([stack.weight] if self.has_count else []), stack.weight * period_ns]

    def add(self, stack: Stack, period_ns: int) -> None:
        known = self.locations
        ids = [
            known.get((self.kernel, pc))
            or self.location(self.kernel, pc, Place(pc, None, self.kernel_symbols))
            for pc in call_sites(stack.kernel, stack.is_exact)
        ]
        for pc, place in self.names.user_places(stack):
            ids.append(self.location(self.user_mapping(place), pc, place))
        if stack.truncated:
            ids.append(self.cut_location(cut_frame(stack.truncated)))
        if self.has_live and stack.what and not stack.user:
            ids.insert(0, self.cut_location(stack.what))
        body = packed(1, ids) + packed(2, self.values(stack, period_ns))
        labels = {"task": stack.comm, "syscall": stack.call, "run": stack.run}
        labels["memory" if self.is_memory else "wait"] = stack.what
        for key, text in labels.items():
            if text:
                body += self.label(self.string(key), 2, self.string(text))
        for key, value in ("pid", stack.pid), ("cpu", stack.cpu):
            body += self.label(self.string(key), 3, value)
        self.body += message(SAMPLE, body)

    def data(self) -> bytes:
        return self.body + b"".join(message(STRING, text.encode()) for text in self.strings)


def write(stacks: Stacks, names: Names) -> bytes:
    return gzip.compress(Profile(stacks, names).data(), mtime=0)
