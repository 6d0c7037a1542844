# SPDX-License-Identifier: BSD-2-Clause
"""Work for Python, for user_chains.py: calls, exceptions, sorting, text, files."""

import json
import re


def recurse(depth):
    return 0 if not depth else 1 + recurse(depth - 1)


def words(nr):
    counts = {}
    for i in range(60):
        word = f"word {i * nr % 23}"
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts, key=lambda word: (len(word), word))


def fail(depth):
    if not depth:
        raise ValueError(depth)
    fail(depth - 1)


with open("/dev/null", "w") as null:
    for i in range(60):
        recurse(i % 20)
        text = json.dumps(words(i))
        print(re.sub(r"(\d+)", lambda match: match[1] * 2, text), file=null, flush=True)
        try:
            fail(i % 7)
        except ValueError:
            pass
