# SPDX-License-Identifier: BSD-2-Clause
"""
Names and callers of a Rust program, as rustc builds it: PIE, without frame pointers. Debian's rustc
writes no unwind information for functions that cannot panic; they have no callers.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

import qemu
from conftest import HZ, KERNEL, ROOT, legoprof, run

SOURCE = ROOT / "tests/accuracy/programs/calls.rs"


@pytest.fixture(scope="module")
def stacks(tmp_path_factory) -> Counter[tuple[str, ...]]:
    """Returns the samples by their names, the outermost first."""
    directory = tmp_path_factory.mktemp("rust")
    run("rustc", "-O", SOURCE, "-o", directory / "calls")
    image = directory / "initramfs.cpio"
    run(ROOT / "scripts/mkinitramfs", "-o", image, "--program", directory / "calls")
    options = qemu.Options(
        kernel=KERNEL,
        initrd=image,
        append=f"profile.hz={HZ} profile.on_exit=none init=/bin/calls",
        icount=True,
        export=directory / "run.lego",
    )
    result = qemu.run(options)
    assert result.ok and not result.export_error, result.tail()
    text = legoprof("folded", options.export)
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("calls;"))
    return Counter({tuple(names.split(";")[1:]): int(nr) for names, nr in rows})


def chains_with(stacks: Counter[tuple[str, ...]], name: str) -> Counter[tuple[str, ...]]:
    return Counter({names: nr for names, nr in stacks.items() if name in names})


def test_functions_and_callers(stacks):
    """main() and a second thread call words(). Chains begin where the C library does."""
    words = chains_with(stacks, "calls::words")
    first = chains_with(words, "calls::main")
    second = words - first
    assert first.total() > 50 and second.total() > 50
    assert all(names[0] == "_start" and "main" in names for names in first)
    assert all(names[0].startswith("clone") for names in second)
    for names in words:
        at = names.index("calls::words")
        # In std::sys_common of Debian's rustc, in std::sys of later ones.
        begin = r"std::sys(_common)?::backtrace::__rust_begin_short_backtrace"
        assert re.fullmatch("calls::main" if names in first else begin, names[at - 1])


def test_no_hashes_and_no_addresses(stacks):
    names = {name for chain in stacks for name in chain}
    assert not [name for name in names if re.search(r"^_ZN|^_R|::h[0-9a-f]{16}$", name)]
    unknown = sum(nr for chain, nr in stacks.items() if chain[-1].startswith("0x"))
    assert unknown <= stacks.total() / 100
