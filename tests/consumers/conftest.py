# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures: the export of one run, which all consumers read, and functions that run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.dont_write_bytecode = not sys.pycache_prefix
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import qemu  # noqa: E402
from profiles import export  # noqa: E402

BUILD = ROOT / (os.environ.get("LEGO_BUILD") or os.environ.get("BUILD") or "build")
KERNEL = BUILD / "vmlinux"
PROGRAM = BUILD / "user/wordcount"
HZ = 20_000


def run(*command: object, stdin: bytes | None = None, timeout_s: int = 300) -> str:
    """Runs a consumer and returns its stdout. The consumer must succeed."""
    done = subprocess.run(
        [*map(str, command)], input=stdin, capture_output=True, cwd=ROOT, timeout=timeout_s
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def legoprof(name: str, *arguments: object) -> str:
    """Runs legoprof and returns its stdout. Its only warning may be of a few lost samples."""
    command = [ROOT / "scripts/legoprof", name, *arguments]
    done = subprocess.run([*map(str, command)], capture_output=True, cwd=ROOT)
    few_lost = r"legoprof: .*: \d of \d+ samples were lost \([0-4]\..*\)\n"
    warnings = re.sub(few_lost, "", done.stderr.decode())
    assert done.returncode in (0, 1) and not warnings, warnings
    return done.stdout.decode()


def symbols() -> list[str]:
    return ["--kernel", str(KERNEL), "--program", str(PROGRAM)]


def script_image(directory: Path, script: str, *packages: str) -> Path:
    """Makes an initramfs with Debian's packages that runs a script in busybox's shell."""
    path, image = directory / "script", directory / "image.cpio"
    path.write_text(script)
    command = [ROOT / "scripts/mkinitramfs", "-o", image, f"--cache={BUILD / 'packages'}"]
    command += ["--busybox", *(f"--debian={name}" for name in packages), ROOT / "scripts/shell"]
    directories = "dev", "home/user:1000", "host", "proc", "root", "tmp"
    run(*command, f"/command={path}", *(f"--dir=/{name}" for name in directories))
    return image


def run_sections(
    directory: Path, script: str, *packages: str, kernel: Path = KERNEL, smp: int = 1
) -> dict[str, str]:
    """
    Runs a script whose parts begin with `section NAME`. Returns the output of each part, without
    the kernel's messages but those about filters.
    """
    image = script_image(directory, 'section() { echo "== $1"; }\n' + script, *packages)
    append = "profile.on_exit=none loglevel=4"
    result = qemu.run(qemu.Options(kernel, image, append=append, icount=True, mem="1G", smp=smp))
    assert result.ok, result.tail()
    log = result.log.replace("\r", "")
    text = re.sub(r"^\[ *\d+\.\d+\] (?!event filter).*\n", "", log, flags=re.M)
    parts = re.split(r"^== (\w+)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.fixture(scope="session")
def lego(tmp_path_factory) -> Path:
    """Returns the export of a run of the demo with -icount."""
    path = tmp_path_factory.mktemp("export") / "run.lego"
    append = f"profile.hz={HZ} profile.on_exit=none init=/bin/wordcount -- -t 8 /bin/wordcount"
    options = qemu.Options(
        kernel=KERNEL, initrd=BUILD / "initramfs.cpio", append=append, icount=True, export=path,
        host_paths=[PROGRAM],
    )  # fmt: skip
    result = qemu.run(options)
    assert result.ok, result.tail()
    assert not result.export_error
    return path


@pytest.fixture(scope="session")
def write(lego):
    """Returns a function that converts the export and returns the path of the result."""

    def write_format(name: str, *options: str, source: Path = lego) -> Path:
        path = source.with_name("_".join([source.stem, name, *options]).replace("--", ""))
        legoprof(name, source, "-o", path, *symbols(), *options)
        return path

    return write_format


@pytest.fixture(scope="session")
def nr_stored(lego) -> int:
    nr = sum(row["stored"] for row in export.load(lego).rows("cpus.json"))
    assert nr > 500
    return nr


@pytest.fixture(scope="session")
def perf(lego):
    """Returns a function that runs perf with its own cache of build ids."""
    command = "perf", "--buildid-dir", lego.with_name("buildid")
    for path in KERNEL, PROGRAM:
        run(*command, "buildid-cache", "-a", path)
    return lambda *arguments: run(*command, *arguments)


@pytest.fixture(scope="session")
def npm(tmp_path_factory):
    """Returns a function that installs a package from npm and returns its directory."""

    def install(package: str, version: str) -> Path:
        prefix = tmp_path_factory.mktemp("npm")
        name = f"{package}@{version}"
        run("npm", "install", "--silent", "--no-audit", "--prefix", prefix, name)
        return prefix / "node_modules" / package

    return install
