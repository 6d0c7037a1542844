# SPDX-License-Identifier: BSD-2-Clause
"""Draws flame graphs with flamegraph.pl (github.com/brendangregg/FlameGraph)."""

from __future__ import annotations

import html
import shutil
import subprocess
from collections import Counter

from profiles.export import ExportError
from profiles.stacks import Names, Stacks
from profiles.text import count, fold

DEBIAN = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"


def find() -> str:
    path = shutil.which("flamegraph.pl") or shutil.which(DEBIAN)
    if not path:
        raise ExportError("no flamegraph.pl: apt-get install libdevel-nytprof-perl")
    return path


def two_columns(old: Counter[tuple[str, ...]], new: Counter[tuple[str, ...]]) -> bytes:
    """
    Returns folded stacks with their weights before and after, as difffolded.pl -n does. The old run
    is scaled to the total of the new one, because runs differ in length.
    """
    scale = new.total() / old.total() if old.total() else 1
    lines = [
        f"{fold(chain)} {old[chain] * scale:.2f} {new[chain]}\n"
        for chain in sorted(old.keys() | new.keys())
    ]
    return "".join(lines).encode()


def draw(runs: list[tuple[Stacks, Names]], title: str, wakers: bool) -> bytes:
    """Returns SVG of the last run. If there are two, red means that it has more than the first."""
    counts = [count(stacks, names, wakers) for stacks, names in runs]
    if not counts[-1].total():
        raise ExportError(f"{title}: there are no stacks to draw")
    if len(counts) == 2:
        data = two_columns(*counts)
    else:
        data = "".join(f"{fold(chain)} {nr}\n" for chain, nr in counts[0].items()).encode()
    is_samples, total = runs[0][0].unit == "samples", counts[-1].total()
    unit = "samples" if is_samples else "ns"
    title += f": {total} samples" if is_samples else f": {total / 1e9:.6f} s of waits"
    title = html.escape(title, quote=False)  # flamegraph.pl escapes only the frames
    command = [find(), "--title", title, "--countname", unit, "--width", "1600", "--hash"]
    command += [] if is_samples else ["--colors", "io"]
    done = subprocess.run(["perl", *command], input=data, capture_output=True)
    if done.returncode or done.stderr:
        raise ExportError(f"{command[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
