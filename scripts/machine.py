# SPDX-License-Identifier: BSD-2-Clause
"""The machine that QEMU runs: its options, what is wrong with them, and QEMU's command line."""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path

import cpio
import guest_files
import kvm

DEBUG_EXIT_PORT = 0xF4
VERDICT_PORT = 0xE9  # isa-debugcon's own, where the kernel looks for it
PT_LOAD = 1
EXPORT_BYTES = 16 << 20  # the most that a kernel may export
STDIN = "/data/stdin"  # the guest's name of Options.stdin
MEMORY = re.compile(r"(\d+)([KMGT]?)B?", re.IGNORECASE)


class QemuError(Exception):
    """A run cannot start or has failed; the message is one line."""


def loaded_bytes(kernel: Path) -> int:
    """Returns how much memory the segments of an ELF file take; they may end in its .bss."""
    with kernel.open("rb") as file:
        head = file.read(4096)
    if not head.startswith(b"\x7fELF\2\1"):
        return kernel.stat().st_size
    (phoff,) = struct.unpack_from("<Q", head, 32)
    phentsize, phnum = struct.unpack_from("<HH", head, 54)
    headers = [struct.unpack_from("<I36xQ", head, phoff + i * phentsize) for i in range(phnum)]
    return sum(memsz for kind, memsz in headers if kind == PT_LOAD)


@dataclass
class Options:
    kernel: Path | None = None
    initrd: Path | None = None
    cdrom: Path | None = None  # boot from this, which has a kernel and a command line of its own
    smp: int = 1
    mem: str | None = None  # 512M, or 4 times the initramfs: files may take half of the memory
    append: str = ""
    cpu: str = "max"
    accel: str = "tcg"
    any_kvm: bool = False  # try KVM on a CPU without VT-x and AMD-V, too
    icount: bool = False
    qemu: str | None = None
    timeout: float = 900.0  # of the whole run, in seconds
    silence: float = 180.0  # without a byte on the console
    export: Path | None = None  # write the profiler's export to this file
    host_paths: list[Path] = field(default_factory=list)  # for it: where programs are
    operations: bool = False  # add the costs of operations to the export
    get: list[str] = field(default_factory=list)  # paths of files to copy out after the run
    host: str | None = None  # a directory whose files are copied as soon as they are closed
    get_folder: Path = Path("build/files")  # where these go
    stdin: bytes | None = None  # init's standard input; None: the console
    extra: list[str] = field(default_factory=list)  # more arguments for QEMU

    def __post_init__(self) -> None:
        if not self.mem:
            initrd = self.initrd and Path(self.initrd)
            nr_bytes = initrd.stat().st_size if initrd and initrd.is_file() else 0
            nr_bytes += len(self.stdin or b"")
            self.mem = f"{max(512, 4 * nr_bytes >> 20)}M"

    def command_line(self) -> str:
        """Returns the kernel's command line, with what our devices need added before ` -- `."""
        words = self.append
        if "qemu_exit=" not in self.append.split(" -- ")[0]:
            words = f"qemu_exit={DEBUG_EXIT_PORT:#x} {words}"
        if self.export and "profile.export=" not in words.split(" -- ")[0]:
            words = f"profile.export={EXPORT_BYTES} {words}"
        if self.get:
            words = f"{guest_files.option('get', self.get)} {words}"
        if self.host:
            words = f"{guest_files.option('host', [self.host])} {words}"
        if self.stdin is not None:
            words = f"stdin={STDIN} {words}"
        return words.strip()

    def qemu_path(self) -> str:
        name = self.qemu or os.environ.get("QEMU") or "qemu-system-x86_64"
        path = shutil.which(name)
        if not path:
            raise QemuError(f"no {name} here: install qemu-system-x86 (make deps) or set QEMU")
        return path

    def check(self) -> None:
        if self.cdrom and (self.kernel or self.initrd or self.append):
            raise QemuError("a CD has its own kernel, initrd and command line")
        if not (self.cdrom or self.kernel):
            raise QemuError("name a kernel or a CD to boot")
        files = ("kernel", self.kernel), ("initrd", self.initrd), ("CD image", self.cdrom)
        for what, path in files:
            if path is not None and not Path(path).is_file():
                raise QemuError(f"no such {what}: {path}")
        if self.export and not self.kernel:
            raise QemuError("an export needs --kernel, whose symbols say where it is")
        if self.export:
            check_writable(self.export)
        if self.get or self.host:
            self.check_get()
        if self.stdin is not None and not self.initrd:
            raise QemuError("a standard input for init needs --initrd")
        if self.kernel and self.initrd:
            nr_bytes = self.initrd.stat().st_size + len(self.stdin or b"")
            self.check_memory(loaded_bytes(self.kernel) + nr_bytes)
        if self.smp < 1:
            raise QemuError(f"smp must be at least 1, not {self.smp}")
        if self.icount and self.accel != "tcg":
            raise QemuError("icount needs tcg")
        if self.accel == "kvm":
            why = kvm.device_problem() if self.any_kvm else kvm.problem()
            if why:
                raise QemuError(why)

    def check_get(self) -> None:
        if not self.kernel:
            raise QemuError("files to get need --kernel, whose symbols say where they are")
        try:
            guest_files.option("get", self.get + ([self.host] if self.host else []))
            self.get_folder.mkdir(parents=True, exist_ok=True)
        except guest_files.GetError as error:
            raise QemuError(str(error)) from error
        except OSError as error:
            raise QemuError(f"cannot write to {self.get_folder}: {error.strerror}") from error

    def check_memory(self, needed_bytes: int) -> None:
        """Refuses an initramfs that is too large. QEMU would silently load it over the kernel."""
        size = MEMORY.match(str(self.mem))
        power = "KMGT".index(size[2].upper() or "M") + 1 if size else 0
        if size and int(size[1]) << 10 * power < needed_bytes:
            mib = -(-needed_bytes >> 20)
            raise QemuError(f"{self.mem} of memory: kernel and initramfs need more than {mib} MiB")

    def initrd_path(self, directory: str) -> Path | None:
        """Returns the initrd; one with init's standard input is made in the directory."""
        if self.stdin is None or not self.initrd:
            return self.initrd
        path = Path(directory, "initrd")
        entries = {STDIN[1:]: cpio.Entry(stat.S_IFREG | 0o644, self.stdin)}
        shutil.copyfile(self.initrd, path)
        with path.open("ab") as file:
            file.write(bytes(-file.tell() % 4) + cpio.archive(entries))
        return path

    def argv(self, directory: str) -> list[str]:
        """Returns QEMU's command line; its sockets and files go to the directory."""
        reads_memory = self.export or self.get or self.host
        machine = "q35,memory-backend=ram" if reads_memory else "q35"
        if self.cdrom is None:
            machine += ",sata=off"  # the BIOS would look for disks, half a second with icount
        argv = [self.qemu_path(), "-machine", machine, "-accel", self.accel, "-cpu", self.cpu]
        argv += ["-smp", str(self.smp), "-m", str(self.mem), "-display", "none", "-vga", "none"]
        argv += ["-nic", "none", "-nodefaults", "-no-reboot", "-no-user-config"]
        argv += ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
        argv += ["-qmp", f"unix:{directory}/qmp,server=on,wait=off"]
        argv += ["-chardev", f"file,id=verdict,path={directory}/verdict"]
        argv += ["-device", f"isa-debugcon,iobase={VERDICT_PORT:#x},chardev=verdict"]
        argv += ["-device", f"isa-debug-exit,iobase={DEBUG_EXIT_PORT:#x},iosize=4"]
        if reads_memory:
            ram = f"id=ram,size={self.mem},mem-path={directory}/ram,share=on"
            argv += ["-object", f"memory-backend-file,{ram}"]
        if self.icount:
            argv += ["-icount", "shift=0,sleep=off", "-seed", "1"]
            argv += ["-rtc", "base=2026-01-01T00:00:00,clock=vm"]
        if self.cdrom is not None:
            argv += ["-cdrom", str(self.cdrom)]
        else:
            argv += ["-kernel", str(self.kernel), "-append", self.command_line()]
        if self.initrd is not None:
            argv += ["-initrd", str(self.initrd_path(directory))]
        return argv + self.extra


def check_writable(path: Path) -> None:
    """Checks that a file can be written, before a run whose result goes there. Keeps the file."""
    is_new = not path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise QemuError(f"cannot write {path}: {error.strerror}") from error
    if is_new:
        path.unlink()
