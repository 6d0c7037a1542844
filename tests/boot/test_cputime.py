# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's accounts of CPU time against a plugin that counts instructions by crossing."""

import re
import subprocess
import sys
from dataclasses import dataclass

import pytest
import report
from harness import BUILD, ROOT, make, qemu

sys.path.insert(0, str(ROOT / "tests/accuracy"))
import truth  # noqa: E402

# Instructions outside the two reads of the clock, which count for whom the entry interrupts.
CALL_EDGES = 25
VECTOR_EDGES = 35
ROUNDING = 1000  # times are printed in microseconds; an instruction takes a nanosecond


@dataclass
class Count:
    nr: int  # instructions
    nr_begun: int


def count(builds, tmp_path, append: str, init: str) -> tuple[dict[str, Count], str]:
    """Boots with the plugin. It counts from the first user code to the exit of the first thread."""
    build = BUILD.relative_to(ROOT)
    make(f"BUILD={build}", f"{build}/accuracy/crossings.so")
    kernel, out = builds.kernel(), tmp_path / "crossings"
    addr = truth.Symbols(kernel).addr
    at = {
        "syscall": "syscall_entry",
        "stubs": "entry_stubs",
        "nmi": "nmi_entry",
        "start": "do_execve",
        "stop": "mm_drop_pages",
    }
    words = [f"{word}={addr[name]:x}" for word, name in at.items()] + [f"out={out}"]
    options = qemu.Options(
        kernel=kernel,
        initrd=builds.initrd(),
        icount=True,
        append=f"{append} init={init}",
        extra=["-plugin", ",".join([str(BUILD / "accuracy/crossings.so"), *words])],
        timeout=200,
    )
    result = qemu.run(options)
    assert result.ok, result.error
    rows = [line.split() for line in out.read_text().splitlines()]
    return {name: Count(int(nr), int(nr_begun)) for name, nr, nr_begun in rows}, result.log


@pytest.mark.parametrize(
    "append, vectors",
    [
        ("profile.hz=20000", "irq"),
        ("profile.source=nmi profile.hz=20000", "nmi"),
        ("profile.heatmap=off profile.strace=off profile.waits=off", None),
    ],
)
def test_owners_have_what_a_plugin_counts(builds, tmp_path, append, vectors):
    """
    The parts of the CPU time of a program that makes 100,000 calls are those of the plugin, except
    for the instructions at the edges: they are at most 25 for a call and 35 for other entries.
    """
    init = "/bin/bench-syscall -- 100000 1000"
    counts, log = count(builds, tmp_path, append, init)
    parts = report.parse(log)[-1].summary.cpu_parts
    calls, faults = counts["call"], counts["fault"]
    interrupts = Count(
        counts["irq"].nr + counts["nmi"].nr, counts["irq"].nr_begun + counts["nmi"].nr_begun
    )
    assert calls.nr_begun > 100000
    if vectors:
        assert counts[vectors].nr_begun > 200
    user_ns = 1000 * parts["user code"]
    nr_vectors = interrupts.nr_begun + faults.nr_begun
    most = calls.nr_begun * CALL_EDGES + nr_vectors * VECTOR_EDGES + ROUNDING
    assert 0 <= user_ns - counts["user"].nr + ROUNDING <= most
    edges = (user_ns - counts["user"].nr) / calls.nr_begun
    assert edges > 10, "the test would not see the edges"
    for name, seen in (("interrupts", interrupts), ("page faults", faults)):
        lost = seen.nr - 1000 * parts[name]
        assert -ROUNDING <= lost <= seen.nr_begun * VECTOR_EDGES + ROUNDING, name
    total = sum(each.nr for each in counts.values())
    assert abs(1000 * sum(parts.values()) - total) < total / 200


def instructions(kernel, symbol: str) -> list[str]:
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={symbol}", str(kernel)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s*[0-9a-f]+:\s+(\w+)", text, re.MULTILINE)


@pytest.mark.parametrize(
    "entry, leave, nr_before, most",
    [
        ("syscall_entry", "syscall_entry", 0, CALL_EDGES),
        ("vector_entry", "return_to_user", 3, VECTOR_EDGES),  # behind a stub of up to 3
        ("nmi_entry", "nmi_entry", 0, VECTOR_EDGES),
    ],
)
def test_the_clock_is_read_at_the_edge(builds, entry, leave, nr_before, most):
    """Few instructions lie before the first read of the clock and after the last one."""
    first, last = (instructions(builds.kernel(), symbol) for symbol in (entry, leave))
    before = nr_before + first.index("rdtsc")
    after = last[::-1].index("rdtsc")
    assert 0 < before + after <= most


def test_time_of_the_machine(boot):
    """The owners of all CPUs have all of the time since boot."""
    with boot.start("spin", "-", 1, smp=1, icount=True) as guest:
        guest.expect("^spin: started")
        guest.sysrq("p")
        guest.expect("end of report")
        guest.send("\n")
        log = boot.finish(guest.wait(), ok=True, check=True).log
    (line,) = re.findall(r"time of 1 CPU: (\d+\.\d+) s = (.*)", log)
    parts = dict(re.findall(r"([a-zA-Z ]+?) (\d+\.\d+)", line[1].replace(" + ", "+")))
    assert abs(sum(map(float, parts.values())) - float(line[0])) < 1e-6
    assert {"user code", "system calls", "idle", "kernel threads"} <= set(parts)
