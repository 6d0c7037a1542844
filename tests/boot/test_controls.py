# SPDX-License-Identifier: BSD-2-Clause
"""The log says why a write to a file of /proc was refused; a program cannot forge or flood it."""

import re

import pytest

from test_programs import program_passes

REFUSED = re.compile(r'\] (/proc/\S+): (".*"(?:\.\.\.)?) is not valid; accepted: (.+)')
NR_LINES = 8  # in 5 seconds
NR_WRITES = 100


def refusals(log: str) -> list[tuple[str, str, str]]:
    return REFUSED.findall(log)


def test_each_file_says_what_it_accepts(boot):
    found = refusals(boot("controls", "each", icount=True).log)
    said = {path.removeprefix("/proc/"): (text, accepted) for path, text, accepted in found}
    words = {
        "profile/report": "reset",
        "profile/on_exit": "all|none|run|<glob>[,<glob>...]",
        "profile/strace": "on|off|reset",
        "profile/files": "on|off|reset",
        "profile/memory_chains": "on|off|reset",
        "profile/memory_growth": "mark",
        "profile/kernel_chains": "on|off|reset",
        "profile/working_set": "on|off|reset",
        "1/strace": "reset",
        "profile/waits": "on|off|reset",
    }
    starts = {
        "profile/heatmap": "on|off|reset|source timer|",
        "profile/source": "on|off|reset|source timer|",
        "profile/strace_live": "off|[-]all|",
        "profile/points": "reset|[-]<glob",
        "profile/function": "<",
    }
    assert said.keys() == words.keys() | starts.keys() and len(found) == len(said)
    for path, (text, accepted) in said.items():
        assert text == ('""' if path.endswith(("on_exit", "function")) else '"fooo"'), path
        assert accepted.startswith(starts.get(path, "")), path
        assert accepted == words.get(path, accepted), path


def test_text_cannot_forge_a_line(boot):
    log = boot("controls", "forge", icount=True).log
    assert [text for _, text, _ in refusals(log)] == [
        r'"x\x0a[    9.000000] a lie"',
        r'"\" is not \\ valid\x1b[2J\x0d\x80\x0a"',
        r'"reset\x00"',
        '"' + 80 * "y" + '"...',
        '"' + 80 * "y" + '"...',
    ]
    assert "\n[    9.000000]" not in log


def test_a_flood_is_counted(boot):
    log = boot("controls", "flood", icount=True).log
    assert [text for _, text, _ in refusals(log)] == [*NR_LINES * ['"on and on"'], '"after"']
    assert f"] /proc: {NR_LINES} refused writes within 5 s: the next ones are only counted" in log
    missing = NR_WRITES - NR_LINES
    assert f"] /proc: {missing} refused writes before this one were not logged" in log


@pytest.mark.parametrize("variant, seed", [(None, 1), ("debug", 1), ("debug", 2), ("functions", 2)])
def test_sigkill_takes_effect_while_settings_change(boot, variant, seed):
    """The longest of 40 kills takes 100 ms at most, with 8 busy CPUs that take turns."""
    options = dict(smp=8, icount=True, variant=variant, append="profile.on_exit=none")
    tracers = ["tracers"] if variant == "functions" else []
    program_passes(boot("late-kills", 5, seed, *tracers, **options).log, "late-kills")
