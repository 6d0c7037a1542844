# SPDX-License-Identifier: BSD-2-Clause
"""The function tracers: their records against the plugin's count of calls, lists, and output."""

from __future__ import annotations

import re
import sys
from collections import Counter

import pytest

import harness
from harness import ROOT
from test_functions import kernel, places, rows  # noqa: F401 (a fixture)
from test_trace import LINE, T, sections

sys.path.insert(0, str(ROOT / "tests/accuracy"))
import truth  # noqa: E402

LISTS = f"""\
section() {{ echo "== $1"; }}
cd {T}
section tracers; cat available_tracers
section format; cat events/ftrace/function/format; ls events/ftrace/function
section empty; cat set_ftrace_filter set_ftrace_notrace
section all; cat available_filter_functions
section some; echo 'sys_s*' >set_ftrace_filter; cat set_ftrace_filter
section more; echo 'sys_read,!sys_s[a-x]*' >>set_ftrace_filter; cat set_ftrace_filter
section bad; echo nonsense >set_ftrace_filter; echo 'sys_write nonsense' >>set_ftrace_filter
section same; cat set_ftrace_filter
section open; exec 3>set_ftrace_filter; cat set_ftrace_filter >/dev/null
cat set_ftrace_filter; exec 3>&-
section none; cat set_ftrace_filter
"""

# The plugin counts between two calls that are traced, each made once before the other: functions
# are hooked and released one after the other, so a tracer has no exact start and end.
FIRST, LAST = "sys_symlink", "sys_sync"
WORK = """\
ln -s x /tmp/link; ls -l /bin /proc >/dev/null
busybox sync; busybox sync; busybox sync
"""

CALLS = LISTS + f"""\
section set
echo 4096 >buffer_size_kb
echo 'sys_* file_* inode_* kmalloc do_irq mutex_lock' >set_ftrace_filter
echo 'sys_[b-g]*' >set_ftrace_notrace
echo function >current_tracer
{WORK}echo '*' >set_ftrace_notrace
section calls; cat trace
section end
"""


def observe(kernel, directory, script: str, window: tuple[str, str] = (FIRST, LAST)):
    """Runs a script. Returns what the plugin has seen, and the parts of the output."""
    image = harness.script_image(directory, script)
    append = "profile.on_exit=none init=/init"
    observed, result = truth.observe(kernel, image, "timer", append, window=window)
    return observed, sections(result.log)


@pytest.fixture(scope="module")
def traced(kernel, tmp_path_factory):  # noqa: F811
    return observe(kernel, tmp_path_factory.mktemp("tracers"), CALLS)


def in_window(lines: list[str]) -> list[str]:
    """Returns the lines after the call of FIRST, to the next call of LAST."""
    first = next(i for i, line in enumerate(lines) if FIRST in line)
    last = next(i for i, line in enumerate(lines) if i > first and LAST in line)
    return lines[first + 1 : last + 1]


def test_lists(traced, kernel):  # noqa: F811
    found = traced[1]
    symbols = truth.Symbols(kernel)
    names = dict(zip(symbols.starts, symbols.names))
    placed = {names[at] for at in places(kernel)}
    assert "function" in found["tracers"][0].split()
    assert set(found["all"]) == placed
    assert found["empty"] == ["#### all functions enabled ####", "#### no functions disabled ####"]
    some = {name for name in placed if name.startswith("sys_s")}
    assert set(found["some"]) == some and len(some) > 10
    left = {name for name in some if name[5] >= "y"}
    assert set(found["more"]) == left | {"sys_read"} and "sys_sync" in left
    assert sum("Invalid argument" in line for line in found["bad"]) == 2
    assert found["same"] == found["more"]
    # Until the writer closes the file, readers find the old list, and do not change it.
    assert found["open"] == found["more"]
    assert found["none"] == ["#### all functions enabled ####"]
    assert "\tfield:unsigned long parent_ip;\toffset:16;\tsize:8;\tsigned:0;" in found["format"]
    assert found["format"][-1].split() == ["format", "id"]


CALL = re.compile(LINE.pattern.replace(r"(?P<event>\w+): ", ""))


def test_calls_are_exact(traced):
    """The trace has all calls of the listed functions, by caller, and only these are hooked."""
    observed, found = traced
    lines = [CALL.match(line) for line in found["calls"] if not line.startswith("#")]
    assert all(lines)
    assert sum(line["text"] == f"{LAST} <-do_syscall_64" for line in lines) == 3
    lines = [CALL.match(line) for line in in_window(found["calls"])]
    recorded = Counter(tuple(line["text"].split(" <-")) for line in lines)
    wanted = re.compile(r"sys_(?![b-g])|file_|inode_|(kmalloc|do_irq|mutex_lock)$")
    expected = {(name, caller): nr for (caller, name), nr in observed.calls.items()
                if wanted.match(name)}
    assert recorded == expected
    assert len(recorded) > 60
    hook = "profile_function_record"
    hooked = sum(nr for (_, name), nr in observed.calls.items() if name == hook)
    assert hooked == len(lines) > 1000  # with the hook of FIRST, without that of LAST


# Calls are counted meanwhile, so all functions are hooked; only the listed ones may be recorded.
GRAPH = f"""\
section() {{ echo "== $1"; }}
cd {T}
echo 4096 >buffer_size_kb
echo on >/proc/profile/function_calls
echo 'sys_* path_* file_* do_irq' >set_ftrace_filter
echo function_graph >current_tracer
{WORK}echo '*' >set_ftrace_notrace
section graph; cat trace
section counts; cat /proc/profile/function_calls.json
section end
"""


@pytest.fixture(scope="module")
def graph(kernel, tmp_path_factory):  # noqa: F811
    return observe(kernel, tmp_path_factory.mktemp("graph"), GRAPH)


HEAD = """\
# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
# |     |   |                     |   |   |   |"""
GRAPH_LINE = re.compile(
    r" (?P<cpu>\d+)\) (?P<mark>[ $@*#!+]) (?:(?P<us>[\d.]+) us +| {12})\|  (?P<indent> *)"
    r"(?:(?P<call>\S+)\(\)(?P<kind> {|;)|}(?: /\* (?P<lost>\S+) \*/)?)"
)
SWITCH = re.compile(r" (\d+)\) +(\S+)-(\d+) +=> +(\S+)-(\d+) *")


def mark_of(us: float) -> str:
    limits = zip("$@*#!+ ", (1e6, 1e5, 1e4, 1e3, 100, 10, -1))
    return next(mark for mark, limit in limits if us > limit)


def read_graph(lines: list[str]):
    """
    Yields (names from the outermost function, time, time of the callees) of each call. The times
    are None if the call has not returned. Asserts that braces balance in each task, and that they
    are indented by the depth of their call.
    """
    stacks: dict[str, list] = {}
    tid = None
    for line in lines:
        if line.startswith("#") or not line.strip() or line.startswith(" ----"):
            continue
        if switch := SWITCH.fullmatch(line):
            assert tid in (None, switch[3])
            tid = switch[5]
            stacks.setdefault(tid, stacks.pop(None, []) if tid is None else [])
            continue
        match = GRAPH_LINE.fullmatch(line)
        assert match, line
        stack = stacks.setdefault(tid, [])
        depth = len(match["indent"]) // 2
        us = float(match["us"]) if match["us"] else None
        assert us is None or match["mark"] == mark_of(us), line
        if match["kind"] == " {":
            assert us is None
            stack.append([match["call"], depth, 0.0])
            continue
        if match["kind"] == ";":
            names, within = [*(name for name, _, _ in stack), match["call"]], 0.0
        elif stack:
            names = [name for name, _, _ in stack]
            name, opened, within = stack.pop()
            assert opened == depth and match["lost"] in (None, name), line
        else:
            assert match["lost"], line
            continue
        if stack and names[-1] != "do_irq":
            stack[-1][2] += us
        yield names, us, within
    for stack in stacks.values():
        for at in range(len(stack)):
            yield [name for name, _, _ in stack[: at + 1]], None, None


def test_graph_is_exact(graph):
    """The graph has all calls of the listed functions, and their times add up."""
    observed, found = graph
    assert "\n".join(found["graph"]).startswith(HEAD)
    calls = list(read_graph(found["graph"]))
    recorded = Counter(names[-1] for names, _, _ in calls)
    assert recorded[LAST] == 3
    begun = Counter(re.findall(r"(\w+)\(\)", "\n".join(in_window(found["graph"]))))
    expected = Counter()
    for (_, name), nr in observed.calls.items():
        if re.match(r"(sys|path|file)_|do_irq$", name):
            expected[name] += nr
    assert begun == expected and begun.total() > 1000
    assert len(calls) > 1000 and any(len(names) > 2 for names, _, _ in calls)
    counted = Counter()
    for row in rows("\n".join(found["counts"])):
        counted[row["function"]] += row["calls"]
    assert counted["sys_sync"] == 3
    assert all(nr <= counted[name] for name, nr in recorded.items())
    ended = [(us, within) for _, us, within in calls if us is not None]
    assert all(within <= us + 0.5 for us, within in ended) and any(within for _, within in ended)


README = ROOT / "kernel/profile/functions/README.md"


def usual_session() -> str:
    """Returns the commands of README.md that trace sys_openat() and its callees during `ls`."""
    part = README.read_text().partition("## A graph of calls\n")[2].partition("\n## ")[0]
    commands = re.findall(r"^    lego:\S+# (.*)$", part, re.MULTILINE)
    assert commands[-1] == "cat trace" and len(commands) == 8
    return "\n".join(commands)


SESSION = """\
section() {{ echo "== $1"; }}
section session
{commands}
echo >trace
echo 2 >max_graph_depth; echo 1 >tracing_on
ls /bin >/dev/null
echo 0 >tracing_on
section depth; cat max_graph_depth; cat trace
section end
echo nop >current_tracer
"""


def test_usual_session(kernel, tmp_path):  # noqa: F811
    """The plugin has seen each call in the graph, from the same caller."""
    window = ("function_graph_switch", "machine_exit")
    script = SESSION.format(commands=usual_session())
    observed, found = observe(kernel, tmp_path, script, window)
    calls = [names for names, _, _ in read_graph(found["session"])]
    assert {names[0] for names in calls} == {"sys_openat"}
    names = {name for names in calls for name in names}
    # do_irq() is not called by the function that it interrupts.
    made = [names for names in calls if len(names) > 1 and names[-1] != "do_irq"]
    direct = {tuple(names[-2:]) for names in made}
    left_out = {(caller, name) for caller, name in observed.edges if caller in names} - direct
    assert not {"kmalloc", "kfree"} & names
    assert {"kmalloc", "kfree"} <= {name for _, name in left_out}
    assert len(direct) > 40 and direct <= observed.edges
    assert found["depth"][0] == "2"
    assert {len(names) for names, _, _ in read_graph(found["depth"][1:])} == {1, 2}
