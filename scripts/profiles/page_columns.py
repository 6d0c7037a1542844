# SPDX-License-Identifier: BSD-2-Clause
"""Columns of numbers for a page: small when compressed, and read by a browser in one pass.

The bytes of a column are sorted: first the lowest byte of all values, then the next one of all. So
equal high bytes are neighbors, which deflate removes. Ascending values are kept as differences, and
a column of zeros has no bytes.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable

MAX_VALUE = (1 << 53) - 1  # JavaScript's exact integers end there


class Columns:
    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, values: Iterable[int], ascending: bool = False) -> list[int]:
        """
        Adds a column, and returns what a reader needs: offset, count, bytes of a value, and whether
        the values are differences. Values beyond JavaScript's integers are cut to the largest one.
        """
        values = list(values)
        if min(values, default=0) < 0 or max(values, default=0) > MAX_VALUE:
            values = [min(max(value, 0), MAX_VALUE) for value in values]
        if ascending:
            values = [max(b - a, 0) for a, b in zip([0, *values], values)]
        numbers = array("Q", values)
        width = (max(numbers, default=0).bit_length() + 7) // 8
        if sys.byteorder == "big":
            numbers.byteswap()
        raw, offset = numbers.tobytes(), len(self.data)
        for byte in range(width):
            self.data += raw[byte::8]
        return [offset, len(numbers), width, int(ascending)]
