# SPDX-License-Identifier: BSD-2-Clause
"""Kernel memory that a user's processes take counts against them, and root's processes go on."""

import re

from test_programs import NO_REPORTS, program_passes

# Objects that only fill kernel memory, and objects whose number is limited.
IN_KERNEL = ("pipes", "texts", "shared", "areas")
NUMBERS = ("threads", "processes")

KILLED = re.compile(
    r"^\[.*\] out of memory: killed (\w+)\[\d+\], (\d+) KiB: "
    r"(\d+) of its own, (\d+) in the kernel, of user (\d+)$",
    re.MULTILINE,
)


def test_hoards(boot):
    log = boot("hoard", 1000, *IN_KERNEL, *NUMBERS, smp=2, mem="128M", append=NO_REPORTS).log
    program_passes(log, "hoard")
    phases = re.split(r"^hoard (\w+): .*\n", log, flags=re.MULTILINE)
    killed = dict(zip(phases[1::2], map(KILLED.findall, phases[::2])))
    assert set(killed) == {*IN_KERNEL, *NUMBERS}
    assert all(not killed[name] for name in NUMBERS)
    for name in IN_KERNEL:
        assert killed[name], name
        for program, total, own, in_kernel, user in killed[name]:
            assert (program, user) == ("hoard", "1000")
            assert abs(int(total) - int(own) - int(in_kernel)) <= 1
            assert int(in_kernel) > 4 * int(own)
