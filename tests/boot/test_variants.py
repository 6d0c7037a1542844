# SPDX-License-Identifier: BSD-2-Clause
"""Every combination of the three profilers builds, boots, and reports exactly its parts."""

import pytest

import report

PARTS = {"s": "strace", "h": "heatmap", "p": "points"}
VARIANTS = ["profile-none"] + [f"profile-{v}" for v in ("s", "h", "p", "sh", "sp", "hp")] + [None]


@pytest.mark.parametrize("variant", VARIANTS)
def test_profilers(boot, variant):
    letters = "shp" if variant is None else variant.removeprefix("profile-").replace("none", "")
    expected = {PARTS[letter] for letter in letters}
    log = boot("wordcount", "-t", 8, "/data/small", variant=variant, smp=2).log
    found = report.parse(log)
    assert len(found) == bool(expected)
    if expected:
        assert found[0].parts == expected
    else:
        assert "Kernel strace" not in log and "Heatmap" not in log and "Profile Points" not in log


@pytest.mark.parametrize("variant", ["profile-none", "profile-hp"])
def test_sysrq_and_panic_without_all_parts(boot, variant):
    with boot.start("spin", 60000, 2, smp=2, variant=variant, silence=30) as guest:
        guest.expect("^spin: started")
        guest.sysrq("p")
        guest.sysrq("z")
        guest.sysrq("c")
        result = boot.finish(guest.wait(), ok=False, check=True)
    assert result.error.startswith("Kernel panic")
    assert "reboot: panic, status 127" in result.log


def test_llvm(boot):
    log = boot("wordcount", "-t", 46, "/data/small", variant="llvm", smp=4).log
    (found,) = report.parse(log)
    assert found.parts == set(PARTS.values())
