# SPDX-License-Identifier: BSD-2-Clause
"""
Packs kernel/profile/ for other kernels (make dist), or measures the size of each option:

  dist.py pack 0.5 lego-profile-0.5.tar.gz
  dist.py link build/package
  dist.py sizes

The package has the files of this tree, unchanged, and in src/ two that are made of Kbuild files and
folders, so that its Makefile has to read neither. Symbolic links show parts of src/ by other names:
include/ has the hooks, port/ the contracts. The same tree makes the same bytes. `link` makes a
directory like the unpacked package, in which the files are links to those of this tree.
"""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROFILE = ROOT / "kernel/profile"
CFLAGS = "-Os -fno-asynchronous-unwind-tables -fcf-protection=none -mgeneral-regs-only -fno-pic"
CFLAGS += " -fno-stack-protector"
OPTIONS = {
    "points": "POINTS",
    "strace": "STRACE",
    "samples": "HEATMAP",
    "samples with chains": "HEATMAP CALLCHAIN",
    "events": "TRACE",
    "waits, with all above": "POINTS STRACE STRACE_DETAIL HEATMAP CALLCHAIN TRACE WAITS",
}
COLUMNS = ("text", "constants", "data", "bss")
SECTIONS = {"text": "text", "rodata": "constants", "data": "data", "bss": "bss"}
# A report's copy of the points, apart from the column bss.
MAX_POINTS, POINT_BYTES = 256, 624
# Sections whose elements nobody names.
ARRAYS = "profilers profile_points trace_events tracers profile_params memory_sites".split()
HOST = ("legoprof.py", "kallsyms.py", "profiles/*.py", "page/*")


def changes(changelog: str) -> str:
    """Returns what the changelog says about other kernels, by version."""
    parts = []
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        entries = re.findall(r"^- (?:.+\n)(?:  .+\n)*", text, re.MULTILINE)
        if found := [entry for entry in entries if entry.startswith("- Other kernels")]:
            parts.append(f"{title}\n{'-' * len(title)}\n{''.join(found)}")
    return "Changes that concern other kernels, newest first.\n\n" + "\n".join(parts)


def objects(folder: str = "", options: tuple[str, ...] = ()) -> dict[tuple[str, ...], list[str]]:
    """Returns the source files that Kbuild files name, without `.c`, by the options they need."""
    found: dict[tuple[str, ...], list[str]] = {}
    text = (PROFILE / folder / "Kbuild").read_text().replace("\\\n", "")
    line = r"^obj-(?:y|\$\(CONFIG_PROFILE_(\w+)\)) [+:]= (.*)"
    for option, names in re.findall(line, text, re.MULTILINE):
        needs = options + ((option,) if option else ())
        for name in names.split():
            if name[-1] == "/":
                for key, inner in objects(folder + name, needs).items():
                    found.setdefault(key, []).extend(inner)
            else:
                found.setdefault(needs, []).append(folder + name.removesuffix(".o"))
    return found


def files_mk() -> str:
    """Returns what the package's Makefile includes: the source files of $(OPTIONS)."""
    known = re.findall(r"^config PROFILE_(\w+)", (PROFILE / "Kconfig").read_text(), re.MULTILINE)
    wrong = "$(filter-out $(known),$(OPTIONS))"
    lines = ["# The options, the sections that are arrays, and the source files of each option."]
    lines.append(f"known := {' '.join(option for option in known if option != 'ANY')}")
    lines.append("$(if $(OPTIONS),,$(error OPTIONS: name some of $(known)))")
    lines.append(f"$(if {wrong},$(error OPTIONS: there is no {wrong}, but $(known)))")
    lines.append(f"sections := {' '.join(ARRAYS)}")
    for options, names in objects().items():
        # functions_missing.c is for the kernel beside these files.
        text = " ".join(name for name in names if name != "functions_missing")
        for option in options:
            if option != "ANY":
                text = f"$(if $(filter {option},$(OPTIONS)),{text})"
        lines.append(f"files += {text}")
    return "\n".join(lines) + "\n"


def folders_h() -> str:
    """Returns <profile/folders.h>: the profilers with hooks of their own (porting.md)."""
    names = sorted(path.parent.name for path in PROFILE.glob("*/hooks.h"))
    lines = ["#ifdef PROFILE_FOLDER", *(f"PROFILE_FOLDER({name})" for name in names), "#else"]
    lines += [*(f"#include <../{name}/hooks.h>" for name in names), "#endif"]
    return "\n".join(lines) + "\n"


def files(version: str) -> dict[str, Path | bytes | str]:
    """Returns the package: for each name a file of this tree, bytes, or the target of a link."""
    found: dict[str, Path | bytes | str] = {
        "LICENSE": ROOT / "LICENSE",
        "VERSION": f"{version}\n".encode(),
        "CHANGES": changes((ROOT / "CHANGELOG.md").read_text()).encode(),
        "README.md": ROOT / "scripts/dist/README.md",
        "src/Makefile": ROOT / "scripts/dist/Makefile",
        "src/files.mk": files_mk().encode(),
        "src/include/profile/folders.h": folders_h().encode(),
        "PORTING.md": "src/porting.md",
        "porting-levels.md": "src/porting-levels.md",
        "porting-guides.md": "src/porting-guides.md",
        "parameters.md": ROOT / "kernel/parameters.md",
        "include": "src/include",
        "batteries": "src/batteries",
        "host/legoprof": "legoprof.py",
        "host/README.md": ROOT / "scripts/legoprof.md",
    }
    for path in PROFILE.rglob("*"):
        if path.is_file() and path.name != "Kbuild":
            name = path.relative_to(PROFILE)
            found[f"src/{name}"] = path
            if re.match(r"os(_\w+)?\.h", path.name) and name.parts[0] != "batteries":
                contract = "_".join(name.parts)
                found[f"port/{contract}"] = f"../src/{name}"
    for pattern in HOST:
        for path in (ROOT / "scripts").glob(pattern):
            found[f"host/{path.relative_to(ROOT / 'scripts')}"] = path
    examples = {"scripts/dist/host": "host", "tests/port": "kernel", "tests/seam/bare": "glue"}
    for folder, example in examples.items():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file():
                found[f"examples/{example}/{path.relative_to(ROOT / folder)}"] = path
    return found


def pack(version: str, output: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(files(version).items()):
            info = tarfile.TarInfo(f"lego-profile-{version}/{name}")
            info.mode = 0o644
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
                continue
            if isinstance(content, Path):
                info.mode = 0o755 if content.stat().st_mode & 0o100 else 0o644
                content = content.read_bytes()
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    output.write_bytes(gzip.compress(data.getvalue(), mtime=0))


def link(directory: Path) -> Path:
    """Makes links to the files of this tree, and returns src/. What is there already stays."""
    for name, content in files("tree").items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
        elif not path.is_symlink():
            path.symlink_to(content)
    return directory / "src"


def size(options: str, directory: Path) -> dict[str, int]:
    """Builds the package's object, with the glue of tests/seam, and returns its sizes in bytes."""
    for name, header in {"os.h": "os.h", "os_hooks.h": "hooks.h"}.items():
        (directory / name).write_text(f'#include "{ROOT}/tests/seam/{header}"\n')
    makefile = link(directory / "package") / "Makefile"
    command = ["make", "-s", "-j2", "-f", makefile, f"PORT={directory}"]
    command += [f"O={directory}/o", f"OPTIONS={options}", f"CFLAGS={CFLAGS}", "CC=gcc"]
    subprocess.run([*map(str, command)], check=True)
    built = directory / "o/profile.o"
    out = subprocess.run(["size", "-A", built], capture_output=True, text=True, check=True).stdout
    sums = dict.fromkeys(COLUMNS, 0)
    for section, nr_bytes in re.findall(r"^(\S+) +(\d+) +0$", out, re.MULTILINE):
        kind = SECTIONS.get(section.split(".")[1] if section[0] == "." else "rodata")
        if kind:
            sums[kind] += int(nr_bytes)
    symbols = subprocess.run(["nm", "-S", built], capture_output=True, text=True, check=True).stdout
    copies = re.findall(r"\w+ (\w+) b copy$", symbols, re.MULTILINE)
    if "POINTS" in options.split():
        assert 0 <= max(int(n, 16) for n in copies) - MAX_POINTS * POINT_BYTES < POINT_BYTES
        sums["bss"] -= MAX_POINTS * POINT_BYTES
    return sums


def sizes(names: Iterable[str] = OPTIONS) -> str:
    lines = ["| option | " + " | ".join(COLUMNS) + " |", "|---|" + "--:|" * len(COLUMNS)]
    for name in names:
        with tempfile.TemporaryDirectory() as directory:
            found = size(OPTIONS[name], Path(directory))
        lines.append(f"| {name} | " + " | ".join(f"{n:,}" for n in found.values()) + " |")
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> None:
    if argv[:1] == ["pack"] and len(argv) == 3:
        pack(argv[1], Path(argv[2]))
    elif argv[:1] == ["link"] and len(argv) == 2:
        link(Path(argv[1]))
    elif argv == ["sizes"]:
        print(sizes(), end="")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
