# SPDX-License-Identifier: BSD-2-Clause
"""The guest's command `profile`: each option's output is compared with the store of samples.

Sampling is off, and each session borrows the source. So the store has only the session's samples,
and a few of idle CPUs and of `profile` itself from before the session was closed. All other tasks
must have the same stacks, with the same counts, in both.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import PurePath

import pytest

import harness
from profiles.images import number
from profiles.stacks import Stack, Symbols, call_sites, frame_name, sample

WORK = "wordcount -t 3 /bin/wordcount > /dev/null"
WORKS = f"sh -c '{WORK} & chain 20 > /dev/null 2>&1; wait'"
# Command lines by name. `$!` is a process that starts to work after the session has begun.
LATER = f"(sleep 0.01; exec {WORK}) & sleep 0.002; "
RUNS = {
    "folded": f"profile -F 9973 -f -- {WORKS}",
    "default": f"profile -F 9973 -- {WORKS}",
    "user": f"profile -F 9973 -U -f -- {WORKS}",
    "kernel": f"profile -F 9973 -K -f -- {WORKS}",
    "delimited": f"profile -F 9973 -d -a -f -- {WORKS}",
    "delimited lines": f"profile -F 9973 -d -a -- {WORKS}",
    "cpu": f"profile -F 9973 -C 1 -f -- {WORKS}",
    "pid": f"{LATER} profile -F 9973 -p 1,$! -f -- sleep 0.1",
    "tid": f"{LATER} profile -F 9973 -L $! -f -- sleep 0.1",
    "idle": "profile -F 997 -I -f 1",
    "count": "profile -c 100000 -f -- cat /proc/profile/source",
    "rate": "profile -F 1234 -f -- cat /proc/profile/source",
    "49 Hz": "profile -f -- cat /proc/profile/source",
    "few stacks": f"profile -F 9973 -f --stack-storage-size 2 -- {WORKS}",
    "status": "profile -- sh -c 'exit 7'",
    "interrupted": f"{WORKS} & profile -F 9973 -f & sleep 0.05; kill -INT $!; wait $!",
}


def script() -> str:
    lines = ["echo off > /proc/profile/source"]
    for name, command in RUNS.items():
        lines += ["echo reset > /proc/profile/report", f"echo '=== {name}'", command]
        lines += ["echo === $?", "cat /proc/profile/samples.json"]
    lines += ["echo === end", "cat /proc/profile/source"]
    lines += ["cat /proc/profile/images.json /proc/profile/code_maps.json", ""]
    return "\n".join(lines)


class Names:
    """Names functions of the kernel, and of the programs whose code was mapped."""

    def __init__(self, kernel: Symbols, lines: list[str]):
        rows = [json.loads(line) for line in lines if line.startswith('{"')]
        self.kernel = kernel
        self.files = {row["image"]: PurePath(row["path"]).name for row in rows if "path" in row}
        self.maps = {row["code_map"]: row for row in rows if "code_map" in row}
        paths = {name: harness.BUILD / "user" / name for name in self.files.values()}
        self.programs = {name: Symbols(path) for name, path in paths.items() if path.exists()}

    def user(self, code_map: int, pc: int) -> str:
        """
        Returns the function, or file+offset. PLT stubs have no symbols. They are no part of _init
        in the section before them.
        """
        while code_map:
            row = self.maps[code_map]
            start = number(row["start"], 64)
            if start <= pc < number(row["end"], 64):
                name, offset = self.files[row["image"]], pc - start + number(row["offset"], 64)
                program = self.programs.get(name)
                found = program and program.function(program.address_at(offset, None))
                if found and not found[1].endswith("@plt"):
                    return found[1]
                return f"{name}+{offset:#x}"
            code_map = row["parent"]
        return f"{pc:#x}"


@pytest.fixture(scope="module")
def log_parts(request):
    """Returns the log, split at the script's marks."""
    builds = harness.Builds()
    booter = harness.Booter(builds, "profile_command")
    builds.initrd()
    directory = request.getfixturevalue("tmp_path_factory").mktemp("profile")
    image = harness.script_image(directory, script(), ("profile", "wordcount", "chain"))
    result = booter(None, initrd=image, append="profile.on_exit=none", icount=True, smp=2)
    parts = re.split(r"^=== (.*)\n", result.log, flags=re.MULTILINE)[1:]
    assert parts[-2] == "end" and parts[-1].startswith("off\nsource timer\nhz 997\n")
    return parts


@pytest.fixture(scope="module")
def runs(log_parts):
    """Returns the output of `profile`, its status, and the stored samples, for each run."""
    found = {}
    for name, text, status, json_lines in zip(*[iter(log_parts)] * 4):
        rows = [json.loads(line) for line in json_lines.splitlines() if line.startswith('{"cpu')]
        found[name] = text, int(status), [sample(row) for row in rows]
    assert found.keys() == RUNS.keys()
    return found


@pytest.fixture(scope="module")
def names(log_parts):
    return Names(Symbols(harness.Builds().kernel()), log_parts[-1].splitlines())


def chains(stack: Stack, names: Names) -> tuple[list[str], list[str]]:
    """Returns the user's and the kernel's frames as `profile` prints them, outermost first."""
    user = [names.user(stack.code_map, pc) for pc in call_sites(stack.user, True)][::-1]
    frames = [frame_name(names.kernel, pc) for pc in call_sites(stack.kernel, True)][::-1]
    if stack.truncated:
        of_user = user or "user" in stack.truncated
        (user if of_user else frames).insert(0, f"[cut: {stack.truncated}]")
    return user, frames


def is_work(comm: str) -> bool:
    """The shell of the session may still be exiting while the session reads."""
    return comm != "sh" and not comm.startswith(("idle/", "profile"))


def expected(stacks, names, keep=lambda stack: True, user=True, frames=True, mark="", between=""):
    """Returns the expected folded lines: the counts by (task, frames...)."""
    found: Counter[tuple[str, ...]] = Counter()
    for stack in stacks:
        if not is_work(stack.comm) or not keep(stack):
            continue
        of_user, of_kernel = chains(stack, names)
        of_user = of_user if user else []
        of_kernel = [name + mark * (name[0] != "[") for name in of_kernel if frames]
        delimiter = [between] if between and of_user and of_kernel else []
        found[stack.comm, *of_user, *delimiter, *of_kernel] += stack.weight
    assert found
    return found


def nr_late(stacks, names) -> int:
    """
    A process that has told its parent of its end has a few instructions left, in family_exit().
    The session may have ended by then. Returns how many samples may be stored only.
    """
    return sum(stack.weight for stack in stacks if "family_exit" in chains(stack, names)[1])


def check(found, stacks, names, **options):
    wanted = expected(stacks, names, **options)
    assert not found - wanted
    assert (wanted - found).total() <= nr_late(stacks, names)


def plain_name(frame: str) -> str:
    """Removes the file's name, which the kernel adds if several functions have the same name."""
    return re.sub(r"@.*?(?=_\[k\]$|$)", "", frame)


def folded(text: str):
    found: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        if match := re.fullmatch(r"(\S.*) (\d+)", line):
            found[tuple(plain_name(frame) for frame in match[1].split(";"))] += int(match[2])
    return Counter({key: nr for key, nr in found.items() if is_work(key[0])})


def stacks_of_lines(text: str):
    """Returns the default output as folded lines, and the counts in the order of the output."""
    found: Counter[tuple[str, ...]] = Counter()
    counts, frames = [], []
    for line in text.splitlines():
        if match := re.fullmatch(r"    -                (\S+) \(\d+\)", line):
            comm = match[1]
        elif match := re.fullmatch(r"        (\d+)", line):
            counts.append(int(match[1]))
            found[comm, *reversed(frames)] += counts[-1]
            frames = []
        elif line.startswith("    "):
            frames.append(plain_name(line[4:]))
    return Counter({key: nr for key, nr in found.items() if is_work(key[0])}), counts


@pytest.mark.parametrize(
    "name, options",
    [
        ("folded", {}),
        ("user", {"frames": False}),
        ("kernel", {"user": False}),
        ("delimited", {"mark": "_[k]", "between": "-"}),
        ("cpu", {"keep": lambda stack: stack.cpu == 1}),
        ("interrupted", {}),
    ],
)
def test_folded(runs, names, name, options):
    text, _, stacks = runs[name]
    found = folded(text)
    if name == "interrupted":  # the work continues after the session
        assert found and not found - expected(stacks, names)
    else:
        check(found, stacks, names, **options)


def test_default_output(runs, names):
    text, status, stacks = runs["default"]
    assert status == 0
    assert text.startswith(
        "Sampling at 9973 Hertz of all threads by user + kernel stack while sh runs.\n"
    )
    found, counts = stacks_of_lines(text)
    check(found, stacks, names)
    assert counts == sorted(counts)
    text, _, stacks = runs["delimited lines"]
    found, _ = stacks_of_lines(text)
    check(found, stacks, names, mark="_[k]", between="--")


@pytest.mark.parametrize("name", ["pid", "tid"])
def test_one_process_or_thread(runs, names, name):
    text, _, stacks = runs[name]
    # A thread that ends belongs to its process to the last.
    (pid,) = {stack.pid for stack in stacks if stack.comm == "wordcount"}
    check(folded(text), stacks, names, keep=lambda stack: getattr(stack, name) == pid)
    threads = {stack.tid for stack in stacks if stack.pid == pid}
    assert len(threads) > 2  # so -p and -L differ


def test_idle(runs):
    """997 samples of each CPU were due in the second."""
    text, _, stacks = runs["idle"]
    idle = Counter()
    for line in text.splitlines():
        if match := re.fullmatch(r"(idle/\d);.* (\d+)", line):
            idle[match[1]] += int(match[2])
    stored = sum(stack.weight for stack in stacks if stack.comm.startswith("idle/"))
    assert idle.keys() == {"idle/0", "idle/1"} and 1900 < idle.total() <= stored
    assert "idle/" not in runs["folded"][0]


def test_rate(runs):
    assert "hz 10000\n" in runs["count"][0]
    assert "hz 1234\n" in runs["rate"][0]
    assert "hz 49\n" in runs["49 Hz"][0]


def test_few_stacks(runs, names):
    """No sample is lost: the task is known even if there was no room for the stack."""
    text, _, stacks = runs["few stacks"]
    found, wanted = folded(text), expected(stacks, names)
    assert 0 <= wanted.total() - found.total() <= nr_late(stacks, names)
    kept = {key: nr for key, nr in found.items() if "[Missed User Stack]" not in key}
    assert 1 <= len(kept) <= 2 and all(wanted[key] == nr for key, nr in kept.items())
    warning = r"WARNING: \d+ stack traces could not be displayed. Consider increasing --stack-sto"
    assert re.search(warning, text)


def test_status_is_that_of_the_command(runs):
    assert runs["status"][1] == 7


BORROW = """\
chain 100 > /dev/null & profile -F 5000 -f 99 > /tmp/out & sleep 0.02
cat /proc/profile/source
echo off > /proc/profile/source
profile 1
kill -9 $!; wait $!
cat /proc/profile/source
cat /proc/profile/report
cat /proc/profile/source.json
profile -F 20000 -f -- sh -c 'echo reset > /proc/profile/report; chain 10 2> /tmp/err' > /tmp/out
profile -F 100000 -f -- sh -c 'ls -lR / > /dev/null 2>&1' > /tmp/out
profile -U -K 1; profile -F 0 1; profile -c 1 -F 1 1; profile --; true
profile -p 1,99999 99 || echo status $?
profile -L 99999 99 || echo status $?
profile 99 > /dev/full || echo status $?
profile -F 20000 -f -- sh -c 'ls -lR / > /dev/null 2>&1' > /dev/full || echo status $?
true
"""


def test_the_source_is_borrowed(boot, tmp_path):
    image = harness.script_image(tmp_path, BORROW, ("profile", "chain"))
    append = "profile.on_exit=none profile.samples=16384"
    log = boot(None, initrd=image, append=append, icount=True).log
    settings = re.findall(r"^(on|off)\nsource timer\nhz (\d+)$", log, re.MULTILINE)
    assert settings == [("on", "5000"), ("on", "997")]
    assert "write error: Device or resource busy" in log
    assert "profile: another profile is running\n" in log
    assert re.search(
        r"^sampling was at another rate for 0\.\d{6} s of this time, last from \d+\.\d+ s to "
        r"\d+\.\d+ s, by profile \(pid \d+\)$",
        log,
        re.MULTILINE,
    )
    (ns,) = re.findall(r'"hz":997,"other_rate_ns":(\d+),', log)
    assert 10**6 < int(ns) < 10**9
    assert "WARNING: somebody reset the counters: earlier samples are missing.\n" in log
    assert re.search(
        r"^WARNING: \d+ samples lost: (log full|no slot within reach)\. "
        r"Consider increasing profile\.samples= at boot\.$",
        log,
        re.MULTILINE,
    )
    assert re.findall(r"^profile: (.*)\nstatus 1$", log, re.MULTILINE) == [
        "-p 99999: No such process",
        "-L 99999: No such process",
        "standard output: No space left on device",
        "standard output: No space left on device",
    ]
    for message in (
        "-U and -K exclude each other",
        "-F 0: a number from 1 to 100000 is needed",
        "-c 1: a number from 10000 to 1000000000 is needed",
        "-- needs a command",
    ):
        assert f"profile: {message}\n" in log
