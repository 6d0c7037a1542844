# SPDX-License-Identifier: BSD-2-Clause
"""The kernel boots on any number of CPUs, starts init, and ends with its status."""

import re
import signal

import pytest


@pytest.mark.parametrize("program", ["hello", "hello.musl", "hello-pie"])
@pytest.mark.parametrize("smp", [1, 2, 4, 8])
def test_hello(boot, smp, program):
    log = boot(program, "one", "two", smp=smp).log
    assert "hello from user space: [one] [two]" in log
    assert "PASS: hello" in log


@pytest.mark.parametrize("smp", [1, 2, 8, 32])
def test_all_cpus_come_up(boot, smp):
    log = boot(smp=smp).log
    assert f"smp: {smp} of {smp} CPUs online" in log
    offsets = {int(cpu) for cpu in re.findall(r"tsc: CPU(\d+) offset -?\d+ cycles", log)}
    assert set(range(1, smp)) <= offsets


@pytest.mark.parametrize("smp", [32, 64])
def test_threads_on_many_cpus(boot, smp):
    assert "PASS: threads" in boot("threads", smp=smp, mem="1G", timeout=240).log


@pytest.mark.parametrize("mem", ["64M", "3G", "6G"])
def test_memory_sizes(boot, mem):
    assert "PASS: hello" in boot(smp=2, mem=mem).log


@pytest.mark.parametrize("status", [0, 1, 3, 42, 255])
def test_status_of_init(boot, status):
    result = boot("exit", status, ok=status == 0)
    assert result.status == status
    if status:
        assert result.exit_code == (status & 0x7F) << 1 | 1


def test_status_from_another_thread(boot):
    assert boot("exit", "thread", 7, smp=2, ok=False).status == 7


def test_init_lives_on_a_signal(boot):
    assert boot("exit", "kill", signal.SIGTERM, ok=False).status == 2


def fails_clearly(result, *words):
    """A panic that says what is wrong, and an end that a script can see."""
    assert "Kernel panic" in result.error
    assert any(word in result.error for word in words), result.error
    assert result.exit_code not in (0, None)


def test_missing_init(boot):
    fails_clearly(boot("no-such-program", ok=False), "/bin/no-such-program")


def test_init_that_is_no_program(boot):
    fails_clearly(boot(None, append="init=/data/small", ok=False), "/data/small")


def test_no_initramfs(boot):
    fails_clearly(boot("hello", initrd=None, ok=False), "initramfs", "initrd")


@pytest.mark.parametrize(
    "parameter", ["profile.top=many", "profile.top=-1", "profile.nonsense=1", "profile.top="]
)
def test_malformed_parameter_warns(boot, parameter):
    log = boot(append=parameter).log
    name = re.escape(parameter.split("=")[0])
    assert re.search(rf"params: {name}=.*: (not valid, want {name}=\S|no such parameter)", log)
    assert "PASS: hello" in log
