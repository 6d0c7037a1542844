# SPDX-License-Identifier: BSD-2-Clause
"""Kernel memory that a user's processes take counts against them, and root's processes go on."""

import re

import pytest
from harness import script_image
from test_programs import NO_REPORTS, program_passes

# Objects that only fill kernel memory, and objects whose number is limited.
IN_KERNEL = ("pipes", "texts", "shared", "areas")
NUMBERS = ("threads", "processes")
# The same for a machine of 64 MiB, and objects that end in one or the other way.
IN_KERNEL_SMALL = ("watches", "sockets", "rights", "links")
NUMBERS_SMALL = ("names", "files", "signals")
OTHERS_SMALL = ("handles", "timers", "polls")

KILLED = re.compile(
    r"^\[.*\] out of memory: killed (\w+)\[\d+\], (\d+) KiB: "
    r"(\d+) of its own, (\d+) in the kernel, of user (\d+)$",
    re.MULTILINE,
)


def check_kills(log: str, in_kernel: tuple[str, ...], numbers: tuple[str, ...]) -> None:
    program_passes(log, "hoard")
    phases = re.split(r"^hoard (\w+): .*\n", log, flags=re.MULTILINE)
    killed = dict(zip(phases[1::2], map(KILLED.findall, phases[::2])))
    assert set(killed) >= {*in_kernel, *numbers}
    assert all(not killed[name] for name in numbers)
    for name in in_kernel:
        assert killed[name], name
    for name, kills in killed.items():
        for program, total, own, kernel, user in kills:
            assert (program, user) == ("hoard", "1000")
            assert abs(int(total) - int(own) - int(kernel)) <= 1
            if name in in_kernel:
                assert int(kernel) > 4 * int(own), name


def test_hoards(boot, tmp_path):
    options = dict(smp=2, mem="128M", initrd=script_image(tmp_path, "", ("hoard",)))
    log = boot("hoard", 1000, *IN_KERNEL, *NUMBERS, append=NO_REPORTS, **options).log
    check_kills(log, IN_KERNEL, NUMBERS)


def test_hoards_in_small_memory(boot, tmp_path):
    """A user takes all that there is of something, and root's shell still runs commands."""
    image = script_image(tmp_path, "", ("hoard",))
    kinds = IN_KERNEL_SMALL + NUMBERS_SMALL + OTHERS_SMALL
    log = boot("hoard", 1000, *kinds, smp=2, mem="64M", initrd=image, append=NO_REPORTS).log
    check_kills(log, IN_KERNEL_SMALL, NUMBERS_SMALL)
    # Files may take half of the memory for content, and a twelfth for inodes.
    (free,) = re.findall(r"^hoard files: .*, (\d+) KiB were free$", log, re.MULTILINE)
    assert int(free) > 64 * 1024 // 4


@pytest.mark.parametrize("mem", ["64M", "256M"])
def test_files_of_one_user_leave_room_for_another(boot, tmp_path, mem):
    """
    A user takes all the inodes and bytes that one can have, also in a file of root that everyone
    may write to. The next user still makes files.
    """
    image = script_image(tmp_path, "", ("hoard",))
    kinds = "names", "files", "open"
    log = boot("hoard", 1000, *kinds, smp=2, mem=mem, initrd=image, append=NO_REPORTS).log
    program_passes(log, "hoard")
    assert not KILLED.findall(log)
