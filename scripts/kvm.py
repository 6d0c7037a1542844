# SPDX-License-Identifier: BSD-2-Clause
"""Finds out whether this machine can run a kernel under KVM."""

from __future__ import annotations

import os
import re
from pathlib import Path

INSTEAD = "without ACCEL=kvm the kernel is emulated"


def problem(
    device: Path = Path("/dev/kvm"), cpuinfo: Path = Path("/proc/cpuinfo")
) -> str | None:
    """Returns why KVM cannot work here, in one line; None if nothing speaks against it."""
    return device_problem(device) or cpu_problem(device, cpuinfo)


def device_problem(device: Path = Path("/dev/kvm")) -> str | None:
    """Returns why QEMU cannot use the device."""
    if not device.exists():
        return f"KVM: {device} does not exist: load the module kvm, or {INSTEAD}"
    try:
        os.close(os.open(device, os.O_RDWR))
    except OSError as error:
        return f"KVM: cannot open {device}: {error.strerror}; {INSTEAD}"
    return None


def cpu_problem(
    device: Path = Path("/dev/kvm"), cpuinfo: Path = Path("/proc/cpuinfo")
) -> str | None:
    """Returns what the CPU lacks. A KVM of its own kind may start a guest even so."""
    try:
        flags = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    if flags and not {"vmx", "svm"} & set(flags[1].split()):
        return (
            f"KVM: {device} is there, but the CPU has neither VT-x nor AMD-V (vmx, svm), which an "
            f"unmodified kernel needs; {INSTEAD}"
        )
    return None
