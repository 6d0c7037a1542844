# SPDX-License-Identifier: BSD-2-Clause
"""perf, pprof, flamegraph.pl and others read the export of one run, and find the same numbers."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from conftest import HZ, KERNEL, PROGRAM, ROOT, legoprof, run, symbols
from profiles import export, merge, perf_data

PERIOD_NS = 1_000_000_000 // HZ
FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
PERFPARSER = "/usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser"


def self_samples(lego: Path) -> dict[str, int]:
    text = legoprof("report", lego, "--by", "function", "--format", "json", *symbols())
    return {row["function"]: row["samples"] for row in map(json.loads, text.splitlines())}


def test_perf_report(write, perf, nr_stored):
    path = write("perf-data")
    text = perf("report", "-i", path, "--stdio", "-g", "caller", "--no-children")
    assert int(re.search(r"Event count \(approx\.\): (\d+)", text)[1]) == nr_stored * PERIOD_NS
    assert re.search(r" wordcount +wordcount +\[\.\] worker_run\n", text)
    assert re.search(r" wordcount +vmlinux +\[k\] \w+\n", text)
    assert "---kthread_main\n" in text and "[unknown]" not in text


def test_perf_script(write, perf):
    """Each frame has a name, and the innermost comes first."""
    text = perf("script", "-i", write("perf-data"))
    stacks = re.findall(r"cpu-clock: \n((?:\t.*\n)+)", text)
    names = [re.findall(r" (\S+)\+0x", stack) for stack in stacks]
    assert any(chain[-1] == "kthread_main" and len(chain) > 3 for chain in names)


def test_perf_annotate(write, perf):
    text = perf("annotate", "-i", write("perf-data"), "inode_write", "--stdio")
    assert "kernel/fs/data.c" in text


def test_perf_waits(write, perf, lego):
    rows = export.load(lego).rows("waits_stacks.json")
    total = sum(row["asleep_ns"] + row["ready_ns"] for row in rows)
    text = perf("report", "-i", write("perf-data", "--waits"), "--stdio")
    assert "of event 'offcpu-time'" in text
    assert int(re.search(r"Event count \(approx\.\): (\d+)", text)[1]) == total
    assert "sys_futex" in text


def pprof(path: Path, *arguments: str) -> str:
    return run("go", "tool", "pprof", *arguments, KERNEL, path)


def test_pprof(write, nr_stored):
    path = write("pprof")
    text = pprof(path, "-sample_index=samples", "-top")
    assert re.search(rf"of {nr_stored} total", text) or f"for {nr_stored}, 100%" in text
    assert "worker_run" in text
    text = pprof(path, "-tags")
    assert "wordcount" in text and "sys_pread64" in text


def test_pprof_lists_source(write):
    text = pprof(write("pprof"), "-list", "inode_write")
    assert re.search(r" inode_write in kernel/fs/data\.c", text)
    assert re.search(r"[\d.]+[um]s +[\d.]+[um]s +\d+:", text)


def draw(data: bytes) -> str:
    """Returns the picture that flamegraph.pl draws. It must print no warning."""
    done = subprocess.run(["perl", FLAMEGRAPH], input=data, capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
    return done.stdout.decode()


def test_folded(write, nr_stored):
    data = write("folded").read_bytes()
    assert sum(int(line.split()[-1]) for line in data.splitlines()) == nr_stored
    assert "worker_run" in draw(data)
    assert "sys_futex" in draw(write("folded", "--wakers").read_bytes())


def test_log_of_a_serial_line(write, lego, tmp_path):
    """A log with CR LF and other lines between those of an export gives the same stacks."""
    lines = lego.read_bytes().splitlines()
    lines[9:9] = [b"[    1.000000] something else"]
    log = tmp_path / "log"
    log.write_bytes(b"\r\n".join([b"boot", *lines, b""]))
    data = write("folded", source=log).read_bytes()
    assert data == write("folded").read_bytes()
    draw(data)


def test_flame_graph(write, nr_stored):
    text = write("flamegraph", "--idle").read_text()
    assert f": {nr_stored} samples" in text and "<title>worker_run (" in text
    assert "<title>all (" in write("flamegraph", "--wakers").read_text()


def test_flame_graph_of_any_names(lego, tmp_path):
    """The picture is XML, a name is not cut in the middle of a character, and < stays."""
    found = export.load(lego)
    for i, row in enumerate(found.rows("samples.json")):
        row["comm"] = ["\u00e9" * (1 + i % 15), "vector<int>&;x 5"][i % 2]
    path, picture = tmp_path / "\u00e9<&.lego", tmp_path / "run.svg"
    path.write_bytes(merge.write(found))
    legoprof("flamegraph", path, "-o", picture)
    texts = [one.text or "" for one in ElementTree.parse(picture).iter()]
    assert any(re.fullmatch("\u00e9+[.][.]", text) for text in texts)
    assert any(text.startswith("\u00e9<&.lego: ") for text in texts)
    assert any(text.startswith("vector<int>&;x 5 (") for text in texts)


def test_callgrind(write, nr_stored):
    text = run("callgrind_annotate", write("callgrind"))
    (total,) = re.findall(r"^ *([\d,]+) \(100.0%\)  PROGRAM TOTALS$", text, re.MULTILINE)
    assert int(total.replace(",", "")) == nr_stored
    assert "???:worker_run" in text


def screen(url: str, tmp_path: Path) -> str:
    """Returns the document that headless Chromium shows at a URL."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000"]
    options += [f"--user-data-dir={tmp_path}/chromium", "--window-size=1400,900", "--dump-dom"]
    return run("chromium", *options, url, timeout_s=120)


def test_speedscope(write, lego, nr_stored, npm, tmp_path):
    """The file is valid by the package's schema, and its weights add up and are on the screen."""
    import jsonschema

    package = npm("speedscope", "1.25.0") / "dist/release"
    data = write("speedscope").read_bytes()
    file = json.loads(data)
    jsonschema.validate(file, json.loads((package / "file-format-schema.json").read_text()))
    (profile,) = file["profiles"]
    assert sum(profile["weights"]) == profile["endValue"] == nr_stored

    script, encoded = tmp_path / "run.js", base64.b64encode(data).decode()
    script.write_text(f'speedscope.loadFileFromBase64("run", "{encoded}")')
    text = screen(f"file://{package}/index.html#localProfilePath={script}&view=sandwich", tmp_path)
    assert re.search("<title>run.lego[^<]* - speedscope</title>", text)
    number = r"<td[^>]*>([\d,]+) \([^<]*<div.*?</td>"
    rows = re.findall(number + number + r"<td[^>]*><span[^>]*></span>([^<]+)</td>", text)
    shown = {name: int(self.replace(",", "")) for _, self, name in rows}
    expected = self_samples(lego)
    assert len(shown) > 20 and all(nr == expected.get(name, 0) for name, nr in shown.items())


def test_bcc_text(write, nr_stored):
    blocks = write("stacks").read_text().split("\n\n")
    weights = [int(block.split()[-1]) for block in blocks if block.strip()]
    assert sum(weights) == nr_stored and weights == sorted(weights)


def test_systemtap_text(write, nr_stored):
    """Frames match the pattern of stackcollapse-stap.pl, and numbers have lines of their own."""
    lines = write("stacks", "--stap").read_text().splitlines()
    assert sum(int(line) for line in lines if line.strip().isdigit()) == nr_stored
    frame = re.compile(r" 0x[0-9a-f]+ : \w[\w.]*(@plt)?\+0x[0-9a-f]+/0x[0-9a-f]+ \[\w+\]")
    assert all(frame.fullmatch(line) for line in lines if not line.strip().isdigit())


def test_by_image(lego, write, perf):
    """The samples of each file are those that perf counts for it."""
    text = legoprof("report", lego, "--by", "image", "--format", "json")
    found = {row["image"]: row["samples"] for row in map(json.loads, text.splitlines())}
    options = "--stdio", "--no-children", "-g", "none", "-F", "period,dso", "--sort", "dso"
    text = perf("report", "-i", write("perf-data"), *options)
    periods = re.findall(r"^ +(\d+) +(\S+) *$", text, re.M)
    by_perf = {name: int(period) // PERIOD_NS for period, name in periods}
    assert found.pop("[kernel]") == by_perf.pop("vmlinux")
    assert found == {f"/bin/{name}": nr for name, nr in by_perf.items()}
    assert "/bin/wordcount" in found


def test_hotspot(lego, tmp_path):
    """
    hotspot's parser reads each stack, and names functions of kernel and program, as the page says:
    without other options. It takes no name from the kernel of this machine.
    """
    data, parsed = tmp_path / "perf.data", tmp_path / "parsed"
    legoprof("perf-data", lego, "-o", data)
    command = PERFPARSER, "--input", data
    nr_rows = len(export.load(lego).rows("samples.json"))
    assert f"samples: {nr_rows}\n" in run(*command, "--print-stats")
    run(*command, "--output", parsed)
    found = parsed.read_bytes()
    for name in b"inode_write", b"kthread_main", b"worker_run", b"kernel/fs/data.c":
        assert name in found
    assert not re.search(rb"__entry_text_end|_RNvX|__x64_sys", found)


@pytest.fixture(scope="module")
def moved(lego) -> Path:
    """
    Returns an export whose kernel and programs are nowhere to be found: their build ids are others.
    """
    found = export.load(lego)
    found.meta["build_id"] = "ab" * 20
    for row in found.rows("images.json"):
        row["build_id"] = f"{row['image']:040x}"
    path = lego.with_name("moved.lego")
    path.write_bytes(merge.write(found))
    return path


def test_names_without_files(moved, tmp_path):
    """perf, pprof and hotspot name functions that only the export names, without other options."""
    data, profile, parsed = tmp_path / "perf.data", tmp_path / "run.pb.gz", tmp_path / "parsed"
    by_function = legoprof("report", moved, "--by", "function", "--format", "json")
    counts = {row["function"]: row["samples"] for row in map(json.loads, by_function.splitlines())}
    assert sum(nr for name, nr in counts.items() if "0x" in name) < sum(counts.values()) // 100
    legoprof("perf-data", moved, "-o", data)
    perf = "perf", "--buildid-dir", tmp_path / "empty"
    options = "--stdio", "--no-children", "-g", "none", "-F", "period,sym", "--sort", "sym"
    done = subprocess.run(
        [*map(str, perf), "report", "-i", data, *options], capture_output=True, text=True
    )
    rows = re.findall(r"^ +(\d+) +\[[.k]\] (\S+) *$", done.stdout, re.MULTILINE)
    by_perf = {name: int(period) // PERIOD_NS for period, name in rows}
    # perf rounds nothing here; functions without a name have only an address there.
    for name in "worker_run", "inode_write", "main":
        assert by_perf[name] == counts[name], name
    assert not re.search("kallsyms|kptr", done.stdout + done.stderr), done.stderr
    run(PERFPARSER, "--input", data, "--output", parsed)
    for name in b"inode_write", b"kthread_main", b"worker_run":
        assert name in parsed.read_bytes()
    assert not re.search(rb"__entry_text_end|_RNvX|__x64_sys", parsed.read_bytes())
    legoprof("pprof", moved, "-o", profile)
    text = run("go", "tool", "pprof", "-sample_index=samples", "-top", "-nodecount=1000", profile)
    for name in "worker_run", "inode_write":
        assert re.search(rf"^ +{counts[name]} .* {name}$", text, re.MULTILINE), name


def test_kernel_found_without_a_cache(lego, tmp_path):
    """perf finds the kernel that legoprof has found; with another file at that place, its cache."""
    kernel, data = tmp_path / "vmlinux", tmp_path / "perf.data"
    kernel.write_bytes(KERNEL.read_bytes())
    legoprof("perf-data", lego, "-o", data, "--kernel", kernel)
    perf = "perf", "--buildid-dir", tmp_path / "ids"
    report = *perf, "report", "-i", data, "--stdio", "--no-children", "-g", "none"
    assert " [k] inode_write" in run(*report)
    run(*perf, "buildid-cache", "-a", kernel)
    kernel.unlink()  # of which the cache has a hard link
    kernel.write_bytes(PROGRAM.read_bytes())
    assert " [k] inode_write" in run(*report)


def test_perf_data_convert(write, perf, lego, tmp_path):
    """perf converts all samples to JSON and CTF, with what the export says of the machine."""
    data, converted = write("perf-data"), tmp_path / "converted"
    perf("data", "convert", "-i", data, "--to-json", converted)
    found = json.loads(converted.read_text())
    rows, head = export.load(lego).rows("samples.json"), found["headers"]
    assert len(found["samples"]) == len(rows)
    assert head["os-release"] == perf_data.RELEASE and head["nrcpus-online"] == 1
    assert head["cpu-desc"].startswith("QEMU ") and f"profile.hz={HZ}" in head["cmdline"]
    perf("data", "convert", "-i", data, "--to-ctf", tmp_path / "ctf")
    lines = run("babeltrace2", tmp_path / "ctf").splitlines()
    assert len(lines) == len(rows) and all("cpu-clock: " in line for line in lines)


def test_lost_samples(lego, perf, tmp_path):
    """perf, pprof, callgrind_annotate and flamegraph.pl say how many samples were lost."""
    found = export.load(lego)
    row = found.rows("source.json")[0]
    row["lost"], row["expected"] = 3 * row["taken"], 4 * row["taken"] + row["self"]
    nr, total = row["lost"] + row["self"], row["expected"]
    text = f"{nr} of {total} samples were lost ({100 * nr / total:.2f} %)"
    path = tmp_path / "lossy.lego"
    path.write_bytes(merge.write(found))

    def convert(name: str, *options: str) -> Path:
        output = tmp_path / name
        command = ROOT / "scripts/legoprof", name, path, "-o", output, *symbols(), *options
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, f"legoprof: {path}: {text}\n")
        return output

    for options in [], ["--each"]:
        out = perf("report", "-i", convert("perf-data", *options), "--stdio", "-g", "none")
        assert f"# Total Lost Samples: {nr}\n" in out
    assert text in run("go", "tool", "pprof", "-comments", convert("pprof"))
    assert text in run("callgrind_annotate", convert("callgrind"))
    assert f", {text}</text>" in convert("flamegraph").read_text()
    assert json.loads(convert("speedscope").read_text())["profiles"][0]["name"].endswith(text)
    convert("folded")
    convert("stacks")


def ask_again(*command: object) -> dict:
    """Runs a command until it succeeds, for a minute, and returns its JSON."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        done = subprocess.run([*map(str, command)], capture_output=True, timeout=60)
        if done.returncode == 0:
            return json.loads(done.stdout)
        time.sleep(0.5)
    raise AssertionError(done.stderr.decode())


def test_firefox_profiler(write, perf, lego, npm, nr_stored, tmp_path):
    """Its command line reads the output of `perf script`. It ignores periods, hence --each."""
    package = npm("@firefox-devtools/profiler-cli", "0.10.0")
    cli = ["node", package / json.loads((package / "package.json").read_text())["bin"]["pq"]]
    os.environ["PROFILER_CLI_SESSION_DIR"] = str(tmp_path / "session")
    text = tmp_path / "script.txt"
    text.write_text(perf("script", "-i", write("perf-data", "--each")))
    try:
        # On a busy machine, load gives up after half a second, but its daemon still starts.
        subprocess.run([*map(str, cli), "load", str(text)], capture_output=True, timeout=120)
        threads = ask_again(*cli, "thread", "list", "--json")["threads"]
        found: dict[str, int] = {}
        for thread in threads:
            argv = "thread", "functions", "--thread", thread["threadHandle"], "--limit", "0"
            for function in json.loads(run(*cli, *argv, "--json"))["functions"]:
                name = function["name"]
                found[name] = found.get(name, 0) + function["selfSamples"]
    finally:
        subprocess.run([*map(str, cli), "stop", "--all"], capture_output=True, timeout=60)
    assert sum(found.values()) == nr_stored
    for name in "inode_write", "page_alloc", "worker_run":
        assert found[name] == self_samples(lego)[name]
