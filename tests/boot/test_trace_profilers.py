# SPDX-License-Identifier: BSD-2-Clause
"""The events of points and samples agree with the tables, even if NMIs write them."""

from __future__ import annotations

from collections import Counter

import harness
import pytest
import qemu
from profiles import events, export
from profiles.stacks import Symbols

SCRIPT = """\
cd /sys/kernel/tracing
echo off >/proc/profile/heatmap
echo '-*' >/proc/profile/points
echo reset >/proc/profile/report
echo 4096 >buffer_size_kb
echo 'profile:* raw_syscalls:*' >set_event
echo '*' >/proc/profile/points
echo on >/proc/profile/heatmap
busybox seq 3000 | busybox sort | busybox gzip >/dev/null
busybox dd if=/dev/zero of=/dev/null bs=1 count=8000 2>/dev/null
echo off >/proc/profile/heatmap
echo '-*' >/proc/profile/points
echo >set_event
"""


def named(trace: events.Trace, name: str) -> list[events.Event]:
    found = (event for cpu in trace.cpus.values() for event in cpu.events)
    return sorted(
        (event for event in found if trace.format(event).name == name),
        key=lambda event: event.cycles,
    )


def check_points(found: export.Export, trace: events.Trace) -> None:
    """Each counted pair has a begin and an end. Pairs in progress have no end."""
    counts = {row["point"]: row["pairs"] for row in found.rows("points.json")}
    begins, ends = (
        Counter(trace.format(event).values(event.data)["name"] for event in named(trace, name))
        for name in ("point_begin", "point_end")
    )
    assert ends == counts and {"exec", "page_fault", "context_switch"} <= counts.keys()
    in_progress = begins - ends
    # Nothing ends the pair of a schedule() that finds no other thread.
    alone = in_progress.pop("context_switch", 0)
    assert not ends - begins and in_progress.total() <= 3, in_progress
    assert alone < ends["context_switch"]


def check_samples(found: export.Export, trace: events.Trace) -> None:
    """Each sample of the heatmap has an event."""
    samples = named(trace, "sample")
    nr_taken = sum(row["attempts"] for row in found.rows("cpus.json"))
    assert len(samples) == nr_taken > 100


def check_nmis(trace: events.Trace) -> None:
    """NMIs write all samples. Some NMIs interrupt the writing of another event."""
    samples = named(trace, "sample")
    assert all(event.flags & events.NMI for event in samples)
    hit = [trace.kernel.function(trace.format(one).values(one.data)["ip"]) for one in samples]
    assert any(function and "trace_" in function[1] for function in hit)


@pytest.mark.parametrize("source", ["timer", "nmi"])
def test_events_are_what_tables_count(boot, builds, tmp_path, source):
    image = harness.script_image(tmp_path, SCRIPT)
    # At this rate some 140 NMIs hit the writer of an event, or 8 if they keep step with the loop.
    hz = 20_000 if source == "timer" else 90_000
    append = f"profile.on_exit=none profile.hz={hz} profile.source={source}"
    options = boot.options(None, initrd=image, append=append, smp=2, icount=True)
    options.export = tmp_path / "run.lego"
    with qemu.Guest(options) as guest:
        boot.finish(guest.wait(), ok=True, check=True)
    found = export.load(options.export)
    trace = events.read(found, Symbols(builds.kernel()))
    # If times went back, the reader would report lost events.
    assert not trace.nr_damaged and not any(cpu.lost for cpu in trace.cpus.values())
    check_points(found, trace)
    check_samples(found, trace)
    if source == "nmi":
        check_nmis(trace)
