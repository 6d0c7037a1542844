# SPDX-License-Identifier: BSD-2-Clause
"""Tests what legoprof page writes, without a browser: the data, the policy, the script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
import zlib
from collections import Counter
from types import SimpleNamespace

import pytest
import trace_export

from test_legoprof import META, SCRIPTS, legoprof
from test_legoprof_fuzz import FILES, WAIT, whole
from test_legoprof_output import CONTROL, EVIL, evil_files
from test_legoprof_working_set import FIRST, MIB, PROCESS, ROWS, SECOND

from profiles import page, page_code, page_columns, page_data, page_events  # noqa: E402
from profiles import page_path, stacks  # noqa: E402

PATH = [
    {"from_ns": 700, "to_ns": 1000, "cpu": 0, "pid": 1, "tid": 1, "task": "a", "waiter": None}
    | {"cause": "user code", "function": "work"},
    {"from_ns": 400, "to_ns": 700, "cpu": None, "pid": 1, "tid": 2, "task": "a", "waiter": None}
    | {"cause": "timer", "function": "sys_nanosleep"},
    {"from_ns": 350, "to_ns": 400, "cpu": 0, "pid": 1, "tid": 1, "task": "a", "waiter": None}
    | {"cause": "ready", "function": "other"},
    {"from_ns": 100, "to_ns": 350, "cpu": 0, "pid": 1, "tid": 1, "task": "a", "waiter": None}
    | {"cause": "page fault", "function": "work"},
]
SUMS = [  # with an interrupt of 10 ns in the user code
    {"time_ns": ns, "times": 1, "cause": cause, "function": function, "task": "a"}
    | {"called_from": caller, "part": part}
    for ns, cause, function, caller, part in (
        (300, "timer", "sys_nanosleep", "nap", "sys_nanosleep (timer) called from nap()"),
        (290, "user code", "work", "-", "work()"),
        (200, "page fault", "work", "main (60 %)", "page faults in work()"),
        (50, "page fault", "main", "-", "page faults in work()"),
        (50, "ready", "other", "-", "ready"),
        (10, "interrupt", "timer", "-", "interrupts"),
    )
]
LINES = ["profile: report 1: a (pid 1) exited", "97 % of CPU time in user function f [x: row 1]"]


def column(data: bytes, place: list[int]) -> list[int]:
    """Reads a column as the page's script does."""
    offset, count, width, ascending = place
    found, total = [], 0
    for i in range(count):
        value = sum(data[offset + byte * count + i] << 8 * byte for byte in range(width))
        total += value
        found.append(total if ascending else value)
    return found


class Page:
    def __init__(self, text: bytes):
        self.text = text.decode()
        packed = re.search(r'<template id="data">(.*?)</template>', self.text)[1]
        raw = zlib.decompress(base64.b64decode(packed))
        size = int.from_bytes(raw[:4], "little")
        self.json = raw[4 : 4 + size].decode()
        self.data, self.columns = json.loads(self.json), raw[4 + size :]
        self.tree = {key: self.column(place) for key, place in self.data["tree"].items()}

    def column(self, place: list[int]) -> list[int]:
        return column(self.columns, place)

    def chain(self, node: int) -> tuple[str, ...]:
        found: list[str] = []
        while node:
            found.insert(0, self.name(self.tree["frame"][node]))
            node = self.tree["caller"][node]
        return tuple(found)

    def name(self, frame: int) -> str:
        return self.data["strings"][self.tree["names"][frame]]

    def graph(self, name: str, run: int = 0) -> Counter[tuple[str, ...]]:
        graph = self.data["runs"][run]["graphs"][name]
        rows = zip(self.column(graph["node"]), self.column(graph["weight"]))
        found: Counter[tuple[str, ...]] = Counter()
        for node, weight in rows:
            found[self.chain(node)] += weight
        assert graph["total"] == found.total()
        return found


@pytest.fixture
def make(tmp_path, capsys):
    """Returns a function that makes the page of files, and of older ones."""

    def make_page(*runs: dict, meta: dict = META) -> Page:
        paths = [tmp_path / f"{i}.lego" for i in range(len(runs))]
        for path, files in zip(paths, runs):
            path.write_bytes(whole(meta, files))
        output = tmp_path / "run.html"
        assert legoprof.main(["page", *map(str, paths), "-o", str(output)]) == 0
        assert not CONTROL & set(capsys.readouterr().err)
        return Page(output.read_bytes())

    return make_page


@pytest.mark.parametrize("ascending", [False, True])
def test_columns(ascending):
    lists = [[], [0], [1, 2, 3], [255, 256, 65536, 2**31, 2**32, 2**53 - 1], [7] * 1000]
    columns = page_columns.Columns()
    places = [columns.add(values, ascending) for values in lists]
    assert [column(columns.data, place) for place in places] == lists
    assert columns.add([2**64])[2] == 7 and columns.add([-1])[2] == 0


def test_a_tree_is_sorted_by_depth():
    """Callers ascend, frames are numbered as they come, and recursion is marked."""
    tree = page_data.Tree(page_data.Strings())
    deep, other = [("task", "a"), *[("user", name) for name in "fgf"]], [("task", "b")]
    rows = [tree.row(chain, waker) for chain, waker in ((deep, other), (other, []))]
    assert rows == [(4, 1, 0, 4), (5, 4, 0, 0)]
    nodes, frames = tree.sort()
    assert nodes == [0, 1, 3, 4, 5, 2]
    assert [name for _, name in tree.frames] == ["a", "b", "f", "g"]
    assert [frames[frame] for frame in range(4)] == [0, 2, 3, 1] and frames[-1] == -1
    assert (tree.callers, tree.frames_of) == ([0, 0, 0, 1, 3, 4], [0, 0, 1, 2, 3, 2])
    assert tree.nested == {5}


def test_graphs_have_the_stacks(make):
    """The weights are those of the folded stacks; idle time is there, and marked."""
    found = make(FILES)
    kernel = "0xffffffff81000020", "0xffffffff81000010"
    assert found.graph("cpu") == {("a b", "a+0x2000", "[read]", *kernel): 7} | {
        ("a b", "[read]", *kernel): 90
    }
    assert sum(found.column(found.data["runs"][0]["graphs"]["cpu"]["out"])) == 1
    assert found.graph("waits").total() == 2 * (WAIT["asleep_ns"] + WAIT["ready_ns"])
    wakers = found.column(found.data["runs"][0]["graphs"]["waits"]["waker"])
    assert {found.name(frame - 1) for frame in wakers if frame} == {"init"}


def test_tables_are_those_of_the_report(make, tmp_path, capsys):
    found = make(FILES)
    tables = {one["file"]: one for one in found.data["runs"][0]["tables"]}
    assert legoprof.main(["report", str(tmp_path / "0.lego"), "--format", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for one in tables.values():
        for cells in one["rows"]:
            row = dict(zip(one["keys"], cells))
            assert any(row.items() >= {k: v for k, v in other.items()
                                       if isinstance(v, (int, str))}.items()
                       for other in rows)  # fmt: skip
    assert tables["points"]["rows"][0][-1] == {"7": 3}
    assert not {"samples", "waits_stacks", "trace_pages"} & tables.keys()


def test_first_lines(make):
    files = FILES | {"first_lines.json": [{"line": line} for line in LINES]}
    run = make(files).data["runs"][0]
    assert run["lines"] == LINES and "first_lines" not in [one["file"] for one in run["tables"]]


def test_losses_are_told(make):
    source = [{"cpu": 0, "hz": 997, "expected": 109, "taken": 97, "lost": 10, "self": 2}]
    limits = make(FILES | {"source.json": source}).data["runs"][0]["limits"]
    assert limits[0] == "12 of 109 samples were lost (11.01 %)"


def test_long_names(make):
    """Sentences and parts have short names of C++, but parts of different functions stay apart."""
    types = "ISt6vectorISt4pairIiNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEESaIS8_EEE"
    names = [f"_Z4sell{types}vT_{last}" for last in "il"]
    rows = [
        {"time_ns": 60 - i, "times": 1, "cause": "user code", "function": name, "task": "a"}
        | {"called_from": None, "part": f"{name}()"}
        for i, name in enumerate(names)
    ]
    line = {"line": f"critical path: 0.1 s = {names[0]}() 0.1"}
    found = make(
        FILES | {"critical_path.json": PATH, "critical_path_parts.json": rows}
        | {"first_lines.json": [line, {"line": f"9 % of CPU time in user function {names[1]}"}]}
    )  # fmt: skip
    run = found.data["runs"][0]
    assert run["path"]["parts"] == [["void sell<...>(...)", 60], ["void sell<...>(...)", 59]]
    assert run["path"]["sentence"].startswith("50 % of the wall time: thread a runs void sell<...>")
    assert run["lines"] == [
        "critical path: 0.1 s = void sell<...>(...) 0.1",
        "9 % of CPU time in user function void sell<...>(...)",
    ]


def test_critical_path(make):
    """Segments keep their times, the parts sum to the wall time, and a gap is told."""
    found = make(FILES | {"critical_path.json": PATH, "critical_path_parts.json": SUMS})
    run = found.data["runs"][0]
    assert dict(run["path"]["parts"]) == {
        "sys_nanosleep (timer) called from nap()": 300, "work()": 290, "page faults in work()": 250,
        "ready": 50, "interrupts": 10,
    }  # fmt: skip
    assert run["path"]["total"] == 900 and "without a gap" in run["path"]["note"]
    assert found.column(run["graphs"]["path"]["start"]) == [100, 350, 400, 700]
    graph = found.graph("path")
    assert graph["a", "work"] == 300 and graph["a", "work", "[page fault]"] == 250
    # The only caller is a frame; one of several is not.
    assert graph["a", "nap", "[sys_nanosleep]", "[timer]"] == 300
    assert run["path"]["sentence"] == (
        "33 % of the wall time: thread a sleeps in sys_nanosleep until a timer wakes it, called "
        "from nap(). 32 % of the wall time: thread a runs work(). 27 % of the wall time: thread a "
        "has page faults in work(), called from main() in 60 % of this time"
    )
    gap = make(FILES | {"critical_path.json": PATH[:2] + PATH[3:] + [{"from_ns": 9}]})
    run = gap.data["runs"][0]
    assert "0.000000050 s of it are missing" in run["path"]["note"]


def test_a_page_does_not_wait_for_instructions(tmp_path, monkeypatch):
    """An objdump that never ends costs a page its instructions, not the page."""
    program = tmp_path / "objdump"
    program.write_text("#!/bin/sh\nexec sleep 3600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    one = page_code.Function(SimpleNamespace(full_path="/bin/a"), 0x1000, 0x1100)
    assert page_code.disassemble(one, time.monotonic() + 0.1) == []
    assert page_code.disassemble(one, time.monotonic() - 1) == []


def test_samples_of_the_report_are_marked(make):
    sample = FILES["samples.json"][0]
    report = sample | {"truncated": stacks.OF_REPORT, "user": []}
    found = make(FILES | {"samples.json": [sample, report]})
    assert sorted(found.column(found.data["runs"][0]["graphs"]["cpu"]["out"])) == [0, 2]


def wait_by(waiter: str, what: str, waker: str, ns: int) -> dict:
    chain = {"waker_comm": waker, "waker_kernel": [1], "waker_user": [], "asleep_ns": ns}
    return WAIT | chain | {"comm": waiter, "what": what, "ready_ns": 0, "address": None}


def test_a_chain_in_words(make):
    """Who waits for the thread that takes most of the path, and who for those."""
    waits = [
        wait_by("main", "futex lock", "logger", 280) | {"waker_user": ["0x401002"]},
        wait_by("logger", "pipe", "a", 290),
        wait_by("b", "pipe", "a", 30),  # too short to matter
    ]
    files = {"critical_path.json": PATH, "critical_path_parts.json": SUMS}
    run = make(FILES | files | {"waits_stacks.json": waits}).data["runs"][0]
    assert (
        ": thread main waits for futex lock, until thread logger wakes it in a+0x2002; thread "
        "logger waits for pipe, until thread a wakes it; thread a sleeps in sys_nanosleep"
    ) in run["path"]["sentence"]
    waits = [wait_by("a", "futex lock", "a", 280)]
    run = make(FILES | files | {"waits_stacks.json": waits}).data["runs"][0]
    link = "until another thread of this name wakes it; that one sleeps in"
    assert f": thread a waits for futex lock, {link} sys_nanosleep" in run["path"]["sentence"]


LOST = {"from_ns": 1, "to_ns": 100, "cpu": None, "pid": None, "tid": None, "task": None}
LOST |= {"cause": "not recorded", "function": None, "waiter": None}
LOST_SUM = SUMS[1] | {"time_ns": 99, "function": "-", "task": "-"}
LOST_SUM |= {"cause": "not recorded", "part": "not recorded"}


def test_lost_events_are_told(make):
    """Time that is not recorded is no part of the path. All shares are of the wall time."""
    files = {"critical_path.json": [*PATH, LOST], "critical_path_parts.json": [*SUMS, LOST_SUM]}
    found = make(FILES | files)
    run = found.data["runs"][0]
    assert re.match(r"events of the first 0\.000000099 s were lost", run["limits"][0])
    path = run["path"]
    assert path["unknown"] == 99 and path["total"] == 999
    assert "not recorded" not in dict(path["parts"]) and sum(dict(path["parts"]).values()) == 900
    assert path["sentence"].startswith("30 % of the wall time: thread a sleeps")
    assert path["sentence"].endswith(". 9 % of the wall time is not recorded")
    known = "4 segments in 2 threads, 0.000000100 s to 0.000001000 s after boot, without a gap"
    assert f"chain of {known}. What the 0.000000099 s before it went to is not" in path["note"]
    assert not path["sleeps"]
    graph = found.graph("path")
    assert graph["[not recorded]",] == 99
    kinds = dict(zip(found.tree["names"], found.tree["kinds"]))
    assert found.data["kinds"][kinds[found.data["strings"].index("[not recorded]")]] == "cut"


def test_earlier_segments_are_sums(make):
    """Of segments without room in the export, the flame graph has what the table has of them."""
    user, timer = PATH[0] | {"interrupts_ns": 10}, PATH[1]
    earlier = LOST | {"from_ns": 100, "to_ns": 400, "cause": "earlier"}
    files = {"critical_path.json": [user, timer, earlier], "critical_path_parts.json": SUMS}
    found = make(FILES | files)
    assert found.graph("path") == {
        ("a", "work"): 300, ("a", "nap", "[sys_nanosleep]", "[timer]"): 300,
        ("a", "work", "[page fault]"): 200, ("a", "main", "[page fault]"): 50,
        ("a", "[ready]", "other"): 50,
    }  # fmt: skip
    run = found.data["runs"][0]
    assert found.column(run["graphs"]["path"]["start"]) == [400, 700]
    assert run["graphs"]["path"]["from"] == 100
    assert "boot, without a gap. Segments before 0.000000400 s are only" in run["path"]["note"]
    sums = [row for row in SUMS if row["cause"] != "ready"]
    found = make(FILES | files | {"critical_path_parts.json": sums})
    assert found.graph("path")["[earlier]",] == 50


def test_parts_of_a_long_path_are_few(make):
    rows = [SUMS[1] | {"time_ns": 1, "function": f"f{i}"} for i in range(20)]
    rows = [*[row | {"part": row["function"]} for row in rows], LOST_SUM]
    found = make(FILES | {"critical_path.json": PATH, "critical_path_parts.json": rows})
    path = found.data["runs"][0]["path"]
    assert len(path["parts"]) == page_path.MAX_PARTS + 1
    assert path["parts"][-1] == ["12 others", 12] and path["unknown"] == 99


def lanes(found: Page, raw: list) -> list[list[tuple]]:
    """Returns start, ns, name and kind of all intervals of each lane of a track."""
    kinds, strings = found.data["events"]["kinds"], found.data["strings"]
    result = []
    for lane in raw:
        end, intervals = lane[0], []
        for gap, ns, name, kind in zip(*map(found.column, lane[1:])):
            intervals.append((end + gap, ns, strings[name], kinds[kind]))
            end += gap + ns
        result.append(intervals)
    return result


def test_time_line(make):
    """trace_export.small(): thread 11 reads, sleeps, and is woken by thread 12."""
    found = make(FILES | trace_export.small(has_gaps=False))
    ms = trace_export.MS
    events = found.data["events"]
    assert events["from"] == 1000 * ms and events["to"] == 6001 * ms and not events["lost"]
    tasks = {tid: lanes(found, raw) for tid, _, _, raw in events["tasks"]}
    states = tasks[11][0]
    assert states[:4] == [
        (1000 * ms, 4 * ms, "CPU 0", "running"),
        (1004 * ms, 4 * ms, "sys_read", "asleep"),
        (1008 * ms, 1 * ms, "woken by writer", "ready"),
        (1009 * ms, 4992 * ms, "CPU 0", "running"),
    ]
    assert tasks[11][1] == [
        (1001 * ms, 10 * ms, "sys_read", "call"),
        (6000 * ms, 1 * ms, "sys_exit", "call"),
    ]
    assert ("contention", "pair") in [one[2:] for one in tasks[12][1]]


def test_lanes_do_not_overlap(make):
    """A state is unknown where events were lost, until the next event."""
    found = make(FILES | trace_export.small(has_gaps=True))
    events = found.data["events"]
    assert [one[3] for one in events["lost"]] == [3, 2]
    tracks = [raw for _, raw in events["cpus"]] + [raw for *_, raw in events["tasks"]]
    kinds = set()
    for raw in tracks:
        for lane in lanes(found, raw):
            for before, after in zip(lane, lane[1:]):
                assert before[0] + before[1] <= after[0]
            kinds |= {one[3] for one in lane}
    assert "unknown" in kinds


def test_ended_threads_do_not_sleep():
    lane = page_events.Lane()
    lane.begin(5, page_events.RUNNING, 1)
    lane.begin(9, page_events.ASLEEP, 2)
    lane.drop()
    assert (lane.start, lane.ns, lane.open) == ([5], [4], False)


def test_two_runs(make):
    other = FILES["strace.json"][0] | {"calls": 50000}
    found = make(FILES, FILES | {"strace.json": [other]})
    assert any("50000 -> 40000 calls" in line for line in found.data["changes"]["lines"])
    assert found.graph("cpu", 0) == found.graph("cpu", 1)
    assert make(FILES).data["changes"] is None


def test_policy(make):
    """The policy allows the page's own script and style, and there is no other script."""
    text = make(FILES).text
    policy = re.search(r'content="(default-src [^"]*)"', text)[1]
    for tag in "script", "style":
        inside = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.DOTALL)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';") and "base-uri 'none'" in policy


def test_hostile_names_are_only_data(make):
    """Nothing of an export is outside of the data, which has no control characters."""
    plain, evil = make(FILES), make(evil_files())
    without = [re.sub(r'(?<=id="data">).*?(?=</template>)', "", one.text) for one in (plain, evil)]
    assert without[0] == without[1]
    strings = evil.data["strings"] + [str(one) for one in evil.data["runs"][0]["tables"]]
    assert not CONTROL & set("".join(strings))
    assert any("1+1" in name and EVIL not in name for name in strings)


def test_modules():
    """All modules are in the script once; their names do not clash; none makes HTML of a text."""
    files = sorted((SCRIPTS / "page").glob("*.js"))
    code = page.script()
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", code, re.MULTILINE)
    assert len(names) == len(set(names)) > 50
    assert not re.search(r"^(import|export) ", code, re.MULTILINE)
    for file in files:
        text = file.read_text()
        assert 10 < text.count("\n") <= 500, file
        assert max(map(len, text.splitlines())) <= 100, file
        assert code.count(text.splitlines()[1]) == 1, file
    forbidden = r"(?:inner|outer)HTML|insertAdjacent|document\.write|\beval\(|\bFunction\(|"
    forbidden += r"fetch\(|https?:"
    assert re.findall(forbidden, code) == ["http:"]  # the name of SVG's elements
    whole_page = code + page.read("page.css") + page.read("page.html")
    assert len(whole_page.encode()) < 120_000


def test_used_memory(make):
    """A picture of each process, the largest working set first; the history is no table."""
    other = PROCESS | {"pid": 2, "program": "other", "used_10s_bytes": 9 * MIB}
    history = [*ROWS[::-1], ROWS[0] | {"ns": None}]
    files = {"working_set.json": [PROCESS, other], "working_set_history.json": history}
    found = make(FILES | files)
    run = found.data["runs"][0]
    second, first = run["memory"]
    assert (first["pid"], second["pid"]) == (1, 2)
    assert first["heading"] == "a<b&? has used 8.0 MiB of its 32.0 MiB in the last 10 s"
    assert first["times"] == [0, 10**9, 2 * 10**9]
    keys = "moment", "start", "end", "accessed", "written"
    assert list(zip(*(found.column(first[key]) for key in keys))) == [
        (0, FIRST, FIRST + 8 * MIB, 0, 0),
        (0, SECOND, SECOND + 24 * MIB, 100, 100),
        (1, FIRST, FIRST + 8 * MIB, 100, 0),
        (1, SECOND, SECOND + 24 * MIB, 0, 0),
    ]
    tops, heights = (found.column(first[key]) for key in ("top", "tall"))
    assert tops[1] == 0 and heights[1] == 3 * heights[0]
    assert tops[0] + heights[0] == round(100 * first["height"])
    assert "1 damaged rows of used memory are left out" in run["limits"]
    assert "working_set_history" not in [table["file"] for table in run["tables"]]
    assert "working_set" in [table["file"] for table in run["tables"]]
    files = {name: rows for name, rows in FILES.items() if "working_set" not in name}
    assert make(files).data["runs"][0]["memory"] == []
