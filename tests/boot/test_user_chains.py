# SPDX-License-Identifier: BSD-2-Clause
"""Compares the user's part of call chains with a plugin that follows all calls, for three kinds of
programs. tests/accuracy/ explains the method, and has a table of all kinds."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from harness import ROOT
from profiles.stacks import Stack

sys.path.insert(0, str(ROOT / "tests/accuracy"))
import user_chains  # noqa: E402


@pytest.mark.parametrize("name", user_chains.SHORT)
def test_chains_are_right_and_whole(builds, name):
    builds.tools("user_calls.so")
    result = user_chains.observe(user_chains.KINDS[name], builds.kernel())
    assert result.nr > 1000
    assert not user_chains.bad({name: result})


def test_frame_pointers_are_not_enough(builds):
    """The control: the same program, walked by frame pointer alone."""
    kind = user_chains.KINDS["PIE"]
    result = user_chains.observe(kind, builds.kernel(), "profile.unwind=off")
    assert result.nr > 1000 and result.share < 0.5


def sampled(nr: int, *user: int, truncated: str | None = None) -> Stack:
    return Stack(weight=nr, kernel=[], user=[1, *user], comm="calls", pid=1, truncated=truncated)


def test_truth_ends_at_the_top_of_a_stack():
    truth = Counter({("a", "b", "c", "?"): 4, ("a", "*", "?"): 2, ("b",): 1, ("a", "b", "d"): 1})
    tops = [range(0xB, 0xC), range(0xFF, 0x100)]
    ends = {("a", "b"): 5, ("a", "*", "?"): 2, ("b",): 1}
    assert user_chains.cut(truth, tops) == ends


def test_comparison():
    truth = Counter({("a", "b", "c"): 4, ("a", "*", "*", "c"): 2, ("a", "d", "?"): 1, (): 1})
    samples = [
        sampled(3, 0xA, 0xB, 0xC),
        sampled(2, 0xA, 0xE, 0xF, 0xC),  # through a signal handler
        sampled(1, 0xA, 0xD, 0xC),  # above another stack
        sampled(1, 0xA, 0xC),  # without b
    ]
    assert user_chains.compare(samples, truth.copy()) == user_chains.Result(
        8, 6, 0, [(("a", "c"), 1)]
    )
    ends_early = user_chains.compare([sampled(4, 0xA, 0xB)], truth.copy())
    assert (ends_early.nr_whole, ends_early.nr_part) == (0, 4)
    at_the_limit = user_chains.compare([sampled(4, 0xA, 0xB, truncated="depth")], truth.copy())
    assert (at_the_limit.nr_whole, at_the_limit.nr_part) == (4, 0)
