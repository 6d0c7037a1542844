# SPDX-License-Identifier: BSD-2-Clause
"""Calls by path (profile.files=on): `paths` makes known calls, and counts them itself, too."""

from __future__ import annotations

import json
import re
from collections import Counter

import report
from harness import script_image

ON = "profile.files=on profile.top=all"
OWN = re.compile(r"^path (\d+) (\d+) (\S+) (.*?)\r?$", re.MULTILINE)
LONGEST = "/y" * 2047
SHOWN = 128  # bytes of a path


def shown(path: str) -> str:
    return path if len(path) <= SHOWN else path[:SHOWN] + "..."


def own_counts(log: str) -> dict[str, tuple[int, int, str]]:
    """Returns what the program has counted: calls, errors, and the name of the error."""
    found = OWN.findall(log)
    return {shown(path): (int(nr), int(errors), error) for nr, errors, error, path in found}


def files_of(log: str) -> report.Report:
    """Returns the report of the program, not of its child, which asks for no path."""
    (found,) = (found for found in report.parse(log) if found.files)
    return found


LIVE = re.compile(r'\] \[pid 1\] \w+\((?:AT_FDCWD, )?"((?:[^"\\]|\\.)*)"')


def test_counts(boot):
    """The table equals the program's own counts, and the lines of strace, another instrument."""
    log = boot("paths", smp=2, append=f"{ON} profile.strace_live=file,wait").log
    own = own_counts(log)
    assert len(own) == 8 and own["/etc/no-such.conf"] == (300, 300, "ENOENT")
    own["/proc/self/exe"] = (1, 0, "-")  # libc's readlink()
    rows = {row.path: row for row in files_of(log).files.rows}
    assert rows.keys() == own.keys()
    for path, (nr, errors, error) in own.items():
        row = rows[path]
        assert (row.nr_calls, row.nr_errors, row.error) == (nr, errors, error)
    live = Counter(LIVE.findall(log))
    del live[""], live["/bin/paths"]  # fstatat() of a descriptor, the kernel's own execve
    as_strace = {r"\nprofile: end of report 1\n": "?profile: end of report 1?"}
    as_strace |= {r"\1\33[2J\377": "??[2J?"}
    seen = {shown(as_strace.get(path, path)): nr for path, nr in live.items()}
    long = next(path for path in seen if path.startswith("/y"))
    seen[shown(LONGEST)] = seen.pop(long)
    assert seen == {path: row.nr_calls for path, row in rows.items()}


def test_hostile_paths(boot):
    """No path forges a line: control characters are replaced, and a long path is truncated."""
    log = boot("paths", append=ON).log
    paths = [row.path for row in files_of(log).files.rows]
    assert {"?profile: end of report 1?", "??[2J?", shown(LONGEST)} <= set(paths)
    assert "\033" not in log


def test_times_are_those_of_strace(boot):
    """A call has the same time in both tables, to the nanosecond."""
    found = files_of(boot("paths", icount=True, append=f"{ON} profile.report=wide").log)
    calls = {row.name: row for row in found.strace.rows}
    rows = {row.path: row for row in found.files.rows}
    for call, path in ("sys_unlink", "?profile: end of report 1?"), ("sys_rename", "paths"):
        assert calls[call].ns == rows[path].ns
        assert calls[call].nr_errors == rows[path].nr_errors


SCRIPT = """\
cat /proc/profile/files
PATH=/nowhere:/sbin:/bin
hash -r
echo on > /proc/profile/files
no-such-command
no-such-command
echo === && cat /proc/profile/files && echo ===
cat /proc/profile/files.json > /tmp/json
echo reset > /proc/profile/files
test -e /tmp/only
echo off > /proc/profile/files
test -e /tmp/not-counted
cat /tmp/json
echo after && cat /proc/profile/files && echo end
su user -c 'cat /proc/profile/files' || echo denied
"""


def test_switch_reset_and_json(boot, tmp_path):
    """A shell looks for a command in each entry of PATH. Off by default; root only."""
    image = script_image(tmp_path, SCRIPT)
    log = boot(None, initrd=image, append="profile.on_exit=none").log.replace("\r", "")
    assert len(re.findall("^Kernel Files", log, re.MULTILINE)) == 2  # none while it was off
    table, after = log.split("===\n")[1], log.split("after\n")[1].split("end\n")[0]
    for entry in ("/nowhere", "/sbin", "/bin"):
        assert re.search(rf" +2 +2 ENOENT +{entry}/no-such-command$", table, re.MULTILINE)
    assert re.search(r" +1 +1 ENOENT +/tmp/only$", after, re.MULTILINE)
    assert "not-counted" not in after and "no-such-command" not in after
    assert re.search(r"^counting of files is off since ", after, re.MULTILINE)
    rows = [json.loads(line) for line in log.splitlines() if line.startswith('{"time_ns"')]
    (row,) = (row for row in rows if row["path"] == "/sbin/no-such-command")
    assert (row["calls"], row["errors"], row["errors_by_name"]) == (2, 2, {"ENOENT": 2})
    assert row["time_ns"] >= row["cpu_ns"] > 0
    assert "can't open '/proc/profile/files': Permission denied" in log


def test_signals(boot):
    """The signals of a process, by kind and by what became of them, and of a run."""
    child, parent = report.parse(boot("paths", append="profile.report=wide").log)
    assert child.summary.signals == {"SIGTERM": 1}
    assert child.summary.signal_fates == {"fatal": 1}
    kinds = {"SIGUSR1": 30, "SIGUSR2": 20, "real-time": 3, "SIGHUP": 1, "others": 1}
    assert parent.summary.signals == kinds
    fates = {"handled": 30, "waited for": 4, "ignored": 21}
    assert parent.summary.signal_fates == fates
    (run,) = report.parse(boot("paths", append="profile.on_exit=run").log)
    assert run.summary.signal_fates == fates | {"fatal": 1}
