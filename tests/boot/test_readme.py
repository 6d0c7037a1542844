# SPDX-License-Identifier: BSD-2-Clause
"""README.md's first report is the one that `make run` prints. `make readme` updates it."""

import math
import os
import re

import readme
from harness import BUILD, ROOT, locked, make

ADDRESS = re.compile(r"\b(?:0x[0-9a-f]+|[0-9a-f]{16}\b|\+0x[0-9a-f]+)")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
STRACE_ROW = re.compile(r" *\S+ +\S+ +\S+ +(\d+) +(\d+) (sys_\w+)$")
TOLERANCE = 0.10  # of times: any change of the kernel may make it a little faster or slower


def words(line: str) -> list[str]:
    """Returns a line without its numbers. Addresses change with each build."""
    return NUMBER.sub("#", ADDRESS.sub("@", line)).split()


def is_close(a: str, b: str) -> bool:
    """Compares two numbers of a report: counts of random events, shares in percent, or times."""
    x, y = float(a), float(b)
    slack = TOLERANCE * max(x, y)
    if "." not in a:
        slack = max(slack, 4 * math.sqrt(max(x, y)))
    elif len(a.partition(".")[2]) == 2:
        slack = max(slack, 0.5)
    return abs(x - y) <= slack


def difference(shown: str, printed: str) -> str | None:
    """Returns how two lines differ by more than a small change of the kernel explains."""
    if words(shown) != words(printed):
        return "other words"
    rows = STRACE_ROW.match(shown), STRACE_ROW.match(printed)
    pairs = list(zip(*(NUMBER.findall(ADDRESS.sub("", line)) for line in (shown, printed))))
    if rows[0] and rows[0][3] == "sys_futex":
        # How often threads call it depends on when they are preempted.
        pairs = pairs[:2]
    elif rows[0] and rows[0].groups() != rows[1].groups():
        return "other numbers of calls"
    far = [f"{a} is not close to {b}" for a, b in pairs if not is_close(a, b)]
    return far[0] if far else None


def test_first_report(builds):
    builds.kernel()
    builds.initrd("initramfs.cpio")
    with locked(BUILD / "test-locks" / "session"):
        make(f"BUILD={os.path.relpath(BUILD, ROOT)}", "run")
        log = (BUILD / "run.log").read_text()
    text = (ROOT / "README.md").read_text()
    assert "This one is from `make run`" in text
    shown, printed = readme.find_example(text).splitlines(), readme.example(log).splitlines()
    assert [words(line)[:2] for line in shown] == [words(line)[:2] for line in printed]
    wrong = [(a, b, why) for a, b in zip(shown, printed) if (why := difference(a, b))]
    assert not wrong, "make readme shows the new report:\n" + "\n".join(map(str, wrong))


def test_differences_are_seen():
    row = "      0.34    0.010682701          78       138         0 sys_pread64"
    assert difference(row, row.replace("10682701", "10692701")) is None
    assert difference(row, row.replace("138", "139")) == "other numbers of calls"
    assert difference(row, row.replace("pread64", "read")) == "other words"
    assert difference(row, row.replace("0.0106", "0.0136")).startswith("0.010682701 is not close")
    row = row.replace("pread64", "futex")
    assert difference(row, row.replace("138", "39")) is None
    heat = "    ffffffff8100ed80                memset           9       0.89"
    assert difference(heat, heat.replace("8100ed80", "8100edc0").replace(" 9 ", "11 ")) is None
    assert difference(heat, heat.replace(" 9 ", "99 ")) == "9 is not close to 99"
