# SPDX-License-Identifier: BSD-2-Clause
"""Files of the guest are on the host: GET='/tmp/x /var/log' after the run, /host during it."""

import hashlib
import os
import re
import subprocess
import time

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


def run(builds, tmp_path, end, get, log="get.log", **options):
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
    (BUILD / "test-logs" / log).write_text(result.log)
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


def wait_for(guest, path, text):
    """Waits until a file has this content; None: until it is there, as it comes complete."""
    end = time.monotonic() + 60
    while not path.exists() or text not in (None, path.read_text(errors="replace")):
        assert time.monotonic() < end and guest.process.poll() is None, path
        guest._read(0.1)


def test_files_come_out_during_the_run(builds, tmp_path):
    """What is closed in /host, or moved there, is on the host while the guest still runs."""
    host = tmp_path / "out/host"
    big = "".join(f"{nr}\n" for nr in range(1, 300001))

    def use(guest):
        guest.expect(r"# ")
        for command, name, text in [
            ("cp /var/log/deep/x /host/", "x", "hello\n"),
            ("(echo one; sh -c 'echo two; echo three') >/host/x", "x", "one\ntwo\nthree\n"),
            ("echo four >>/host/x", "x", "one\ntwo\nthree\nfour\n"),
            ("mv /tmp/big /host/", "big", big),
            ("mv /tmp/odd /host/", "odd/a%20b%25", "one\ntwo"),
            ("ln /var/log/linked /host/name", "name", "hello\n"),
            ("mkdir /host/d; : >/host/d/empty", "d/empty", ""),
        ]:
            guest.send(f"{command}\n")
            wait_for(guest, host / name, text)
        # Far more than a list has room for.
        guest.send("for i in $(seq 9000); do echo $i >/host/n; done; cp /bin/busybox /host/last\n")
        guest.send("echo sum $(sha1sum </host/last)\n")
        digest = guest.expect("sum ([0-9a-f]{40})")[1]
        wait_for(guest, host / "n", "9000\n")
        wait_for(guest, host / "last", None)
        assert hashlib.sha1((host / "last").read_bytes()).hexdigest() == digest
        guest.send("exec 5>/host/open; echo written >&5; rm /host/name; echo rem''oved\n")
        guest.expect("removed")
        guest.sysrq("c")  # the guest ends without a list

    result = run(builds, tmp_path, use, [], log="get_host.log", host="/host")
    assert result.verdict.panic
    names = {"x", "big", "odd/a%20b%25", "odd/prog", "name", "d/empty", "n", "last"}
    assert set(result.got) == {f"/host/{name}" for name in names}
    assert {str(p.relative_to(host)) for p in host.rglob("*") if not p.is_dir()} == names
    assert (host / "odd/prog").stat().st_mode & 0o7777 == 0o755
    assert result.get_problems == ["there is no list of files: the run did not end by itself"]


COPY = """\
dd if=/dev/zero of=/tmp/large bs=1M count=32 2>/dev/null
(while [ -e /tmp/large ]; do :; done) & sleep 1
cp /tmp/large /host/; rm /tmp/large; wait; cat /proc/profile/waits; echo sum
"""


def test_paths_are_found_while_a_file_is_read(builds, tmp_path):
    """The 32 MiB of a file that is closed in /host are read without the lock of all paths."""

    def use(guest):
        guest.expect(r"# ")
        guest.send(COPY)
        guest.expect("sum\n")
        guest.send("exit\n")

    result = run(builds, tmp_path, use, [], log="get_lock.log", host="/host", smp=2)
    assert result.ok and "/host/large" in result.got
    rows = re.findall(r"^sh;.*;path_find;.*\[tree_lock\] (\d+)", result.log, re.MULTILINE)
    # In ns: reading takes 300 ms. Listing the pages takes a few, with the lock held.
    assert re.search(r"^sh;.*\[proc->child_wait\] \d+$", result.log, re.MULTILINE)
    assert sum(map(int, rows)) < 100_000_000


# The second writer is done while the first one, which shares a CPU with others, is in close().
OVERTAKE = """\
dd if=/dev/zero of=/tmp/large bs=1M count=8 2>/dev/null
for i in 1 2 3; do taskset 1 sh -c 'while :; do :; done' & spinners="$spinners $!"; done
taskset 2 sh -c 'while [ ! -e /tmp/closing ]; do sleep 0.01; done; sleep 0.1
echo new >/host/large' & writer=$!
taskset 1 sh -c 'exec 5>/host/large; cat /tmp/large >&5; : >/tmp/closing; exec 5>&-'
wait $writer; kill $spinners; echo sum
"""


def test_last_change_comes_out(builds, tmp_path):
    """If a file changes while close() reads it for an earlier writer, the host gets the change."""

    def use(guest):
        guest.expect(r"# ")
        guest.send(f"cat >/tmp/overtake <<'END'\n{OVERTAKE}END\nsh /tmp/overtake\n")
        guest.expect("sum\n")
        wait_for(guest, tmp_path / "out/host/large", "new\n")
        guest.send("exit\n")

    assert run(builds, tmp_path, use, [], log="get_overtake.log", host="/host", smp=2).ok


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
