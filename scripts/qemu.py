# SPDX-License-Identifier: BSD-2-Clause
"""Runs the kernel in QEMU and watches its serial console.

Guest is one run: start it, expect() lines, send keys or a serial BREAK, wait() for its end. The
console is QEMU's standard output, read by one thread of control: nothing runs in the background, so
whoever holds a Guest must keep calling expect() or wait(). BREAK goes through QMP.

qemu-run is the command line; the boot tests use Guest directly.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

DEBUG_EXIT_PORT = 0xF4
POWER_OFF = re.compile(r"reboot: power off, status (-?\d+)")
PANIC_END = re.compile(r"reboot: panic, status \d+")
# What says why a run went wrong, be it far from the log's end.
COMPLAINT = re.compile(r"\bnot ok \d|WARNING: |BUG:|Kernel panic")
PIPE_BYTES = 1 << 20
# After its last words the kernel has this long to be gone.
LAST_WORDS_S = 15.0


class QemuError(Exception):
    """A run that cannot start or did not go as it must; the message is one line."""


@dataclass
class Options:
    kernel: Path | None = None
    initrd: Path | None = None
    cdrom: Path | None = None  # boot from this, which has a kernel and a command line of its own
    smp: int = 1
    mem: str = "512M"
    append: str = ""
    cpu: str = "max"
    accel: str = "tcg"
    icount: bool = False
    qemu: str | None = None
    timeout: float = 900.0  # of the whole run, in seconds
    silence: float = 180.0  # without a byte on the console
    extra: list[str] = field(default_factory=list)  # more arguments for QEMU

    def command_line(self) -> str:
        """The kernel's command line: the debug exit port is ours to name, before ` -- `."""
        if "qemu_exit=" in self.append.split(" -- ")[0]:
            return self.append
        return f"qemu_exit={DEBUG_EXIT_PORT:#x} {self.append}".strip()

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
        if self.smp < 1:
            raise QemuError(f"smp must be at least 1, not {self.smp}")
        if self.icount and self.accel != "tcg":
            raise QemuError("icount needs tcg")

    def argv(self, qmp_path: str, interactive: bool) -> list[str]:
        mux = ",mux=on" if interactive else ""
        argv = [self.qemu_path(), "-machine", "q35", "-accel", self.accel, "-cpu", self.cpu]
        argv += ["-smp", str(self.smp), "-m", self.mem, "-display", "none", "-vga", "none"]
        argv += ["-nic", "none", "-nodefaults", "-no-reboot", "-no-user-config"]
        argv += ["-chardev", f"stdio,id=console,signal=off{mux}", "-serial", "chardev:console"]
        if interactive:
            argv += ["-mon", "chardev=console,mode=readline"]
        argv += ["-qmp", f"unix:{qmp_path},server=on,wait=off"]
        argv += ["-device", f"isa-debug-exit,iobase={DEBUG_EXIT_PORT:#x},iosize=4"]
        if self.icount:
            argv += ["-icount", "shift=0,sleep=off", "-seed", "1"]
            argv += ["-rtc", "base=2026-01-01T00:00:00,clock=vm"]
        if self.cdrom is not None:
            argv += ["-cdrom", str(self.cdrom)]
        else:
            argv += ["-kernel", str(self.kernel), "-append", self.command_line()]
        if self.initrd is not None:
            argv += ["-initrd", str(self.initrd)]
        return argv + self.extra


@dataclass
class Result:
    """How a run ended. error is None only for a run that went as it must."""

    log: str
    status: int | None  # what the kernel said, None if it did not
    exit_code: int | None  # QEMU's own, None if it had to be killed
    seconds: float
    error: str | None

    @property
    def ok(self) -> bool:
        return self.error is None

    def tail(self, nr_lines: int = 40) -> str:
        """The log's last lines; before them what was complained of earlier, with what led to it."""
        lines = self.log.splitlines()
        start = max(0, len(lines) - nr_lines)
        shown: list[int] = []
        for i in range(start):
            if COMPLAINT.search(lines[i]):
                shown += range(max(i - 5, shown[-1] + 1 if shown else 0), i + 1)
        return "\n".join([lines[i] for i in shown[:nr_lines]] + lines[start:])


class Guest:
    """One run of QEMU. Use as a context manager: leaving it ends QEMU whatever happened."""

    def __init__(
        self,
        options: Options,
        on_output: Callable[[bytes], None] | None = None,
        interactive: bool = False,
    ):
        self.options = options
        self.on_output = on_output
        self.interactive = interactive
        self.raw = bytearray()
        self._text = ""
        self._text_of = 0  # how many bytes of raw are in _text
        self._searched = 0
        self._eof = False
        self._qmp: socket.socket | None = None
        options.check()
        self._dir = tempfile.TemporaryDirectory(prefix="qemu-run-")
        qmp_path = os.path.join(self._dir.name, "qmp")
        argv = options.argv(qmp_path, interactive)
        # One host CPU makes several guest CPUs reproducible too.
        pin = min(os.sched_getaffinity(0)) if options.icount else None
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=None if interactive else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=None if pin is None else lambda: os.sched_setaffinity(0, {pin}),
            )
        except OSError as error:
            self._dir.cleanup()
            raise QemuError(f"cannot start {argv[0]}: {error.strerror}") from error
        assert self.process.stdout is not None
        # QEMU must never have to wait for us: a full pipe would be visible to the guest.
        try:
            fcntl.fcntl(self.process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass
        os.set_blocking(self.process.stdout.fileno(), False)
        self.started = self.last_output = time.monotonic()
        self._qmp_path = qmp_path

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    # Reading

    @property
    def text(self) -> str:
        """The console so far, line ends as newlines only."""
        if self._text_of != len(self.raw):
            self._text = self.raw.decode("utf-8", "replace").replace("\r\n", "\n")
            self._text_of = len(self.raw)
        return self._text

    def _read(self, wait_s: float) -> bool:
        """Waits for output and takes it; False when there was none."""
        assert self.process.stdout is not None
        if self._eof:
            return False
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, wait_s))
        if not ready:
            return False
        try:
            data = os.read(self.process.stdout.fileno(), PIPE_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._eof = True
            return False
        self.raw += data
        self.last_output = time.monotonic()
        if self.on_output:
            self.on_output(data)
        return True

    def _overdue(self) -> str | None:
        now = time.monotonic()
        if now - self.started > self.options.timeout:
            return f"timeout: the run took more than {self.options.timeout:g} s"
        if now - self.last_output > self.options.silence:
            return f"hang: nothing on the console for {self.options.silence:g} s"
        return None

    def expect(self, pattern: str, timeout: float = 60.0) -> re.Match[str]:
        """Waits for the pattern in output that no earlier expect() has consumed."""
        regex = re.compile(pattern, re.MULTILINE)
        end = time.monotonic() + timeout
        while True:
            match = regex.search(self.text, self._searched)
            if match:
                self._searched = match.end()
                return match
            why = self._overdue()
            if self._eof:
                why = "QEMU ended"
            elif time.monotonic() > end:
                why = f"not within {timeout:g} s"
            if why:
                tail = "\n".join(self.text.splitlines()[-30:])
                raise QemuError(f"{why} while waiting for {pattern!r}; the console:\n{tail}")
            self._read(0.25)

    # Writing

    def send(self, data: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data.encode())
        self.process.stdin.flush()

    def send_break(self) -> None:
        self.qmp("chardev-send-break", id="console")

    def sysrq(self, key: str) -> None:
        """BREAK, then the key. They travel apart: the key must not overtake the BREAK."""
        self.send_break()
        time.sleep(0.05)
        self.send(key)

    def qmp(self, command: str, **arguments: object) -> object:
        if self._qmp is None:
            self._qmp = socket.socket(socket.AF_UNIX)
            self._qmp.settimeout(20)
            self._qmp.connect(self._qmp_path)
            self._qmp_file = self._qmp.makefile("rw")
            self._qmp_file.readline()  # the greeting
            self.qmp("qmp_capabilities")
        self._qmp_file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._qmp_file.flush()
        while line := self._qmp_file.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise QemuError(f"QMP {command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise QemuError(f"QMP {command}: QEMU closed the connection")

    # The end

    def kill(self) -> None:
        if self.process.poll() is None:
            # SIGTERM first: QEMU gives a terminal its settings back.
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self._qmp is not None:
            self._qmp_file.close()
            self._qmp.close()
            self._qmp = None
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        self._dir.cleanup()

    def wait(self) -> Result:
        """Runs to the end of the guest or to the first thing that will not become good again."""
        killed = None
        last_words = None
        scanned = 0
        while not self._eof:
            self._read(0.25)
            if last_words is None and len(self.raw) > scanned:
                tail = bytes(self.raw[max(0, scanned - 200) :]).decode("utf-8", "replace")
                scanned = len(self.raw)
                if POWER_OFF.search(tail) or PANIC_END.search(tail):
                    last_words = time.monotonic()
            killed = self._overdue()
            if not killed and last_words and time.monotonic() - last_words > LAST_WORDS_S:
                killed = "hang: the kernel said that it is gone, but QEMU still runs"
            if killed:
                break
        seconds = time.monotonic() - self.started
        exit_code = None
        stderr = ""
        if not killed:
            exit_code = self.process.wait()
            assert self.process.stderr is not None
            stderr = self.process.stderr.read().decode("utf-8", "replace").strip()
        log = self.text
        status = [int(s) for s in POWER_OFF.findall(log)]
        result = Result(log, status[-1] if status else None, exit_code, seconds, None)
        result.error = killed or judge(result, stderr)
        if killed and (why := first_line_with(log, "Kernel panic", "BUG:")):
            result.error = f"{why} ({killed})"
        self.kill()
        return result


def first_line_with(log: str, *words: str) -> str | None:
    for line in log.splitlines():
        for word in words:
            if word in line:
                return line[line.index(word) :]
    return None


def judge(result: Result, stderr: str) -> str | None:
    """What is wrong with a run that ended by itself, or None."""
    why = first_line_with(result.log, "Kernel panic", "BUG:")
    if why:
        return why
    if result.exit_code is not None and result.exit_code < 0:
        extra = f": {stderr.splitlines()[0]}" if stderr else ""
        return f"QEMU was killed by signal {-result.exit_code}{extra}"
    if not result.log and stderr:
        return f"QEMU: {stderr.splitlines()[0]}"
    if result.status is None:
        extra = f": {stderr.splitlines()[0]}" if stderr else ""
        return f"QEMU ended (exit code {result.exit_code}) before the kernel powered off{extra}"
    if result.status != 0:
        return f"init ended with status {result.status}"
    if result.exit_code != 0:
        return f"the kernel powered off with status 0, but QEMU's exit code is {result.exit_code}"
    return None


def run(options: Options, on_output: Callable[[bytes], None] | None = None) -> Result:
    with Guest(options, on_output) as guest:
        return guest.wait()
