# SPDX-License-Identifier: BSD-2-Clause
"""legoprof prints the events of an export as /sys/kernel/tracing/trace does."""

from __future__ import annotations

import re

import harness
from profiles import events, export, ftrace
from profiles.stacks import Symbols
import qemu

SCRIPT = """\
cd /sys/kernel/tracing
echo 16 >buffer_size_kb
busybox ls / >/dev/null | busybox sync
echo 1 >options/stacktrace
busybox sync
echo 0 >options/stacktrace; echo "half way" >trace_marker
echo 0 >tracing_on
echo == trace; cat trace; echo == end
"""
SYSTEMS = "sched,raw_syscalls,irq,irq_vectors,exceptions,kmem,lock,timer,signal"


def test_text_is_that_of_the_kernel(boot, builds, tmp_path):
    """
    The text has all kinds of events, call chains and gaps. legoprof formats it by the events'
    `format` files, the kernel by its own code.
    """
    image = harness.script_image(tmp_path, SCRIPT)
    append = f"profile.on_exit=none trace_event={SYSTEMS},profile"
    options = boot.options(None, initrd=image, append=append, smp=2)
    options.export = tmp_path / "run.lego"
    with qemu.Guest(options) as guest:
        result = boot.finish(guest.wait(), ok=True, check=True)
    text = result.log.replace("\r", "").partition("== trace\n")[2].partition("== end\n")[0]
    # The kernel appends the file to functions of the same name.
    text = re.sub(r"(=|=> )(\w+)@\w+", r"\1\2", text)
    trace = events.read(export.load(options.export), Symbols(builds.kernel()))
    names = {trace.format(event).name for cpu in trace.cpus.values() for event in cpu.events}
    assert b"".join(ftrace.write(trace)).decode() == text
    assert re.search(r"^CPU:\d \[LOST \d+ EVENTS\]$", text, re.M)
    assert re.search(r"^.*: <stack trace>\n => trace_record_with_stack\n( => \w+\n)+", text, re.M)
    assert len(names) > 10, names
