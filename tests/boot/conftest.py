# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the boot tests. A test reads like this:

    def test_hello(boot):
        result = boot("hello", "a", "b", smp=2)
        assert "[a] [b]" in result.log

boot() checks that the kernel powered off with status 0, that nothing warned, and that the
arithmetic of every report in the log is right. Each console log stays in $BUILD/test-logs/ under
the test's name. Tests that run one program each may share a boot: see shared_boot.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

sys.dont_write_bytecode = not sys.pycache_prefix
sys.path.insert(0, str(Path(__file__).resolve().parent))

import shared_boot  # noqa: E402
from harness import BUILD, ROOT, Booter, Builds, make  # noqa: E402


def stop_ignoring_signals() -> None:
    """
    Restores the default actions. With nohup, or in a shell's background, some signals are ignored,
    and programs that run on the host for comparison would inherit that.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


stop_ignoring_signals()

# One worker of xdist runs all tests that use one of these slow fixtures, so it is made once.
SLOW_FIXTURES = ("agreeing", "build_image", "counted", "files", "graph", "log", "none_code", "runs")
SLOW_FIXTURES += ("switched", "traced", "tree")
# These write $BUILD/run.log, so one worker runs them all.
RUN_FILES = ("test_hands", "test_readme", "test_run", "test_session")
# These begin first, so that no long test runs alone at the end.
LONG_FILES = ("test_long_runs", "test_hands", "test_programs", "test_build", "test_variants")
LONG_FILES += ("test_functions", "test_function_tracers", "test_diagnosis", "test_accuracy")


def group_of(item: pytest.Item) -> str | None:
    """Returns a name for tests that one worker must run, or None: see RUN_FILES and shared."""
    file = item.path.stem
    if "shared" in item.fixturenames:
        others = {name: value for name, value in item.callspec.params.items() if name != "program"}
        return "-".join([item.originalname, *map(str, others.values())])
    if file in RUN_FILES:
        return "run.log"
    slow = [name for name in item.fixturenames if name in SLOW_FIXTURES]
    return f"{file}-{slow[0]}" if slow else None


def pytest_collection_modifyitems(config, items):
    order = {name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))
    if hasattr(config, "workerinput"):  # the scheduler knows only names
        for item in items:
            if group := group_of(item):
                item._nodeid += f"@{group}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.rpartition("@")[2]

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def builds() -> Builds:
    return Builds()


@pytest.fixture
def boot(builds: Builds, request: pytest.FixtureRequest) -> Booter:
    return Booter(builds, request.node.name)


@pytest.fixture(scope="session")
def demo(builds: Builds, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Runs the demo. Returns the log and the export of `make run EXPORT=run.lego`."""
    builds.kernel()
    builds.initrd("initramfs.cpio")
    path = tmp_path_factory.mktemp("demo") / "run.lego"
    make(f"BUILD={os.path.relpath(BUILD, ROOT)}", "run", f"EXPORT={path}")
    return (BUILD / "run.log").read_text(), path


@pytest.fixture(scope="session")
def shared_sections() -> dict[str, dict[str, shared_boot.Section]]:
    return {}


@pytest.fixture
def shared(builds: Builds, request: pytest.FixtureRequest, shared_sections):
    """
    Like boot(), for the test's parameter `program`: the first of the selected cases runs those of
    all in one boot. Each case gets its own part of the log.
    """

    def run(**options) -> shared_boot.Section:
        node, name = request.node, group_of(request.node)
        if name not in shared_sections:
            cases = [item for item in request.session.items if group_of(item) == name]
            words = [item.callspec.params["program"] for item in cases]
            shared_sections[name] = shared_boot.run(Booter(builds, name), words, **options)
        section = shared_sections[name][node.callspec.params["program"]]
        if bad := section.complaints():
            logs = f"{BUILD}/test-logs/{name}.*.log:"
            tail = section.log.splitlines()[-40:]
            alone = f"alone: make test-boot PYTEST_ARGS='-k {node.name}'"
            pytest.fail("\n".join([logs, *bad, *tail, alone]), False)
        return section

    return run


@pytest.fixture(scope="session")
def tree_copy(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """
    Returns a function that copies the sources, without build output and history. built: a directory
    whose kernel is copied, too, so a make in the copy compiles what a test has changed.
    """

    def copy(name: str, built: Path | None = None) -> Path:
        target = tmp_path_factory.mktemp(name) / "tree"
        target.mkdir()
        skip = ["--exclude=./.git", "--exclude=./build", f"--exclude={BUILD}"]
        pack = subprocess.Popen(["tar", "-C", ROOT, *skip, "-c", "."], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-C", target, "-x"], stdin=pack.stdout, check=True)
        if pack.wait():
            pytest.fail("cannot copy the tree", False)
        if built:
            parts = ["arch", "include", "kernel", "vmlinux", *(p.name for p in built.glob(".*"))]
            place = target / built.relative_to(ROOT)
            place.mkdir(parents=True)
            subprocess.run(["cp", "-a", *parts, place], cwd=built, check=True)
        return target

    return copy
