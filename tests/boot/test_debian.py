# SPDX-License-Identifier: BSD-2-Clause
"""
Unmodified programs of Debian, nearly all of them dynamic: what they write, their status and every
system call of theirs are as on the host's Linux. They run in one boot, from an image of their own.
"""

import re
import subprocess

import host_run
import pytest
from harness import BUILD, ROOT, Booter, load_script
from strace_log import read_processes

HERE = ROOT / "tests" / "boot"
EXCEPTIONS = (HERE / "strace-exceptions.txt").read_text()
PACKAGES = """bash bc bzip2 coreutils cpio dc diffutils ed file findutils gawk grep gzip hostname jq
    lua5.4 m4 make mawk original-awk patch perl-base python3-minimal sed sqlite3 tar
    util-linux xxd xz-utils zip zstd""".split()
# The tables of calls are looked at; the others would only take time.
APPEND = "profile.on_exit=all profile.heatmap=none profile.points=-* profile.waits=off"
SMP = 2


def sections(log):
    """What each command of the script wrote, by the command; kernel messages are left out."""
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
    """(what the host shows and its processes, the same of the kernel)"""
    trace = image.with_name("trace")
    shown, status = host_run.run(host_run.command(image, ["/init"], trace), SMP)
    assert status == 0, shown
    boot = Booter(builds, "debian")
    log = boot(None, initrd=image, append=APPEND, smp=SMP, mem=None).log
    compare = load_script("strace-compare")
    host = read_processes(trace.read_text(errors="replace"), "/init")
    return (sections(shown), host), (sections(log), compare.read_reports(log))


def test_output_and_status_are_those_of_linux(runs):
    (host, _), (guest, _) = runs
    assert len(host) > 50 and host.keys() == guest.keys()
    wrong = [name for name in host if host[name] != guest[name]]
    assert not wrong, "\n".join(f"{host[name]}\n--- here:\n{guest[name]}" for name in wrong)
    statuses = set(re.findall(r"^-- status (\d+)$", "".join(host.values()), re.MULTILINE))
    assert statuses == {"0", "1", "2", "4", "7", "127", "143"}


def test_system_calls_are_those_of_linux(runs, strace_compare):
    (_, host), (_, guest) = runs
    pairs, wrong = strace_compare.compare_processes(host, guest, EXCEPTIONS)
    assert not wrong, "\n".join(wrong)
    assert len(pairs) > 60


def test_programs_are_many_and_dynamic(runs):
    """A dynamic program reads its libraries' headers, and a static one has no use for mprotect."""
    (_, host), _ = runs
    names = {process.name for process in host if process.calls.get("execve")}
    dynamic = {process.name for process in host if process.calls.get("pread64", 0) >= 2}
    assert len(names) >= 40 and len(dynamic) >= 40, sorted(names - dynamic)
