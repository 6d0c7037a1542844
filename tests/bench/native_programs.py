# SPDX-License-Identifier: BSD-2-Clause
"""
Builds the programs that run the kernel's hooks on this machine, in its cycles: native_os.h answers
what the kernel answers elsewhere.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
CFLAGS = [
    *"-std=gnu11 -O2 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -pthread".split(),
    *"-fno-strict-aliasing -fcf-protection=none -fno-pie -no-pie -mno-red-zone".split(),
    *"-I../../include -I../../kernel/profile/include -I. -idirafter ../../arch/x86/include".split(),
    "-DCONFIG_PROFILE_POINTS=1",
    '-DPROFILE_OS_HOOKS_HEADER="native_os.h"',
]
PROGRAMS = {
    "native_points": ["native_points.c"],
    "native_accounts": ["native_accounts.c", "native_accounts.S"],
}


def build(kernel: Path, directory: Path) -> list[Path]:
    """Returns the programs. kernel: the folder with its generated headers."""
    directory.mkdir(parents=True, exist_ok=True)
    cc = [os.environ.get("HOSTCC", "gcc"), *CFLAGS, f"-I{kernel.resolve() / 'include'}"]
    for name, sources in PROGRAMS.items():
        command = [*cc, "-o", str(directory / name), *sources]
        subprocess.run(command, cwd=SOURCES, check=True)
    return [directory / name for name in PROGRAMS]
