# SPDX-License-Identifier: BSD-2-Clause
"""What a user makes the kernel hold counts against that user's processes, and root's go on."""

import re

from test_programs import NO_REPORTS, program_passes

# What only fills memory in the kernel, and what there is a limit on the number of.
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
