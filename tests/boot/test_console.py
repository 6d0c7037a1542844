# SPDX-License-Identifier: BSD-2-Clause
"""If the host stops reading the serial line, the kernel counts the lines that it does not print."""

import fcntl
import re
import time

from harness import kernel_word

WAIT_MS = 500  # of guest time, which -icount counts in instructions
LONGEST_NS = 100_000
SMALLEST_PIPE = 4096
LINE = re.compile(r"\[ *\d+\.\d{6}\] .*")
LOSS = re.compile(
    r"\] console: (\d+) lines were not printed, the serial line took nothing for (\d+\.\d{3}) s; "
    "dmesg has them"
)


def stall_until_lines_are_lost(guest, kernel):
    guest.expect("^stall: ready")
    fcntl.fcntl(guest.process.stdout, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    guest.send("\n")
    end = time.monotonic() + 120
    while not kernel_word(guest, kernel, "nr_lost_bytes"):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_reader_that_pauses(boot, builds):
    append = f"profile.on_exit=none console_wait={WAIT_MS}"
    with boot.start("stall", 100, append=append, icount=True) as guest:
        stall_until_lines_are_lost(guest, builds.kernel())
        result = boot.finish(guest.wait(), ok=False, check=False)
    assert "PASS: stall" in result.log
    printed = [match[0] for line in result.log.splitlines() if (match := LINE.match(line))]
    logged = re.findall(rf"^<6>({LINE.pattern})$", result.log, re.MULTILINE)

    # Each line of the log is on the console, or is counted by the loss message that follows it.
    lost, left = [], list(logged)
    for at, line in enumerate(logged):
        if match := LOSS.search(line):
            nr = int(match[1])
            lost += logged[at - nr : at]
            del left[left.index(line) - nr : left.index(line)]
            assert float(match[2]) * 1000 >= WAIT_MS
    assert lost and left == printed[: len(left)]
    assert result.verdict.console_lost == sum(len(line) + 2 for line in lost)
    assert f"the console lost {result.verdict.console_lost} bytes" in result.error

    # Interrupts were on while the kernel waited.
    assert int(re.search(r"^stall: took (\d+) ms", result.log, re.MULTILINE)[1]) > WAIT_MS
    stretches = re.findall(r'^stall: {"at_least_ns":(\d+)', result.log, re.MULTILINE)
    assert stretches and max(map(int, stretches)) < LONGEST_NS, stretches
