# SPDX-License-Identifier: BSD-2-Clause
"""A session in busybox's shell has the same output and system calls as on the host's Linux."""

import difflib
import os
import re
import subprocess

import host_run
import pexpect
import pytest
import session
import strace_compare
import strace_log
from harness import BUILD, ROOT, make, run_until_equal

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


def play_on_linux(image):
    """
    Returns what the session shows on Linux. There, busybox's shell has missed a Ctrl-C in a loop on
    a busy host: that is another session.
    """
    for _ in range(2):
        try:
            return play(host_run.command(image, ["/init"]), "typed.host")
        except pexpect.TIMEOUT:
            continue
    return play(host_run.command(image, ["/init"]), "typed.host")


def test_shows_what_linux_shows(builds):
    """The terminal shows the same bytes, with the echo of what is typed and the prompts."""
    image = builds.initrd("shell.cpio")
    options = f"--interactive --smp {SMP} --append profile.on_exit=none"
    run = f"{ROOT}/scripts/qemu-run {options} --kernel {builds.kernel()} --initrd {image}"
    host = play_on_linux(image)
    # The guest writes CR LF itself.
    guest = play(["sh", "-c", f"stty -onlcr && exec {run}"], "typed.guest")
    assert len(host) >= 25
    different = [name for name in host if host[name] != guest[name]]
    assert not different, "\n".join(f"{n}:\n{host[n]!r}\n{guest[n]!r}" for n in different)


def test_terminal_of_make_shell(builds):
    """The terminal has a size, the shell gets Ctrl-A, and a status other than 0 is no failure."""
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
    """Returns (the image, the names of the scripts in it)."""
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
    """
    Groups processes by script, in the order of their pids: each script is followed by its children.
    Processes before the first script are under "".
    """
    parts = {"": []}
    for process in sorted(processes, key=lambda process: process.pid):
        if process.name in names and process.name not in parts:
            parts[process.name] = []
        parts[list(parts)[-1]].append(process)
    return parts


def without_times(text):
    return [line for line in text.splitlines() if not re.match(r"\[ *\d+\.\d+\]", line)]


def run_both(boot, target, names):
    """Returns the processes by script, on the host and in the guest, and all differences."""
    trace = log_path("trace")
    shown, status = host_run.run(host_run.command(target, ["/init"], trace), SMP)
    result = boot(None, initrd=target, append="profile.on_exit=all profile.top=all", smp=SMP)
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


def test_system_calls_are_those_of_linux(boot, image):
    """
    Every process of every script makes the same system calls. Some scripts give a process 0.2 s to
    fall asleep before they kill it. On a busy host that may be too short, so there are three tries.
    """
    target, names = image
    assert len(names) >= 25
    for _ in range(3):
        host, guest, wrong = run_both(boot, target, names)
        if not wrong:
            break
    assert not wrong, "\n".join(wrong)
    for name in names:
        check_that_miscounts_fail(strace_compare, host[name], guest[name], EXCEPTIONS)


def check_that_miscounts_fail(strace_compare, host, guest, text):
    """Asserts that one more call, error or row in any process is noticed, and a missing process."""

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
    """
    With -icount, four CPUs print the same bytes in two runs, including times. A tenth of the usual
    samples halves the time of a run.
    """
    builds.kernel()
    arguments = [f"BUILD={os.path.relpath(BUILD, ROOT)}", "run", "ICOUNT=1", "SMP=4"]
    arguments += ["APPEND=profile.on_exit=all profile.hz=997", f"CMD={session.one_script()}"]

    def run():
        done = make(*arguments, check=False)
        log = (BUILD / "run.log").read_text()
        log_path("icount").write_text(log)
        assert done.returncode == 0, done.stderr
        return log

    log = run_until_equal(run)
    for block in session.read_blocks():
        assert block.is_typed or f"== {block.name}\n" in log.replace("\r", "")
    assert log.count("profile: end of report") > 100
