# SPDX-License-Identifier: BSD-2-Clause
"""
Debian's trace-cmd and perf ftrace, unmodified, record inside the guest. What they report is what
the kernel's own files show, and only of the threads, functions and values that were asked for.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from conftest import BUILD, run_sections

KERNEL = BUILD / "variants/functions/vmlinux"  # made by `make functions-kernel`
T = "/sys/kernel/tracing"

# The loop makes events of another process all the time. At its end, `trace-cmd stream` tells its
# recorder to write what is left, but does not wait for it: only what half fills the buffer comes
# for certain.
SCRIPT = f"""\
quiet() {{ "$@" >/tmp/log 2>&1 || cat /tmp/log; grep '^libtracecmd:' /tmp/log; }}
busybox sh -c 'while :; do busybox true; done' &
loop=$!

section start; quiet trace-cmd start -e sched -e raw_syscalls -e irq; busybox ls / >/dev/null
quiet trace-cmd stop
section shown; trace-cmd show | grep -c sched_switch
section ring; grep -v '^#' {T}/trace
section extracted; quiet trace-cmd extract -o /tmp/x.dat; trace-cmd report -t -i /tmp/x.dat
quiet trace-cmd reset

section tree; quiet trace-cmd record -o /tmp/x.dat -e sched -e raw_syscalls -F -c \\
	busybox sh -c 'busybox ls / | busybox cat >/dev/null'
trace-cmd report -i /tmp/x.dat
section filter; quiet trace-cmd record -o /tmp/x.dat -e kmem:kmalloc \\
	-f 'bytes_req > 100 && common_pid > 2' busybox ls /
trace-cmd report -i /tmp/x.dat
section calls; quiet trace-cmd record -o /tmp/x.dat -p function -l 'kmall*' -l 'sys_*' -F \\
	busybox ls /
trace-cmd report -i /tmp/x.dat
section graph; quiet trace-cmd record -o /tmp/x.dat -p function_graph -l 'kmall*' -l 'sys_*' -F \\
	busybox ls /
trace-cmd report -i /tmp/x.dat
section opened; quiet trace-cmd record -o /tmp/x.dat -p function_graph -g sys_openat -n 'kmall*' \\
	-F busybox ls /
trace-cmd report -i /tmp/x.dat
section profile; trace-cmd profile -F busybox ls / 2>&1
section stream; trace-cmd stream -b 16 -e sched_process_exec busybox sh -c \
	'for i in $(busybox seq 400); do busybox true; done' 2>&1
section hist; quiet trace-cmd record -o /tmp/x.dat -e raw_syscalls busybox ls /
trace-cmd hist -i /tmp/x.dat
section sums; k={T}/events/kmem/kmalloc
echo 'hist:keys=common_pid:vals=bytes_req:size=16384 if comm == busybox' >$k/trigger
quiet trace-cmd record -b 4096 -o /tmp/x.dat -e kmem:kmalloc -f 'comm == busybox' -F busybox ls /
cat $k/hist; section summed; trace-cmd report -i /tmp/x.dat
section triggers; quiet trace-cmd start -e kmem:kmalloc -R 'hist:keys=bytes_req.log2'
cat $k/trigger; quiet trace-cmd reset; cat $k/trigger
section marker; quiet trace-cmd start -e sched_process_exec; echo 'phase 1' >{T}/trace_marker
trace-cmd show | grep marker; quiet trace-cmd extract -o /tmp/x.dat; quiet trace-cmd reset
trace-cmd report -i /tmp/x.dat
section perf_trace; perf ftrace -T 'sys_*' busybox ls / 2>&1
section perf_graph; perf ftrace -G sys_openat busybox ls / 2>&1
section perf_latency; perf ftrace latency -T sys_openat busybox ls / 2>&1
section threshold; echo 1 >{T}/tracing_on; echo 50 >{T}/tracing_thresh
echo function_graph >{T}/current_tracer
busybox ls / >/dev/null; echo 0 >{T}/tracing_on
grep -v '^#' {T}/trace; echo nop >{T}/current_tracer; echo 0 >{T}/tracing_thresh
echo 1 >{T}/tracing_on
section wrong; trace-cmd record -e sched -f 'nosuch == 1' busybox ls 2>&1; cat {T}/error_log
section user; su user -c 'trace-cmd record -e sched ls; cat {T}/trace' 2>&1
kill $loop; wait $loop
point() {{ while read -r on name rest; do [ "$name" != $1 ] || echo $rest; done; }}
section latency; point exec </proc/profile/report
perf ftrace latency -a -T do_execve busybox sh -c 'for i in 1 2 3 4 5; do busybox true; done' 2>&1
point exec </proc/profile/report
section end
"""


@pytest.fixture(scope="module")
def sections(tmp_path_factory) -> dict[str, str]:
    """Returns the output of each part of the script."""
    directory = tmp_path_factory.mktemp("trace-cmd")
    return run_sections(directory, SCRIPT, "trace-cmd", "linux-perf", kernel=KERNEL)


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("cpus=")]


LINE = re.compile(r" *(?P<comm>.+)-(?P<tid>\d+) +\[\d+\][^:]* (?P<time>\d+\.\d+): +(?P<event>\w+):")


def parse(text: str) -> list[re.Match[str]]:
    found = [LINE.match(line) for line in lines(text)]
    assert found and all(found), [line for line in lines(text) if not LINE.match(line)][:5]
    return [match for match in found if match]


def test_pages_have_the_events_of_the_ring(sections):
    """The kernel prints its ring; trace-cmd decodes pages of it. No event is missing in either."""
    ring, extracted = parse(sections["ring"]), parse(sections["extracted"])
    assert [match["event"] for match in ring] == [match["event"] for match in extracted]
    assert [match["tid"] for match in ring] == [match["tid"] for match in extracted]
    for ours, theirs in zip(ring, extracted):
        assert abs(float(ours["time"]) - float(theirs["time"])) < 1e-6
    names = Counter(match["event"] for match in ring)
    assert len(ring) > 200 and len(names) > 5
    assert int(sections["shown"]) == names["sched_switch"]


def test_threads_that_were_asked_for(sections):
    """-F -c: the command's events and its children's, and switches to them, but no others."""
    found = parse(sections["tree"])
    comms = {match["comm"].strip() for match in found}
    assert comms >= {"busybox"} and comms <= {"busybox", "trace-cmd", "sh", "ls", "cat", "<idle>"}
    text = sections["tree"]
    root = re.search(r"sched_process_exec:.*pid=(\d+)", text)
    assert root
    tids = {root[1], *re.findall(r"sched_process_fork:.*child_pid=(\d+)", text)}
    for match in found:
        other = re.search(r"(?:==> \S+:|sched_wakeup: +\S+?:)(\d+)", match.string)
        assert match["tid"] in tids or (other and other[1] in tids), match.string


def test_filter(sections):
    found = parse(sections["filter"])
    for match in found:
        size = re.search(r"bytes_req=(\d+)", match.string)
        assert size and int(size[1]) > 100 and int(match["tid"]) > 2, match.string


def test_functions(sections):
    """The function tracer and the graph see the same calls of the same functions."""
    calls = Counter(re.findall(r"function: +(\S+)", sections["calls"]))
    graph = Counter(re.findall(r"funcgraph_entry: .*?([\w@.]+)\(\)", sections["graph"]))
    assert calls == graph
    assert {"kmalloc", "sys_write"} <= set(calls) and calls.total() > 20
    assert all(name.startswith(("kmall", "sys_")) for name in calls)


def test_graph_of_one_call(sections):
    found = parse(sections["opened"])
    depth, roots = 0, Counter()
    for match in found:
        name = re.search(r"([\w@.]+)\(\)", match.string)
        if match["event"] == "funcgraph_entry" and name:
            roots[name[1]] += depth == 0
            assert not name[1].startswith("kmall")
        depth += match.string.count("{") - match.string.count("}")
    # An interrupt may come between the record of a call's end and the end, and is its callee.
    roots.pop("do_irq", None)
    assert +roots == Counter(sys_openat=roots["sys_openat"]) and roots["sys_openat"] > 0
    assert len({match["tid"] for match in found}) == 1


def test_other_commands(sections):
    assert re.search(r"Event: page_fault_user:", sections["profile"])
    assert len(re.findall(r"sched_process_exec: +filename=/", sections["stream"])) > 100
    assert re.search(r"busybox +sys_enter #\d+", sections["hist"])


def test_marker(sections):
    shown, *reported = lines(sections["marker"])
    assert shown.endswith(": trace_write_marker: phase 1"), shown
    assert any(re.search(r"print: +trace_write_marker: phase 1$", line) for line in reported)


def test_histogram_has_the_sums_of_the_events(sections):
    """One command's row of a histogram is the sum of the events that trace-cmd has recorded."""
    found = parse(sections["summed"])
    (tid,) = {match["tid"] for match in found}
    row = rf"\{{ common_pid: +{tid} \}} hitcount: +(\d+) +bytes_req: +(\d+)$"
    counted = re.search(row, sections["sums"], re.M)
    assert counted and re.search(r"^ +Dropped: 0$", sections["sums"], re.M)
    sizes = [int(re.search(r"bytes_req=(\d+)", match.string)[1]) for match in found]
    assert [len(sizes), sum(sizes)] == [int(counted[1]), int(counted[2])] and len(sizes) > 20


def test_triggers(sections):
    """trace-cmd sets a trigger (-R), and removes it with all others."""
    trigger = "hist:keys=bytes_req.log2:vals=hitcount:sort=hitcount:size=2048 [active]"
    assert lines(sections["triggers"])[0] == trigger
    assert lines(sections["triggers"])[-1] == "# hist"


def test_perf_ftrace(sections):
    """perf ftrace follows its command only, and prints the kernel's text."""
    traced = re.findall(r"^ +(\S+)-(\d+) .*: (\S+) <-do_syscall_64$", sections["perf_trace"], re.M)
    assert {"sys_openat", "sys_write", "sys_exit_group"} <= {name for _, _, name in traced}
    assert len({tid for _, tid, _ in traced}) == 1
    assert re.search(r"\| +sys_openat\(\) \{$", sections["perf_graph"], re.M)
    counts = re.findall(r"\| +(\d+) \| [ #]+ \|$", sections["perf_latency"], re.M)
    opened = sum(name == "sys_openat" for _, _, name in traced)
    assert len(counts) == 22 and sum(map(int, counts)) == opened


def test_latency_equals_points(sections):
    """perf ftrace latency has the calls that a point counts, but for the exec of perf itself."""
    text = sections["latency"]
    (begin, nr_before), (end, nr_after) = re.findall(r"^(\d+\.\d+) +(\d+) +\d+$", text, re.M)
    rows = re.findall(r"^ +(\d+) - \S+ +(\w+) \| +(\d+) \| [ #]+ \|$", text, re.M)
    units = {"us": 1e-6, "ms": 1e-3, "s": 1}
    assert sum(int(nr) for _, _, nr in rows) == int(nr_after) - int(nr_before) - 1 >= 6
    shortest = sum(int(low) * units[unit] * int(nr) for low, unit, nr in rows)
    assert 0 < shortest < float(end) - float(begin)


def test_threshold(sections):
    """Only returns of calls that took 50 us, whose duration the kernel has measured."""
    line = r"^ +\d\) \S +([\d.]+) us +\| +\} /\* \S+ \*/$"
    found = re.findall(line, sections["threshold"], re.M)
    assert found and min(map(float, found)) >= 50
    assert " {" not in sections["threshold"]


def test_errors_and_permissions(sections):
    assert "no such field" in sections["wrong"] and "nosuch == 1" in sections["wrong"]
    assert "sched_switch" not in sections["user"]
    assert re.search(r"[Pp]ermission denied", sections["user"])
