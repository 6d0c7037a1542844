# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the boot tests. A test reads like this:

    def test_hello(boot):
        result = boot("hello", "a", "b", smp=2)
        assert "[a] [b]" in result.log

boot() checks that the kernel powered off with status 0, that nothing warned, and that the
arithmetic of every report in the log is right. Each console log stays in $BUILD/test-logs/ under
the test's name.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import BUILD, ROOT, Booter, Builds, load_script  # noqa: E402

def stop_ignoring_signals() -> None:
    """
    Restores the default actions. With nohup, or in a shell's background, some signals are ignored,
    and programs that run on the host for comparison would inherit that.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


stop_ignoring_signals()

# The tests of each of these files share a slow fixture, so one worker of xdist runs all of them.
ONE_WORKER = ("test_build.py", "test_debian.py", "test_off.py", "test_tables.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return file if file.endswith(ONE_WORKER) else nodeid

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def builds() -> Builds:
    return Builds()


@pytest.fixture
def boot(builds: Builds, request: pytest.FixtureRequest) -> Booter:
    return Booter(builds, request.node.name)


@pytest.fixture(scope="session")
def strace_compare():
    return load_script("strace-compare")


@pytest.fixture(scope="session")
def tree_copy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns a function that copies the sources, without build output and history."""

    def copy(name: str) -> Path:
        target = tmp_path_factory.mktemp(name) / "tree"
        target.mkdir()
        skip = ["--exclude=./.git", "--exclude=./build", f"--exclude={BUILD}"]
        pack = subprocess.Popen(["tar", "-C", ROOT, *skip, "-c", "."], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-C", target, "-x"], stdin=pack.stdout, check=True)
        if pack.wait():
            pytest.fail("cannot copy the tree", False)
        return target

    return copy
