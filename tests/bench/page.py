# SPDX-License-Identifier: BSD-2-Clause
"""Measures the page of a large export: its size, and how long Chromium takes to open it.

The export is made here: 50,000 stacks and a million events. How long it takes depends on the
machine. How many rectangles a picture has does not.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests/unit")]
import trace_export  # noqa: E402
from profiles import export, merge  # noqa: E402

NR_STACKS, NR_EVENTS, NR_CPUS, NR_THREADS, NR_FUNCTIONS = 50_000, 1_000_000, 4, 64, 3_000
DEPTH = 24
CODE, STEP_NS = 0xFFFFFFFF81000000, 900
OPEN_S = 120
META = {"export": 1, "number": 1, "why": "power off", "compiler": "gcc", "build_id": "00"}
META |= {"clock": "TSC", "tsc_hz": 10**9, "cpus": NR_CPUS, "end_ns": 10**10}
Rows = list[tuple[str, float, str, str]]


def samples(rng: random.Random) -> list[dict]:
    """Returns different stacks, as of a program that calls 3,000 functions in many ways."""
    found = []
    for i in range(NR_STACKS):
        # The outer frames have few places, the inner ones many.
        places = [rng.randrange(min(2 + 3 ** min(d, 8), NR_FUNCTIONS)) for d in range(DEPTH)]
        chain = [f"{CODE + 4096 * place + 64 * d:#x}" for d, place in enumerate(places)]
        row = {"cpu": i % NR_CPUS, "samples": 1 + i % 9, "pid": 1, "tid": 1 + i % NR_THREADS}
        row |= {"comm": f"thread{i % 8}", "class": "kernel", "syscall": None, "irqs_off": 0}
        found.append(row | {"truncated": None, "kernel": chain[::-1], "user": [], "code_map": 0})
    return found


def events(rng: random.Random) -> dict[str, list[dict]]:
    """Returns the files of rings in which threads switch, wake others, and make system calls."""
    rings = [trace_export.Ring(cpu) for cpu in range(NR_CPUS)]
    tids = range(1, NR_THREADS + 1)
    names = {tid: (1, f"thread{tid % 8}") for tid in tids}
    current, now = list(tids[:NR_CPUS]), 10**8
    for nr in range(NR_EVENTS // 4):
        cpu = nr % NR_CPUS
        ring, tid, other = rings[cpu], current[cpu], rng.randrange(1, NR_THREADS + 1)
        if other in current:
            other = tid
        now += rng.randrange(1, STEP_NS)
        ring.add(now, trace_export.ENTER.data(tid, nr % 300, [0] * 6))
        ring.add(now + 100, trace_export.EXIT.data(tid, nr % 300, 0))
        ring.add(now + 200, trace_export.WAKEUP.data(tid, names[other][1], other, 120, cpu))
        switch = (tid, names[tid][1], tid, 120, nr % 2, names[other][1], other, 120)
        ring.add(now + 300, trace_export.SWITCH.data(*switch))
        current[cpu] = other
    return trace_export.files(rings, names, trace_export.KINDS)


def make_export(path: Path) -> None:
    rng = random.Random(1)
    files = {"source.json": [{"cpu": 0, "hz": 997, "expected": 1, "taken": 1}]}
    files |= {"samples.json": samples(rng), **events(rng)}
    tables = {name: [export.Table(name, rows)] for name, rows in files.items()}
    path.write_bytes(merge.write(export.Export(str(path), META, {}, tables, [])))


def open_page(page: Path) -> Rows:
    """Returns how long Chromium takes, and what it draws; nothing without Selenium."""
    try:
        from selenium import webdriver
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        return []
    options = webdriver.ChromeOptions()
    for word in "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900":
        options.add_argument(word)
    try:
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    except WebDriverException:
        return []
    try:
        driver.get(page.as_uri())
        end = time.monotonic() + OPEN_S
        times: dict[str, str] = {}
        while "ready" not in times and time.monotonic() < end:
            time.sleep(0.05)
            times = driver.execute_script("return {...document.documentElement.dataset}")
        canvas = "return [...document.querySelectorAll('canvas')].map((c) => +c.dataset.nodes || 0)"
        nodes = driver.execute_script(canvas)
    finally:
        driver.quit()
    note = f"of {NR_STACKS} stacks and {NR_EVENTS} events, in headless Chromium"
    return [
        ("page_first", int(times["first"]) / 1000, "seconds", f"until the first screen, {note}"),
        ("page_open", int(times["ready"]) / 1000, "seconds", "until all views of it are drawn"),
        ("page_rectangles", max(nodes), "drawn", "in the largest picture of that page"),
    ]


def measure(build: Path) -> Rows:
    """Returns name, value, unit and note of each row."""
    directory = build / "bench"
    directory.mkdir(exist_ok=True)
    path, page = directory / "page.lego", directory / "page.html"
    make_export(path)
    start = time.monotonic()
    subprocess.run([ROOT / "scripts/legoprof", "page", path, "-o", page], check=True)
    taken = time.monotonic() - start
    size = page.stat().st_size
    return [
        ("page_make", taken, "seconds", f"of {NR_STACKS} stacks and {NR_EVENTS} events"),
        ("page_size", size, "bytes", f"of that page: {size / 1e6:.1f} MB"),
        *open_page(page),
    ]


if __name__ == "__main__":
    for row in measure(ROOT / "build"):
        print(*row)
