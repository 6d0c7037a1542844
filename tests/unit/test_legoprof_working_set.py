# SPDX-License-Identifier: BSD-2-Clause
"""legoprof draws which memory was used when."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from legoprof_shapes import seal

MIB = 1 << 20


def row(ns: int, start: int, mib: int, accessed: int, written: int, pid: int = 1) -> dict:
    return {
        **{"pid": pid, "ns": ns, "start": f"0x{start:016x}", "end": f"0x{start + mib * MIB:016x}"},
        **{"accessed_percent": accessed, "written_percent": written},
    }


FIRST, SECOND = 0x400000, 0x7F0000000000
ROWS = [
    row(10**9, FIRST, 8, 0, 0),
    row(10**9, SECOND, 24, 100, 100),
    row(2 * 10**9, FIRST, 8, 100, 0),
    row(2 * 10**9, SECOND, 24, 0, 0),
    row(2 * 10**9, FIRST, 1, 50, 0, pid=2),
]
PROCESS = {"pid": 1, "program": "a<b&\x1b", "used_1s_bytes": 0, "used_10s_bytes": 8 * MIB}
PROCESS |= {"resident_bytes": 32 * MIB, "sampled_ns": 2 * 10**9}


@pytest.fixture
def draw(run_legoprof):
    """Returns a function that returns (status, the parsed picture or None, stderr)."""

    def run(rows: list, *argv: str) -> tuple[int, ET.Element | None, str]:
        lines = [
            *({"file": "working_set.json"}, {"table": "Working Sets"}, PROCESS),
            *({"file": "working_set_history.json"}, {"table": "Working Sets over time"}, *rows),
        ]
        status, data, err = run_legoprof(seal(lines), "working-set", *argv)
        return status, ET.fromstring(data) if data else None, err

    return run


def cells(picture: ET.Element) -> list[tuple[str, float, float, float, float, str]]:
    """Returns (title, x, y, width, height, color) of each used region."""
    found = []
    for rect in picture.iter("{http://www.w3.org/2000/svg}rect"):
        title = rect.find("{http://www.w3.org/2000/svg}title")
        if title is not None and "accessed" in (title.text or ""):
            numbers = [float(rect.get(key, "nan")) for key in ("x", "y", "width", "height")]
            found.append((title.text, *numbers, rect.get("fill")))
    return found


def test_used_memory_has_its_place_and_color(draw):
    status, picture, err = draw(ROWS, "--pid", "1")
    assert (status, err) == (0, "")
    (written, read) = cells(picture)
    assert written[0].startswith("7f0000000000-7f0001800000 (24.0 MiB) at 1.000 s: accessed 100 %")
    assert read[0].endswith("at 2.000 s: accessed 100 %, written 0 %")
    assert read[1] == pytest.approx(written[1] + written[3]) and read[3] == written[3]
    # The higher address is above; heights are sizes, and the gap between is small.
    assert written[2] < read[2] < written[2] + written[4] + 10
    assert written[4] == pytest.approx(3 * read[4], rel=0.01)
    (red, blue) = ([int(one[5][i : i + 2], 16) for i in (1, 3, 5)] for one in (written, read))
    assert red[0] > red[2] and blue[2] > blue[0]
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "pid 1: a<b&? has used 8.0 MiB of its 32.0 MiB in the last 10 s" in texts
    assert {"0.000 s", "2.000 s"} <= set(texts)


def test_all_processes(draw):
    _, picture, _ = draw(ROWS)
    assert len(cells(picture)) == 3
    texts = [text.text or "" for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if re.match(r"pid 2: ", text)]


def test_half_used_is_paler(draw):
    _, picture, _ = draw([row(10**9, FIRST, 1, 50, 0), row(10**9, SECOND, 1, 100, 0)])
    half, whole = ([int(one[5][i : i + 2], 16) for i in (1, 3, 5)] for one in cells(picture))
    assert all(a > b for a, b in zip(half, whole))


def test_damaged_rows_are_left_out(draw):
    bad = [
        ROWS[0] | {"start": "0x900000000000"},
        ROWS[0] | {"accessed_percent": 101},
        ROWS[0] | {"ns": None},
        ROWS[0] | {"pid": -1},
        ROWS[0] | {"end": "<script>"},
    ]
    status, picture, err = draw([*ROWS, *bad], "--pid", "1")
    assert (status, len(cells(picture))) == (0, 2)
    assert err == f"{len(bad)} damaged rows are left out\n"


def test_no_such_memory(draw):
    status, picture, err = draw([])
    assert status == 2 and picture is None and "profile.working_set=on" in err
    assert draw(ROWS, "--pid", "9")[0] == 2
