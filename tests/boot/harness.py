# SPDX-License-Identifier: BSD-2-Clause
"""Builds kernels, by variant, and boots them; the fixtures in conftest.py return these classes."""

from __future__ import annotations

import difflib
import fcntl
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

import pytest

sys.dont_write_bytecode = not sys.pycache_prefix
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(Path(__file__).resolve().parent)]

import mkinitramfs  # noqa: E402
import qemu  # noqa: E402
import report  # noqa: E402

BUILD = ROOT / (os.environ.get("LEGO_BUILD") or os.environ.get("BUILD") or "build")
RUN_TIMEOUT_S = 240.0
# Variants that differ from the default kernel in their profilers only, whose code keeps -O2. With
# less optimization, GCC's warnings of uninitialized variables are wrong.
LESS_OPTIMIZED = ("profile-hp", "profile-sp")
LESS = "optimize=-O1 -Wno-maybe-uninitialized"
NAMED = "the programs that the command line names"
WARNING = re.compile(r"WARNING: \S+:\d+")
BAD = re.compile(r"WARNING: \S+:\d+|BUG:|Kernel panic")


def code_lines(path: Path) -> int:
    """Counts the lines of a file of C or make that are neither blank nor only comment."""
    comment = r"^#.*" if path.name == "Makefile" else r"/\*[\s\S]*?\*/|//.*"
    lines = re.sub(comment, "", path.read_text(), flags=re.MULTILINE).splitlines()
    return sum(bool(line.strip()) for line in lines)


def make(*arguments: object, cwd: Path = ROOT, check: bool = True) -> subprocess.CompletedProcess:
    """
    Runs make. If a make runs the tests, its variables apply here, too (for example LLVM=1), but not
    its BUILD, its CONFIG and its job slots.
    """
    env = dict(os.environ)
    if "jobserver" in env.get("MAKEFLAGS", ""):
        env["MAKEFLAGS"] = ""
    command = ["make", f"-j{os.cpu_count() or 1}", "BUILD=build", "CONFIG=", *map(str, arguments)]
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    done = subprocess.run(command, cwd=cwd, env=env, **quiet)
    if check and done.returncode:
        pytest.fail(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}", False)
    return done


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a file lock: xdist's workers share build directories, so one builds and others wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_until_equal(run: Callable[[], str]) -> str:
    """
    Calls run(), which boots with -icount, until it returns the same text twice, and returns that
    text. QEMU pinned to one host CPU is reproducible, but a busy host can stop one of its threads
    at a moment when the guest notices. Such a disturbance does not repeat exactly, and a kernel
    that is not reproducible never prints the same text twice in four runs.
    """
    logs: list[str] = []
    while len(logs) < 4:
        log = run()
        if log in logs:
            return log
        logs.append(log)
    lines = [log.splitlines() for log in logs[-2:]]
    different = list(difflib.unified_diff(*lines, lineterm="", n=0))
    pytest.fail(f"{len(logs)} runs are all different:\n" + "\n".join(different[:40]), False)


def complaints(result: qemu.Result, pattern: re.Pattern[str]) -> list[str]:
    """Returns the lines that match the pattern; [] if the kernel's verdict has no complaint."""
    verdict = result.verdict
    if verdict and not (verdict.warnings or verdict.bugs or verdict.panic):
        return []
    return [line for line in result.log.splitlines() if pattern.search(line)]


def cpio_entry(name: str, mode: int, data: bytes = b"") -> bytes:
    """Returns one file of an archive in the newc format. The name is not checked."""
    path = name.encode() + b"\0"
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0]
    entry = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    entry += bytes(-len(entry) % 4) + data
    return entry + bytes(-len(entry) % 4)


def script_image(directory: Path, script: str, programs: tuple[str, ...] = ()) -> Path:
    """
    Makes an initramfs that runs a script in busybox's shell and then powers off. It also contains
    the given programs from tests/user.
    """
    root, image = directory / "root", directory / "script.cpio"
    root.mkdir()
    (root / "command").write_text(script)
    items = [f"--dir=/{name}" for name in ("dev", "proc", "root", "tmp")]
    items += [str(ROOT / "scripts/shell"), str(root), f"--cache={BUILD / 'packages'}"]
    command = [ROOT / "scripts/mkinitramfs", "-o", image, "--busybox", *items]
    command += [BUILD / "user" / name for name in programs]
    subprocess.run(command, check=True)
    return image


def kernel_word(guest: qemu.Guest, kernel: Path, symbol: str) -> int:
    """Reads 8 bytes of a running kernel's memory."""
    nm = subprocess.run(["nm", kernel], check=True, capture_output=True, text=True).stdout
    (addr,) = re.findall(rf"^(\w+) . {symbol}$", nm, re.MULTILINE)
    command = {"command-line": f"x/1gx 0x{addr}"}
    return int(str(guest.qmp("human-monitor-command", **command)).split()[-1], 16)


class Builds:
    """Build directories by variant. Each is built when it is first needed."""

    def __init__(self) -> None:
        self._done: set[Path] = set()
        self._images: dict[tuple[str, ...], Path] = {}
        self._image_dir = tempfile.TemporaryDirectory(prefix="images-")

    def directory(self, variant: str | None) -> Path:
        return BUILD if variant is None else BUILD / "variants" / variant

    def _make(self, target: Path, *arguments: str, directory: Path | None = None) -> Path:
        """Makes the target once a session: a make with nothing to do takes 0.2 s of CPU time."""
        if target not in self._done:
            build = os.path.relpath(directory or target.parent, ROOT)
            with locked(BUILD / "test-locks" / build.replace("/", "_")):
                make(f"BUILD={build}", *arguments, os.path.relpath(target, ROOT))
            self._done.add(target)
        return target

    def kernel(self, variant: str | None = None) -> Path:
        """Builds a variant in arch/x86/variants; `llvm` is the default kernel, by clang."""
        target = self.directory(variant) / "vmlinux"
        if variant is None:
            return self._make(target)
        which = "LLVM=1" if variant == "llvm" else f"CONFIG={variant}"
        less = ["debug-info=-g0", *([LESS] if variant in LESS_OPTIMIZED else [])]
        return self._make(target, which, *less)

    def tools(self, *names: str) -> None:
        """Builds tools of tests/accuracy/."""
        for name in names:
            self._make(BUILD / "accuracy" / name, directory=BUILD)

    def initrd(self, name: str | Path = "tests.cpio") -> Path:
        """Builds one of the Makefile's images, given its name. A path is returned as it is."""
        return name if isinstance(name, Path) else self._make(BUILD / name)

    def image(self, text: str) -> Path:
        """
        Makes an initramfs with the programs of tests/ that the text names, and what else is in
        tests.cpio. To unpack all of them would take half of the time of a short boot.
        """
        for name in ("tests.cpio", "diagnosis.cpio"):
            self.initrd(name)
        words = set(re.split(r"[^\w.-]+", text))
        names = tuple(word for word in sorted(words) if word and (BUILD / "user" / word).is_file())
        if names not in self._images:
            path = Path(self._image_dir.name, f"{len(self._images)}.cpio")
            items = [*(BUILD / "user" / name for name in names), f"/data/={BUILD / 'data/small'}"]
            assert not mkinitramfs.main([*map(str, ["-o", path, *items]), "--dir=/tmp"])
            self._images[names] = path
        return self._images[names]


class Booter:
    """Boots kernels for one test and keeps their logs."""

    def __init__(self, builds: Builds, name: str):
        self.builds = builds
        self.name = re.sub(r"[^\w.-]+", "_", name).strip("_")
        self.nr_runs = 0

    def options(
        self,
        program: str | None,
        *args: object,
        smp: int = 1,
        variant: str | None = None,
        append: str = "",
        initrd: str | Path | None = NAMED,
        icount: bool = False,
        one_thread: bool = False,
        mem: str = "512M",
        timeout: float = RUN_TIMEOUT_S,
        silence: float = 120.0,
    ) -> qemu.Options:
        """
        one_thread: QEMU runs the CPUs in turn, without icount. CPUs that wait for others cost the
        host nothing, but fewer moments are found at which two of them collide.
        """
        if program:
            append = f"{append} init=/bin/{program}".strip()
        if args:
            append += " -- " + " ".join(map(str, args))
        if initrd == NAMED:
            initrd = self.builds.image(append)
        return qemu.Options(
            kernel=self.builds.kernel(variant),
            initrd=self.builds.initrd(initrd) if initrd else None,
            smp=smp,
            append=append,
            icount=icount,
            accel="tcg,thread=single" if one_thread else "tcg",
            mem=mem,
            timeout=timeout,
            silence=silence,
        )

    def save(self, log: str) -> Path:
        self.nr_runs += 1
        path = BUILD / "test-logs" / f"{self.name}.{self.nr_runs}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(log)
        return path

    def finish(self, result: qemu.Result, ok: bool, check: bool) -> qemu.Result:
        path = self.save(result.log)
        if ok and not result.ok:
            pytest.fail(f"{result.error}; {path}:\n{result.tail()}", False)
        if check:
            bad = complaints(result, BAD if ok else WARNING)
            bad += report.check_log(result.log)
            if bad:
                pytest.fail("\n".join([f"{path}:", *bad]), False)
        return result

    def __call__(
        self,
        program: str | None = "hello",
        *args: object,
        ok: bool = True,
        check: bool = True,
        **options,
    ) -> qemu.Result:
        """
        Runs the program as init. ok: the run must succeed. check: the kernel must not warn, and
        its reports must be right.
        """
        result = qemu.run(self.options(program, *args, **options))
        return self.finish(result, ok, check)

    @contextmanager
    def start(self, program: str, *args: object, **kw) -> Iterator[qemu.Guest]:
        """Starts a guest to talk to. The caller passes the result of its wait() to finish()."""
        with qemu.Guest(self.options(program, *args, **kw)) as guest:
            try:
                yield guest
            except BaseException:
                self.save(guest.text)
                raise
