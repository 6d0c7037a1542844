# SPDX-License-Identifier: BSD-2-Clause
"""trace-cmd reads a graph of functions. Its counts and times are those of the function profiler."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict

import qemu
from conftest import BUILD, ROOT, run

sys.path.insert(0, str(ROOT / "tests/boot"))
import harness  # noqa: E402

KERNEL = BUILD / "variants/functions/vmlinux"  # made by `make functions-kernel`
# The shell's `echo`, which switches both profilers on and off, calls none of these.
LISTED = "sys_getdents64 sys_newfstatat sys_execve sys_clone exec_* vma_copy* vma_tree_[abu]*"
SCRIPT = f"""\
cd /sys/kernel/tracing
echo 4096 >buffer_size_kb
echo '{LISTED}' >set_ftrace_filter
echo 0 >tracing_on
echo function_graph >current_tracer
echo on >/proc/profile/function_calls
echo 1 >tracing_on
ls -l /bin /proc >/dev/null
busybox true
echo 0 >tracing_on
echo off >/proc/profile/function_calls
cat /proc/profile/function_calls.json
"""
RECORD = 250  # instructions that record the start of a call; the function profiler counts them, too
INTERRUPT = 10_000  # one may come between the two starts of a call, depending on the kernel's code
PROFILE = re.compile(r"Event: func: (\S+)\(\) \((\d+)\) Total: (\d+)")


def test_trace_cmd_profiles_what_is_counted(tmp_path):
    """Calls are the same for each function, and so are total times but for the recording."""
    path = tmp_path / "run.lego"
    image = harness.script_image(tmp_path, SCRIPT)
    append = "profile.on_exit=none init=/init"
    options = qemu.Options(kernel=KERNEL, initrd=image, append=append, icount=True, export=path)
    result = qemu.run(options)
    assert result.ok and not result.export_error, result.tail()
    trace = tmp_path / "run.dat"
    run(ROOT / "scripts/legoprof", "trace-dat", path, "--kernel", KERNEL, "-o", trace)

    graph, counted = defaultdict(lambda: [0, 0]), defaultdict(lambda: [0, 0])
    for name, nr, ns in PROFILE.findall(run("trace-cmd", "report", "--profile", "-i", trace)):
        graph[name][0] += int(nr)
        graph[name][1] += int(ns)
    rows = [line for line in result.log.splitlines() if line.startswith('{"calls":')]
    for row in map(json.loads, rows):
        if row["function"] in graph:
            counted[row["function"]][0] += row["calls"]
            counted[row["function"]][1] += row["total_cycles"]
    assert len(graph) > 12 and graph["sys_newfstatat"][0] > 100
    assert {name: nr for name, (nr, _) in graph.items()} == {
        name: nr for name, (nr, _) in counted.items()
    }
    more = {name: counted[name][1] - ns for name, (_, ns) in graph.items()}
    assert min(more.values()) >= 0, more
    assert sum(max(0, ns - RECORD * graph[name][0]) for name, ns in more.items()) <= INTERRUPT, more
