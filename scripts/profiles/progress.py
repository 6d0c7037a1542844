# SPDX-License-Identifier: BSD-2-Clause
"""Shows the progress of long work on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
PATIENCE_S = 1.0  # the progress of shorter work is not shown
STEP = 1024  # the clock is read once in this many items


def over(items: Collection[Item], what: str) -> Iterator[Item]:
    """Yields the items. Prints their percentage to stderr, if that is a terminal."""
    return over_some(items, what, len(items))


def over_some(
    items: Iterable[Item], what: str, total: int, size: Callable[[Item], int] = lambda _: 1
) -> Iterator[Item]:
    """The same, where the total size of the items is not known from themselves."""
    if not sys.stderr.isatty():
        yield from items
        return
    next_s, shown, done = time.monotonic() + PATIENCE_S, False, 0
    for i, item in enumerate(items):
        if i % STEP == 0 and time.monotonic() > next_s:
            next_s, shown = time.monotonic() + 0.1, True
            print(f"\rlegoprof: {what}: {100 * done // max(total, 1)} %", end="", file=sys.stderr)
        done += size(item)
        yield item
    if shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
