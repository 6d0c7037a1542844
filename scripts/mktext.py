#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a text of a given size: source files one after the other, repeated.

usage: mktext.py OUT BYTES FILE...
The text ends with the last line that is complete within BYTES.
"""

import sys
from pathlib import Path


def main(argv: list[str]) -> None:
    if len(argv) < 4:
        sys.exit(__doc__)
    out, size = Path(argv[1]), int(argv[2])
    text = b"".join(Path(name).read_bytes() for name in argv[3:])
    if b"\n" not in text[:size]:
        sys.exit(f"mktext: no complete line within {size} bytes of {', '.join(argv[3:6])}")
    text = (text * (size // len(text) + 1))[:size]
    out.write_bytes(text[: text.rindex(b"\n") + 1])


if __name__ == "__main__":
    main(sys.argv)
