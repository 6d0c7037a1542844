# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on the machine fail for a user and succeed for root."""

import re

import pytest

from test_programs import NO_REPORTS, program_passes

REFUSED = {
    "sysrq": "EACCES",
    "profile": "EACCES",
    "init": "EACCES",
    "truncate": "EACCES",
    "replace": "EACCES",
    "kill": "EPERM",
    "log": "EPERM",
    "proc": "EACCES",
    "strace": "EACCES",
    "console": "EACCES",
    "system": "EPERM",
    "reboot": "EPERM",
    "setuid": "EPERM",
}
# A running program cannot be written to, even by root.
BUSY = ("init", "truncate")
# These end the machine.
LAST = ("sysrq", "reboot", "replace", "kill")


def outcome(log: str) -> dict[str, str]:
    return dict(re.findall(r"^attack (\w+): (\w+)$", log, re.MULTILINE))


@pytest.mark.parametrize("smp", [1, 4])
def test_user(boot, smp):
    result = boot("attacker", 1000, *REFUSED, smp=smp, append=NO_REPORTS)
    assert outcome(result.log) == REFUSED
    program_passes(result.log, "attacker")
    assert "reboot: power off, status 0" in result.log


def test_root(boot):
    """The same calls succeed for root, so they fail in test_user() because of the user."""
    names = [name for name in REFUSED if name not in LAST]
    log = boot("attacker", 0, *names, append=NO_REPORTS).log
    expected = {name: "ETXTBSY" if name in BUSY else "succeeded" for name in names}
    assert outcome(log) == expected


def test_root_crashes_the_machine(boot):
    log = boot("attacker", 0, "sysrq", append=NO_REPORTS, ok=False).log
    assert re.search(r"^\[ *\d+\.\d+\] Kernel panic", log, re.MULTILINE)


def test_root_replaces_a_program(boot):
    log = boot("attacker", 0, "replace", append=NO_REPORTS).log
    assert outcome(log) == {"replace": "succeeded"}


def test_crash_lines(boot):
    """A user's crashes get ten lines in five seconds, and never more than their part of the log."""
    rounds, number = 30, 12
    append = f"{NO_REPORTS} tick_hz=10"  # the machine sleeps for three minutes
    log = boot("crashes", 1000, rounds, number, icount=True, append=append).log
    program_passes(log, "crashes")
    line = r"^lines: (\d+) of root, (\d+) of the user, (\d+) left out, (\d+) warnings$"
    counts = re.findall(line, log, re.MULTILINE)
    (root, user, left_out, warnings), (_, new_user, new_left_out, _) = (
        tuple(map(int, line)) for line in counts
    )
    assert root == 1 and 256 <= user < 10 * rounds and warnings
    assert user + left_out + new_left_out == rounds * number
    assert new_user == 10  # root has cleared the log
