# SPDX-License-Identifier: BSD-2-Clause
"""Exports: from the guest's memory, as a file in the guest, and in a panic."""

from __future__ import annotations

import re
import subprocess
import zlib
from collections import Counter
from pathlib import Path

import pytest

import harness
from profiles import console, stacks
from profiles import export as profile_export
import qemu
import report

@pytest.fixture
def export(boot, tmp_path):
    """Returns a function that runs a program and returns the run's result and its export."""

    def run(*argv: object, talk=lambda guest: None, ok: bool = True, **options):
        path = tmp_path / "run.lego"
        path.unlink(missing_ok=True)
        opts = boot.options(*argv, **options)
        opts.export = path
        with qemu.Guest(opts) as guest:
            talk(guest)
            result = guest.wait()
        boot.finish(result, ok=ok, check=ok)
        found = None if result.export_error else profile_export.load(path)
        return result, found

    return run


def build_id(kernel: Path) -> str:
    out = subprocess.run(["readelf", "-n", kernel], capture_output=True, text=True, check=True)
    return re.search(r"Build ID: (\w+)", out.stdout)[1]


def test_power_off(export, builds):
    result, found = export("hello", icount=True, append="profile.top=all")
    assert not found.warnings
    assert found.meta["why"] == "power off" and found.meta["number"] == 1
    assert found.meta["clock"] == "instructions" and found.meta["cpus"] == 1
    assert found.meta["build_id"] == build_id(builds.kernel())
    assert found.run["icount"] and "QEMU" in found.run["qemu"][0]
    expected = "strace processes samples heatmap functions waits points".split()
    assert {f"{name}.json" for name in expected} <= found.files.keys()
    calls = {row["syscall"]: row["calls"] for row in found.rows("strace.json")}
    (printed,) = report.parse(result.log)
    assert calls == {row.name: row.nr_calls for row in printed.strace.rows}


def test_samples_are_those_of_the_tables(export):
    _, found = export("forks", smp=2, append="profile.hz=10000 profile.on_exit=none")
    rows = found.rows("samples.json")
    assert sum(row["samples"] for row in rows) > 100
    for row in rows:
        assert row["class"] == "user" or row["kernel"]
    by_cpu = {cpu: 0 for cpu in (0, 1)}
    for row in rows:
        by_cpu[row["cpu"]] += row["samples"]
    assert by_cpu == {row["cpu"]: row["stored"] for row in found.rows("cpus.json")}
    tasks = found.rows("tasks.json")
    assert sum(row["samples"] for row in tasks) == sum(row["samples"] for row in rows)


def elf_code(program: str) -> tuple[int, int, int]:
    """Returns address, offset and size of a program's code, from readelf."""
    out = subprocess.run(
        ["readelf", "-lW", harness.BUILD / "user" / program],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (row,) = re.findall(r"^ +LOAD +(0x\w+) (0x\w+) \S+ (0x\w+) \S+ +R E ", out, re.MULTILINE)
    offset, address, size = (int(number, 16) for number in row)
    return address, offset, size


def test_images(export, tmp_path):
    """The export has the build ids of programs that have ended, and the addresses of their code."""
    programs = "hello", "hello-pie", "chain"
    script = "hello; hello; hello-pie; chain 1 > /dev/null; true"
    image = harness.script_image(tmp_path, script, programs)
    _, found = export(None, initrd=image, append="profile.on_exit=none")
    images = {row["path"]: row for row in found.rows("images.json")}
    maps = found.rows("code_maps.json")
    assert len(images) == len(found.rows("images.json"))
    for name in programs:
        path = harness.BUILD / "user" / name
        row = images[f"/bin/{name}"]
        assert (row["build_id"], row["bytes"]) == (build_id(path), path.stat().st_size)
        (area,) = [one for one in maps if one["image"] == row["image"]]
        address, offset, size = elf_code(name)
        start, end, at = (int(area[key], 16) for key in ("start", "end", "offset"))
        assert area["parent"] == 0 and at == offset
        assert end - start == -(-size // 4096) * 4096
        assert start == address if name == "hello" else start > address + (1 << 30)
    assert not found.files["images.json"][0].notes


def test_images_of_a_program_that_is_written_again(export, tmp_path):
    """Each content that a file has had when it was executed has its own build id."""
    text = (harness.BUILD / "user/hello").read_bytes()
    first = build_id(harness.BUILD / "user/hello")
    at = text.index(bytes.fromhex(first))
    script = f"""\
cp /bin/hello /tmp/p; /tmp/p; /tmp/p
printf x | dd of=/tmp/p bs=1 seek={at} conv=notrunc; /tmp/p; mv /tmp/p /tmp/q; /tmp/q
cat /bin/hello-pie >/tmp/q; /tmp/q
"""
    image = harness.script_image(tmp_path, script, ("hello", "hello-pie"))
    _, found = export(None, initrd=image, append="profile.on_exit=none")
    rows = [(row["path"], row["build_id"]) for row in found.rows("images.json")]
    assert rows[rows.index(("/tmp/p", first)) :] == [
        ("/tmp/p", first),
        ("/tmp/p", "78" + first[2:]),
        ("/tmp/q", "78" + first[2:]),
        ("/tmp/q", build_id(harness.BUILD / "user/hello-pie")),
    ]


def test_code_of_files(export):
    """
    A sample belongs to the file that was mapped when it was taken, in threads and children, too.
    """
    append = "profile.hz=10000 profile.on_exit=none"
    _, found = export("codefiles", 10_000_000, icount=True, append=append)
    names = stacks.Names(found, [], [])
    samples: Counter[str] = Counter()
    for stack in stacks.read(found).stacks:
        if stack.user and not stack.kernel:
            area = names.place(stack, stack.user[0]).area
            samples[area.image.path] += stack.weight
    total = samples.total()
    for path, share in ("/tmp/first", 2 / 6), ("/tmp/second", 3 / 6), ("/tmp/third", 1 / 6):
        assert samples[path] / total == pytest.approx(share, abs=0.03), samples
    assert total > 1000
    waits = [one for one in stacks.read(found, waits=True).stacks if one.user]
    assert waits and all(names.place(one, one.user[0]).area.image for one in waits)


def test_names(export, builds):
    """
    The kernel names each function of samples and waits as legoprof does by the ELF files, which
    also finds stubs and returns from signals, by their code.
    """
    append = "profile.hz=10007 profile.on_exit=run init=/bin/wordcount -- -t 8 /bin/wordcount"
    _, found = export(None, initrd=harness.BUILD / "initramfs.cpio", icount=True, append=append)
    kernel, program = builds.kernel(), harness.BUILD / "user/wordcount"
    own = stacks.Names(found, [], [])
    given = stacks.Names(found, [stacks.Symbols(kernel)], [stacks.Symbols(program)])
    nr = 0
    for waits in False, True:
        for stack in stacks.read(found, waits).stacks:
            for one in filter(None, (stack, stack.waker)):
                assert own.kernel_frames(one) == given.kernel_frames(one)
                names = list(zip(own.user_frames(one), given.user_frames(one), strict=True))
                for name, wanted in names:
                    if not re.search("@plt$|^__restore_rt$", wanted):
                        assert name == wanted.partition("@")[0]
                nr += len(names)
    assert nr > 1000
    objects = {row["object"] for row in found.rows("waits_stacks.json") if row["address"]}
    assert any(name and re.fullmatch(r"gate\+0x\w+ \(wordcount\)", name) for name in objects)


def test_panic(export):
    def talk(guest):
        guest.expect("^spin: started")
        guest.sysrq("c")

    result, found = export("spin", "-", 1, talk=talk, ok=False)
    assert result.verdict.panic
    assert found.meta["why"] == "panic" and not found.warnings
    assert found.rows("strace.json") and found.rows("samples.json")


def test_panic_in_the_middle_of_a_row(export):
    """The panic's export does not begin with what the interrupted writer had prepared."""
    options = dict(variant="functions", append="crash=json-row", ok=False)
    result, found = export("spin", 60000, 1, **options)
    assert re.search("Kernel panic: page fault at put_string", result.log)
    assert found.meta["why"] == "panic" and not found.warnings
    assert found.rows("strace.json") and found.rows("samples.json")


def test_snapshot_on_request_is_kept(export):
    """The power-off does not replace an export that was requested."""

    def talk(guest):
        guest.expect("^spin: started")
        guest.sysrq("e")
        guest.expect(r"profile: export 1: \d+ bytes, 0 lines lost")
        guest.send("\n")

    _, found = export("spin", "-", 1, talk=talk)
    assert (found.meta["why"], found.meta["number"]) == ("sysrq", 1)


READ_TWICE = "cat /proc/profile/export; echo; cat /proc/profile/export"


def exports_in(log: str) -> list[str]:
    return re.findall(r'^\{"export".*?^\{"end":\d+.*?$\n', log, re.M | re.S)


def test_the_same_bytes_by_each_way(export, tmp_path):
    """The same snapshot is read from the file, printed on the console, and left in memory."""
    image = harness.script_image(tmp_path, f"{READ_TWICE}; echo console > /proc/profile/export")
    result, _ = export(None, initrd=image, append="profile.on_exit=none")
    _, second = exports_in(result.log)
    in_memory = (tmp_path / "run.lego").read_text()
    assert in_memory[: len(second)] == second
    assert in_memory[len(second) :].startswith('{"run": {')
    assert console.last_export(result.log.encode()) == (second.encode(), [])


FORGED = f"{0xF:016x}"


def forged_export() -> str:
    """Lines that announce a mark and print an export with it, as the kernel's."""
    lines = [f"[    0.500000] profile: lines of exports begin with export-{FORGED}"]
    for nr, text in enumerate(('{"export":1,"why":"lie"}', '{"end":1}')):
        head = f"export-{FORGED} 1 {nr}= {text}"
        lines.append(f"[    0.500000] {head} {zlib.crc32(head.encode()):08x}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("is_exported", [False, True])
def test_a_program_forges_an_export_first(boot, tmp_path, is_exported):
    """The kernel has announced its mark before any program runs, also if nobody wants an export."""
    forge = "start-stop-daemon -S -c 1000:1000 -x /bin/cat -- /tmp/forged"
    script = f"cat > /tmp/forged << END\n{forged_export()}END\n{forge}\n"
    if is_exported:
        script += "echo console > /proc/profile/export\n"
    image = harness.script_image(tmp_path, script)
    log = boot(None, initrd=image, append="profile.on_exit=none").log
    assert log.count(f"export-{FORGED} 1 ") == 2  # the lines have been printed
    names = rf"export-{FORGED} and export-\w+\. Keep the log of one"
    with pytest.raises(console.MarkError, match=names):
        console.last_export(log.encode())


def test_at_an_exit(export, tmp_path):
    """The last process that matches the globs leaves the export; the power-off keeps it."""
    script = "chain 5 > /dev/null; echo 'on_exit hel*' > /proc/profile/export; hello; true"
    image = harness.script_image(tmp_path, script, ("chain", "hello"))
    append = "profile.on_exit=none profile.export_on_exit=chain profile.export=console"
    result, found = export(None, initrd=image, append=append)
    assert re.fullmatch(r"exit of hello \(pid \d+\)", found.meta["why"])
    first, *_ = console.snapshots(result.log.encode())[0]
    assert re.search(rb'"why":"exit of chain \(pid \d+\)"', first.text())


def test_file_in_the_guest(boot, tmp_path):
    """/proc/profile/export needs no reserved memory. Each read from its start is a new snapshot."""
    image = harness.script_image(tmp_path, READ_TWICE)
    result = boot(None, initrd=image, append="profile.on_exit=none")
    for number, text in enumerate(exports_in(result.log), start=1):
        path = tmp_path / "guest.lego"
        path.write_text(text)
        found = profile_export.load(path)
        assert (found.meta["number"], found.meta["why"], found.warnings) == (number, "read", [])
        assert found.rows("strace.json")
    assert number == 2


def test_lines_without_room_are_counted(export):
    """Whole lines are left out; the others are intact."""
    _, found = export("syscalls", append="profile.export=8192")
    (warning,) = found.warnings
    assert re.fullmatch(r"[1-9]\d* lines had no room: raise profile.export=", warning)
    assert found.rows("strace.json") and found.meta["why"] == "power off"


@pytest.mark.parametrize("value", ["4095", "536870913", "x", ""])
def test_wrong_size(boot, value):
    log = boot(append=f"profile.export={value}").log
    assert f"profile.export={value}" in log and "4096 to 536870912" in log


def test_memory_beyond_the_hole(export):
    """Memory above 4 GiB has another offset in QEMU's RAM file."""
    _, found = export("hello", mem="5G", append="profile.export=134217728")
    assert not found.warnings and found.rows("strace.json")
