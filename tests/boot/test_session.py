# SPDX-License-Identifier: BSD-2-Clause
"""A session with busybox' shell: what it shows and what it costs, as on the host's Linux."""

import difflib
import os
import re
import subprocess

import host_run
import pexpect
import pytest
import session
import strace_log
from harness import BUILD, ROOT, locked, make, run_until_equal

EXCEPTIONS = (ROOT / "tests" / "boot" / "strace-exceptions.txt").read_text()
SMP = 2


def log_path(name):
    (BUILD / "test-logs").mkdir(parents=True, exist_ok=True)
    return BUILD / "test-logs" / f"session.{name}"


def play(argv, name):
    console = session.Console(argv, log_path(name))
    try:
        return console.play_all()
    finally:
        console.close(force=True)


def test_shows_what_linux_shows(builds):
    """All that is typed, with its echo and the prompts around it, byte for byte."""
    image = builds.initrd("shell.cpio")
    options = f"--interactive --smp {SMP} --append profile.on_exit=none"
    run = f"{ROOT}/scripts/qemu-run {options} --kernel {builds.kernel()} --initrd {image}"
    host = play(host_run.command(image, ["/init"]), "typed.host")
    # The guest's line ends are whole already.
    guest = play(["sh", "-c", f"stty -onlcr && exec {run}"], "typed.guest")
    assert len(host) >= 25
    different = [name for name in host if host[name] != guest[name]]
    assert not different, "\n".join(f"{n}:\n{host[n]!r}\n{guest[n]!r}" for n in different)


def test_terminal_of_make_shell(builds):
    """It has a size, Ctrl-A is the shell's, and an exit status of the shell is no error."""
    image = builds.initrd("shell.cpio")
    options = ["--interactive", "--kernel", builds.kernel(), "--initrd", image]
    argv = [str(ROOT / "scripts" / "qemu-run"), *map(str, options)]
    shell = pexpect.spawn(argv[0], argv[1:], dimensions=(31, 97), timeout=60, encoding="latin-1")
    try:
        shell.expect(session.PROMPT)
        shell.send("stty size\r")
        shell.expect(r"\n31 97\r")
        shell.expect(session.PROMPT)
        shell.send("lo\1echo hel\r")
        shell.expect(r"\nhello\r")
        shell.send("exit 5\r")
        shell.expect("the guest ended with status 5\r")
        shell.expect(pexpect.EOF)
    finally:
        shell.close(force=True)
    assert shell.exitstatus == 0


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """(the image, the names of the scripts in it)"""
    directory = tmp_path_factory.mktemp("session")
    root = directory / "root"
    names = session.write_scripts(root)
    (root / "command").write_text(session.DRIVER)
    target = directory / "session.cpio"
    dirs = [f"--dir=/{name}" for name in ("dev", "proc", "root", "tmp")]
    items = [ROOT / "scripts" / "shell", root, f"--cache={BUILD / 'packages'}"]
    command = [ROOT / "scripts" / "mkinitramfs", "-o", target, "--busybox", *dirs, *items]
    subprocess.run(command, check=True)
    return target, names


def by_script(processes, names):
    """Who was made after a script and before the next one is part of it; the first are init's."""
    parts = {"": []}
    for process in sorted(processes, key=lambda process: process.pid):
        if process.name in names and process.name not in parts:
            parts[process.name] = []
        parts[list(parts)[-1]].append(process)
    return parts


def without_times(text):
    return [line for line in text.splitlines() if not re.match(r"\[ *\d+\.\d+\]", line)]


def run_both(boot, target, names, strace_compare):
    """Returns what strace saw on the host and the kernel here, by script, and the differences."""
    trace = log_path("trace")
    shown, status = host_run.run(host_run.command(target, ["/init"], trace), SMP)
    result = boot(None, initrd=target, append="profile.on_exit=all", smp=SMP)
    assert status == result.status == 0
    host = strace_log.read_processes(trace.read_text(errors="replace"), "/init")
    parts = by_script(host, names), by_script(strace_compare.read_reports(result.log), names)
    assert list(parts[0]) == list(parts[1]) == ["", *names]
    lines = [without_times(text) for text in (shown, result.log)]
    wrong = list(difflib.unified_diff(*lines, "the host", "the guest", lineterm="", n=0))
    for name in ["", *names]:
        found = strace_compare.compare_processes(parts[0][name], parts[1][name], EXCEPTIONS)[1]
        wrong += [f"{name or 'init'}: {line}" for line in found]
    return *parts, wrong


def test_costs_what_linux_counts(boot, image, strace_compare):
    """
    Every system call of every process of every script. A script gives a process 0.2 s to fall
    asleep before it is killed, and on a busy host that is not always enough; hence three tries.
    """
    target, names = image
    assert len(names) >= 25
    for _ in range(3):
        host, guest, wrong = run_both(boot, target, names, strace_compare)
        if not wrong:
            break
    assert not wrong, "\n".join(wrong)
    for name in names:
        check_that_miscounts_fail(strace_compare, host[name], guest[name], EXCEPTIONS)


def check_that_miscounts_fail(strace_compare, host, guest, text):
    """One call or error more than there were, in any row of any process, or a row or a process."""

    def is_seen():
        return bool(strace_compare.compare_processes(host, guest, text)[1])

    for process in guest:
        exceptions = strace_compare.read_exceptions(text, process.name)
        for name in process.calls.keys() - exceptions.keys():
            for table in (process.calls, process.errors):
                table[name] += 1
                assert is_seen(), (process, name)
                table[name] -= 1
        process.calls["extra"] = 1
        assert is_seen(), process
        del process.calls["extra"]
    last = guest.pop()
    assert is_seen()
    guest.append(last)
    assert not is_seen()


def test_two_runs_are_equal(builds):
    """Four CPUs that count instructions: the same bytes, times and all."""
    builds.kernel()
    arguments = [f"BUILD={os.path.relpath(BUILD, ROOT)}", "run", "ICOUNT=1", "SMP=4"]
    arguments += ["APPEND=profile.on_exit=all", f"CMD={session.one_script()}"]

    def run():
        done = make(*arguments, check=False)
        log = (BUILD / "run.log").read_text()
        log_path("icount").write_text(log)
        assert done.returncode == 0, done.stderr
        return log

    # The lock of test_run.py: the same files.
    with locked(BUILD / "test-locks" / "session"):
        log = run_until_equal(run)
    for block in session.read_blocks():
        assert block.is_typed or f"== {block.name}\n" in log.replace("\r", "")
    assert log.count("profile: end of report") > 100
