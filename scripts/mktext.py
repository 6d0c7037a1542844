#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a text of a given size for the demo: invented words, as unevenly frequent as real ones.

usage: mktext.py OUT BYTES
The text is the same for each version of the tree and each machine, so runs of the demo can be
compared. A block of lines is repeated. The text ends with the last line that is complete within
BYTES.
"""

import sys
from pathlib import Path

SYLLABLES = "a be ci do fu ga hé in ja ke lo mu no or pe qui ra se ti un va wo x4 ye zo".split()
VOCABULARY_BITS = 13  # 8191 words
WORDS_PER_LINE = 11
BLOCK_LINES = 20000  # 1.6 MB


def word(number: int) -> str:
    """Returns a word for a number from 1 on: the lower the number, the shorter the word."""
    text = ""
    while number:
        number, digit = divmod(number, len(SYLLABLES))
        text += SYLLABLES[digit]
    return text


def block() -> bytes:
    """
    Returns the lines to repeat. As in real texts, the words from 2^n to 2^(n+1) are together as
    frequent as those of any other n.
    """
    vocabulary = [word(number) for number in range(1, 1 << VOCABULARY_BITS)]
    state = 1
    lines = []
    for _ in range(BLOCK_LINES):
        line = []
        for _ in range(WORDS_PER_LINE):
            # Knuth's linear congruential generator; its high bits are random.
            state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            first = 1 << (state >> 56) % VOCABULARY_BITS
            line.append(vocabulary[first + (state >> 32) % first - 1])
        lines.append(" ".join(line) + ".\n")
    return "".join(lines).encode()


def main(argv: list[str]) -> None:
    if len(argv) != 3:
        sys.exit(__doc__)
    out, size = Path(argv[1]), int(argv[2])
    text = block()
    text = (text * (size // len(text) + 1))[:size]
    out.write_bytes(text[: text.rfind(b"\n") + 1])


if __name__ == "__main__":
    main(sys.argv)
