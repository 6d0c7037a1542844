# SPDX-License-Identifier: BSD-2-Clause
"""The tracers of functions: their records against every instruction, their lists and their text."""

from __future__ import annotations

import re
import sys
from collections import Counter

import pytest

import harness
from harness import ROOT
from test_functions import kernel, places  # noqa: F401
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
section none; : >set_ftrace_filter; cat set_ftrace_filter
"""

# The window of the truth begins when the tracer does, and ends when all is out of its filter.
CALLS = LISTS + """\
section set
echo 4096 >buffer_size_kb
echo 'sys_* file_* inode_* kmalloc do_irq mutex_lock' >set_ftrace_filter
echo 'sys_[b-g]*' >set_ftrace_notrace
echo function >current_tracer
ls -l /bin /proc >/dev/null
busybox sync; busybox sync; busybox sync
echo '*' >set_ftrace_notrace
section calls; cat trace
section end
"""


@pytest.fixture(scope="module")
def traced(kernel, tmp_path_factory):  # noqa: F811
    image = harness.script_image(tmp_path_factory.mktemp("tracers"), CALLS)
    window = ("function_trace_begin", "function_trace_end")
    append = "profile.on_exit=none init=/init"
    observed, result = truth.observe(kernel, image, "timer", append, window=window)
    return observed, sections(result.log)


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
    assert found["none"] == ["#### all functions enabled ####"]
    assert "\tfield:unsigned long parent_ip;\toffset:16;\tsize:8;\tsigned:0;" in found["format"]
    assert found["format"][-1].split() == ["format", "id"]


CALL = re.compile(LINE.pattern.replace(r"(?P<event>\w+): ", ""))


def test_calls_are_exact(traced):
    """Of each function that is listed, and each caller; and no other function is hooked."""
    observed, found = traced
    lines = [CALL.match(line) for line in found["calls"] if not line.startswith("#")]
    assert all(lines)
    recorded = Counter(tuple(line["text"].split(" <-")) for line in lines)
    wanted = re.compile(r"sys_(?![b-g])|file_|inode_|(kmalloc|do_irq|mutex_lock)$")
    expected = {(name, caller): nr for (caller, name), nr in observed.calls.items()
                if wanted.match(name)}
    assert recorded == expected
    assert recorded["sys_sync", "do_syscall_64"] == 3 and len(recorded) > 60
    hooked = sum(nr for (_, name), nr in observed.calls.items() if name == "function_call")
    assert hooked == len(lines) > 1000
