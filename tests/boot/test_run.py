# SPDX-License-Identifier: BSD-2-Clause
"""make run CMD='...' and make shell: a command, or a user, under the shell."""

import os
import re
import subprocess
from pathlib import Path

import pexpect
import pytest

from harness import BUILD, ROOT, locked, make

# Both goals make $BUILD/session.cpio and $BUILD/run.log: one at a time.
LOCK = BUILD / "test-locks" / "session"
BUILD_NAME = os.path.relpath(BUILD, ROOT)


@pytest.fixture
def run_command(builds):
    """Runs a command by make run: (what make said, the console)."""
    builds.kernel()

    def run(command: str, *arguments: str) -> tuple[subprocess.CompletedProcess, str]:
        with locked(LOCK):
            done = make(
                f"BUILD={BUILD_NAME}", "run", "SMP=2", f"CMD={command}", *arguments, check=False
            )
            return done, (BUILD / "run.log").read_text().replace("\r\n", "\n")

    return run


def test_status_0(run_command):
    done, log = run_command("echo some words | wc -w")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^2$", log, re.MULTILINE)
    assert re.search(r"profile: report \d+: exit of process \d+ \(sh\)", log)
    assert "reboot: power off, status 0" in log


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 3", 3), ("false", 1), ("no-such-program", 127), ("kill -KILL $$", 137)],
)
def test_other_status(run_command, command, status):
    done, log = run_command(command)
    assert done.returncode != 0
    assert f"init ended with status {status}\n" in done.stderr
    assert f"reboot: power off, status {status}\n" in log


def test_quotes_pipes_and_dollars(run_command):
    command = """X='a  "b"'; printf '%s|\\n' "$X" $(echo c) \\# | tr ab AB; """
    command += "echo `id -u` $((6*7))\n"
    command += 'for i in 1 2; do echo "<$i>"; done | cat; test "$HOME" = /root && exit $((2 + 2))'
    done, log = run_command(command)
    assert "status 4\n" in done.stderr
    for line in ('A  "B"|', "c|", "#|", "0 42", "<1>", "<2>"):
        assert f"\n{line}\n" in log, line


def test_several_lines(run_command):
    done, log = run_command("cat <<end\nhere $(uname -s)\nend\nexit 5\n")
    assert "status 5\n" in done.stderr
    assert "\nhere Linux\n" in log


def test_program_and_files(run_command, builds, tmp_path):
    builds.initrd()
    (tmp_path / "input").write_text("the input\n")
    program = f"PROGRAM={BUILD_NAME}/user/hello"
    files = f"FILES={tmp_path / 'input'}"
    done, log = run_command("hello from CMD && cat /data/input", program, files)
    assert done.returncode == 0, done.stderr
    assert "hello from user space: [from] [CMD]" in log
    assert "\nthe input\n" in log


def test_append(run_command):
    done, log = run_command("true", "APPEND=profile.on_exit=none")
    assert done.returncode == 0, done.stderr
    assert "profile: report" not in log


def test_icount_is_reproducible(run_command):
    logs = [run_command("echo words | wc", "ICOUNT=1", "SMP=1") for _ in range(2)]
    assert logs[0][0].returncode == 0, logs[0][0].stderr
    assert logs[0][1] == logs[1][1]


class Terminal(pexpect.spawn):
    """make shell on a terminal."""

    def __init__(self, log: Path):
        arguments = ["-s", "CONFIG=", f"BUILD={BUILD_NAME}", "SMP=2", "shell"]
        super().__init__("make", arguments, cwd=str(ROOT), timeout=60, encoding="utf-8")
        self.log = log.open("w")
        self.logfile_read = self.log

    def enter(self, text: str) -> None:
        self.expect(r":[~/]\S*# ")
        self.sendline(text)


@pytest.fixture
def shell(builds):
    builds.kernel()
    builds.initrd("shell.cpio")
    with locked(LOCK):
        (BUILD / "test-logs").mkdir(exist_ok=True)
        terminal = Terminal(BUILD / "test-logs" / "shell.log")
        yield terminal
        terminal.close(force=True)


def test_shell(shell):
    shell.enter("echo $((6 * 7)) >/tmp/x; cat /tmp/x")
    shell.expect("\n42\r")
    shell.enter("sleep 1000")
    shell.expect("sleep 1000")
    shell.send("\x03")
    shell.enter("echo status $?")
    shell.expect("\nstatus 130\r")
    shell.enter("exit 7")
    shell.expect("reboot: power off, status 7")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus not in (0, None)
    assert "profile: report" not in (BUILD / "run.log").read_text()


def test_shell_needs_a_terminal(builds):
    builds.kernel()
    with locked(LOCK):
        done = make(f"BUILD={BUILD_NAME}", "shell", check=False)
    assert done.returncode != 0
    assert "needs a terminal" in done.stderr
