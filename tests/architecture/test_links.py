"""Links between pages, and paths in pages: the file exists, and has the heading."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.language import name_of, pages
from tests.architecture.tree import CHECKOUT

_LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_NAMED = re.compile(r'<a id="([^"]+)">')
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_ANCHOR_DROPS = re.compile(r"[^\w\- ]")
_OF_ANOTHER_SITE = re.compile(r"[a-z]+:")
_PATH = re.compile(r"`((?:rsm|rlmm|rlm|spark_tools|tests|docs)/[\w./-]+)`")


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_when_followed_then_page_and_heading_are_there(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_when_file_or_heading_is_absent_then_are_named(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(
        "# `One` heading: it's\n```\n# no heading\n```\n# Twice\n# Twice\n"
    )
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#one-heading-its) [c](other.md#twice-1) [d](https://x.org/y)\n"
        "# Here\n[e](#here) [f](absent.md) [g](other.md#no-heading) [h](#there)"
        '<a id="set"></a> [i](#set)'
    )

    assert broken_links(page) == ["absent.md", "other.md#no-heading", "#there"]


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_paths_when_a_page_names_them_then_exist(page: Path) -> None:
    named = set(_PATH.findall(page.read_text()))

    assert {path for path in named if not (CHECKOUT / path).exists()} == set()


def broken_links(page: Path) -> list[str]:
    """Return links of a page to files or headings that do not exist."""
    return [link for link in _LINK.findall(page.read_text()) if not _leads_somewhere(page, link)]


def _leads_somewhere(page: Path, link: str) -> bool:
    if _OF_ANOTHER_SITE.match(link):
        return True
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in _anchors(target))


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Return the anchors that a page sets, and those that GitHub gives its headings."""
    text = _FENCE.sub("", page.read_text())
    seen: dict[str, int] = {}
    anchors = set(_NAMED.findall(text))
    for heading in _HEADING.findall(text):
        slug = _ANCHOR_DROPS.sub("", heading.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        anchors.add(f"{slug}-{count}" if count else slug)
    return frozenset(anchors)
