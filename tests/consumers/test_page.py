# SPDX-License-Identifier: BSD-2-Clause
"""The page in Chromium: its numbers are those of the report, its state is its address, and no name
of a guest runs a script or breaks the layout.
"""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import qemu
from conftest import BUILD, KERNEL, ROOT, legoprof, run
from profiles import export, losses, merge, stacks

SCREEN = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
RUNS = {
    "demo": ("initramfs.cpio", "init=/bin/wordcount -- -t 8 /bin/wordcount", 1),
    "slow-producer": ("diagnosis.cpio", "init=/bin/slow-producer", 1),
    "slow-hotlock": ("diagnosis.cpio", "init=/bin/slow-hotlock", 2),
    "slow-poll": ("diagnosis.cpio", "init=/bin/slow-poll", 1),
    "slow-fork": ("diagnosis.cpio", "init=/bin/slow-fork", 1),
    "losses": ("initramfs.cpio", "profile.samples=4096 init=/bin/wordcount -- -t 8 /data/text", 1),
}
OTHER_RUNS = {
    "worksets": ("tests.cpio", "profile.working_set=on init=/bin/worksets -- 2000", 1),
}
EVENTS = "trace_event=sched,raw_syscalls"
PATH = "profile.path=on"
HOSTILE = [
    "<script>window.bad=1</script>", "</script><script>bad=1</script>", "<img src=x onerror=bad=1>",
    "<svg onload=bad=1>", "javascript:bad=1", "'\"><b onmouseover=bad=1>",
    "</template><script>bad=1",
    "</style><script>bad=1</script>", "<!--", "-->", "]]>", "&lt;script&gt;", "&#60;script&#62;",
    "${bad=1}", "`${bad=1}`", "{{bad=1}}", "__proto__", "constructor", "toString", "#flame?q=x",
    "?q=1&idle=1", "%3Cscript%3E", "\u202e\u2066gnp.exe", "a\u0301" * 40, "\U0001f600" * 20,
    "x" * 400, "<a href=//example.org>", "\\u003cscript>", "\x00\x1b[2J", "<iframe srcdoc=x>",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for word in "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars":
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN)
    yield driver
    driver.quit()


class Page:
    """A page in the browser. Each look at it fails if the browser has complained."""

    def __init__(self, driver, path: Path):
        self.driver, self.path = driver, path

    def open(self, state: str = "") -> Page:
        self.driver.get("about:blank")
        self.driver.get(f"{self.path.as_uri()}{state}")
        return self.wait("return document.documentElement.dataset.ready")

    def wait(self, script: str, wanted: object = None) -> Page:
        """Waits until a script returns what is wanted, or anything that is true."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = self.run(script)
            if found if wanted is None else found == wanted:
                return self
            time.sleep(0.05)
        raise AssertionError(f"{script}: {self.run(script)!r}, not {wanted!r}")

    def run(self, script: str, *arguments: object):
        complaints = self.driver.get_log("browser")
        assert not complaints
        return self.driver.execute_script(script, *arguments)

    def state(self) -> str:
        return self.run("return location.hash")

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def rows(self, selector: str) -> list[list[str]]:
        """Returns the cells of all rows of the first table there, without its headings."""
        script = """
            const inside = document.querySelector(arguments[0]);
            for (let more; (more = inside.querySelector(".more:not([hidden])"));) more.click();
            return [...inside.querySelector("tbody").rows].map(
                (row) => [...row.cells].map((cell) => cell.textContent));"""
        return self.run(script, selector)

    def nodes(self, selector: str = "#flame canvas") -> int:
        return int(self.run("return document.querySelector(arguments[0]).dataset.nodes", selector))

    def key(self, selector: str, *keys: str) -> None:
        self.driver.find_element(By.CSS_SELECTOR, selector).send_keys(*keys)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Returns a function that runs a program once: (its export, its console log)."""
    directory, found = tmp_path_factory.mktemp("page"), {}

    def run_once(name: str, more: str = "") -> tuple[Path, str]:
        if (name, more) not in found:
            image, append, smp = (RUNS | OTHER_RUNS)[name]
            path = directory / f"{name}{len(found)}.lego"
            append = f"profile.hz=10007 profile.on_exit=run {more} {append}"
            files = {"kernel": KERNEL, "initrd": BUILD / image, "export": path}
            result = qemu.run(qemu.Options(**files, append=append, icount=True, smp=smp))
            assert result.ok and not result.export_error, result.tail()
            found[name, more] = path, result.log
        return found[name, more]

    return run_once


def make_page(browser, lego: Path, *older: Path) -> Page:
    path = lego.with_suffix(".html")
    legoprof("page", lego, *older, "-o", path, "--kernel", KERNEL)
    return Page(browser, path)


def report(lego: Path, *options: str) -> list[dict]:
    """Returns the rows of a report. What was lost is on the page, too."""
    command = [ROOT / "scripts/legoprof", "report", lego, "--format", "json", *options]
    text = run(*command, "--kernel", KERNEL)
    return [json.loads(line) for line in text.splitlines()]


def seconds(ns: int) -> str:
    return f"{ns // 10**9}.{ns % 10**9:09d}"


def shown_samples(lego: Path, with_report: bool = False) -> dict[str, int]:
    """Returns the samples by function, without those of idle CPUs and of printing reports."""
    found: dict[str, int] = {}
    for row in report(lego, "--by", "function,class,truncated"):
        is_of_report = row["truncated"] == stacks.OF_REPORT
        if row["class"] != "idle" and (with_report or not is_of_report):
            found[row["function"]] = found.get(row["function"], 0) + row["samples"]
    return found


def check_functions(page: Page, lego: Path, with_report: bool) -> None:
    by_function = shown_samples(lego, with_report)
    on_page: dict[str, int] = {}
    for name, own, _, total, _, _ in page.rows("#functions"):
        on_page[name] = on_page.get(name, 0) + int(own)
        assert int(own) <= int(total)
    assert {name: nr for name, nr in on_page.items() if nr} == by_function
    assert page.text("#flame .words").startswith(f"CPU time: {sum(by_function.values()):,} sample")


def check_numbers(page: Page, lego: Path, log: str) -> None:
    """Compares the page with the report on the console, and with legoprof report."""
    first = re.search(r"profile: report \d+: (.*)((?:\n\[[^\]]*\] .+)+)", log)
    lines = re.findall(r"\[[^\]]*\] (.*)", first[2])
    shown = page.text("#sentence")
    assert first[1] in shown and all(line in shown for line in lines if line)
    assert page.text("#sentence .finding") in (*lines[:2], first[1])

    found = export.load(lego)
    bar = page.text(".parts")
    if path := found.rows("critical_path_parts.json"):
        total = sum(row["time_ns"] for row in path)
        assert f"{seconds(total)} s along the critical path" in page.text("#bar")
    else:
        for row in filter(lambda row: row["cycles"], found.rows("accounts.json")):
            assert f"{row['owner']} {seconds(row['cycles'] + 500)[:-3]} s" in bar

    check_functions(page, lego, False)
    page.open("#flame?report=1")
    check_functions(page, lego, True)
    page.open()

    calls = {row["syscall"]: row for row in report(lego, "--table", "strace")}
    rows = page.rows('[data-file="strace"]')
    assert {row[0]: (row[2], row[4], row[5]) for row in rows} == {
        name: (seconds(row["time_ns"]), str(row["calls"]), str(row["errors"]))
        for name, row in calls.items()
    }
    waits = report(lego, "--table", "waits")
    ended = sum(row["wait_ns"] for row in waits)
    page.open("#flame?graph=waits")
    # In-flight waits last until their table is made, and the stacks come later.
    stored = sum(row["asleep_ns"] + row["ready_ns"] for row in found.rows("waits_stacks.json"))
    assert page.text("#flame .words") == f"Waits: {seconds(stored + 500)[:-3]} s"
    assert abs(stored - ended) < ended / 100 + 10**6 * sum(row["in_flight"] for row in waits)


@pytest.mark.parametrize("name", RUNS)
def test_numbers(browser, runs, name):
    lego, log = runs(name)
    page = make_page(browser, lego).open()
    lost = losses.of_samples(export.load(lego))
    assert (name == "losses") <= bool(lost.lost.total())
    shown = page.text("#losses")
    assert (str(lost) in shown) if lost.lost.total() else shown.startswith("Nothing was lost")
    check_numbers(page, lego, log)


def test_path(browser, runs):
    """The sentence says who waits for whom, and which code ends the wait."""
    page = make_page(browser, runs("slow-producer", PATH)[0]).open()
    text = "wait, until thread producer wakes it in write < produce; thread producer sleeps in "
    text += "sys_clock_nanosleep until a timer wakes it, called from produce()"
    chain = page.text("#sentence .chain")
    assert re.match(r"9\d % of the wall time: thread consumer waits for pipe->read_", chain)
    assert chain.endswith(text)
    assert page.text("#flame .words").startswith("Critical path: ")
    assert "event" not in page.text("#losses")


def test_what_says_most_comes_first(browser, runs, tmp_path):
    """The path comes first, unless its largest part is less than half of what a finding says."""
    lego, _ = runs("slow-producer", PATH)
    first = "return document.querySelector('#sentence p').className"
    assert make_page(browser, lego).open().run(first) == "chain"
    found = export.load(lego)
    (table,) = found.files["critical_path_parts.json"]
    most = max(table.rows, key=lambda row: row["time_ns"])
    table.rows += [most | {"function": name, "part": name} for name in "abc"]
    path = tmp_path / "parts.lego"
    path.write_bytes(merge.write(found))
    assert make_page(browser, path).open().run(first) == "finding"


def test_lost_events_are_a_part_of_their_own(browser, runs):
    """Time that is not recorded has its own color. All shares are of the wall time."""
    lego, _ = runs("slow-poll", PATH)
    page = make_page(browser, lego).open()
    rows = export.load(lego).rows("critical_path_parts.json")
    lost = sum(row["time_ns"] for row in rows if row["cause"] == "not recorded")
    total = sum(row["time_ns"] for row in rows)
    assert lost > total / 2
    assert f", known for the last {seconds(total - lost)} s" in page.text("#bar figcaption")
    script = """return [...document.querySelectorAll("#bar .strip span")].map((part) => {
        const style = getComputedStyle(part);
        return style.backgroundColor + style.backgroundImage; })"""
    colors = page.run(script)
    assert len(colors) == len(set(colors)) > 5 and "gradient" in colors[0]
    shares = [float(share) for share in re.findall(r" s ([\d.]+) %", page.text("#bar .parts"))]
    assert len(shares) == len(colors) and abs(sum(shares) - 100) < 0.1
    assert shares[0] == pytest.approx(100 * lost / total, abs=0.01)
    # Parts without times are in the flame graph, too.
    page.open("#flame?graph=path")
    functions = {row[0]: row[3] for row in page.rows("#functions")}
    assert "[earlier]" not in functions
    assert re.search(r"sys_poll found nothing ready in [\d,]+ of", page.text("#sentence .fact"))
    assert functions["[not recorded]"] == seconds(lost)
    chain = page.text("#sentence .chain")
    assert f"{100 * lost // total} % of the wall time is not recorded" in chain
    assert page.text("#sentence .finding") in page.text("#sentence").split("\n")[0]


def test_waits_have_their_edges(browser, runs):
    """The seconds on the edges are those of the stored waits, and locks have their names."""
    lego, _ = runs("slow-hotlock")
    page = make_page(browser, lego).open()
    rows = export.load(lego).rows("waits_stacks.json")
    ns = sum(row["asleep_ns"] + row["ready_ns"] for row in rows if row["what"] != "a CPU")
    assert page.text("#waits").count(f"{seconds(ns + 500)[:-3]} s of waits") == 1
    edges = page.rows("#waits")
    assert sum(int(row[1].replace(".", "")) for row in edges) == ns
    named = {row["what"] for row in report(lego, "--table", "waits")}
    assert {row[3] for row in edges} <= named
    assert page.run("return document.querySelectorAll('#waits path.edge').length") >= 2


def test_time_line(browser, runs):
    """States add up to the range, a range restricts the table, and calls are the report's."""
    lego, _ = runs("demo", EVENTS)
    page = make_page(browser, lego).open()
    calls = {row["syscall"]: row["calls"] for row in report(lego, "--table", "strace")}
    tables = page.run(
        "return [...document.querySelectorAll('#range-table .grid')].map((grid) => {"
        "  for (let more; (more = grid.querySelector('.more:not([hidden])'));) more.click();"
        "  return [...grid.querySelector('tbody').rows].map("
        "    (row) => [...row.cells].map((cell) => cell.textContent)); })"
    )
    by_name = {row[0]: int(row[3]) for row in tables[1]}
    for name in "sys_futex", "sys_pread64", "sys_munmap":
        assert by_name[name] == calls[name]
    nodes = page.nodes("#time canvas")
    assert 0 < nodes < 40 * 1280
    page.key("#time canvas", "+", "+", Keys.ARROW_RIGHT)
    assert "view=" in page.state() and 0 < page.nodes("#time canvas") < 40 * 1280
    page.key("#time canvas", Keys.SHIFT, Keys.ARROW_RIGHT)
    state = page.state()
    start, end = (int(re.search(rf"{key}=(\d+)", state)[1]) for key in ("from", "to"))
    assert end > start
    for row in page.rows("#range-table"):
        assert sum(int(cell.replace(".", "")) for cell in row[1:]) <= end - start


def test_used_memory(browser, runs):
    """Each region of the history has its place, its color and its words."""
    lego, _ = runs("worksets")
    page = make_page(browser, lego).open("#memory")
    history = export.load(lego).rows("working_set_history.json")
    used = [row for row in history if row["accessed_percent"]]
    assert page.nodes("#memory canvas") == len(used) > 20
    assert "working_set" not in page.run(
        "return [...document.querySelectorAll('#tables [data-file]')].map((t) => t.dataset.file)"
    )
    # At its end, the program wrote to 8 MiB and read 4 MiB.
    script = """
        const canvas = document.querySelector("#memory canvas");
        const height = canvas.height - 18;
        const { data } = canvas.getContext("2d").getImageData(canvas.width - 3, 0, 1, height);
        return Array.from({ length: height }, (_, y) => Array.from(data.slice(4 * y, 4 * y + 3)))"""
    colors = page.run(script)
    red = sum(r > 180 and b < 90 for r, _, b in colors)
    blue = sum(b > 180 and r < 90 for r, _, b in colors)
    last = max(row["ns"] for row in history)
    assert 1.3 < red / blue < 3 and 20 < red < 120
    # The keyboard goes through the moments, and through the regions of one.
    info = "return document.querySelector('#memory .info').textContent"
    page.key("#memory canvas", *[Keys.ARROW_RIGHT] * 40, *[Keys.ARROW_DOWN] * 130)
    rows = sorted((row for row in history if row["ns"] == last), key=lambda row: row["start"])
    words = [f"accessed {row['accessed_percent']} %, written {row['written_percent']} %"
             for row in rows]  # fmt: skip
    for text, row in zip(words, rows, strict=True):
        assert text in page.run(info) and f"{int(row['start'], 16):x}-" in page.run(info)
        page.key("#memory canvas", Keys.ARROW_UP)
    assert words[-1] in page.run(info)


def test_used_memory_of_several_processes(browser, runs, tmp_path):
    """The largest working set comes first; another one is chosen by the address. Names are text."""
    found = export.load(runs("worksets")[0])
    names = ["a" + name for name in HOSTILE[:3]]
    for file, key in ("working_set.json", "program"), ("working_set_history.json", "written"):
        (table,) = found.files[file]
        rows = [row for row in table.rows if row["pid"] == 1]
        for i, name in enumerate(names):
            more = {"pid": 90 + i, key: name}
            if key == "program":
                more["used_10s_bytes"] = (80 + i) << 20
            table.rows += [row | more for row in rows]
    path = tmp_path / "several.lego"
    path.write_bytes(merge.write(found))
    page = make_page(browser, path).open("#memory")
    options = "return [...document.querySelectorAll('#memory option')].map((o) => o.textContent)"
    shown = page.run(options)
    assert [text.split(":")[0] for text in shown] == ["pid 92", "pid 91", "pid 90", "pid 1"]
    assert all(name in text for name, text in zip(names[::-1], shown))
    info = "return document.querySelector('#memory .info').textContent"
    assert page.run(info).startswith(f"{names[2]} has used 82.0 MiB of its 64.")
    page.open("#memory?mem=90")
    assert page.run(info).startswith(f"{names[0]} has used 80.0 MiB")
    assert page.run("return document.querySelector('#memory-pid').value") == "90"
    for width in 1280, 480:
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN | {"width": width})
        page.open("#memory")
        assert page.run("return document.documentElement.scrollWidth") <= width
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN)


def test_compare(browser, runs):
    old, _ = runs("demo")
    new, _ = runs("losses")
    page = make_page(browser, new, old).open()
    now, before = ({row["function"]: row["samples"] for row in report(one, "--by", "function")}
                   for one in (new, old))  # fmt: skip
    for row in page.rows("#compare .grid"):
        name, change, was, is_ = row[:4]
        if not name.startswith("["):
            assert int(was) == before.get(name, 0) and int(is_) == now.get(name, 0)
            assert int(change) == int(is_) - int(was)
    shown = page.text("#sentence .finding")
    nr_now, nr_before = (sum(shown_samples(one).values()) for one in (new, old))
    assert f"{nr_before:,} samples before, {nr_now:,} now" in shown
    assert "not comparable: append was" in page.text("#compare")
    page.open("#flame?graph=change")
    assert "Red has grown" in page.text("#flame .words") and page.nodes() > 5


def test_state_survives_a_reload(browser, runs):
    page = make_page(browser, runs("demo")[0]).open()
    all_nodes = page.nodes()
    page.key("#search", "count_w")
    assert page.state() == "#flame?q=count_w"
    found = page.text("#flame .words")
    assert "Found in" in found
    page.key("#flame canvas", Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    state = page.state()
    assert "zoom=" in state and "q=count_w" in state
    canvas = "return document.querySelector('#flame canvas').toDataURL()"
    page.driver.execute_script("document.activeElement.blur()")
    before = page.text("#flame .words"), page.nodes()
    page.open(state)
    assert (page.text("#flame .words"), page.nodes()) == before and page.state() == state
    assert page.run("return document.getElementById('search').value") == "count_w"
    picture = page.run(canvas)
    page.driver.back()
    page.open("#flame?rev=1&fn=0")
    assert page.run(canvas) != picture and page.text("#function h3")
    page.open("#flame?tid=2")
    assert page.run("return document.getElementById('filter-tid').value") == "2"
    assert " of " in page.text("#flame .words") and page.nodes() <= all_nodes


def pixels(page: Page, selector: str) -> tuple[int, int, int]:
    """Returns how many rectangles a canvas has, and its width and height."""
    script = "const c = document.querySelector(arguments[0]);"
    script += "return [c.clientWidth, c.clientHeight]"
    return page.nodes(selector), *page.run(script, selector)


def test_only_what_is_visible_is_drawn(browser, tmp_path, monkeypatch):
    """Of many stacks and events, a step draws at most one rectangle for a pixel of each row."""
    monkeypatch.syspath_prepend(str(ROOT / "tests/bench"))
    import page as bench

    monkeypatch.setattr(bench, "NR_STACKS", 5_000)
    monkeypatch.setattr(bench, "NR_EVENTS", 100_000)
    bench.make_export(tmp_path / "many.lego")
    legoprof("page", tmp_path / "many.lego", "-o", tmp_path / "many.html")
    page = Page(browser, tmp_path / "many.html").open()
    for keys in [], ["+"] * 3, [Keys.ARROW_RIGHT] * 2, ["-"] * 2:
        page.key("#time canvas", *keys)
        nr, width, height = pixels(page, "#time canvas")
        assert 100 < nr <= width * height / 9  # the lowest lane has 9 pixels
    for keys in [], [Keys.ARROW_DOWN] * 3 + [Keys.ENTER], [Keys.ESCAPE]:
        page.key("#flame canvas", *keys)
        nr, width, height = pixels(page, "#flame canvas")
        assert 20 < nr <= width * height / 18


def test_back_undoes_a_zoom(browser, runs):
    page = make_page(browser, runs("demo")[0]).open()
    words = page.nodes()
    page.key("#flame canvas", Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    assert "zoom=" in page.state()
    page.driver.back()
    page.wait("return location.hash", "")
    assert page.nodes() == words


def test_instructions(browser, runs):
    """The samples of a function's instructions add up to its own. Kernel code has its source."""
    lego, _ = runs("demo")
    page = make_page(browser, lego).open()
    samples = {row["function"]: row["samples"] for row in report(lego, "--by", "function")}
    for name in "worker_run", "inode_write":
        script = "[...document.querySelectorAll('#functions .link')].find("
        page.run(script + "(link) => link.textContent === arguments[0]).click()", name)
        rows = page.run(
            "return [...document.querySelector('#code tbody').rows].map("
            "(row) => [...row.cells].map((cell) => cell.textContent))"
        )
        assert sum(int(row[0] or 0) for row in rows) == samples[name]
        assert all(re.match(r"\+0x[0-9a-f]+$", row[3]) for row in rows if row[0])
    assert any(re.match(r"data\.c:\d+  \S", row[5]) for row in rows)


def test_hostile_names(browser, lego, tmp_path):
    """Each name is shown as text, where names of tasks, waits, calls, files and notes are shown."""
    found = export.load(lego)
    for i, row in enumerate(found.rows("samples.json")):
        row["comm"] = HOSTILE[i % len(HOSTILE)]
        row["truncated"] = HOSTILE[(i + 7) % len(HOSTILE)]
    for i, row in enumerate(found.rows("waits_stacks.json")):
        row["what"] = row["comm"] = row["waker_comm"] = HOSTILE[i % len(HOSTILE)]
    for file, key in ("strace.json", "syscall"), ("points.json", "point"), ("tasks.json", "name"):
        for i, row in enumerate(found.rows(file)):
            row[key] = HOSTILE[i % len(HOSTILE)]
    found.files["strace.json"][0].notes += HOSTILE
    found.files["points.json"][0].title = HOSTILE[0]
    path = tmp_path / "<img src=x onerror=bad=1>.lego"
    path.write_bytes(merge.write(found))
    page = make_page(browser, path)
    for width in 1280, 480:
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN | {"width": width})
        for state in "", "?graph=waits", "?fn=0&q=%3Cscript%3E", "?comm=__proto__":
            page.open(f"#flame{state}")
            assert page.run("return typeof window.bad") == "undefined"
            assert page.run("return document.querySelectorAll('img, iframe, script').length") == 1
            wide = page.run("return document.documentElement.scrollWidth - window.innerWidth")
            assert wide <= 0
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN)
    shown = page.open().run("return document.body.textContent")
    assert all(export.printable(name) in shown for name in HOSTILE if len(name) < 100)


def test_needs_no_network_and_allows_no_script(browser, runs):
    page = make_page(browser, runs("demo")[0])
    text = page.path.read_text()
    assert len(re.findall("<script", text)) == 1
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    code = re.sub(r'<template id="data">.*?</template>', "", text, flags=re.DOTALL)
    assert len(code) < 120_000
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", code)
    page.open()
    script = "const s = document.createElement('script'); s.textContent = 'window.bad = 1';"
    page.driver.execute_script(script + "document.body.append(s)")
    complaints = page.driver.get_log("browser")
    assert any("Content Security Policy" in one["message"] for one in complaints)
    assert page.run("return typeof window.bad") == "undefined"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 480])
def test_layout(browser, runs, width, theme):
    """Nothing is wider than the screen. The pictures are for people: build/test-logs/."""
    page = make_page(browser, runs("demo", EVENTS)[0])
    features = [{"name": "prefers-color-scheme", "value": theme}]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN | {"width": width})
    page.open()
    assert page.run("return document.documentElement.scrollWidth") <= width
    first = page.run("return document.querySelector('#flame canvas').getBoundingClientRect().top")
    assert first < 900 or width < 500
    height = page.run("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, 6000), "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    data = page.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    directory = BUILD / "test-logs"
    directory.mkdir(exist_ok=True)
    (directory / f"page-{width}-{theme}.png").write_bytes(base64.b64decode(data))
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN)
