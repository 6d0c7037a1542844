# SPDX-License-Identifier: BSD-2-Clause
"""README.md's examples are what the commands print, and the numbers in its prose are in them.

`make readme` updates the first report; prose that quotes it has to be changed by hand.
"""

import math
import os
import re
import subprocess
from pathlib import Path

import readme
from harness import BUILD, ROOT, make

ADDRESS = re.compile(r"\b(?:0x[0-9a-f]+|[0-9a-f]{16}\b|\+0x[0-9a-f]+)")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
STRACE_ROW = re.compile(r" *\S+ +\S+ +\S+ +(\d+) +(\d+) (sys_\w+)$")
SHARE = re.compile(r" *(\d+) % of ")
SHARE_SLACK = 2  # percent
CODE = re.compile(r"^```.*?^```$|^    .*?$|`[^`]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
PROSE_NUMBER = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?")
# Numbers that no report prints: Debian's version and the CPUs in Kconfig; the length of a text, and
# of what getc() reads.
FIXED = {"12", "64"}
FIXED_IN_EXAMPLES = {"400000", "4096"}
EXAMPLES = "Five minutes: a slow program"
SHORT_S = 0.00002  # in short runs, times differ by this much
TOLERANCE = 0.10  # of times: any change of the kernel may make it a little faster or slower


def words(line: str) -> list[str]:
    """Returns a line without its numbers. Addresses change with each build."""
    return NUMBER.sub("#", ADDRESS.sub("@", line)).split()


def is_close(a: str, b: str, slack_s: float = 0.0) -> bool:
    """Compares two numbers of a report: counts of random events, shares in percent, or times."""
    x, y = float(a), float(b)
    slack = TOLERANCE * max(x, y)
    if "." not in a:
        slack = max(slack, 4 * math.sqrt(max(x, y)))
    elif len(a.partition(".")[2]) == 2:
        slack = max(slack, 0.5)
    else:
        slack = max(slack, slack_s, 10.0 ** -len(a.partition(".")[2]))  # both are rounded
    return abs(x - y) <= slack


def difference(shown: str, printed: str, slack_s: float = 0.0) -> str | None:
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
    if SHARE.match(shown) and abs(int(pairs[0][0]) - int(pairs[0][1])) > SHARE_SLACK:
        return f"{pairs[0][0]} % is not close to {pairs[0][1]} %"
    far = [f"{a} is not close to {b}" for a, b in pairs if not is_close(a, b, slack_s)]
    return far[0] if far else None


def section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(text: str) -> list[str]:
    """Returns the indented lines."""
    return [line[4:] for line in text.splitlines() if line.startswith("    ")]


def stray_numbers(prose: str, shown: list[str], fixed: set[str]) -> list[str]:
    """Returns the numbers of the prose that are neither fixed nor a rounded number of the lines."""
    known = [NUMBER.findall(ADDRESS.sub("", line)) for line in shown]
    stray = []
    for number in PROSE_NUMBER.findall(CODE.sub("", prose)):
        number = number.rstrip(",").replace(",", "")
        nr_digits = len(number.partition(".")[2])
        rounded = {f"{float(x):.{nr_digits}f}" if nr_digits else x for line in known for x in line}
        if number not in rounded | fixed:
            stray.append(number)
    return stray


def test_numbers_in_prose():
    text = (ROOT / "README.md").read_text()
    report, examples = readme.find_example(text).splitlines(), section(text, EXAMPLES)
    assert stray_numbers(text.replace(examples, ""), report, FIXED) == []
    assert stray_numbers(examples, blocks(examples), FIXED_IN_EXAMPLES) == []
    threads = re.search(r"# .* a word count with (\d+) threads", text)[1]
    assert re.search(rf"CPU time: .* {threads} threads = ", "\n".join(report))
    assert re.search(r"range 1 64$", (ROOT / "Kconfig").read_text(), re.MULTILINE)


def test_stray_numbers_are_seen():
    shown = ["81 % of wall time", "CPU time: 1.364157 s, 46 threads", "@ ffffffff81000042 7"]
    prose = "In x86-64, 46 threads (81 %) took 1.364 s, or 1.36."
    prose += "\n\n    not 5\n\n`6` [x](y#8) 42, 1.37"
    assert stray_numbers(prose, shown, set()) == ["42", "1.37"]
    assert stray_numbers("400,001 of 12", ["400001"], {"12"}) == []


LINES = """\
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{{
	{}
	return lines < 0;
}}
"""
FAST = """\
FILE *file = fopen(argv[1], "r");
int lines = 0, c;
while ((c = getc(file)) != EOF)
	lines += c == '\\n';
"""


def run_program(program: Path, *arguments: str) -> list[str]:
    """Returns the report of a program in the demo's environment."""
    make(f"BUILD={os.path.relpath(BUILD, ROOT)}", "run", f"PROGRAM={program}", *arguments)
    return [readme.PREFIX.sub("", x) for x in (BUILD / "run.log").read_text().splitlines()]


def check_shown(shown: list[str], printed: list[str]) -> None:
    """Checks that each line has its like in the report, in this order."""
    for line in shown:
        like = [i for i, other in enumerate(printed) if words(other)[:2] == words(line)[:2]]
        close = [i for i in like if not difference(line.strip(), printed[i].strip(), SHORT_S)]
        assert close, (line, [printed[i] for i in like])
        printed = printed[close[0] + 1 :]


def test_slow_programs(builds, tmp_path):
    """The section's programs, compiled and run as it says, print the lines that it shows."""
    builds.kernel()
    examples = section((ROOT / "README.md").read_text(), EXAMPLES)
    (code,) = re.findall(r"^```c\n(.*?)^```$", examples, re.MULTILINE | re.DOTALL)
    (tmp_path / "text").write_text("".join(f"{i:039}\n" for i in range(10_000)))
    for name, body in {"lines": code, "fast": FAST}.items():
        (tmp_path / f"{name}.c").write_text(LINES.format(body))
        command = ["gcc", "-O2", "-static", "-o", name, f"{name}.c"]
        subprocess.run(command, cwd=tmp_path, check=True)
    data = "ARGS=/data/text", f"FILES={tmp_path / 'text'}"
    shown = [line for line in blocks(examples) if line != "..."]
    commands = [i for i, line in enumerate(shown) if line.startswith("$ ")]
    (fast,) = [i for i, line in enumerate(shown) if "report 1: fast " in line]
    check_shown(shown[commands[0] + 1 : fast], run_program(tmp_path / "lines", *data))
    check_shown(shown[fast : commands[1]], run_program(tmp_path / "fast", *data))
    producer = builds.initrd("diagnosis.cpio").parent / "user/slow-producer"
    check_shown(shown[commands[1] + 1 :], run_program(producer))


def test_first_report(demo):
    log, _ = demo
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
    share = "    81 % of wall time waiting for a CPU"
    assert difference(share, share.replace("81", "83")) is None
    assert difference(share, share.replace("81", "84")) == "81 % is not close to 84 %"
    heat = "    ffffffff8100ed80                memset           9       0.89"
    assert difference(heat, heat.replace("8100ed80", "8100edc0").replace(" 9 ", "11 ")) is None
    assert difference(heat, heat.replace(" 9 ", "99 ")) == "9 is not close to 99"
