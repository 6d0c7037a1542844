# SPDX-License-Identifier: BSD-2-Clause
"""
The build's own tools: the symbol table, the archive writer, the check of profile points, the
counting of results.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
check_points = importlib.import_module("check-points")
kallsyms = importlib.import_module("kallsyms")
mkcpio = importlib.import_module("mkcpio")
mktext = importlib.import_module("mktext")
summary = importlib.import_module("test-summary")

BASE = kallsyms.KERNEL_BASE
NM = f"""\
{BASE + 0x1000:x} T _stext
{BASE + 0x1000:x} T start
{BASE + 0x1010:x} t a_local
{BASE + 0x1010:x} T z_global
{BASE + 0x1010:x} T y_global
{BASE + 0x1020:x} W weak
{BASE + 0x1024:x} t .L42
{BASE + 0x1028:x} t $x
{BASE + 0x1030:x} t part.0
{BASE + 0x1040:x} D data
                 w undefined_weak
{BASE + 0x1040:x} T _etext
{BASE + 0x1050:x} T after
"""


def symbols(nm: str) -> list[kallsyms.Symbol]:
    return kallsyms.text_symbols(kallsyms.parse_nm(nm.splitlines()))


def test_kallsyms_keeps_one_name_for_each_function() -> None:
    assert [(s.addr - BASE, s.name) for s in symbols(NM)] == [
        (0x1000, "start"),
        (0x1010, "y_global"),
        (0x1020, "weak"),
        (0x1030, "part.0"),
    ]


def test_kallsyms_keeps_stext_where_no_function_is() -> None:
    assert symbols(NM.replace(f"{BASE + 0x1000:x} T start\n", ""))[0].name == "_stext"


def test_kallsyms_needs_the_bounds() -> None:
    with pytest.raises(SystemExit, match="_etext"):
        symbols(NM.replace("_etext", "etext"))


def test_kallsyms_reports_every_kind_of_difference() -> None:
    good = symbols(NM)
    assert not kallsyms.differences(good, good)
    assert kallsyms.differences(good[:-1], good)
    assert kallsyms.differences(good, good[:-1])
    assert kallsyms.differences(good[::-1], good)
    assert kallsyms.differences([good[0]._replace(name="other"), *good[1:]], good)
    assert kallsyms.differences([], [])


def parse_cpio(data: bytes) -> list[tuple[str, int, int, bytes]]:
    """(name, mode, ino, data) of every record up to the trailer."""
    out, at = [], 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        size, name_size = fields[6], fields[11]
        name = data[at + 110 : at + 110 + name_size - 1].decode()
        at = (at + 110 + name_size + 3) & ~3
        if name == mkcpio.TRAILER:
            return out
        assert fields[5] == 0
        out.append((name, fields[1], fields[0], data[at : at + size]))
        at = (at + size + 3) & ~3


def test_mkcpio_writes_what_it_is_given(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF!")
    program.chmod(0o700)
    text = tmp_path / "text"
    text.write_bytes(b"hello\n")
    out = tmp_path / "out.cpio"
    mkcpio.main(["mkcpio", str(out), "tmp/", f"data/a/text={text}:600", f"bin/program={program}"])
    assert parse_cpio(out.read_bytes()) == [
        ("bin", 0o40755, 1, b""),
        ("bin/program", 0o100755, 2, b"\x7fELF!"),
        ("data", 0o40755, 3, b""),
        ("data/a", 0o40755, 4, b""),
        ("data/a/text", 0o100600, 5, b"hello\n"),
        ("tmp", 0o40755, 6, b""),
    ]


def test_mkcpio_refuses_what_it_does_not_understand(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="NAME=HOSTFILE"):
        mkcpio.main(["mkcpio", str(tmp_path / "out"), "bin/program"])


def test_mktext_ends_with_a_complete_line(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.write_bytes(b"one\nfour\n")
    mktext.main(["mktext", str(out), "15", str(source)])
    assert out.read_bytes() == b"one\nfour\none\n"


@pytest.mark.parametrize(
    ("text", "status", "passed", "failed", "skipped"),
    [
        ("1..2\nok 1 - a\nok 2 - b\n", 0, 2, 0, 0),
        ("1..2\nok 1 - a\nnot ok 2 - b\n", 1, 1, 1, 0),
        ("1..2\nok 1 - a\nnot ok 2 # SKIP b\n", 0, 1, 0, 1),
        ("1..3\nok 1 - a\nAddressSanitizer: ...\n", 1, 1, 2, 0),
        ("1..1\nok 1 - a\nleak\n", 23, 1, 1, 0),
        ("1..1\nok 1 - a\n1..1\nok 1 - b\n", 0, 2, 0, 0),
        ("", 0, 0, 1, 0),
    ],
    ids=["pass", "fail", "skip", "crash", "leak", "groups", "nothing"],
)
def test_summary_counts(text: str, status: int, passed: int, failed: int, skipped: int) -> None:
    assert summary.count_tap(text, status) == summary.Count(passed, failed, skipped)


def check_body(body: str) -> list[str]:
    """What is wrong with a function of this body, as line: what."""
    errors = check_points.check("f.c", f"static int f(int n)\n{{\n{body}\n}}\n")
    middle = " would only leave PROFILE_POINT"
    return [error.removeprefix("f.c:").replace(middle, "") for error in errors]


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ("while (n) { PROFILE_POINT(p) { break; } }", ["3: break(p)"]),
        (
            "while (n)\nPROFILE_POINT(p)\nif (n) continue; else\nbreak;",
            ["5: continue(p)", "6: break(p)"],
        ),
        ("for (;;) PROFILE_POINT(p) break;", ["3: break(p)"]),
        ("PROFILE_POINT(p) {\n{\nif (n) { n++; } else if (n + 1)\nbreak;\n}\n}", ["6: break(p)"]),
        (
            "PROFILE_POINT(p) { switch (n) { case 1: break; default: continue; } }",
            ["3: continue(p)"],
        ),
        (
            "PROFILE_POINT(p) { PROFILE_POINT(q) break; continue; }",
            ["3: break(q)", "3: continue(p)"],
        ),
        ("PROFILE_POINT(p) { while (n) { PROFILE_POINT(q) break; } }", ["3: break(q)"]),
        ("PROFILE_POINT(p) { while (n) break; do continue; while (n);\nbreak; }", ["4: break(p)"]),
        ("PROFILE_POINT(p) { again: break; }", ["3: break(p)"]),
        ("PROFILE_POINT(p) { n = ({ if (n) break; 3; }); }", ["3: break(p)"]),
        ("PROFILE_POINT(p) { if (({ continue; 1; })) n++; }", ["3: continue(p)"]),
        ("PROFILE_POINT(p) { with_lock(&n) { break; } }", ["3: break(p)"]),
        ("PROFILE_POINT (\np\n) { int a[] = { 1, 2 };\nbreak; }", ["6: break(p)"]),
        ("PROFILE_POINT(p) { x = (struct s){ .a = f(1) }; break; }", ["3: break(p)"]),
        ("PROFILE_POINT(p) { /* a\n */ n++; // }\n\nbreak; }", ["6: break(p)"]),
        (
            "PROFILE_POINT(p) {\n#define A {\\\n{\nprintk(\"}\\\"}\", '}');\nbreak; }",
            ["7: break(p)"],
        ),
    ],
)
def test_check_points_rejects(body: str, errors: list[str]) -> None:
    assert check_body(body) == errors


@pytest.mark.parametrize(
    "body",
    [
        "PROFILE_POINT(p) { return n; }",
        "PROFILE_POINT(p) { goto out; } out: return 0;",
        "PROFILE_POINT(p) { for (;;) break; while (n) { if (n) continue; } }",
        "PROFILE_POINT(p) { do { if (n) break; } while (n--); }",
        "PROFILE_POINT(p) { switch (n) { case 1 ... 'a': { break; } default: break; } }",
        "PROFILE_POINT(p) { while (n) switch (n) { default: continue; } }",
        "PROFILE_POINT(p) for_each_online_cpu(n) { if (n) continue; break; }",
        "PROFILE_POINT(p) n++; while (n) break;",
        "while (n) { PROFILE_POINT(p) { n++; } break; }",
        "while (n) { PROFILE_POINT(p) if (n) n++; else n--; break; }",
        "while (n) { PROFILE_SCOPE(p); break; }",
        "/* PROFILE_POINT(p) { break; } */",
        'PROFILE_POINT(p) printk("break;");',
        "PROFILE_POINT(p) { n = breakpoint + s.a; } // break;",
        "#define M PROFILE_POINT(p) { \\\n break; }\n",
    ],
)
def test_check_points_accepts(body: str) -> None:
    assert check_body(body) == []


def test_check_points_looks_into_every_function_of_every_file(tmp_path: Path, capsys) -> None:
    text = """#include <x.h>
DEFINE_PROFILE_POINT(p)
struct s {{ int a : 3; enum {{ A, B }} b; }};
static const struct s table[] = {{ [0] = {{ .a = 1 }}, }};
static noinline int f(void) __releases(x)
{{
	return ({{ 1; }});
}}
#ifdef A
void g(void) {{
#else
void h(void) {{
#endif
}}
}}
static int __used
i(void) __must_check {{
	while (1)
		PROFILE_POINT(p) {{
			{};
		}}
}}
"""
    good, bad, worse = tmp_path / "good.c", tmp_path / "bad.c", tmp_path / "worse.c"
    good.write_text(text.format("return 1"))
    bad.write_text(text.format("break"))
    worse.write_text(text.format("continue"))
    assert check_points.main(["check-points", str(good)]) == 0
    assert check_points.main(["check-points", str(bad), str(good), str(worse)]) == 1
    assert capsys.readouterr().err == (
        f"{bad}:20: break would only leave PROFILE_POINT(p)\n"
        f"{worse}:20: continue would only leave PROFILE_POINT(p)\n"
    )
