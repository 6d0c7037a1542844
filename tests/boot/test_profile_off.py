# SPDX-License-Identifier: BSD-2-Clause
"""With profile=off, a kernel with all profilers runs programs as one that has none."""

import pytest

OFF = "profile: off until the next boot"
COMMANDS = """\
ls -d /proc/profile /proc/1/strace /sys/kernel/tracing/events
/bin/wordcount -t 8 /data/small
i=0; while [ $i -lt 30 ]; do (exit 3) | cat /proc/self/stat >/dev/null; i=$((i + 1)); done
echo went $((40 + 2))
"""


def test_nothing_is_there(boot):
    append = "profile=off profile.on_exit=all profile.strace_live=all trace_event=sched"
    with boot.start(None, append=append, initrd="shell.cpio", smp=2) as guest:
        guest.expect(OFF)
        guest.expect(r"lego:[^\n]*# ")
        guest.send(COMMANDS)
        guest.expect("^went 42")
        for key in "pweo":
            guest.sysrq(key)
            guest.expect(OFF)
        guest.sysrq("z")
        guest.expect("sysrq: reset")
        guest.send("exit\n")
        log = boot.finish(guest.wait(), ok=True, check=True).log
    assert log.count("No such file or directory") == 3
    assert "end of report" not in log and "[pid" not in log and "Kernel strace" not in log
    assert "profile: export" not in log and "all points" not in log


def test_panic(boot):
    with boot.start("spin", 60000, 2, smp=2, append="profile=off", silence=30) as guest:
        guest.expect("^spin: started")
        guest.sysrq("c")
        result = boot.finish(guest.wait(), ok=False, check=True)
    assert result.error.startswith("Kernel panic") and result.log.count(OFF) == 2


# The structures of profilers are not zeroed then, so the debug kernel has its pattern in them.
@pytest.mark.parametrize("program", ["forks", "threads", "restarts", "signals", "procs"])
def test_debug_kernel_has_no_complaint(boot, program):
    boot(program, append="profile=off", variant="debug", silence=60, smp=4)


def test_a_wrong_word(boot):
    log = boot("wordcount", "-t", 8, "/data/small", append="profile=on").log
    assert "params: profile=on: not valid, want profile=off; the default holds" in log
    assert "Kernel strace" in log
