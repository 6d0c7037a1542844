# SPDX-License-Identifier: BSD-2-Clause
"""Compares the user's part of call chains with the truth, for programs of many kinds.

The plugin (user_calls.c) follows all calls and returns of a program. At each sample it records the
return addresses of the functions that are active. A sample is right and whole if the kernel's chain
has exactly these, to the thread's first function; or to the limit of depth, if it says so. It is
right, but ends early, if the chain has a part of them, the innermost ones. `make accuracy` writes
the table into results/user_chains.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

sys.dont_write_bytecode = not sys.pycache_prefix
sys.path.insert(0, str(Path(__file__).resolve().parent))
from truth import BUILD, ROOT, AccuracyError, Symbols  # noqa: E402

import qemu  # noqa: E402
from profiles import export, stacks  # noqa: E402

PROGRAMS = Path(__file__).resolve().parent / "programs"
DEPTH = 127
LEAST = 0.95  # of the samples must be right and whole where the files tell enough
AT = {
    "sample": "sample_take",
    "switch": "switch_stack",
    "thread": "thread_entry",
    "handler": "profile_syscall_handler",
    "sigreturn": "profile_syscall_sigreturn",
    "exit": "profile_process_exit",
}
C = [os.environ.get("USERCC", "gcc"), "-O2"]
CPP = [os.environ.get("USERCXX", "g++"), "-O2"]
MUSL = [os.environ.get("MUSLCC", "musl-gcc"), "-O2", "-static"]
GO = ["go", "build"]
GO_TOPS = ("runtime.mstart.abi0", "runtime.mcall")
RUST = ["rustc", "-O"]


@dataclass(frozen=True)
class Kind:
    source: str
    compiler: tuple[str, ...] = ()
    words: str = ""  # arguments
    least: float = LEAST
    lost: str = ""  # the function that goes on with another stack
    tops: tuple[str, ...] = ()  # functions that have no caller on their stack
    hz: int = 50_000

    @property
    def is_possible(self) -> bool:
        """Returns whether the compiler is on this machine."""
        return not self.compiler or shutil.which(self.compiler[0]) is not None


STATIC = (*C, "-static", "-pthread")
KINDS = {
    "static": Kind("calls.c", STATIC),
    "static, without a build id": Kind("calls.c", (*STATIC, "-Wl,--build-id=none")),
    "static-pie": Kind("calls.c", (*C, "-static-pie", "-fPIE", "-pthread")),
    "dynamic": Kind("calls.c", (*C, "-no-pie", "-pthread")),
    "PIE": Kind("calls.c", (*C, "-pie", "-fPIE", "-pthread")),
    "stripped PIE": Kind("calls.c", (*C, "-pie", "-fPIE", "-pthread", "-s")),
    "frame pointers": Kind("calls.c", (*C, "-fno-omit-frame-pointer", "-pie", "-fPIE", "-pthread")),
    "signal handlers": Kind("calls.c", (*C, "-pie", "-fPIE"), "signals"),
    "handlers on sigaltstack": Kind("calls.c", (*C, "-pie", "-fPIE"), "altstack"),
    "static, handlers on sigaltstack": Kind("calls.c", STATIC, "altstack"),
    "threads": Kind("calls.c", (*C, "-pie", "-fPIE", "-pthread"), "threads"),
    "C++, exceptions": Kind("exceptions.cpp", tuple(CPP)),
    "C++, static": Kind("exceptions.cpp", (*CPP, "-static")),
    # Go's runtime has a stack for itself. Its traces end at these functions (TOPFRAME and SPWRITE
    # in runtime/traceback.go), and so does the truth. It does not at systemstack and morestack.
    "Go": Kind("calls.go", tuple(GO), lost="runtime.gogo", tops=GO_TOPS),
    "Rust": Kind("calls.rs", tuple(RUST)),
    "Python": Kind("calls.py", hz=10_000),
    # Debian's musl has neither unwind information nor frame pointers.
    "musl": Kind("calls.c", tuple(MUSL), least=0),
}
SHORT = ("static", "PIE", "handlers on sigaltstack")  # for a boot test

Chain = tuple[str, ...]  # return addresses, innermost first; * and ? as in user_calls.c


@dataclass
class Result:
    nr: int  # samples with a user's part, by the plugin
    nr_whole: int = 0  # whose chains are right and whole
    nr_part: int = 0  # whose chains are right, but end early
    wrong: list[tuple[Chain, int]] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.nr_whole / self.nr


def build(kind: Kind, folder: Path) -> tuple[list[str], str]:
    """Returns what the image has, and the command line's words for init."""
    source = PROGRAMS / kind.source
    if not kind.compiler:
        python = os.path.realpath("/usr/bin/python3")
        name = Path(python).name
        packages = [f"--package=lib{name}-{part}" for part in ("minimal", "stdlib")]
        items = [*packages, f"--program={python}", f"/data/{source.name}={source}"]
        return items, f"init=/bin/{name} -- -S -E /data/{source.name}"
    program = folder / "calls"
    env = {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": f"{folder}/cache"}
    subprocess.run([*kind.compiler, "-o", program, source], check=True, env=env, cwd=folder)
    return ["--program", str(program)], f"init=/bin/calls -- {kind.words}"


def symbol_address(program: Path, name: str) -> int:
    done = subprocess.run(["nm", program], capture_output=True, text=True, check=True)
    return next(int(line.split()[0], 16) for line in done.stdout.splitlines() if f" {name}" in line)


def symbol_range(program: Path, name: str) -> range:
    """Returns the return addresses of a function's calls."""
    done = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.endswith(f" {name}"))
    start, size = (int(word, 16) for word in line.split()[:2])
    return range(start + 1, start + size + 1)


def cut(truth: Counter[Chain], tops: list[range]) -> Counter[Chain]:
    """Lets chains end at the first function that has no caller on its stack."""
    found: Counter[Chain] = Counter()
    for chain, nr in truth.items():
        known = ((i, int(to, 16)) for i, to in enumerate(chain) if to not in "*?")
        ends = (i for i, to in known if any(to in top for top in tops))
        found[chain[: next(ends, len(chain)) + 1]] += nr
    return found


def matches(chain: Chain, true: Chain) -> bool:
    """Returns whether a chain of the kernel is the plugin's, which may have unknown addresses."""
    if true[-1:] == ("?",):
        known = true[:-1]
        return len(chain) >= len(true) and matches(chain[: len(known)], known)
    return len(chain) == len(true) and all(b in ("*", a) for a, b in zip(chain, true))


def take(chain: Chain, nr: int, is_part: bool, truth: Counter[Chain]) -> int:
    """Takes the samples that match out of the truth, and returns how many."""
    found = [chain] if not is_part and chain in truth else list(truth)
    nr_taken = 0
    for true in found:
        if matches(chain, true[: len(chain)] if is_part else true):
            now = min(nr - nr_taken, truth[true])
            truth[true] -= now
            nr_taken += now
    return nr_taken


def compare(samples: Iterable[stacks.Stack], truth: Counter[Chain]) -> Result:
    result = Result(sum(truth.values()))
    sampled: Counter[tuple[bool, Chain]] = Counter()
    for one in samples:
        if one.user:
            chain = tuple(f"{to:x}" for to in one.user[1:])
            sampled["depth" in (one.truncated or ""), chain] += one.weight
    for (is_cut, chain), nr in sampled.items():
        nr_whole = take(chain, nr, is_cut, truth)
        result.nr_whole += nr_whole
        if nr_whole < nr:
            result.wrong.append((chain, nr - nr_whole))
    rest, result.wrong = result.wrong, []
    for chain, nr in sorted(rest, key=lambda item: -len(item[0])):
        nr_part = take(chain, nr, True, truth)
        result.nr_part += nr_part
        if nr_part < nr:
            result.wrong.append((chain, nr - nr_part))
    return result


def read_truth(path: Path) -> Counter[Chain]:
    truth: Counter[Chain] = Counter()
    for line in path.read_text().splitlines():
        nr, *words = line.split()
        truth[tuple(words)] += int(nr)
    return truth


def observe(kind: Kind, kernel: Path, append: str = "") -> Result:
    symbols = Symbols(kernel)
    with tempfile.TemporaryDirectory(prefix="accuracy-") as name:
        folder = Path(name)
        items, init = build(kind, folder)
        pack = [str(ROOT / "scripts/mkinitramfs"), "-o", str(folder / "image"), *items]
        subprocess.run([sys.executable, *pack], check=True)
        words = [f"{word}={symbols.addr[at]:#x}" for word, at in AT.items()]
        if kind.lost:
            words.append(f"lost={symbol_address(folder / 'calls', kind.lost):#x}")
        plugin = ",".join([str(BUILD / "accuracy/user_calls.so"), *words, f"out={folder}/counted"])
        options = qemu.Options(
            kernel=kernel,
            initrd=folder / "image",
            icount=True,
            smp=1,
            append=f"profile.source=nmi profile.hz={kind.hz} profile.depth={DEPTH} "
            f"profile.samples=2097152 profile.export=8388608 profile.on_exit=none {append} {init}",
            extra=["-plugin", plugin],
            export=folder / "export",
            timeout=400,
        )
        with qemu.Guest(options) as guest:
            result = guest.wait()
        if not result.ok:
            raise AccuracyError(f"{result.error}\n{result.tail()}")
        rows = export.load(folder / "export").rows("samples.json")
        truth = read_truth(folder / "counted")
        tops = [symbol_range(folder / "calls", top) for top in kind.tops]
        return compare(map(stacks.sample, rows), cut(truth, tops))


def bad(results: dict[str, Result]) -> list[str]:
    return [
        f"user chains of {name}: {result.share:.1%} are right and whole: {result.wrong}"
        for name, result in results.items()
        if result.share < KINDS[name].least
    ]


def render(results: dict[str, Result]) -> str:
    lines = ["", "| program | samples | right and whole | right, but end early | wrong |"]
    lines.append("|---|---|---|---|---|")
    for name, one in results.items():
        nr_wrong = sum(nr for _, nr in one.wrong)
        lines.append(
            f"| {name} | {one.nr} | {one.share:.1%} | {one.nr_part / one.nr:.1%} "
            f"| {nr_wrong / one.nr:.1%} |"
        )
    left_out = [name for name, kind in KINDS.items() if name not in results]
    if left_out:
        lines += ["", f"Not measured, for want of a compiler: {', '.join(left_out)}."]
    return "\n".join(lines) + "\n\n"
