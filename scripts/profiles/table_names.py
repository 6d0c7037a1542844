# SPDX-License-Identifier: BSD-2-Clause
"""Names user addresses in the tables of an export, as all other formats name them.

The kernel names what it can: it has the files, but no debug files. Where it has no name, its tables
have `file+0x1234`, with an offset in the file, and the address of a lock.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from functools import cached_property

from profiles import stacks
from profiles.export import Export, Table
from profiles.images import Image, label, number
from profiles.stacks import Names, Stack
from profiles.symbols import demangle, shortened

PLACE = re.compile(r"([^\s()<]+)\+(0x[0-9a-f]{1,16})\b")
MANGLED = re.compile(r"(?<![\w.])(_[ZR][\w.$]+)(\(\))?")
CUT_AT = 127  # characters of a name in the kernel's tables, OS_SYMBOL_BYTES - 1
LOCK = re.compile(r"(\w+) (0x[0-9a-f]{1,16})(?: \((.*)\))?")
PID = re.compile(r"pid \d+")
CHAINS = "kernel", "user", "waker_kernel", "waker_user"
USER_FUNCTIONS = "user_functions.json"
Lock = tuple[str | None, str]  # the label of a run, and an address
Function = tuple[str, str, int]  # of a user: name, path of the file, address in the ELF file


class TableNames:
    def __init__(self, export: Export, names: Names, samples: stacks.Stacks | None = None):
        """samples: those of the export; None: its rows are there."""
        self.export, self.names, self.samples = export, names, samples
        self.mangled: dict[str, str] = {}
        names_of_export = {str(row.get("function")) for row in export.rows("symbols.json")}
        self.long_names = sorted(name for name in names_of_export if len(name) > CUT_AT)
        self.by_name: dict[str, list[Image]] = {}
        for image in names.images.images.values():
            self.by_name.setdefault(image.name, []).append(image)

    def text(self, text: str) -> str:
        """Returns a text of the kernel with names: of places, and of C++ and Rust functions."""
        return MANGLED.sub(self.demangled, PLACE.sub(self.place, text))

    def sentence(self, text: str, is_path: bool) -> str:
        """The same for a first line of a report. Functions on the critical path have ()."""

        def place(match: re.Match) -> str:
            name = shortened(self.place(match))
            has_none = not is_path or name == match[0] or name.endswith(")")
            return name if has_none else f"{name}()"

        return MANGLED.sub(lambda match: shortened(self.demangled(match)), PLACE.sub(place, text))

    def demangled(self, match: re.Match) -> str:
        """Returns the name of the source. The () of a function goes if there are arguments."""
        name = self.mangled.get(match[1], match[1])
        return name if name.endswith(")") else name + (match[2] or "")

    def whole(self, name: str) -> str:
        """Returns the name that the kernel's tables have cut, if the export has just one."""
        at = bisect.bisect_left(self.long_names, name)
        found = [one for one in self.long_names[at : at + 2] if one.startswith(name)]
        return found[0] if len(name) == CUT_AT and len(found) == 1 else name

    def place(self, match: re.Match) -> str:
        """Returns the function at `file+0x1234`, if all files of that name agree on it."""
        found = set()
        for image in self.by_name.get(match[1], []):
            symbols = self.names.functions_of(image)
            first = self.names.images.first_offsets.get(image)
            at = symbols.address_at(int(match[2], 16), first) if symbols else 0
            function = symbols.function(at) if symbols and at else None
            found.add(function[1] if function else match[0])
        return found.pop() if len(found) == 1 else match[0]

    @cached_property
    def locks(self) -> dict[Lock, list[dict]]:
        """The stored waits for a lock of users, those that took longest first."""
        found: dict[Lock, list[dict]] = {}
        for row in self.export.rows("waits_stacks.json"):
            if isinstance(row.get("address"), str):
                found.setdefault((label(row), f"{number(row['address'], 64):#x}"), []).append(row)
        return found

    def lock(self, run: str | None, text: str) -> str:
        """Returns the name of a lock whose address is in a text; else who waits for it."""
        match = LOCK.fullmatch(text)
        rows = self.locks.get((run, match[2]), []) if match else []
        if not match or not rows:
            return text
        waits = sorted(map(stacks.wait, rows), key=lambda stack: -stack.weight)
        of_process = f", {match[3]}" if match[3] and PID.fullmatch(match[3]) else ""
        if of_process:  # others have locks at this address, too
            waits = [one for one in waits if match[3] == f"pid {one.pid}"] or waits
        at = int(match[2], 16)
        objects = {self.names.object(stack, at) or stack.object for stack in waits}
        if len(objects) == 1 and (name := objects.pop()):
            return f"{match[1]} {name}"
        functions = self.names.waiting_functions(waits[0])
        return f"{match[1]} {match[2]} (in {functions}{of_process})" if functions else text

    def chain(self, row: dict, key: str) -> list[str]:
        """Returns the names of a list of addresses in a row of samples or waits."""
        is_waker, is_kernel = key.startswith("waker_"), key.endswith("kernel")
        stack = (stacks.sample if "class" in row else stacks.wait)(row)
        stack = stack.waker if is_waker and stack.waker else stack
        return self.names.kernel_frames(stack) if is_kernel else self.names.user_frames(stack)

    def value(self, row: dict, key: str) -> object:
        value = row[key]
        try:
            if key in CHAINS and value:
                return self.chain(row, key)
            if key in ("part", "line") and isinstance(value, str):
                return self.sentence(value, key == "part" or value.startswith("critical path"))
            if key in ("what", "lock") and isinstance(value, str):
                value = self.lock(label(row), value)
        except (KeyError, TypeError, ValueError, OverflowError):
            return value  # a damaged row
        return self.text(value) if isinstance(value, str) else value

    def user_functions(self, table: Table) -> Table:
        """
        Returns the table with the functions of the samples. A row of the kernel without a name may
        be a range of code, which has more than one function.
        """
        if all(str(row.get("function", ""))[:1] not in ("+", "") for row in table.rows):
            return table
        found: Counter[tuple[str | None, Function]] = Counter()
        old: dict[tuple, dict] = {}
        for row in table.rows:
            old.setdefault((label(row), row.get("function"), row.get("file")), row)
        for stack in (self.samples or stacks.read(self.export)).stacks:
            if stack.kind == "user" and stack.user:
                found[stack.run, self.function(stack)] += stack.weight
        if sum(found.values()) != sum(number(row.get("samples", 0), 62) for row in table.rows):
            return table  # some samples are not in the export
        rows = []
        for (run, (name, file, address)), nr in found.most_common():
            row = {"address": f"{address:#018x}", "function": name, "samples": nr, "file": file}
            rows.append(({"run": run} if run is not None else {}) | row)
        return Table(table.title, rows, table.notes)

    def function(self, stack: Stack) -> Function:
        place = self.names.place(stack, stack.user[0])
        image = place.area.image if place.area else None
        file = image.path if image else ""
        if place.symbols and (found := place.symbols.function(place.address)):
            return found[1], file, found[0]
        if image and place.symbols and not place.symbols.has_symbols:
            return f"[{image.name}]", file, place.symbols.start
        if image:  # 256 bytes of code, as in the kernel's reports
            at = place.offset & -256
            return f"+{at:#x}", file, place.address - (place.offset - at)
        return "[unknown]", file, 0

    def tables(self, file: str, tables: list[Table]) -> list[Table]:
        """Returns the tables of a file with names."""
        if self.names.options.demangles:  # all at once, as that takes a process
            cells = [value for table in tables for row in table.rows for value in row.values()]
            cells += [note for table in tables for note in table.notes]
            texts = [cell for cell in cells if isinstance(cell, str) and "_" in cell]
            found = sorted({name for text in texts for name, _ in MANGLED.findall(text)})
            self.mangled = dict(zip(found, demangle([self.whole(name) for name in found])))
        if file == USER_FUNCTIONS:
            tables = [self.user_functions(table) for table in tables]
        return [
            Table(
                table.title,
                [{key: self.value(row, key) for key in row} for row in table.rows],
                [self.text(note) for note in table.notes],
            )
            for table in tables
        ]
