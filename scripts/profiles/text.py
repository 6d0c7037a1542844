# SPDX-License-Identifier: BSD-2-Clause
"""Writes stacks as text: folded, for speedscope, for callgrind's viewers, as SystemTap and bcc."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

from profiles import progress
from profiles.export import printable
from profiles.images import number
from profiles.stacks import Names, Place, Stacks, call_sites, frames, task_name, waker_frames


def count(stacks: Stacks, names: Names, wakers: bool = False) -> Counter[tuple[str, ...]]:
    """Adds up stacks that have the same names."""
    found: Counter[tuple[str, ...]] = Counter()
    for stack in progress.over(stacks.stacks, "naming functions"):
        chain = frames(stack, names) + (waker_frames(stack, names) if wakers else [])
        found[tuple(chain)] += stack.weight
    return found


def escape(name: str, special: str) -> str:
    """
    Returns a name without control characters, and with \\x and its code for each match of the
    pattern `special`. Backslashes are escaped, too, so that names stay apart.
    """
    special = rf"\\|{special}"
    return re.sub(special, lambda match: f"\\x{ord(match[0]):02x}", printable(name))


def fold(chain: tuple[str, ...]) -> str:
    """
    Joins frames for flamegraph.pl. Escapes semicolons, which separate frames, and the blank before
    a number at the end, which would be a weight.
    """
    *outer, last = chain
    frames = [escape(frame, ";") for frame in outer]
    return ";".join([*frames, escape(last, r";|\s(?=\d+(?:\.\d*)?$)")])


def folded(stacks: Stacks, names: Names, wakers: bool) -> Iterator[bytes]:
    for chain, weight in count(stacks, names, wakers).most_common():
        yield f"{fold(chain)} {weight}\n".encode()


def speedscope(stacks: Stacks, names: Names, name: str) -> Iterator[bytes]:
    """See file-format-schema.json of speedscope. The name, which it shows, says what was lost."""
    counts = count(stacks, names).most_common()
    numbers: dict[str, int] = {}
    for chain, _ in counts:
        for frame in chain:
            numbers.setdefault(frame, len(numbers))
    profile = {
        "type": "sampled",
        "name": ", ".join(filter(None, [name, str(stacks.losses)])),
        "unit": "none" if stacks.unit == "samples" else stacks.unit,
        "startValue": 0,
        "endValue": sum(weight for _, weight in counts),
        "samples": [],
        "weights": [weight for _, weight in counts],
    }
    file = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": frame} for frame in numbers]},
        "profiles": [profile],
        "exporter": "legoprof",
    }
    before, samples, after = json.dumps(file).rpartition(', "samples": [')
    yield (before + samples).encode()
    for i, (chain, _) in enumerate(counts):
        yield f"{', ' if i else ''}{[numbers[frame] for frame in chain]}".encode()
    yield after.encode() + b"\n"


Edge = tuple[str, str]  # a caller and a function


def callgrind_name(name: str) -> str:
    """
    Returns a name for callgrind's format, where `(<number>)` at its begin is an abbreviation, and
    blanks around it are no part of it.
    """
    return escape(name, r"^\((?=\d+\))|^\s|\s$") or r"\empty"


def write_callgrind(
    event: str,
    self_cost: Counter[str],
    cost: Counter[Edge],
    calls: Counter[Edge] | None = None,
    lost: str = "",
) -> Iterator[bytes]:
    """
    See "Callgrind Format Specification" in valgrind's manual. calls: how often each edge was
    called; None: unknown, so once. lost: what was lost, in words.
    """
    total = sum(self_cost.values())
    yield b"# callgrind format\nversion: 1\ncreator: legoprof\npositions: line\n"
    desc = f"desc: {lost}\n" if lost else ""
    yield f"{desc}events: {event}\nsummary: {total}\n\n".encode()
    edges, at = sorted(cost), 0
    for function in sorted(self_cost.keys() | {caller for caller, _ in edges}):
        yield f"fl=???\nfn={callgrind_name(function)}\n0 {self_cost[function]}\n".encode()
        while at < len(edges) and edges[at][0] == function:
            edge, at = edges[at], at + 1
            nr_calls = calls[edge] if calls else 1
            yield f"cfi=???\ncfn={callgrind_name(edge[1])}\n".encode()
            yield f"calls={nr_calls} 0\n0 {cost[edge]}\n".encode()
        yield b"\n"
    yield b"totals: %d\n" % total


def number_recursions(chain: tuple[str, ...]) -> list[str]:
    """
    Returns a chain in which the second call of a function is another function, as callgrind does
    with --separate-recs. Otherwise the inclusive cost of the function would count both.
    """
    seen: Counter[str] = Counter()
    found = []
    for name in chain:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}'{seen[name]}")
    return found


def callgrind(stacks: Stacks, names: Names) -> Iterator[bytes]:
    """Returns callgrind's format. Counts of calls are unknown."""
    self_cost: Counter[str] = Counter()
    cost: Counter[Edge] = Counter()
    for names_of_chain, weight in count(stacks, names).items():
        chain = number_recursions(names_of_chain)
        self_cost[chain[-1]] += weight
        for edge in zip(chain, chain[1:]):
            cost[edge] += weight
    return write_callgrind(stacks.unit.capitalize(), self_cost, cost, lost=str(stacks.losses))


def callgrind_of_calls(rows: list[dict], lost: str = "") -> tuple[Iterator[bytes], int]:
    """
    Returns callgrind's format, from rows of the function profiler, and the number of damaged rows,
    which are left out. A function's calls of itself are counted without time, which is in the time
    of the first call.
    """
    self_cost: Counter[str] = Counter()
    calls: Counter[Edge] = Counter()
    cost: Counter[Edge] = Counter()
    nr_damaged = 0
    for row in rows:
        try:
            edge = str(row["caller"]), str(row["function"])
            numbers = [number(row[key], 62) for key in ("self_cycles", "calls", "total_cycles")]
        except (KeyError, ValueError):
            nr_damaged += 1
            continue
        self_cost[edge[1]] += numbers[0]
        calls[edge] += numbers[1]
        cost[edge] += numbers[2] if edge[0] != edge[1] else 0
    return write_callgrind("Cycles", self_cost, cost, calls, lost), nr_damaged


def stap_line(pc: int, place: Place, module: str) -> str:
    """stackcollapse-stap.pl takes what is between the first ` : ` and the last `+` for the name."""
    text = place.symbols.place(place.address) if place.symbols else f"{pc:#x}"
    text = escape(text, r"(?<= ):(?= )")
    return f" {pc:#x} : {text} [{escape(module, r'[+]|(?<= ):(?= )')}]"


def stap(stacks: Stacks, names: Names, delimited: bool) -> Iterator[bytes]:
    """
    Yields stacks as SystemTap's scripts print them: one frame a line, innermost first, then the
    number. A line is `address : function+offset/size [module]`.
    """
    found: Counter[tuple[str, ...]] = Counter()
    for stack in progress.over(stacks.stacks, "naming functions"):
        lines = []
        sites = call_sites(stack.kernel, stack.is_exact)
        for pc, site in zip(stack.kernel, sites):
            lines.append(stap_line(pc, Place(site, None, names.kernel(stack)), "kernel"))
        lines += [" !"] if delimited and stack.kernel and stack.user else []
        for pc, (_, place) in zip(stack.user, names.user_places(stack)):
            image = place.area and place.area.image
            lines.append(stap_line(pc, place, image.name if image else stack.comm))
        found[tuple(lines)] += stack.weight
    for chain, weight in found.most_common():
        yield "\n".join([*chain, f"\t{weight}\n"]).encode()


def bcc(stacks: Stacks, names: Names, delimited: bool) -> Iterator[bytes]:
    """Yields stacks as bcc's profile: one frame a line, innermost first, then task and number."""
    found: Counter[tuple[tuple[str, ...], str]] = Counter()
    for stack in progress.over(stacks.stacks, "naming functions"):
        kernel, user = names.kernel_frames(stack), names.user_frames(stack)
        between = ["--"] if delimited and kernel and user else []
        chain = *kernel, *between, *user
        found[chain, f"{task_name(stack)} ({stack.pid})"] += stack.weight
    for (chain, task), weight in reversed(found.most_common()):
        lines = [f"    {printable(frame)}" for frame in chain]
        lines += [f"    -                {printable(task)}", f"        {weight}", "\n"]
        yield "\n".join(lines).encode()
