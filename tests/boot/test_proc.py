# SPDX-License-Identifier: BSD-2-Clause
"""Files of /proc and /sys about the machine have Linux's formats, and numbers that add up."""

import re

import pytest
import qemu

from harness import BUILD

SMP = 4
CPU = "/sys/devices/system/cpu"
COMMANDS = f"""\
section() {{ echo "== $1"; }}
echo
section config; zcat /proc/config.gz
section masks; cd {CPU}
for i in online possible present offline kernel_max; do echo $i $(cat $i); done
section topology; for i in cpu*/topology/*; do echo $i $(cat $i); done
section interrupts; cat /proc/interrupts
section stat; grep -e intr -e '^cpu ' /proc/stat
section busy; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; cat /proc/interrupts
section faults; grep fault /proc/vmstat; busybox true; grep fault /proc/vmstat
section slabs; cat /proc/slabinfo; grep nr_slab /proc/vmstat; grep Slab /proc/meminfo
section self; sh -c 'cat /proc/$$/io /proc/$$/schedstat /proc/$$/task/$$/schedstat'
section user
su user -c 'cat /proc/slabinfo /proc/1/io; cat /proc/vmstat /proc/self/io | wc -l' 2>&1
section mounts; cat /proc/mounts; mkdir {CPU}/new; rmdir {CPU}
section end
exit 0
"""


@pytest.fixture(scope="module")
def sections(builds, tmp_path_factory) -> dict[str, str]:
    """Returns the output of each part of the commands."""
    append = "profile.on_exit=none stdin=/dev/ttyS0"
    options = qemu.Options(
        builds.kernel(), builds.initrd("shell.cpio"), smp=SMP, append=append, icount=True
    )
    with qemu.Guest(options) as guest:
        guest.expect(r"lego:[^\n]*# ")
        guest.send("stty -echo\n")
        guest.expect(r"lego:[^\n]*# ")
        guest.send(f"cat >/tmp/commands <<'END'\n{COMMANDS}END\nPS2= sh /tmp/commands\n")
        guest.expect("^== end")
        guest.send("exit\n")
        log = guest.wait().log
    (BUILD / "test-logs").mkdir(exist_ok=True)
    (BUILD / "test-logs" / "proc.log").write_text(log)
    parts = re.split(r"^== (\w+)\n", log.replace("\r", ""), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def test_configuration(sections):
    assert sections["config"] == (BUILD / ".config").read_text()


def test_cpus(sections):
    limit = int(re.search(r"^CONFIG_NR_CPUS=(\d+)$", sections["config"], re.MULTILINE)[1])
    masks = dict(line.partition(" ")[::2] for line in sections["masks"].splitlines())
    assert masks == {
        "online": "0-3",
        "possible": "0-3",
        "present": "0-3",
        "offline": "",
        "kernel_max": str(limit - 1),
    }
    rows = [line.split() for line in sections["topology"].splitlines()]
    files = {path: value for path, value in rows}
    assert len(files) == SMP * 10
    places = set()
    for cpu in range(SMP):
        of = {
            name: files[f"cpu{cpu}/topology/{name}"]
            for name in ("core_id", "physical_package_id", "core_cpus", "core_siblings_list")
        }
        places.add((of["physical_package_id"], of["core_id"]))
        assert int(of["core_cpus"], 16) == 1 << cpu  # QEMU's default: one thread in a core
        first, _, last = of["core_siblings_list"].partition("-")
        assert int(first) <= cpu <= int(last or first)
    assert len(places) == SMP


def counts(text: str) -> dict[str, list[int]]:
    """Returns the counts of each row of /proc/interrupts, by CPU."""
    lines = text.splitlines()
    assert lines[0].split() == [f"CPU{cpu}" for cpu in range(SMP)]
    rows = [line.split() for line in lines[1:]]
    return {row[0].rstrip(":"): [int(word) for word in row[1 : SMP + 1]] for row in rows}


def test_interrupts(sections):
    before, after = counts(sections["interrupts"]), counts(sections["busy"])
    assert list(before) == ["4", "LOC", "SPU", "RES", "CAL", "TLB"]
    for name, row in before.items():
        assert all(a <= b for a, b in zip(row, after[name])), name
    total = int(re.search(r"^intr (\d+)$", sections["stat"], re.MULTILINE)[1])
    nr = sum(map(sum, before.values()))
    assert nr <= total <= sum(map(sum, after.values()))
    assert sum(before["4"]) > 0 and min(after["LOC"]) > 0 and sum(before["SPU"]) == 0


def test_faults(sections):
    rows = [line.split() for line in sections["faults"].splitlines()]
    assert [name for name, _ in rows] == ["pgfault", "pgmajfault"] * 2
    assert int(rows[2][1]) > int(rows[0][1]) + 50  # two programs ran
    assert rows[1][1] == rows[3][1] == "0"


def test_slabs(sections):
    lines = sections["slabs"].splitlines()
    assert lines[0] == "slabinfo - version: 2.1" and lines[1].startswith("# name  ")
    nr_pages = nr_bytes = 0
    for line in lines[2:19]:
        match = re.fullmatch(
            r"kmalloc-(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)"
            r" : tunables +(\d+) +(\d+) +0 : slabdata +(\d+) +(\d+) +0",
            line,
        )
        name, live, objects, size, per_slab, pages, limit, batch, active, slabs = (
            int(word) for word in match.groups()
        )
        assert name == size and live <= objects == slabs * per_slab and active <= slabs
        assert size * per_slab <= pages * 4096 and limit == 2 * batch
        nr_pages += slabs * pages
        nr_bytes += live * size
    numbers = {line.split()[0]: int(line.split()[1]) for line in lines[19:]}
    assert abs(numbers["nr_slab_unreclaimable"] - nr_pages) <= 8  # the next cat's
    assert numbers["nr_slab_reclaimable"] == 0
    assert numbers["Slab:"] * 1024 >= nr_bytes - 65536  # with kmalloc() of whole pages


def test_self(sections):
    lines = sections["self"].splitlines()
    assert [line.split(":")[0] for line in lines[:4]] == ["rchar", "wchar", "syscr", "syscw"]
    assert lines[4:7] == ["read_bytes: 0", "write_bytes: 0", "cancelled_write_bytes: 0"]
    process, thread = ([int(word) for word in line.split()] for line in lines[7:])
    assert 0 < process[0] <= thread[0] < 10**9 and 0 <= process[1] <= thread[1]
    assert 1 <= process[2] <= thread[2]


def test_users(sections):
    lines = sections["user"].splitlines()
    denied = [line for line in lines if line.endswith("Permission denied")]
    assert len(denied) == 2 and lines[-1] == "16"


def test_mounts(sections):
    assert "sysfs /sys sysfs rw 0 0\ntracefs /sys/kernel/tracing tracefs rw" in sections["mounts"]
