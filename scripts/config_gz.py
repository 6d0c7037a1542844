#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the kernel's configuration as a C array, in the format of gzip, for /proc/config.gz.

usage: config_gz.py CONFIG OUT.h
It is not compressed, so that the same configuration is the same bytes with each version of zlib.
"""

import gzip
import sys
from pathlib import Path

BYTES_PER_LINE = 16


def main(argv: list[str]) -> None:
    if len(argv) != 3:
        sys.exit(__doc__)
    data = gzip.compress(Path(argv[1]).read_bytes(), compresslevel=0, mtime=0)
    lines = ["static const unsigned char config_gz[] = {\n"]
    for at in range(0, len(data), BYTES_PER_LINE):
        numbers = (f"{byte}," for byte in data[at : at + BYTES_PER_LINE])
        lines.append(f"\t{' '.join(numbers)}\n")
    Path(argv[2]).write_text("".join([*lines, "};\n"]))


if __name__ == "__main__":
    main(sys.argv)
