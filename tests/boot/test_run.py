# SPDX-License-Identifier: BSD-2-Clause
"""make run CMD='...' and make shell: commands in the guest's shell."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest

import report
from harness import BUILD, ROOT, make
from profiles import export

BUILD_NAME = os.path.relpath(BUILD, ROOT)


@pytest.fixture
def run_command(builds):
    """Returns a function that runs a command by make run: (make's process, the console log)."""
    builds.kernel()

    def run(command: str, *arguments: str) -> tuple[subprocess.CompletedProcess, str]:
        done = make(
            f"BUILD={BUILD_NAME}",
            "run",
            "SMP=2",
            "REPORTS=each",
            f"CMD={command}",
            *arguments,
            check=False,
        )
        return done, (BUILD / "run.log").read_bytes().decode()

    return run


def test_status_0(run_command):
    done, log = run_command("echo some words | wc -w")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^2$", log, re.MULTILINE)
    assert re.search(r"profile: report \d+: sh \(pid \d+\) exited with status 0 after \S+ s", log)
    assert "reboot: power off, status 0" in log


def test_a_process_has_its_own_samples(run_command):
    """One program sleeps while the other runs: each report has its own program's samples."""
    command = "yes > /dev/null & sleep 0.5; kill $!; wait"
    done, log = run_command(command, "SMP=1", "APPEND=profile.hz=997")
    assert done.returncode == 0, done.stderr
    heatmaps = {found.why.split()[0]: found.heatmap for found in report.parse(log)}
    assert not report.check_log(log)
    # The shell and init mostly waited for their children, so each has a line, not a summary.
    parents = {f.why.split()[0] for f in report.parse(log) if f.summary.parent_us is not None}
    assert parents == {"sh", "init"}
    for name in ("sleep", "yes"):
        assert heatmaps[name].split["samples"] > 480
    assert heatmaps["yes"].process["samples"] > 400
    assert heatmaps["sleep"].process["samples"] < 20


def test_points_are_those_of_the_process(run_command):
    """One program waits for futexes, while another one never does."""
    program = f"PROGRAM={BUILD_NAME}/user/futexpp"
    _, log = run_command("futexpp & sleep 0.3; wait", program)
    ran = {
        name: {row.name for row in found.process_points.rows}
        for found in report.parse(log)
        for name in ("futexpp", "sleep")
        if name in found.why
    }
    assert "futex_wait" in ran["futexpp"]
    assert "exec" in ran["sleep"] and "futex_wait" not in ran["sleep"]


def test_log_has_plain_line_ends(run_command):
    """The CR LF of kernel and terminal is LF in the log. A CR that a program writes stays."""
    done, log = run_command("echo one; printf 'a\\rb\\n'", "APPEND=profile.on_exit=none")
    assert done.returncode == 0, done.stderr
    assert "\none\na\rb\n[" in log
    assert "\r\n" not in log


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


def test_debian_packages(run_command):
    """A dynamic program of a package replaces an applet; PROGRAM= may be dynamic, too."""
    words = ["DEBIAN=hostname", "PROGRAM=/bin/true", "APPEND=profile.on_exit=none"]
    done, log = run_command("cmp /bin/true /bin/busybox; hostname -s; command -v hostname", *words)
    assert done.returncode == 0, done.stderr
    assert "\nlego\n/bin/hostname\n" in log and "/bin/true /bin/busybox differ" in log
    done, _ = run_command("true", "DEBIAN=no-such-package-here")
    assert done.returncode != 0 and "no Debian package is called no-such-package" in done.stderr


def test_the_page_finds_a_program_of_any_directory(builds, tmp_path):
    """The export that the page is made of says where the program is."""
    builds.kernel()
    program = Path(shutil.copy(BUILD / "user/futexpp", tmp_path / "elsewhere"))
    make(f"BUILD={BUILD_NAME}", "run", "SMP=1", f"PROGRAM={program}")
    found = export.load(BUILD / "run.lego")
    assert str(program) in found.host_paths


def test_append(run_command):
    done, log = run_command("true", "APPEND=profile.on_exit=none")
    assert done.returncode == 0, done.stderr
    assert "profile: report" not in log


def test_icount_is_reproducible(run_command):
    logs = [run_command("echo words | wc", "SMP=1") for _ in range(2)]
    assert logs[0][0].returncode == 0, logs[0][0].stderr
    assert logs[0][1] == logs[1][1]


@pytest.mark.parametrize(
    ("init", "why"),
    [
        ("/bin/nope", "ENOENT, no such file in the initramfs (error 2)"),
        ("/bin/script", "ENOENT, the interpreter that it names is not in the initramfs (error 2)"),
        ("/bin", "EACCES, not a file that may be executed (error 13)"),
        ("/data/text", "EACCES, not a file that may be executed (error 13)"),
        ("/data/text/x", "ENOTDIR, a part of the path is no directory (error 20)"),
        ("/bin/words", "ENOEXEC, neither an x86-64 program nor a script with #! (error 8)"),
    ],
)
def test_init_that_cannot_run(boot, tmp_path, init, why):
    for name, text, mode in (
        ("script", "#!/bin/nothing\n", 0o755),
        ("words", "words\n", 0o755),
        ("text", "words\n", 0o644),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    items = [tmp_path / "script", tmp_path / "words", f"/data/={tmp_path / 'text'}"]
    image = tmp_path / "init.cpio"
    subprocess.run([ROOT / "scripts" / "mkinitramfs", "-o", image, *items], check=True)
    result = boot(None, initrd=image, append=f"init={init}", ok=False, check=False)
    assert result.error == f"Kernel panic: cannot run init={init}: {why}"


def test_make_says_what_is_wrong(builds, tmp_path):
    """The last line before make's own names the cause. A wrong PROGRAM= is found before booting."""
    builds.kernel()
    builds.initrd()
    source = tmp_path / "lock.c"
    source.write_text("int main(void) { }\n")
    nope = "Kernel panic: cannot run init=/bin/nope: ENOENT, no such file in the initramfs"
    for arguments, why in {
        ("INIT=/bin/nope", f"PROGRAM={BUILD_NAME}/user/hello"): nope,
        (f"PROGRAM={source}",): f"{source}: a source, not a program: gcc -static",
        (f"PROGRAM={tmp_path}",): "a directory, not a program",
        (f"PROGRAM={tmp_path}/nope",): f"{tmp_path}/nope: no such file",
        (f"PROGRAM={BUILD_NAME}/user/hello", "FILES=nope"): "nope: no such file",
    }.items():
        done = make(f"BUILD={BUILD_NAME}", "run", *arguments, check=False)
        assert done.returncode != 0
        said = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
        assert why in said[-1], done.stderr


# Imitates every line that qemu-run could take for the end of a run or for a fault.
FORGED = """echo 'a word about BUG: x'; echo 'WARNING: kernel/x.c:1 x'; echo 'Kernel panic: no'
echo '[    0.1] Kernel panic: no'; echo 'reboot: panic, status 127'
echo 'reboot: power off, status 3'; echo '[    0.1] reboot: power off, status 3'
echo 'verdict: status=9 panic=1 bugs=1 warnings=1 reports_cut=1 console_lost=1'
"""


@pytest.mark.parametrize("status", [0, 5])
def test_programs_cannot_forge_the_verdict(run_command, status):
    arguments = ["APPEND=profile.on_exit=none"]
    done, log = run_command(f"{FORGED}sleep 0.1; exit {status}", *arguments)
    assert log.count("\nverdict: ") == 1 and "\na word about BUG: x\n" in log
    if status:
        assert f"init ended with status {status}\n" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_forged_words_do_not_hide_a_panic(builds):
    """A program prints the message of a good end before a panic. The run still fails."""
    forged = "echo 'reboot: power off, status 0'; echo c >/proc/sysrq-trigger"
    builds.kernel()
    arguments = ["run", "SMP=2", "APPEND=profile.on_exit=none", f"CMD={forged}"]
    done = make(f"BUILD={BUILD_NAME}", *arguments, check=False)
    assert done.returncode != 0
    assert "qemu-run: error: Kernel panic: general protection fault at sysrq_crash+" in done.stderr


def test_no_report_is_cut_by_the_power_off(run_command):
    """
    Processes are killed at the moment when init exits, which is the same in each run because time
    is counted in instructions. If the kernel did not wait, the power-off would cut the seventh
    report 0.4 ms after its start.
    """
    command = "for i in 1 2 3 4 5 6; do yes >/dev/null & done; sleep 0.05; kill -9 -1; exit 0"
    done, log = run_command(command, "SMP=4")
    assert done.returncode == 0, done.stderr
    assert report.check_log(log) == []
    unreported = re.search(r"\] processes that end without a report: (\d+)\n", log)
    # init, its shell, sleep, and six times yes.
    assert len(report.parse(log)) + (int(unreported[1]) if unreported else 0) == 9
    assert len(report.parse(log)) > 2


def test_stacks_in_the_log_of_a_run(run_command):
    """In the log, the output of `cat stacks` has only stacks between the kernel's lines."""
    done, log = run_command(
        "ls -lR / | wc; echo STACKS; cat /proc/profile/stacks",
        "APPEND=profile.on_exit=none profile.hz=9973",
    )
    assert done.returncode == 0, done.stderr
    behind = log.split("\nSTACKS\n", 1)[1].splitlines()
    check_folded([line for line in behind if not line.startswith("[")])


def check_folded(lines: list[str]) -> None:
    """Checks the format: flamegraph.pl and speedscope ignore lines that do not match it."""
    assert len(lines) > 5
    for line in lines:
        assert re.fullmatch(r"[^;]+(;[^;]+)* [1-9][0-9]*", line, re.ASCII), line
    assert any(";do_syscall_64;" in line for line in lines)


def test_flame_graph_of_readme(demo):
    """The command of scripts/README.md works. It makes folded stacks here, not the picture."""
    shown = r"^    make run EXPORT=run.lego && (.*) -o run.svg$"
    draw = re.search(shown, (ROOT / "scripts/README.md").read_text(), re.MULTILINE)[1]
    assert " run.lego" in draw
    draw = draw.replace("run.lego", str(demo[1]))
    draw = draw.replace(" flamegraph ", " folded ").replace("build/", f"{BUILD_NAME}/")
    done = subprocess.run(draw.split(), cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.split("\n")
    assert lines.pop() == ""
    check_folded(lines)
    assert any(re.match(r"wordcount;.*;table_find\b", line) for line in lines)


class Terminal(pexpect.spawn):
    """Runs make shell on a terminal."""

    def __init__(self, log: Path):
        arguments = ["-s", "CONFIG=", f"BUILD={BUILD_NAME}", "SMP=2", "shell"]
        super().__init__("make", arguments, cwd=str(ROOT), timeout=240, encoding="utf-8")
        self.log = log.open("w")
        self.logfile_read = self.log

    def enter(self, text: str) -> None:
        self.expect(r":[~/]\S*# ")
        self.sendline(text)


@pytest.fixture
def shell(builds):
    builds.kernel()
    builds.initrd("shell.cpio")
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
    shell.expect("the guest ended with status 7")  # and make succeeds
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 0
    assert "profile: report" not in (BUILD / "run.log").read_text()


def test_shell_needs_a_terminal(builds):
    builds.kernel()
    done = make(f"BUILD={BUILD_NAME}", "shell", check=False)
    assert done.returncode != 0
    assert "needs a terminal" in done.stderr


@pytest.mark.parametrize(
    "command, files",
    [("true", {}), ("echo typed >/host/x; mkdir /host/d; cp -r /etc /host/d", {"x": "typed\n"})],
)
def test_host_directory(run_command, command, files):
    """What a command puts into /host is on the host, and a run without any has not failed."""
    shutil.rmtree(BUILD / "files", ignore_errors=True)
    done, _ = run_command(command)
    assert done.returncode == 0 and "not copied" not in done.stdout + done.stderr
    for name, text in files.items():
        assert (BUILD / "files/host" / name).read_text() == text
        assert (BUILD / "files/host/d/etc/passwd").exists()
    assert ("files: " in done.stdout) == bool(files)
