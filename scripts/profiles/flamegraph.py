# SPDX-License-Identifier: BSD-2-Clause
"""Draws flame graphs with flamegraph.pl (github.com/brendangregg/FlameGraph)."""

from __future__ import annotations

import html
import shutil
import subprocess
from collections import Counter

from profiles.export import ExportError, printable
from profiles.stacks import Names, Stacks
from profiles.text import count

DEBIAN = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
# flamegraph.pl gives these characters of a name a meaning, or replaces them. So characters for
# private use, which no printable name has, stand for them until the picture is drawn.
LESS, GREATER, SEMICOLON, BLANK = "\ue000", "\ue001", "\ue002", "\ue003"
ESCAPE = str.maketrans({"<": LESS, ">": GREATER, ";": SEMICOLON, " ": BLANK})
UNESCAPE = str.maketrans({LESS: "&lt;", GREATER: "&gt;", SEMICOLON: ";", BLANK: " "})


def find() -> str:
    path = shutil.which("flamegraph.pl") or shutil.which(DEBIAN)
    if not path:
        raise ExportError("no flamegraph.pl: apt-get install libdevel-nytprof-perl")
    return path


def line(chain: tuple[str, ...], *weights: object) -> str:
    """Returns a folded stack, with one weight, or two to compare."""
    stack = ";".join(printable(frame).translate(ESCAPE) for frame in chain)
    return " ".join([stack, *map(str, weights)]) + "\n"


def two_columns(old: Counter[tuple[str, ...]], new: Counter[tuple[str, ...]]) -> str:
    """
    Returns folded stacks with their weights before and after, as difffolded.pl -n does. The old run
    is scaled to the total of the new one, because runs differ in length.
    """
    scale = new.total() / old.total() if old.total() else 1
    return "".join(
        line(chain, f"{old[chain] * scale:.2f}", new[chain])
        for chain in sorted(old.keys() | new.keys())
    )


def reversed_count(counts: Counter[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
    """Returns stacks that begin with the innermost function, and end with the task."""
    return Counter({chain[::-1]: nr for chain, nr in counts.items()})


def draw(
    runs: list[tuple[Stacks, Names]], title: str, wakers: bool, is_reversed: bool = False
) -> bytes:
    """Returns SVG of the last run. If there are two, red means that it has more than the first."""
    counts = [count(stacks, names, wakers) for stacks, names in runs]
    counts = list(map(reversed_count, counts)) if is_reversed else counts
    if not counts[-1].total():
        raise ExportError(f"{title}: there are no stacks to draw")
    if len(counts) == 2:
        data = two_columns(*counts)
    else:
        data = "".join(line(chain, nr) for chain, nr in counts[0].items())
    unit, total = runs[0][0].unit, counts[-1].total()
    is_time = unit == "nanoseconds"
    title += f": {total / 1e9:.6f} s of waits" if is_time else f": {total} {unit}"
    title = ", ".join([title, *filter(None, (str(stacks.losses) for stacks, _ in runs))])
    title = html.escape(printable(title), quote=False)  # flamegraph.pl escapes only the frames
    script = find()
    # -CSA: texts are UTF-8, so that names are not cut in the middle of a character.
    command = ["perl", "-CSA", script, "--title", title, "--width", "1600", "--hash"]
    command += ["--countname", "ns" if is_time else unit]
    colors = {"nanoseconds": "io", "bytes": "mem"}.get(unit)
    command += ["--colors", colors] if colors else []
    words = [word.encode(errors="surrogateescape") for word in command]
    done = subprocess.run(words, input=data.encode(), capture_output=True)
    if done.returncode or done.stderr:
        raise ExportError(f"{script}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode().translate(UNESCAPE).encode()
