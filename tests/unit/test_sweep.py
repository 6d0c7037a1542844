# SPDX-License-Identifier: BSD-2-Clause
"""Each system call has a row of `make bench` among a crowd, or a reason for having none."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import sweep  # noqa: E402


def test_every_call_is_in_the_sweep():
    assert not sweep.problems()


def test_a_new_call_is_missed(monkeypatch, tmp_path):
    table = tmp_path / "syscalls.tbl"
    table.write_text(sweep.TABLE.read_text() + "999\tnew_call\tsys_new_call\t-\tnone\t()\n")
    monkeypatch.setattr(sweep, "TABLE", table)
    assert sweep.problems() == ["new_call: which crowd is it measured among?"]
