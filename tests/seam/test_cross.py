# SPDX-License-Identifier: BSD-2-Clause
"""
All of kernel/profile/ compiles for aarch64 and riscv64, with Debian's cross compilers, and calls
no function of libgcc, which kernels do not have. `make deps test-ports` installs the compilers.
"""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import test_seam

# The options that porting.md names, besides those that both have.
OPTIONS = {
    "aarch64": ["-mgeneral-regs-only", "-mno-outline-atomics"],
    "riscv64": ["-mcmodel=medany"],
}


def tool(arch: str, name: str) -> str:
    return f"{arch}-linux-gnu-{name}"


def undefined(arch: str, options: list[str], sources, directory) -> set[str]:
    """Compiles and links sources to one object. Returns the names that it wants from elsewhere."""
    flags = test_seam.flags(tool(arch, "gcc"), "everything", general=False)
    objects = [directory / f"{number}.o" for number in range(len(sources))]
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(test_seam.run, *flags, *options, "-c", source, "-o", to)
            for source, to in zip(sources, objects)
        ]
        for job in jobs:
            job.result()
    test_seam.run(tool(arch, "ld"), "-r", "-o", directory / "all.o", *objects)
    out = test_seam.run(tool(arch, "nm"), "-u", directory / "all.o")
    return set(re.findall(r" [Uw] (\w+)", out))


@pytest.mark.parametrize("arch", OPTIONS)
def test_needs_no_libgcc(arch, tmp_path):
    names = undefined(arch, OPTIONS[arch], test_seam.sources("everything"), tmp_path)
    assert names <= test_seam.supplied()
    assert {"read_counter", "__start_profilers"} <= names


@pytest.mark.parametrize("level", ["points", "all"])
@pytest.mark.parametrize("arch", OPTIONS)
def test_batteries(arch, level, tmp_path):
    test_seam.build_bare(level, tmp_path, tool(arch, ""), " ".join(OPTIONS[arch]))


@pytest.mark.parametrize(
    "arch, text, name",
    [
        ("aarch64", "int f(int *p) { return __atomic_fetch_add(p, 1, 5); }", "__aarch64_ldadd4_"),
        ("riscv64", "int f(_Bool *p) { return __atomic_exchange_n(p, 1, 5); }", "__atomic_exch"),
        ("riscv64", "int f(long x) { return __builtin_clzl(x); }", "__clzdi2"),
    ],
)
def test_control(arch, text, name, tmp_path):
    """Compilers do call libgcc for what kernel/profile/ avoids."""
    source = tmp_path / "control.c"
    source.write_text(text)
    command = [tool(arch, "gcc"), "-O2", "-ffreestanding", "-c", source, "-o", tmp_path / "o"]
    test_seam.run(*command)
    assert f" U {name}" in test_seam.run(tool(arch, "nm"), "-u", tmp_path / "o")


@pytest.mark.parametrize("arch", OPTIONS)
def test_orders_stores(arch, tmp_path):
    """A sequence count has a fence on both sides, where x86 needs no instruction."""
    source = tmp_path / "order.c"
    source.write_text(
        f'#include "{test_seam.PROFILE}/seq.h"\n'
        "void change(u64 *seq, u64 *word) { seq_begin(seq); *word = 1; seq_end(seq); }\n"
    )
    flags = test_seam.flags(tool(arch, "gcc"), "points", general=False)
    test_seam.run(*flags, *OPTIONS[arch], "-S", source, "-o", tmp_path / "s")
    code = (tmp_path / "s").read_text()
    fence = {"aarch64": r"dmb\s+ish", "riscv64": r"fence"}[arch]
    assert re.search(rf"{fence}.*\n(.*\n)*.*{fence}", code), code


def test_32_bits_are_refused():
    """The first error, and the only one that kernel/profile/ writes itself, says so."""
    command = test_seam.flags("gcc", "points")
    done = subprocess.run(
        [*map(str, command), "-m32", "-fsyntax-only", test_seam.PROFILE / "print.c"],
        capture_output=True,
        text=True,
    )
    errors = re.findall(r"error: (.*)", done.stderr)
    assert done.returncode and "32-bit kernels are not supported" in errors[0]
    assert len([error for error in errors if error.startswith("#error")]) == 1
