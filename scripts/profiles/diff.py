# SPDX-License-Identifier: BSD-2-Clause
"""
Compares two exports by numbers that depend on the code: costs of operations, counts, CPU time,
shares of samples.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass

from profiles.export import Export, ExportError
from profiles.operations import changed


@dataclass
class Quantity:
    """A count to compare in each row of a table, and its cost."""

    file: str
    keys: tuple[str, ...]  # the columns that name a row
    what: str  # the name of what is counted, in the singular
    count: str  # the column with the count
    cost: str | None = None  # the column with the instructions or ns of all of them
    title: str = ""  # goes before the name of a row
    is_hint: bool = False  # differences only explain others

    def read(self, export: Export) -> dict[str, tuple[int, int | None]]:
        """Returns the count and the cost of each row, by name."""
        found: dict[str, tuple[int, int | None]] = {}
        nr_damaged = 0
        for row in export.rows(self.file):
            try:
                name = ", ".join(str("-" if row[key] is None else row[key]) for key in self.keys)
                cost = None if self.cost is None or row[self.cost] is None else int(row[self.cost])
                nr, sum_ = found.get(name, (0, None))
                sum_ = cost if sum_ is None else sum_ + (cost or 0)
                found[name] = (nr + int(row[self.count]), sum_)
            except (KeyError, TypeError, ValueError, OverflowError):
                nr_damaged += 1
        if nr_damaged:
            text = f"{nr_damaged} damaged rows of {self.file} are left out"
            print(f"legoprof: {export.path}: {text}", file=sys.stderr)
        return found


# The first finds all differences between exact runs, the others name the part that has changed.
# Waiting time is not compared, because it is the cost of other code that runs meanwhile.
QUANTITIES = [
    Quantity("operations.json", ("operation",), "round", "rounds", "instructions", "operation "),
    Quantity("strace.json", ("syscall",), "call", "calls", "cpu_ns"),
    Quantity("strace.json", ("syscall",), "error", "errors"),
    Quantity("points.json", ("point",), "pair", "pairs", "oncpu_ns"),
    Quantity("waits.json", ("what", "function", "waker"), "wait", "waits"),
    # The time of the whole machine, which the boot and other programs are in.
    Quantity("accounts.json", ("owner",), "cycle", "cycles", title="account ", is_hint=True),
]


def number(value: float) -> str:
    if value == round(value):
        return f"{value:+.0f}"
    return f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.1g}"


def plural(nr: int, what: str) -> str:
    return f"{nr} {what}" if nr == 1 else f"{nr} {what}s"


def percent(new: float, old: float) -> float:
    return 100 * (new - old) / old if old else math.inf


def percent_text(value: float) -> str:
    """Returns a percentage with one decimal, or with more if it would print as 0."""
    return f"{value:+.1f} %" if abs(value) >= 0.1 else f"{value:+.1g} %"


@dataclass
class Difference:
    """A line of output, and by how many percent a cost or a count has grown (negative: shrunk)."""

    text: str
    percent: float


def difference(
    quantity: Quantity, name: str, old: tuple, new: tuple, unit: str
) -> Difference | None:
    """Returns how a row differs in its count and in the cost of each, or None if it does not."""
    (old_nr, old_cost), (new_nr, new_cost) = old, new
    what = quantity.what
    parts, slower = [], []
    if old_nr != new_nr:
        slower.append(percent(new_nr, old_nr))
        change = f", {percent_text(slower[-1])}" if old_nr else ""
        parts.append(f"{old_nr} -> {plural(new_nr, what)} ({new_nr - old_nr:+d}{change})")
    if None not in (old_cost, new_cost) and old_nr and new_nr:
        a, b = old_cost / old_nr, new_cost / new_nr
        if a != b:
            slower.append(percent(b, a))
            change = f" ({percent_text(slower[-1])})" if a else ""
            parts.append(f"{number(b - a)} {unit} a {what}{change}")
            parts += [plural(new_nr, what)] if old_nr == new_nr else []
    text = f"{quantity.title}{name}: {', '.join(parts)}"
    return Difference(text, max(slower)) if parts else None


IDLE = "cpu_idle"


def function_samples(export: Export) -> Counter[str]:
    """Returns the samples of each function, without idle time."""
    found: Counter[str] = Counter()
    for row in export.rows("heatmap.json"):
        name, nr = row.get("function"), row.get("samples")
        if isinstance(name, str) and isinstance(nr, int) and name != IDLE:
            found[name] += nr
    return found


@dataclass
class Summary:
    """What is compared of an export. It takes less memory than its tables, which can go."""

    path: str
    meta: dict
    run: dict
    warnings: list[str]
    functions: dict
    rows: list[dict[str, tuple[int, int | None]]]  # of each of QUANTITIES
    samples: Counter[str]  # of each function, without idle time


def summary(export: Export) -> Summary:
    return Summary(
        export.path,
        export.meta,
        export.run,
        export.warnings,
        export.functions,
        [quantity.read(export) for quantity in QUANTITIES],
        function_samples(export),
    )


def must_compare(old: Summary, new: Summary) -> None:
    """Raises ExportError if the numbers may differ for another reason than the code."""
    if old.warnings or new.warnings:
        raise ExportError("not comparable: an export is not complete")
    for export in old, new:
        if "runs" in export.meta and export.meta.get("clock") != "TSC":
            raise ExportError(f"{export.path} has several exact runs: compare each by itself")
    pairs = [("clock", old.meta, new.meta)]
    if new.meta.get("clock") == "instructions":
        pairs += [(key, old.meta, new.meta) for key in ("compiler", "cpus")]
        pairs += [(key, old.run, new.run) for key in sorted(old.run.keys() | new.run.keys())]
    for key, a, b in pairs:
        if a.get(key) != b.get(key):
            raise ExportError(f"not comparable: {key} was {a.get(key)}, is {b.get(key)}")


DEVIATIONS = 4.0  # by chance, one function in 16,000 differs by more


def share_differences(before: Counter[str], after: Counter[str]) -> list[Difference]:
    """
    Returns a difference, in percent of all samples, for each function whose share differs by more
    than chance. Its standard error is that of two independent binomial samples.
    """
    nr_before, nr_after = before.total(), after.total()
    lines = []
    for name in sorted(before.keys() | after.keys()) if nr_before and nr_after else []:
        a, b = before[name] / nr_before, after[name] / nr_after
        both = (before[name] + after[name]) / (nr_before + nr_after)
        error = math.sqrt(both * (1 - both) * (1 / nr_before + 1 / nr_after))
        if error and abs(b - a) > DEVIATIONS * error:
            change = f"{100 * (b - a):+.2f} +-{100 * error:.2f}"
            text = f"{name}: {100 * a:.2f} -> {100 * b:.2f} % of samples ({change})"
            lines.append(Difference(text, 100 * (b - a)))
    return lines


MAX_FUNCTIONS = 20


def code_differences(old: dict, new: dict) -> list[Difference]:
    """Returns a line that names the functions whose code differs, which is no cost by itself."""
    names = changed(old, new) if old and new else []
    more = [f"and {len(names) - MAX_FUNCTIONS} others"] if len(names) > MAX_FUNCTIONS else []
    text = "code that differs: " + ", ".join(names[:MAX_FUNCTIONS] + more)
    return [Difference(text, -math.inf)] if names else []


def differences(old: Summary, new: Summary) -> list[Difference]:
    """
    Returns all differences, row by row. With -icount, costs are exact, so samples are not compared.
    Without, shares of samples are compared, too.
    """
    must_compare(old, new)
    is_exact = new.meta.get("clock") == "instructions"
    unit = "instructions" if is_exact else "ns"
    none = (0, None)
    found: list = []
    for quantity, before, after in zip(QUANTITIES, old.rows, new.rows):
        if quantity.is_hint and not found:
            continue
        for name in sorted(before.keys() | after.keys()):
            row = before.get(name, none), after.get(name, none)
            if one := difference(quantity, name, *row, unit):
                found.append(one)
    if not is_exact:
        return found + share_differences(old.samples, new.samples)
    return found + code_differences(old.functions, new.functions) if found else []
