# SPDX-License-Identifier: BSD-2-Clause
"""Runs a program on the host's Linux as the kernel would: in an initramfs image, as process 1.

The image is unpacked into a ramfs in namespaces of its own, with /proc, the usual devices, the
kernel's host name, limits and environment, and a terminal of unknown size as its console. strace
traces it from outside. Needs util-linux' unshare; without root, user namespaces, too.
"""

from __future__ import annotations

import ctypes
import os
import pty
import resource
import select
import signal
import socket
import stat
import sys
import time
from pathlib import Path

ENVIRONMENT = {"HOME": "/", "PATH": "/bin"}
HOST_NAME = "lego"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LIMITS = {resource.RLIMIT_NOFILE: (1024, 1024), resource.RLIMIT_CORE: (0, 0)}
CONSOLES = ("console", "ttyS0")
DEVICE_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
MS_BIND = 4096
HEADER_BYTES = 110


class HostError(Exception):
    """The program could not run; the message is one line."""


def unpack(image: bytes, root: Path) -> None:
    """Unpacks a cpio archive made by scripts/mkinitramfs."""
    at = 0
    while True:
        header = image[at : at + HEADER_BYTES]
        if header[:6] != b"070701":
            raise HostError(f"the image is no cpio archive (newc) at byte {at}")
        fields = [int(header[6 + 8 * nr : 14 + 8 * nr], 16) for nr in range(13)]
        mode, mtime, nr_bytes, nr_name_bytes = fields[1], fields[5], fields[6], fields[11]
        name = image[at + HEADER_BYTES : at + HEADER_BYTES + nr_name_bytes - 1].decode()
        if name == "TRAILER!!!":
            return
        start = (at + HEADER_BYTES + nr_name_bytes + 3) & ~3
        at = (start + nr_bytes + 3) & ~3
        path, data = root / name, image[start : start + nr_bytes]
        if stat.S_ISLNK(mode):
            path.symlink_to(data.decode())
        elif stat.S_ISDIR(mode):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(data)
        if not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode))
        os.utime(path, (mtime, mtime), follow_symlinks=False)


def mount(source: str, target: Path, kind: str | None, flags: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (text and str(text).encode() for text in (source, target, kind))
    if libc.mount(*arguments, ctypes.c_ulong(flags), None):
        raise HostError(f"cannot mount {target}: {os.strerror(ctypes.get_errno())}")


def enter(image: Path, arguments: list[str]) -> None:
    """Makes the root directory, in the namespaces, and executes the program."""
    data = image.read_bytes()
    root = Path("/tmp")
    mount("root", root, "ramfs")
    unpack(data, root)
    for name in ("dev", "proc"):
        (root / name).mkdir(exist_ok=True)
    mount("proc", root / "proc", "proc")
    mount("dev", root / "dev", "ramfs")
    nodes = {name: f"/dev/{name}" for name in DEVICES}
    nodes |= dict.fromkeys(CONSOLES, os.ttyname(0))
    for name, source in nodes.items():
        (root / "dev" / name).touch()
        mount(source, root / "dev" / name, None, MS_BIND)
    shared = root / "dev" / "shm"
    shared.mkdir()
    shared.chmod(0o1777)
    for name, descriptor in DEVICE_LINKS.items():
        (root / "dev" / name).symlink_to(f"/proc/self/fd{descriptor}")
    socket.sethostname(HOST_NAME)
    os.umask(0o022)
    for limit, values in LIMITS.items():
        resource.setrlimit(limit, values)
    for number in signal.valid_signals():  # Python ignores some, nohup and sh's & others
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.closerange(3, LIMITS[resource.RLIMIT_NOFILE][0])
    os.chroot(root)
    os.chdir("/")
    os.execve(arguments[0], arguments, ENVIRONMENT)


def command(image: Path, arguments: list[str], trace: Path | None = None) -> list[str]:
    """Returns the command that runs arguments[0], a path in the image; strace writes to trace."""
    inside = [sys.executable, "-S", "-E", __file__, str(image.resolve()), *arguments]
    spaces = ["unshare", "--fork", "--pid", "--mount", "--uts", "--kill-child"]
    if os.geteuid():
        spaces.append("--map-root-user")
    strace = ["strace", "-f", "--pidns-translation", "-o", str(trace)] if trace else []
    return [*strace, *spaces, *inside]


def choose_cpus(nr: int) -> None:
    """Limits this process to as many of the host's CPUs as the guest has, if there are so many."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:nr])


def run(argv: list[str], nr_cpus: int, timeout_s: float = 120.0) -> tuple[str, int]:
    """Runs a command on a terminal of its own. Returns its output and its exit status."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            choose_cpus(nr_cpus)
            os.execvp(argv[0], argv)
        except OSError as error:
            print(f"{argv[0]}: {error.strerror}")
        os._exit(127)
    output = bytearray()
    end = time.monotonic() + timeout_s
    try:
        while select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # EIO: no process has the terminal open any more
                data = b""
            if not data:
                break
            output += data
        else:
            os.kill(pid, signal.SIGKILL)
            raise HostError(f"not done on the host within {timeout_s:g} s")
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
    return output.decode("utf-8", "replace").replace("\r\n", "\n"), status


if __name__ == "__main__":
    try:
        enter(Path(sys.argv[1]), sys.argv[2:])
    except (HostError, OSError) as error:
        sys.exit(f"host_run: error: {error}")
