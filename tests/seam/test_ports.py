# SPDX-License-Identifier: BSD-2-Clause
"""
tests/port/ is a kernel that uses kernel/profile/. Here it runs on four CPUs of other architectures,
in QEMU's machine `virt`, and its reports and exports are checked as those of x86-64.
"""

from __future__ import annotations

import port
import pytest

ARCHES = [arch for arch in port.COMMANDS if arch != "x86_64"]


@pytest.mark.parametrize("arch", ARCHES)
def test_all_cpus(arch):
    port.check_all(arch)


@pytest.mark.parametrize("arch", port.COMMANDS)
def test_picture(arch):
    port.check_picture(arch)


@pytest.mark.parametrize("arch", ARCHES)
def test_contracts(arch):
    port.check_contracts(arch)


@pytest.mark.parametrize("arch", ARCHES)
def test_one_cpu(arch):
    """The kernel is built for four CPUs. The profilers wait for none that is missing."""
    port.check_counts(port.boot(arch, "profile.top=all", cpus=1).read_text())
