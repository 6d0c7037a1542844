# SPDX-License-Identifier: BSD-2-Clause
"""Runs the kernel in QEMU and watches its serial console.

Guest is one run: start it, expect() lines, send keys or a serial BREAK, wait() for its end. The
console is QEMU's standard output. Nothing reads it in the background, so the owner of a Guest must
keep calling expect() or wait(). BREAK goes through QMP.

The kernel reports the end of a run in its verdict, a line that it writes to an isa-debugcon device,
which programs cannot access. A run without a verdict has failed. Programs can print whatever the
kernel prints, so the console's text only explains a failure: the kernel hung, or died early.

machine.py has the options. qemu-run is the command line; the boot tests use Guest directly.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Self

import guest_files
import guest_memory
import terminal
from machine import Options, QemuError
from profiles import operations
from profiles.export import ExportError

VERDICT = re.compile(
    r"verdict: status=(-?\d+) panic=([01]) bugs=(\d+) warnings=(\d+) reports_cut=(\d+) "
    r"console_lost=(\d+)(?: why=(.*))?\n"
)
# Lines that say why a run failed, even far from the log's end.
COMPLAINT = re.compile(r"\bnot ok \d|WARNING: |BUG:|Kernel panic")
PIPE_BYTES = 1 << 20
# Seconds for the kernel to power off after its last line.
LAST_WORDS_S = 15.0
# Seconds for a kernel that hangs to print its threads.
WAITS_S = 20.0
# Output that arrives comes a byte at a time, so more is collected before it is read.
COLLECT_S = 0.005
EARLY_PANIC = b"Kernel panic: "  # before lines have a time


class LineEnds:
    """Turns CR LF into LF in a stream that arrives in pieces."""

    def __init__(self) -> None:
        self.held = b""  # CRs at the end of a piece: an LF may follow

    def plain(self, data: bytes) -> bytes:
        data = self.held + data
        body = data.rstrip(b"\r")
        self.held = data[len(body) :]
        return body.replace(b"\r\n", b"\n")

    def rest(self) -> bytes:
        held, self.held = self.held, b""
        return held


def host_cpu() -> int:
    """Returns the host's CPU for a run with icount. Tests that run at once have different ones."""
    cpus = sorted(os.sched_getaffinity(0))
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return cpus[int(worker.removeprefix("gw")) % len(cpus)]


@dataclass
class Verdict:
    """The kernel's report on its own end. why: the message of a panic."""

    status: int
    panic: bool
    bugs: int
    warnings: int
    reports_cut: int
    console_lost: int  # bytes
    why: str | None

    @classmethod
    def parse(cls, text: str) -> "Verdict | None":
        """Returns None for an incomplete line."""
        if not (match := VERDICT.fullmatch(text)):
            return None
        status, panic, bugs, warnings, cut, lost = map(int, match.groups()[:6])
        return cls(status, bool(panic), bugs, warnings, cut, lost, match[7])

    def complaint(self, log: str) -> str | None:
        """Returns what is wrong with the run, or None. The log only adds detail."""
        if self.panic:
            return f"Kernel panic: {self.why}" if self.why else "Kernel panic"
        if self.warnings:
            first = first_line_with(log, "WARNING: ") or "not in the log"
            return f"warnings of the kernel: {self.warnings}, first {first}"
        if self.reports_cut:
            return f"reports that are incomplete: {self.reports_cut}"
        if self.console_lost:
            return f"the console lost {self.console_lost} bytes, which QEMU's reader did not take"
        return None


@dataclass
class Result:
    """How a run ended. error is None only if the run succeeded."""

    log: str
    status: int | None  # from the kernel's verdict, None without one
    exit_code: int | None  # QEMU's own, None if it had to be killed
    seconds: float
    error: str | None
    verdict: Verdict | None = None
    export_error: str | None = None  # why a requested export is missing
    got: list[str] = field(default_factory=list)  # names of the guest's files in the folder
    get_problems: list[str] = field(default_factory=list)  # why others are not, a line each

    @property
    def ok(self) -> bool:
        return self.error is None

    def tail(self, nr_lines: int = 40) -> str:
        """Returns the log's last lines, after earlier complaints and the lines that led to them."""
        lines = self.log.splitlines()
        start = max(0, len(lines) - nr_lines)
        shown: list[int] = []
        for i in range(start):
            if COMPLAINT.search(lines[i]):
                shown += range(max(i - 5, shown[-1] + 1 if shown else 0), i + 1)
        return "\n".join([lines[i] for i in shown[:nr_lines]] + lines[start:])


class Guest:
    """One run of QEMU. Use as a context manager: leaving it always ends QEMU."""

    def __init__(
        self,
        options: Options,
        on_output: Callable[[bytes], None] | None = None,
        keyboard: terminal.Keyboard | None = None,
    ):
        self.options = options
        self.on_output = on_output
        self.keyboard = keyboard
        self.raw = bytearray()
        self._text = ""
        self._text_of = 0  # how many bytes of raw are in _text
        self._searched = 0
        self._eof = False
        self._qmp: socket.socket | None = None
        options.check()
        self._dir = tempfile.TemporaryDirectory(prefix="qemu-run-")
        argv = options.argv(self._dir.name)
        # One host CPU makes several guest CPUs reproducible too.
        pin = host_cpu() if options.icount else None

        def prepare() -> None:
            os.setpgid(0, 0)  # a Ctrl-C on the host's terminal must not end QEMU
            if pin is not None:
                os.sched_setaffinity(0, {pin})

        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=prepare,
            )
        except OSError as error:
            self._dir.cleanup()
            raise QemuError(f"cannot start {argv[0]}: {error.strerror}") from error
        assert self.process.stdout is not None
        # QEMU must never wait for this script: a full pipe would be visible to the guest.
        try:
            fcntl.fcntl(self.process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass
        os.set_blocking(self.process.stdout.fileno(), False)
        self.started = self.last_output = time.monotonic()
        self._qmp_path = os.path.join(self._dir.name, "qmp")
        self._verdict_path = Path(self._dir.name, "verdict")
        self._copier = None
        if options.host:
            assert options.kernel
            ram = Path(self._dir.name, "ram")
            self._copier = guest_files.Copier(options.kernel, ram, options.get_folder)
            self._copier.thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    # Reading

    @property
    def text(self) -> str:
        """Returns the console so far, with newlines as the only line ends."""
        if self._text_of != len(self.raw):
            self._text = self.raw.decode("utf-8", "replace").replace("\r\n", "\n")
            self._text_of = len(self.raw)
        return self._text

    def _read(self, wait_s: float) -> bool:
        """Waits for output and takes it, and keys. Returns False if there was no output."""
        assert self.process.stdout is not None
        if self._eof:
            return False
        inputs = [self.process.stdout, *([self.keyboard] if self.keyboard else [])]
        ready, _, _ = select.select(inputs, [], [], max(0.0, wait_s))
        if self.keyboard and self.keyboard in ready:
            self._type(self.keyboard)
        if self.process.stdout not in ready:
            return False
        if not self.keyboard:
            time.sleep(COLLECT_S)
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

    def send(self, data: str | bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data.encode() if isinstance(data, str) else data)
        self.process.stdin.flush()

    def _type(self, keyboard: terminal.Keyboard) -> None:
        """Passes keys to the guest. They stay in the terminal while QEMU takes none."""
        if not select.select([], [self.process.stdin], [], 0.01)[1]:
            return
        self.last_output = time.monotonic()
        for key in keyboard.read():
            if key is terminal.QUIT:
                raise QemuError("ended by Ctrl-] X")
            if key is terminal.BREAK:
                self.send_break()
                time.sleep(0.05)  # as in sysrq()
            else:
                self.send(key)

    def send_break(self) -> None:
        self.qmp("chardev-send-break", id="console")

    def sysrq(self, key: str) -> None:
        """Sends a BREAK, then the key. They take different ways; the key must not come first."""
        self.send_break()
        time.sleep(0.05)
        self.send(key)

    def ask_hung_guest(self) -> None:
        """
        Lets a guest that hangs print what its threads wait for. A key that is typed again is
        handled in the interrupt, so that works even if no thread runs any more.
        """
        start = len(self.raw)
        end = time.monotonic() + WAITS_S
        try:
            while b"waits.for" not in self.raw[start:] and time.monotonic() < end:
                self.sysrq("t")
                self._read(3.0)
            self.sysrq("w")
            while time.monotonic() < end and self._read(1.0):
                pass
        except (QemuError, OSError):
            pass  # the run fails anyway, with a better reason

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
                with contextlib.suppress(OSError):  # keys that QEMU has not taken
                    stream.close()
        if self._copier:
            self._copier.stop()
        self._dir.cleanup()

    def _save_export(self, path: Path) -> str | None:
        """Writes the export that the guest left in its memory, and how it was run, to a file."""
        options = self.options
        assert options.kernel
        command = [options.qemu_path(), "--version"]
        version = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        names = "append", "accel", "icount", "cpu"
        run = {name: getattr(options, name) for name in names} | {"qemu": version[:1]}
        host_paths = [str(path.absolute()) for path in (options.kernel, *options.host_paths)]
        lines: list[dict] = [{"run": run}, {"host_paths": host_paths}]
        if options.operations and (costs := operations.costs(self.text)):
            assert options.initrd
            run["program"] = f"{zlib.crc32(options.initrd.read_bytes()):08x}"
            lines.append({"operations": costs})
        if options.operations:
            lines.append({"functions": operations.functions(options.kernel)})
        try:
            text = guest_memory.from_memory(options.kernel, Path(self._dir.name, "ram"))
            path.write_bytes(text + b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        except ExportError as error:
            return str(error)
        except OSError as error:
            return f"{path}: {error.strerror}"
        return None

    def _get_files(self, result: Result) -> None:
        """Copies the files that the guest was asked for out of its memory."""
        options = self.options
        assert options.kernel
        ram = Path(self._dir.name, "ram")
        early = self._copier.stop() if self._copier else []
        try:
            result.got, result.get_problems = guest_files.get(
                options.kernel, ram, options.get_folder
            )
        except guest_files.GetError as error:
            result.get_problems = [str(error)]
        except OSError as error:
            result.get_problems = [f"{options.get_folder}: {error.strerror}"]
        result.got += [name for name in early if name not in result.got]

    def _read_verdict(self) -> Verdict | None:
        try:
            return Verdict.parse(self._verdict_path.read_text("utf-8", "replace"))
        except FileNotFoundError:  # QEMU ended before it made the file
            return None

    def wait(self) -> Result:
        """Runs to the end of the guest, or to the first failure that is final."""
        killed = None
        last_words = None
        while not self._eof:
            self._read(0.25)
            if last_words is None and (self._read_verdict() or self.raw.startswith(EARLY_PANIC)):
                last_words = time.monotonic()
            killed = self._overdue()
            if killed and not last_words:
                self.ask_hung_guest()
            if not killed and last_words and time.monotonic() - last_words > LAST_WORDS_S:
                killed = "hang: the kernel has reported its end, but QEMU is still running"
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
        verdict = self._read_verdict()
        result = Result(log, None, exit_code, seconds, None, verdict)
        if verdict is not None:
            result.status = None if verdict.panic else verdict.status
        result.error = killed or judge(result, stderr)
        if killed and (why := complaint_of(result)):
            result.error = f"{why} ({killed})"
        if self.options.export:
            result.export_error = self._save_export(self.options.export)
        if self.options.get or self.options.host:
            self._get_files(result)
        self.kill()
        return result


def first_line_with(log: str, *words: str) -> str | None:
    for line in log.splitlines():
        for word in words:
            if word in line:
                return line[line.index(word) :]
    return None


def first_complaint(stderr: str) -> str:
    """Returns the first line of QEMU's errors that is not a warning, or else the first."""
    lines = stderr.splitlines()
    return next((line for line in lines if "warning:" not in line), lines[0] if lines else "")


def complaint_of(result: Result) -> str | None:
    """Returns the kernel's complaint: from its verdict, or else the first one in the log."""
    if result.verdict is not None:
        return result.verdict.complaint(result.log)
    return first_line_with(result.log, "Kernel panic", "BUG:")


def judge(result: Result, stderr: str) -> str | None:
    """Returns the problem of a run that ended by itself, or None."""
    why = complaint_of(result)
    if why:
        return why
    complaint = first_complaint(stderr)
    extra = f": {complaint}" if complaint else ""
    if result.exit_code is not None and result.exit_code < 0:
        return f"QEMU was killed by signal {-result.exit_code}{extra}"
    if not result.log and complaint:
        return f"QEMU: {complaint}"
    if result.verdict is None:
        return f"no verdict of the kernel: QEMU ended with exit code {result.exit_code}{extra}"
    if result.status != 0:
        return f"init ended with status {result.status}"
    if result.exit_code != 0:
        return f"the kernel powered off with status 0, but QEMU's exit code is {result.exit_code}"
    return None


def run(options: Options, on_output: Callable[[bytes], None] | None = None) -> Result:
    with Guest(options, on_output) as guest:
        return guest.wait()
