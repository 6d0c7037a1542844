# SPDX-License-Identifier: BSD-2-Clause
"""
Unmodified programs of Debian, nearly all of them dynamic, have the same output, status and system
calls as on the host's Linux. All run in one boot, from one image.
"""

import re
import subprocess

import host_run
import pytest
import strace_compare
from harness import BUILD, ROOT, Booter
from strace_log import read_processes

HERE = ROOT / "tests" / "boot"
EXCEPTIONS = (HERE / "strace-exceptions.txt").read_text()
PACKAGES = """bash bc bzip2 coreutils cpio dc diffutils ed file findutils gawk grep gzip hostname jq
    lua5.4 m4 make mawk original-awk patch perl-base python3-minimal sed sqlite3 tar
    util-linux xxd xz-utils zip zstd""".split()
# The test reads only the tables of system calls, so the other profilers are off.
APPEND = (
    "profile.on_exit=all profile.top=all profile.heatmap=none profile.points=-* profile.waits=off"
)
SMP = 2


def sections(log):
    """Returns the output of each command of the script, without kernel messages."""
    text = re.sub(r"^\[ *\d+\.\d+\].*\n", "", log, flags=re.MULTILINE)
    text = text.split("@@@ begin\n")[1].split("@@@ end\n")[0]
    parts = re.split(r"^== ", text, flags=re.MULTILINE)[1:]
    assert all(re.search(r"^-- status \d+$", part, re.MULTILINE) for part in parts)
    return {part.split("\n", 1)[0]: part for part in parts}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    target = tmp_path_factory.mktemp("debian") / "debian.cpio"
    command = [ROOT / "scripts" / "mkinitramfs", "-o", target, f"--cache={BUILD / 'packages'}"]
    command += ["--busybox", *(f"--debian={name}" for name in PACKAGES), ROOT / "scripts" / "shell"]
    command += [f"--dir=/{name}" for name in ("dev", "proc", "root", "tmp")] + [HERE / "debian"]
    subprocess.run(command, check=True)
    return target


@pytest.fixture(scope="module")
def runs(builds, image):
    """Returns (output by command, processes), on the host and in the guest."""
    trace = image.with_name("trace")
    shown, status = host_run.run(host_run.command(image, ["/init"], trace), SMP)
    assert status == 0, shown
    boot = Booter(builds, "debian")
    log = boot(None, initrd=image, append=APPEND, smp=SMP, mem=None).log
    host = read_processes(trace.read_text(errors="replace"), "/init")
    return (sections(shown), host), (sections(log), strace_compare.read_reports(log))


def test_output_and_status_are_those_of_linux(runs):
    (host, _), (guest, _) = runs
    assert len(host) > 50 and host.keys() == guest.keys()
    wrong = [name for name in host if host[name] != guest[name]]
    assert not wrong, "\n".join(f"{host[name]}\n--- here:\n{guest[name]}" for name in wrong)
    statuses = set(re.findall(r"^-- status (\d+)$", "".join(host.values()), re.MULTILINE))
    assert statuses == {"0", "1", "2", "4", "7", "127", "143"}


def test_system_calls_are_those_of_linux(runs):
    (_, host), (_, guest) = runs
    pairs, wrong = strace_compare.compare_processes(host, guest, EXCEPTIONS)
    assert not wrong, "\n".join(wrong)
    assert len(pairs) > 60


def test_programs_are_many_and_dynamic(runs):
    """At least 40 are dynamic: the dynamic linker reads the headers of libraries by pread64()."""
    (_, host), _ = runs
    names = {process.name for process in host if process.calls.get("execve")}
    dynamic = {process.name for process in host if process.calls.get("pread64", 0) >= 2}
    assert len(names) >= 40 and len(dynamic) >= 40, sorted(names - dynamic)
