# SPDX-License-Identifier: BSD-2-Clause
"""
make check-perf finds one instruction anywhere, names it, and finds nothing in what costs nothing.
`make check-perf-proof` makes each change by itself.
"""

import re
import subprocess
from pathlib import Path

import harness
import perf_changes
import pytest


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("perf") / "base.lego"
    harness.make("perf-base", f"BASE={path}")
    return path


@pytest.fixture(scope="module")
def tree(builds, tree_copy) -> Path:
    return tree_copy("check-perf", builds.kernel().parent)


def check(tree: Path, base: Path) -> subprocess.CompletedProcess:
    """Runs what git bisect runs."""
    command = ["scripts/check-perf", base, "-j2", "BUILD=build", "CONFIG="]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True)


def test_equal_kernels(tree, base):
    """Another directory, too, changes nothing."""
    done = harness.make("check-perf", f"BASE={base}", cwd=tree, check=False)
    assert not done.returncode and "no difference\n" in done.stdout, done.stdout + done.stderr
    assert harness.make("check-perf", f"BASE={base}.no", cwd=tree, check=False).returncode


@pytest.mark.parametrize(
    "names", [["3,000 bytes of code", "20,000 bytes of bss"], ["9,000 bytes of code"]]
)
def test_dead_code_and_data(tree, base, names):
    with perf_changes.applied(tree, [perf_changes.DEAD[name] for name in names]):
        done = check(tree, base)
    nm = subprocess.run(["nm", "-n", tree / "build/vmlinux"], capture_output=True, text=True)
    assert re.findall(r" [tT] (\S+)", nm.stdout)[-2:] == ["dead_code", "_etext"]
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "no difference"), done.stdout


@pytest.mark.parametrize("nops", [perf_changes.CALLS, perf_changes.PATHS], ids=["calls", "paths"])
def test_one_instruction(tree, base, nops):
    with perf_changes.applied(tree, list(nops.values())):
        done = check(tree, base)
    assert done.returncode == 1
    assert not {name: found for name, nop in nops.items() if (found := nop.missing(done.stdout))}


def test_three_instructions_in_one_call(tree, base):
    """
    Nothing else is reported: freeing a thread's stack calls madvise, too. The accounts of the
    machine, in which the boot is, explain a difference, but are none.
    """
    nop = perf_changes.call("kernel/mm/mmap.c", "madvise", "madvise")
    nop.text = 3 * perf_changes.NOP
    with perf_changes.applied(tree, [nop]):
        done = harness.make("check-perf", f"BASE={base}", cwd=tree, check=False)
    assert done.returncode == 2
    output = done.stdout[done.stdout.index("operation ") :]
    lines = re.sub(r" \(\+[\d.]+ %\)", "", output).splitlines()
    accounts = [line for line in lines if line.startswith("account ")]
    assert any(line.startswith("account system calls: ") for line in accounts)
    *shown, code = [line for line in lines if line not in accounts]
    assert shown == [
        "operation clone, join: +3 instructions a round, 20 rounds",
        "operation madvise: +3 instructions a round, 200 rounds",
        "sys_madvise: +3 instructions a call, 330 calls",
    ]
    # One more or less can be padding, which is not executed.
    assert code in [f"code that differs: sys_madvise (+{nr})" for nr in (2, 3, 4)]


def test_commits_that_git_bisect_skips(tree, base):
    assert check(tree, base.with_name("none")).returncode == 125
    broken = perf_changes.Dead("\n#error\n")
    with perf_changes.applied(tree, [broken]):
        assert check(tree, base).returncode == 125
