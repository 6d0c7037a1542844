# SPDX-License-Identifier: BSD-2-Clause
"""Files of the guest are on the host after the run: make run GET='/tmp/x /var/log'."""

import hashlib
import os
import re
import subprocess

import pytest
import qemu

from harness import BUILD, ROOT

COMMANDS = """\
mkdir -p /var/log/deep /tmp/odd; echo hello >/var/log/deep/x; : >/var/log/empty
seq 1 300000 >/tmp/big; ln -s /etc /tmp/link; mkfifo /tmp/fifo; ln /var/log/deep/x /var/log/linked
printf 'one\\ntwo' >'/tmp/odd/a b%'; printf '#!/bin/sh' >/tmp/odd/prog; chmod 4755 /tmp/odd/prog
dd if=/dev/zero of=/tmp/hole bs=1 count=1 seek=1000000000 2>/dev/null; echo secret >/root/other
echo "sum $(sha1sum </tmp/big)"
"""


def run(builds, tmp_path, end, get, **options):
    options = qemu.Options(
        builds.kernel(),
        builds.initrd("shell.cpio"),
        append="profile.on_exit=none stdin=/dev/ttyS0",
        icount=True,
        get=get,
        get_folder=tmp_path / "out",
        **options,
    )
    with qemu.Guest(options) as guest:
        guest.expect(r"lego:[^\n]*# ")
        guest.send("stty -echo\n")
        guest.expect(r"lego:[^\n]*# ")
        guest.send(f"cat >/tmp/commands <<'END'\n{COMMANDS}END\nPS2= sh /tmp/commands\n")
        guest.expect("sum ")
        end(guest)
        result = guest.wait()
    (BUILD / "test-logs").mkdir(exist_ok=True)
    (BUILD / "test-logs" / "get.log").write_text(result.log)
    return result


def test_files_come_out(builds, tmp_path):
    get = ["/tmp/", "/var/log", "/tmp/odd/a b%", "/nosuch", "/proc/version", "/dev"]
    result = run(builds, tmp_path, lambda guest: guest.send("exit\n"), get, mem="256M")
    out = tmp_path / "out"
    found = {str(path.relative_to(out)) for path in out.rglob("*") if not path.is_dir()}
    assert found == {
        *(f"tmp/{name}" for name in ("big", "commands", "hole", "odd/a%20b%25", "odd/prog")),
        *(f"var/log/{name}" for name in ("deep/x", "empty", "linked")),
    }
    assert {f"/{name}" for name in found} == set(result.got)
    big = (out / "tmp/big").read_bytes()
    assert hashlib.sha1(big).hexdigest() == re.search("sum ([0-9a-f]{40})", result.log)[1]
    assert big == b"".join(b"%d\n" % nr for nr in range(1, 300001))
    assert (out / "tmp/odd/a%20b%25").read_bytes() == b"one\ntwo"
    assert (out / "tmp/commands").read_text() == COMMANDS
    assert (out / "var/log/deep/x").read_text() == (out / "var/log/linked").read_text() == "hello\n"
    assert (out / "var/log/empty").stat().st_size == 0
    hole = (out / "tmp/hole").stat()
    assert hole.st_size == 1_000_000_001 and hole.st_blocks * 512 < 1_000_000
    assert (out / "tmp/odd/prog").stat().st_mode & 0o7777 == 0o755
    assert {
        "/tmp/link: a link",
        "/tmp/fifo: neither a file nor a directory",
        "/nosuch: No such file or directory",
        "/proc/version: made when it is read: use cat in the guest",
        "/dev/null: neither a file nor a directory",
    } <= set(result.get_problems)
    assert result.ok


def test_no_files_after_a_panic(builds, tmp_path):
    result = run(builds, tmp_path, lambda guest: guest.sysrq("c"), ["/tmp"])
    assert result.verdict.panic and not result.got
    assert result.get_problems == ["there is no list of files: the run did not end by itself"]
    assert not list((tmp_path / "out").iterdir())


def test_reboot_gives_files_too(builds, tmp_path):
    result = run(builds, tmp_path, lambda guest: guest.send("poweroff -f\n"), ["/var/log/deep"])
    assert result.ok and result.got == ["/var/log/deep/x"]


@pytest.mark.parametrize("paths, status", [("/data/stdin", 0), ("/nosuch", 2), ("tmp", 2)])
def test_make_run(builds, tmp_path, paths, status):
    """As a user types it. Without any file, the run has failed."""
    builds.kernel()
    builds.initrd("shell.cpio")
    command = [ROOT / "scripts/qemu-run", "--icount", "--smp=1", f"--kernel={BUILD / 'vmlinux'}"]
    command += [f"--initrd={BUILD / 'tests.cpio'}", "--append=init=/bin/hello", "--stdin"]
    command += ["--get", paths, "--get-folder", tmp_path / "out"]
    builds.initrd()
    done = subprocess.run(
        [str(word) for word in command], input=b"typed", capture_output=True, env=os.environ
    )
    text = (done.stdout + done.stderr).decode()
    assert (done.returncode == 0) == (status == 0), text
    if not status:
        assert "files: 1 in " in text and (tmp_path / "out/data/stdin").read_text() == "typed"
    elif paths == "tmp":
        assert "tmp: not an absolute path of the guest" in text
    else:
        assert "not copied: /nosuch: No such file or directory" in text
