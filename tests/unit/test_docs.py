# SPDX-License-Identifier: BSD-2-Clause
"""Tests the pages: links lead somewhere, generated pages are those that their scripts print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import params

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("arch", "include", "kernel", "scripts", "tests")
PAGES = sorted([*ROOT.glob("*.md"), *(p for top in FOLDERS for p in ROOT.glob(f"{top}/**/*.md"))])
LINK = re.compile(r"\[[^]\n]*(?:\n[^]\n]*)?\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|^(?:    |\t).*?$|``.*?``|`[^`]*`", re.MULTILINE | re.DOTALL)
README_LINES = 200


def anchors(page: Path) -> set[str]:
    """Returns the names of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(page: Path) -> list[str]:
    """Returns the links to files or headings that do not exist. Links to the web are left out."""
    broken = []
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        is_missing = not target.exists()
        if is_missing or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_of_pages(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b` c!\n[x](#a-b-c) [y](#a-b) [z](no.md) `[code](no.md)`\n[w](http://x)\n")
    assert broken_links(page) == ["#a-b", "no.md"]


def test_readme_is_a_front_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_version_is_the_newest_of_the_changelog() -> None:
    version = re.search(r"^VERSION := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    released = re.findall(r"^## (\d\S*) \(", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == version
    assert released == sorted(released, key=lambda v: [*map(int, v.split("."))], reverse=True)


def test_page_of_boot_parameters() -> None:
    """`make -s help-params > kernel/parameters.md` renews the page."""
    assert (ROOT / "kernel/parameters.md").read_text() == params.render(params.find())


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ('/* Help. */\nBOOT_PARAM(a, "a", "x|y", set_a);\n', None),
        ('/*\n * Two\n * lines.\n */\nOS_BOOT_PARAM(a, "a",\n\t      WORDS, set_a);\n', None),
        ('BOOT_PARAM(a, "a", "x|y", set_a);\n', "no comment above the definition of a"),
        ('/* Help. */\nBOOT_PARAM(a, "a", OTHER, set_a);\n', "no string OTHER"),
        ('/* Help. */\nBOOT_PARAM(a, "a" "b", "x", set_a);\n', "not written as elsewhere"),
        ('/* Help. */\nBOOT_PARAM(a, "a", "x", set);\n' * 2, "a is described in kernel/a.c, too"),
    ],
)
def test_boot_parameters_of_sources(tmp_path: Path, source: str, problem: str | None) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/a.c").write_text('#define WORDS \\\n\t"x|y"\n' + source)
    if problem:
        with pytest.raises(params.ParamError, match=problem):
            params.find(tmp_path)
        return
    (param,) = params.find(tmp_path)
    assert (param.name, param.form) == ("a", "x|y")
    assert param.help in ("Help.", "Two lines.")
    assert f"- `a=x|y`\n  {param.help}\n" in params.render([param])
