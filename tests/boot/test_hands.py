# SPDX-License-Identifier: BSD-2-Clause
"""make run, as people use it: defaults, standard input, Ctrl-C, hangs, two runs at a time."""

import hashlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pexpect
import pytest

import qemu
from harness import BUILD, ROOT, make
from report import check_log

BUILD_NAME = os.path.relpath(BUILD, ROOT)
QUIET = "APPEND=profile.on_exit=none"
BYTES = bytes(range(256)) * 9000  # 2.3 MB, and not a text


@pytest.fixture(autouse=True)
def built(builds):
    builds.kernel()
    builds.initrd()
    builds.initrd("initramfs.cpio")


def start(*arguments: str, **options) -> subprocess.Popen:
    """Starts make, in a process group of its own as a shell would."""
    env = {**os.environ, "MAKEFLAGS": ""}
    command = ["make", f"BUILD={BUILD_NAME}", "CONFIG=", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        command, cwd=ROOT, env=env, start_new_session=True, **{**pipes, **options}
    )


def run_with_input(data: bytes, *arguments: str) -> str:
    with start("run", *arguments, stdin=subprocess.PIPE) as process:
        out, err = process.communicate(data)
    assert process.returncode == 0, err.decode()
    return out.decode()


def run_options(*arguments: str) -> dict[str, str | None]:
    """Returns how make run would call qemu-run."""
    lines = make(f"BUILD={BUILD_NAME}", "-n", *arguments).stdout.replace("\\\n", " ").splitlines()
    (line,) = [line for line in lines if "scripts/qemu-run " in line]
    (smp,) = re.findall(r"--smp (\d+)", line)
    hz = re.findall(r"profile.hz=(\d+)", line)
    # The critical path is for reports of runs. A shell has the trace for itself.
    assert ("profile.path=on" in line) == (arguments[0] == "run")
    return {"smp": int(smp), "icount": "--icount" in line, "hz": hz[-1] if hz else None}


def test_defaults():
    host_cpus = len(os.sched_getaffinity(0))
    exact = {"smp": 1, "icount": True, "hz": "10007"}
    real = {"smp": min(4, host_cpus), "icount": False, "hz": None}
    for arguments, expected in {
        ("run",): exact,
        ("run", "ICOUNT=1"): exact,
        ("run", "SMP=4"): {**exact, "smp": 4},
        ("run", "REAL=1"): real,
        ("run", "ICOUNT=0"): real,
        ("run", "REAL=1", "SMP=3"): {**real, "smp": 3},
        ("run", "ACCEL=kvm"): real,
        ("run", "APPEND=profile.hz=99"): {**exact, "hz": "99"},
        ("shell",): {**real, "smp": 4},
        ("perf-base", "BASE=x"): {**exact, "hz": "1"},
    }.items():
        assert run_options(*arguments) == expected, arguments


def test_variables_without_effect_are_told():
    for arguments, line in {
        ("FILES=x",): "FILES= has no effect without PROGRAM= or CMD=",
        ("CMD=true", "ARGS=x"): "ARGS= has no effect with CMD=: write them into the command",
        ("REAL=1", "ICOUNT=1"): "REAL= has no effect with ICOUNT=1",
        ("BASE=x",): "BASE= has no effect here: perf-base and check-perf use it",
    }.items():
        done = make(f"BUILD={BUILD_NAME}", "-n", "run", *arguments)
        assert done.stdout.count(f"make: warning: {line}'") == 1
        assert done.stdout.count("make: warning: ") == 1


@pytest.mark.parametrize("data", [BYTES, b"hello\n", b""], ids=["binary", "line", "nothing"])
def test_a_pipe_is_the_standard_input(data):
    digest = hashlib.sha1(data).hexdigest()
    assert f"{digest}  -\r\n" in run_with_input(data, "PROGRAM=/usr/bin/sha1sum", QUIET)


def test_a_command_reads_a_pipe_to_its_end():
    out = run_with_input(b"one\ntwo\n", "CMD=read a; echo \"<$a>\"; wc -l; cat; tty; true", QUIET)
    assert "\n<one>\r\n1\r\nnot a tty\r\n" in out


def test_nothing_to_read():
    done = make(f"BUILD={BUILD_NAME}", "run", "PROGRAM=/usr/bin/sha1sum", QUIET)  # </dev/null
    assert hashlib.sha1(b"").hexdigest() in done.stdout


def test_two_runs_do_not_mix():
    """
    The first run has made its image and opened its log when the second one begins. Each has a page
    of its own, and says where in its last line.
    """
    with start("run", "CMD=echo alpha; cat", QUIET, stdin=subprocess.PIPE) as first:
        line = first.stderr.readline().decode()
        assert "waiting for the end of standard input" in line
        second = make(f"BUILD={BUILD_NAME}", "run", "CMD=echo omega", QUIET)
        out, err = first.communicate(b"typed\n")
    assert first.returncode == 0, err.decode()
    assert "\nalpha\r\ntyped\r\n" in out.decode() and "omega" not in out.decode()
    assert "\nomega\n" in second.stdout and "alpha" not in second.stdout
    (log,) = re.findall(r"another run writes \S+/run.log, so this log is (\S+)", second.stderr)
    text = Path(ROOT, log).read_text()
    for name, printed in (Path(ROOT, log), second.stdout), (BUILD / "run.log", out.decode()):
        page = name.with_suffix(".html")
        last = printed.splitlines()[-1]
        assert last == f"page: {page.relative_to(ROOT)}: open it in a browser"
        assert page.read_text().startswith("<!DOCTYPE html>")
    for suffix in ".log", ".lego", ".html":
        Path(ROOT, log).with_suffix(suffix).unlink()
    assert "\nomega\n" in text and "\nalpha\ntyped\n" in (BUILD / "run.log").read_text()
    images = re.findall(r"CPIO +(\S+)/session.cpio", out.decode() + second.stdout)
    assert len(set(images)) == 2 and not any(Path(ROOT, image).exists() for image in images)


@pytest.mark.parametrize(
    ("path", "why"),
    [("/no/such/x.lego", "No such file or directory"), ("/proc/version", "Permission denied")],
)
def test_a_bad_export_path_fails_before_the_run(path, why):
    if path == "/proc/version" and os.geteuid() == 0:
        path, why = "/", "Is a directory"
    done = make(f"BUILD={BUILD_NAME}", "run", f"EXPORT={path}", check=False)
    assert done.returncode != 0 and f"cannot write {path}: {why}" in done.stderr
    assert "Command line" not in done.stdout


def check_interrupted(text: str, export: Path) -> None:
    assert re.search(r"profile: report 1: spin \(pid 1\) was killed by signal 2 after", text)
    assert "init ended with status 130" in text
    done = subprocess.run([ROOT / "scripts" / "legoprof", "report", export], capture_output=True)
    assert done.returncode == 0 and b"spin" in done.stdout


def test_ctrl_c_ends_the_program_and_keeps_the_export(tmp_path):
    """The screen says how to quit. The report is printed, and the export is written."""
    export = tmp_path / "run.lego"
    arguments = ["-s", f"BUILD={BUILD_NAME}", "CONFIG=", "run", f"EXPORT={export}"]
    arguments += [f"PROGRAM={BUILD_NAME}/user/spin", "ARGS=1000000"]
    screen = pexpect.spawn("make", arguments, cwd=str(ROOT), timeout=240, encoding="utf-8")
    try:
        screen.expect("Ctrl-C ends the program, Ctrl-] X ends QEMU at once")
        screen.expect("spin: [^\n]*\n")
        screen.send("\3")
        screen.expect(pexpect.EOF)
    finally:
        screen.close(force=True)
    check_interrupted(screen.before, export)


def test_ctrl_c_without_a_terminal(tmp_path):
    """SIGINT reaches make and qemu-run, but not QEMU, as at Ctrl-C in `make run | tee`."""
    export = tmp_path / "run.lego"
    program = [f"PROGRAM={BUILD_NAME}/user/spin", "ARGS=1000000"]
    with start("run", *program, f"EXPORT={export}", stdin=subprocess.DEVNULL) as process:
        out = b""
        while b"\nspin: " not in out:
            out += process.stdout.read1()
        os.killpg(process.pid, signal.SIGINT)
        rest, err = process.communicate()
    assert b"the program was sent Ctrl-C; another Ctrl-C ends QEMU" in err
    check_interrupted((out + rest + err).decode(), export)


def test_a_hang_ends_with_the_waits_of_all_threads(boot):
    options = boot.options("typed", "lines", "-", append="profile.on_exit=none")
    with qemu.Guest(options) as guest:
        guest.expect("typed: go")
        options.silence = 1.0
        result = guest.wait()
    assert result.error == "hang: nothing on the console for 1 s"
    tasks = result.log.split("sysrq: tasks\n")[-1]
    assert re.search(r"\] +1 typed +sleeping +0 +\d+ console_tty.read_wait", tasks), tasks
    waits = re.findall(r"\] (.*) has waited \d+\.\d+ s for (.*) in (.*)", tasks)
    assert [wait[:2] for wait in waits] == [("typed (pid 1)", "console_tty.read_wait")], tasks
    assert re.match(r"(wait_for_input < )?read_tty < .* < do_syscall_64", waits[0][2])
    assert "] threads that wait: 1\n" in tasks


def test_permissions_can_be_tried():
    command = "id; for d in /run /var/run; do cd $d; pwd -P; done; "
    command += "su user -c 'id -un; cd; pwd; touch mine; ls -l; cat /proc/profile/report'"
    done = make(f"BUILD={BUILD_NAME}", "run", f"CMD={command}", QUIET, check=False)
    assert "uid=0(root) gid=0(root)" in done.stdout and "\n/run\n/run\n" in done.stdout
    assert "\nuser\n/home/user\n" in done.stdout and " user     user " in done.stdout
    assert "/proc/profile/report': Permission denied" in done.stdout


def test_programs_of_packages_are_run_by_others():
    """`timeout ps` runs the ps of the package, as `ps` alone does."""
    command = "for run in '' 'timeout 9' nice 'env A=1' xargs; do echo | $run ps -V; done"
    done = make(f"BUILD={BUILD_NAME}", "run", "DEBIAN=procps", f"CMD={command}", QUIET)
    assert done.stdout.count("\nps from procps") == 5, done.stdout


def test_functions_name_the_kernel_that_has_them(boot):
    """The default kernel says so at each of the words that need another kernel."""
    script = "cat /proc/profile/function_calls; echo on > /proc/profile/function_calls; "
    script += "echo function > /sys/kernel/tracing/current_tracer; true"
    append = "APPEND=profile.on_exit=none profile.function_calls=on"
    done = make(f"BUILD={BUILD_NAME}", "run", append, f"CMD={script}")
    need = "CONFIG_PROFILE_FUNCTIONS (make run CONFIG=functions BUILD=build/functions)"
    assert f"profile.function_calls=on: not in this kernel: it needs {need}" in done.stdout
    assert f"\nno function calls are counted: it needs {need}" in done.stdout
    assert f"nothing in this kernel: it needs {need}" in done.stdout
    assert "function_graph need a kernel by make CONFIG=functions" in done.stdout


def test_parameters_that_name_nothing(boot):
    """profile.heatmap= is refused with the words that it knows; each trace_event= counts."""
    words = "profile.heatmap=foo trace_event=sched:sched_switch trace_event=syscalls:nope"
    append = f"{words} trace_event=raw_syscalls:sys_enter profile.on_exit=none"
    done = make(
        f"BUILD={BUILD_NAME}", "run", f"APPEND={append}", "CMD=cat /sys/kernel/tracing/set_event"
    )
    known = "none|all|<glob>[,<glob>...] of machine, functions, calls, tasks, cpus, user"
    assert f"profile.heatmap=foo: not valid, want profile.heatmap={known}" in done.stdout
    assert "trace_event=syscalls:nope: cannot be switched on" in done.stdout
    assert "\nsched:sched_switch\n" in done.stdout
    assert "\nraw_syscalls:sys_enter\n" in done.stdout


def test_one_cpu_says_so_once():
    command = ["CMD=ls; ls", "APPEND=profile.on_exit=ls"]
    for smp, times in ("1", 1), ("2", 0):
        done = make(f"BUILD={BUILD_NAME}", "run", f"SMP={smp}", *command)
        assert done.stdout.count("profile: end of report") > 1 and not check_log(done.stdout)
        line = "one CPU: contention between CPUs needs more of them (SMP=<n>)"
        assert done.stdout.count(line) == times


def test_standard_input_that_is_not_there(boot):
    log = boot("hello", append="stdin=/nope profile.on_exit=none").log
    assert "stdin=/nope cannot be opened (error 2): init reads the console" in log
