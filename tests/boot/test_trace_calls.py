# SPDX-License-Identifier: BSD-2-Clause
"""Events of each system call: they are those of raw_syscalls, with the names of the arguments."""

from __future__ import annotations

import re
from collections import Counter

import harness
from test_trace import LINE, sections

T = "/sys/kernel/tracing"

# Only events of threads named busybox: so it does not matter when which file is written to.
SCRIPT = f"""\
section() {{ echo "== $1"; }}
cd {T}
echo 4096 >buffer_size_kb
section named; ls events/syscalls | busybox wc -l; cat events/syscalls/enable
section formats; cat events/syscalls/sys_enter_openat/format events/syscalls/sys_exit_read/format
section linux; for name in newstat poll execve; do cat events/syscalls/sys_enter_$name/format; done
for system in raw_syscalls syscalls; do echo 'comm == busybox' >events/$system/filter; done
echo 'hist:keys=fd:vals=count if comm == busybox' >events/syscalls/sys_enter_write/trigger
echo 1 >events/syscalls/sys_exit_openat/count
echo 'raw_syscalls:* syscalls:*' >set_event
busybox ls -l /bin >/dev/null; busybox sync
echo >set_event
section ring; cat trace
section lost; cat per_cpu/cpu*/stats
section sums; cat events/syscalls/sys_enter_write/hist events/syscalls/sys_exit_openat/count
section export; cat /proc/profile/trace_events.json
section end
"""

NAMED = re.compile(r"^ +(?P<comm>\S+)-(?P<tid>\d+) +\[\d+\] \S+ +[\d.]+: (?P<text>sys_\w+[( ].*)$")


def pairs(lines: list[str]) -> list[tuple[str, str]]:
    """Returns the raw event and the named one of each record, from pairs of lines."""
    raw: dict[str, list[str]] = {}
    named: dict[str, list[str]] = {}
    for line in lines:
        found = LINE.match(line)
        if found and found["event"] in ("sys_enter", "sys_exit"):
            raw.setdefault(found["tid"], []).append(found["text"])
        elif not line.startswith("#"):
            match = NAMED.match(line)
            assert match, line
            named.setdefault(match["tid"], []).append(match["text"])
    assert {tid: len(texts) for tid, texts in raw.items()} == {
        tid: len(texts) for tid, texts in named.items()
    }
    return [pair for tid in raw for pair in zip(raw[tid], named[tid])]


def check_enter(raw: str, named: str, names: dict[int, str]) -> None:
    number, values = re.fullmatch(r"NR (\d+) \((.*)\)", raw).groups()
    name, arguments = re.fullmatch(r"(\w+)\((.*)\)", named).groups()
    assert name == names[int(number)]
    shown = [argument.split(": ")[1] for argument in arguments.split(", ") if argument]
    assert shown == values.split(", ")[: len(shown)]


def test_calls_are_those_of_raw_events(boot, tmp_path):
    image = harness.script_image(tmp_path, SCRIPT)
    log = boot(None, initrd=image, append="profile.on_exit=none", smp=2, icount=True).log
    found = sections(log)
    table = (harness.ROOT / "arch/x86/entry/syscalls.tbl").read_text()
    rows = [line.split("\t") for line in table.splitlines() if line and line[0] != "#"]
    names = {int(row[0]): f"sys_{row[5].split('(')[0] or row[1]}" for row in rows}
    # Two directories of each call that there is; enable, filter and count of all.
    assert int(found["named"][0]) == 2 * sum(row[2] != "-" for row in rows) + 3
    assert found["named"][1] == "0"
    assert "\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;" in found["formats"]
    fields = re.findall(r"field:(.*?);\toffset:(?:16|24|32|40);", "\n".join(found["linux"]))
    assert fields == [
        *("const char * filename", "struct stat * statbuf"),
        *("struct pollfd * ufds", "unsigned int nfds", "int timeout_msecs"),
        *("const char * filename", "const char *const * argv", "const char *const * envp"),
    ]
    assert "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;" in found["formats"]

    assert not re.findall(r"(?:overrun|dropped events): [1-9]", "\n".join(found["lost"]))
    both = pairs(found["ring"])
    calls: Counter = Counter()
    for raw, named in both:
        if "->" in named:
            number, result = re.fullmatch(r"NR (\d+) = (-?\d+)", raw).groups()
            assert named == f"{names[int(number)]} -> 0x{int(result) & 2**64 - 1:x}"
        else:
            check_enter(raw, named, names)
            calls[re.match(r"\w+", named)[0]] += 1
    assert calls["sys_sync"] == 1 and calls["sys_write"] and len(calls) > 10
    row = r"\{ fd: +1 \} hitcount: +(\d+) +count: +(\d+)"
    shown = re.search(row, "\n".join(found["sums"]))
    writes = [named for _, named in both if named.startswith("sys_write(fd: 1,")]
    sizes = [int(re.search(r"count: (\w+)\)", named)[1], 16) for named in writes]
    assert shown and sizes and [int(shown[1]), int(shown[2])] == [len(sizes), sum(sizes)]
    assert int(found["sums"][-1]) == sum(named.startswith("sys_openat ->") for _, named in both)
    # An export explains the events that have been on, here all.
    assert '"event":"sys_enter_sync"' in "\n".join(found["export"])
