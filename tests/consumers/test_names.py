# SPDX-License-Identifier: BSD-2-Clause
"""
Names of code that a program loads or makes while it runs: a plugin at the address of an earlier
one, and functions that it compiles itself and lists in /tmp/perf-<pid>.map.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import qemu
from conftest import HZ, KERNEL, ROOT, legoprof, run
from profiles import export

PLUGIN = """\
unsigned long NAME(unsigned long n)
{
	unsigned long sum = 0;
	for (unsigned long i = 0; i < n; i++)
		sum = sum * FACTOR + (i ^ sum >> 7);
	return sum;
}
"""
LOADER = """\
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void *load(const char *path, const char *name)
{
	void *library = dlopen(path, RTLD_NOW);
	unsigned long (*function)(unsigned long) = library ? dlsym(library, name) : NULL;
	if (!function)
		exit(2);
	printf("%s at %p: %lu\\n", name, (void *)function, function(1000000));
	dlclose(library);
	return function;
}
/* dec %rdi; jnz -5; ret */
static const unsigned char CODE[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
static void compile(const char *name, unsigned char *code, FILE *map)
{
	memcpy(code, CODE, sizeof(CODE));
	fprintf(map, "%lx %lx %s\\n", (unsigned long)code, sizeof(CODE), name);
	printf("%lx %lx %s\\n", (unsigned long)code, sizeof(CODE), name);
	fflush(map);
	((void (*)(unsigned long))code)(3000000);
}
int main(int argc, char **argv)
{
	char path[64];
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(path, "w");
	compile("Main.first(int)", code, map);
	compile("Main.second()", code + 64, map);
	return load(argv[1], "scale_image") != load(argv[2], "turn_image");
}
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> tuple[Path, str]:
    """Returns the export of a run of the program, and what it printed."""
    directory = tmp_path_factory.mktemp("loaded")
    program, plugins = directory / "loader", []
    for name, factor in ("scale_image", 31), ("turn_image", 33):
        source, plugin = directory / f"{name}.c", directory / f"{name}.so"
        source.write_text(PLUGIN)
        names = [f"-DNAME={name}", f"-DFACTOR={factor}"]
        run("gcc", "-O2", "-s", "-shared", "-fPIC", *names, source, "-o", plugin)
        plugins.append(plugin)
    (directory / "loader.c").write_text(LOADER)
    run("gcc", "-O2", directory / "loader.c", "-o", program)
    image = directory / "initramfs.cpio"
    items = [f"{plugin}={plugin}" for plugin in plugins]
    run(ROOT / "scripts/mkinitramfs", "-o", image, "--program", program, *items, "--dir", "/tmp")
    append = f"profile.hz={HZ} profile.on_exit=none init=/bin/loader -- {plugins[0]} {plugins[1]}"
    options = qemu.Options(
        kernel=KERNEL, initrd=image, append=append, icount=True, export=directory / "run.lego"
    )
    result = qemu.run(options)
    assert result.ok and not result.export_error, result.tail()
    return directory / "run.lego", result.log.replace("\r", "")


def samples_of(text: str) -> dict[str, int]:
    """Returns the samples by their innermost frame."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        stack, nr = line.rsplit(" ", 1)
        if stack.startswith("loader;"):
            name = stack.rpartition(";")[2]
            found[name] = found.get(name, 0) + int(nr)
    return found


def test_plugin_at_a_reused_address(loaded):
    """The program has its path from the host, and the stripped plugins have exported functions."""
    path, log = loaded
    addresses = dict(re.findall(r"^(scale_image|turn_image) at (0x\w+):", log, re.MULTILINE))
    assert addresses["scale_image"] == addresses["turn_image"]
    samples = samples_of(legoprof("folded", path))
    assert samples["scale_image"] > 50 and samples["turn_image"] > 50
    assert 0.8 < samples["scale_image"] / samples["turn_image"] < 1.25


def test_functions_of_a_jit_compiler(loaded):
    """Their names are in the export, so no option is needed."""
    path, log = loaded
    lines = re.findall(r"^\w+ 6 Main.*$", log, re.MULTILINE)
    assert len(lines) == 2
    samples = samples_of(legoprof("folded", path))
    names = [line.split(" ", 2)[2] for line in lines]
    assert names == ["Main.first(int)", "Main.second()"]
    rows = [row for row in export.load(path).rows("samples.json") if row["user"]]
    rows = [row for row in rows if not row["kernel"]]  # the others are of kernel functions
    # Each is one loop of two instructions, whose samples had the addresses of both.
    code = {int(line.split()[0], 16) for line in lines}
    for start, name in zip(sorted(code), names):
        at = range(start, start + 6)
        expected = sum(row["samples"] for row in rows if int(row["user"][0], 16) in at)
        assert samples[name] == expected > 50


NODE = """\
function mix(n) {
	let s = 0;
	for (let i = 0; i < n; i++) s = (s * 31 + (i ^ (s >> 7))) | 0;
	return s;
}
let all = 0;
for (let i = 0; i < 40; i++) all ^= mix(200000);
"""


def test_functions_of_node(tmp_path):
    """V8 names what it compiles, if asked to. It needs more memory than other programs."""
    (tmp_path / "mix.js").write_text(NODE)
    items = ["--program", shutil.which("node"), f"/data/mix.js={tmp_path}/mix.js", "--dir", "/tmp"]
    run(ROOT / "scripts/mkinitramfs", "-o", tmp_path / "initramfs.cpio", *items)
    append = "profile.hz=2000 profile.on_exit=none profile.export=16777216"
    options = qemu.Options(
        kernel=KERNEL,
        initrd=tmp_path / "initramfs.cpio",
        mem="1G",
        append=f"{append} init=/bin/node -- --perf-basic-prof /data/mix.js",
        icount=True,
        export=tmp_path / "run.lego",
        timeout=200,
    )
    result = qemu.run(options)
    assert result.ok and not result.export_error, result.tail()
    command = [ROOT / "scripts/legoprof", "folded", options.export]
    stacks = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    nr = sum(
        int(line.rpartition(" ")[2])
        for line in stacks.splitlines()
        if re.search(r":[*^~]*mix /data/mix\.js:1:\d+[ ;]", line)
    )
    assert nr > 50
