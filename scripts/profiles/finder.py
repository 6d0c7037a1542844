# SPDX-License-Identifier: BSD-2-Clause
"""Finds the ELF files of an export on this machine: the kernel, programs and libraries.

A file counts only if its build id is the one that the export has. Debug information may be in a
file of its own, at the places where GDB looks for it ("Debugging Information in Separate Files" in
its manual), or at a debuginfod server, if the user has named one in DEBUGINFOD_URLS.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from profiles.elf import ElfError, open_elf
from profiles.export import Export, ExportError, printable
from profiles.images import Image
from profiles.symbols import Symbols

DEBUG = Path("/usr/lib/debug")
TREE = Path(__file__).resolve().parents[2]
MAX_DOWNLOADS = 64


def below(directory: Path, path: str) -> Path:
    """Returns a guest's absolute path below a directory that is a copy of its root."""
    return directory / path.lstrip("/")


class Finder:
    def __init__(
        self,
        exports: list[Export],
        given: list[Path],
        demangles: bool = True,
        warn: Callable[[str], None] = lambda text: None,
    ):
        """given: directories of the user, which come first."""
        self.given, self.demangles, self.warn = given, demangles, warn
        # The host's files and directories that the guest was made of: qemu-run records their paths.
        self.sources = [Path(path) for one in exports for path in one.host_paths]
        around = [Path(part).parent for one in exports for part in one.paths]
        self.around = [
            directory / name
            for directory in dict.fromkeys([*around, Path.cwd(), TREE])
            for name in ("", "build", "build/user")
        ]
        self.build_ids: dict[Path, str | None] = {}
        self.nr_downloads = 0

    def load(self, path: Path) -> Symbols:
        """Returns the symbols of a file, with those of its debug file if it is stripped."""
        found = Symbols(path, self.demangles)
        if found.is_stripped and found.build_id:
            self.add_debug(found, str(path.absolute()))
        return found

    def build_id(self, path: Path) -> str | None:
        """Returns the build id of a file; None: there is no such ELF file."""
        if path not in self.build_ids:
            try:
                self.build_ids[path] = open_elf(path).build_id()
            except (OSError, ElfError, ValueError):  # ValueError: a path with a NUL
                self.build_ids[path] = None
        return self.build_ids[path]

    def programs(self, image: Image) -> Iterator[tuple[Path, bool]]:
        """Yields the files that an image may be, and whether it should be that one."""
        for source in self.sources:
            if source.is_dir():
                yield below(source, image.path), True
            yield (source / image.name if source.is_dir() else source), source.name == image.name
        for directory in self.given:
            yield below(directory, image.path), True
            yield directory / image.name, True
        if image.path.startswith("/"):
            yield Path(image.path), True
        for directory in self.around:
            yield directory / image.name, False

    def debug_files(self, build_id: str, path: str, link: str | None) -> Iterator[Path]:
        """Yields the files that may have the debug information of the file at a path."""
        directory = Path(path).parent
        for root in [*self.given, *self.around, directory, DEBUG]:
            yield root / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        yield below(DEBUG, f"{path}.debug")
        for name in dict.fromkeys([link, f"{os.path.basename(path)}.debug"]):
            if name and "/" not in name:
                yield from (directory / name, directory / ".debug" / name)
                yield below(DEBUG, str(directory)) / name
                yield from (root / name for root in [*self.given, *self.around])
        if downloaded := self.download(build_id):
            yield downloaded

    def download(self, build_id: str) -> Path | None:
        """Asks the user's debuginfod servers, if there are any."""
        command = shutil.which("debuginfod-find")
        if not command or not os.environ.get("DEBUGINFOD_URLS"):
            return None
        self.nr_downloads += 1
        if self.nr_downloads > MAX_DOWNLOADS:
            return None
        done = subprocess.run([command, "debuginfo", build_id], capture_output=True, text=True)
        return Path(done.stdout.strip()) if not done.returncode and done.stdout.strip() else None

    def debug(self, build_id: str, path: str, link: str | None) -> Symbols | None:
        for file in self.debug_files(build_id, path, link):
            if self.build_id(file) == build_id:
                try:
                    found = Symbols(file, self.demangles)
                except ExportError:
                    continue
                if not found.is_stripped:
                    return found
        return None

    def add_debug(self, program: Symbols, path: str) -> None:
        assert program.build_id
        if found := self.debug(program.build_id, path, program.debug_link):
            program.take_names(found)

    def find(self, image: Image) -> Symbols | None:
        """Returns the symbols of an image. Says so if its file has been replaced by another one."""
        if not image.build_id:
            return None
        other = None
        for path, should_be in self.programs(image):
            build_id = self.build_id(path)
            if build_id == image.build_id:
                try:
                    found = Symbols(path, self.demangles)
                except ExportError as error:
                    self.warn(str(error))
                    continue
                if found.is_stripped:
                    self.add_debug(found, image.path)
                return found
            if should_be and not other and path.is_file():
                other = f"{path} (build id {build_id or 'none'})"
        if found_debug := self.debug(image.build_id, image.path, None):
            return found_debug
        if other:
            self.warn(f"{other} is not the file that ran: {image}, so it gives no names")
        return None

    def kernel(self, build_id: str) -> Symbols | None:
        """Returns the symbols of the kernel with this build id."""
        other = None
        files = [*self.sources, *(root / "vmlinux" for root in [*self.given, *self.around])]
        for path in files:
            found = self.build_id(path)
            if found == build_id:
                return Symbols(path, self.demangles)
            if found and path in self.sources and path.name == "vmlinux":
                other = path
        if found_debug := self.debug(build_id, "/vmlinux", None) if build_id else None:
            return found_debug
        if other:
            self.warn(
                f"{other} is not the kernel that ran (build id {printable(build_id)}), so it gives "
                "no names"
            )
        return None
