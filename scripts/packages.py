# SPDX-License-Identifier: BSD-2-Clause
"""Finds the files and the dependencies of Debian packages, for scripts/mkinitramfs.

Files of an installed package are the host's; any other package is downloaded and unpacked into a
cache directory. Nothing is installed, and no script of a package runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?")
# Documentation is not needed in the image.
LEFT_OUT = re.compile(r"/usr/share/(doc|man|info|locale|lintian|bug|initramfs-tools)(/|$)")
# Dependencies that only scripts of packages call.
NOT_FOLLOWED = frozenset(("dpkg", "debconf", "install-info", "ucf"))

# The alternatives of one dependency, the first one preferred.
Group = list[str]


class Error(Exception):
    """A problem that the user must fix; the message is one line."""


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    # The output is parsed, so its words must not be translated.
    env = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Error(f"packages need {command[0]}, which is not installed") from error


def installed_files(package: str) -> list[Path] | None:
    """Returns the files of an installed package; None if it is not installed."""
    state = run("dpkg-query", "-W", "-f", "${db:Status-Status}", package)
    if state.returncode or state.stdout != "installed":
        return None
    listed = run("dpkg-query", "-L", package).stdout.splitlines()
    # Lines that are not paths report diversions.
    return [Path(line) for line in listed if line.startswith("/") and line != "/."]


def downloaded_root(package: str, cache: Path) -> Path:
    """Returns a directory with the files of a package to download; downloads it once."""
    root = cache / package
    if root.is_dir():
        return root
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=cache) as name:
        fetched = Path(name)
        done = run("apt-get", "download", "-q", package, cwd=fetched)
        archives = sorted(fetched.glob("*.deb"))
        if done.returncode or not archives:
            lines = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            why = f" ({lines[0].removeprefix('E: ')})" if lines else ""
            raise Error(f"package {package} is not installed and cannot be downloaded{why}")
        unpacked = fetched / "root"
        done = run("dpkg-deb", "-x", str(archives[-1]), str(unpacked))
        if done.returncode:
            raise Error(f"package {package}: {done.stderr.strip()}")
        if not root.is_dir():
            unpacked.rename(root)
    return root


def package_files(package: str, cache: Path) -> list[tuple[Path, Path]]:
    """Returns a package's files, links and empty directories: their paths there and here."""
    if not PACKAGE_NAME.fullmatch(package):
        raise Error(f"{package}: not a valid package name")
    paths = installed_files(package)
    root = Path("/")
    if paths is None:
        root = downloaded_root(package, cache)
        paths = [Path("/") / path.relative_to(root) for path in sorted(root.rglob("*"))]
    # Only empty directories: parents are made anyway. On the host /bin may be a link.
    left_out = {parent for path in paths for parent in path.parents}
    left_out |= {path for path in paths if path.parent == Path("/") and path.is_symlink()}
    wanted = (path for path in paths if path not in left_out and not LEFT_OUT.match(str(path)))
    return [(path, root / path.relative_to("/")) for path in wanted]


def read_dependencies(text: str) -> dict[str, list[Group]]:
    """
    Returns the dependencies of each package, from the output of `apt-cache depends --recurse`. If
    several packages provide a name, the lines below the name list them.
    """
    graph: dict[str, list[Group]] = {}
    groups: list[Group] = []
    goes_on = False  # the next line has another alternative
    for line in text.splitlines():
        if match := re.match(r" ([ |])(?:Pre)?Depends: (\S+)$", line):
            if not goes_on:
                groups.append([])
            if not match[2].startswith("<"):
                groups[-1].append(match[2])
            goes_on = match[1] == "|"
        elif line.startswith("    "):
            groups[-1].append(line.strip())
        elif not line.startswith(" "):
            groups = graph.setdefault(line, [])
            goes_on = False
    return graph


def installed_packages() -> set[str]:
    listed = run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n").stdout
    return {line.split()[0] for line in listed.splitlines() if line.endswith(" installed")}


def with_dependencies(packages: list[str]) -> list[str]:
    """
    Returns the packages and their dependencies, without recommendations. Of alternatives, takes the
    one that is wanted anyway, else an installed one, else the first.
    """
    command = ["apt-cache", "depends", "--recurse"]
    command += [f"--no-{kind}" for kind in ("recommends", "suggests", "enhances")]
    command += [f"--no-{kind}" for kind in ("conflicts", "breaks", "replaces")]
    graph = read_dependencies(run(*command, *packages).stdout) if packages else {}
    installed = installed_packages() if packages else set()
    chosen = list(dict.fromkeys(packages))
    for package in chosen:  # grows during the loop
        if not PACKAGE_NAME.fullmatch(package) or package not in graph:
            raise Error(
                f"no Debian package is called {package}: see apt-cache search; "
                "if the list of packages is old or missing, run apt-get update"
            )
        for group in graph[package]:
            if any(name in chosen or name in NOT_FOLLOWED for name in group):
                continue
            if not group:
                raise Error(f"package {package}: no package provides one of its dependencies")
            chosen.append(next((name for name in group if name in installed), group[0]))
    return chosen
