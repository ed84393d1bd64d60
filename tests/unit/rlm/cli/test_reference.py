"""docs/cli.md, which is generated from the commands."""

from __future__ import annotations

import re
from pathlib import Path

from rlm.cli.reference import render

_RUN = re.compile(r"^ {4,}rlm ", re.MULTILINE)
CHECKOUT = Path(__file__).resolve().parents[4]


def test_page_when_made_again_then_equals_the_committed() -> None:
    """`make docs` writes the page."""
    assert (CHECKOUT / "docs" / "cli.md").read_text(encoding="utf-8") == render()


def test_page_when_made_then_has_a_section_with_an_example_per_command() -> None:
    sections = render().split("\n## ")[1:]

    assert "`rlm topic disable`" in {section.partition("\n")[0] for section in sections}
    assert [section for section in sections if len(_RUN.findall(section)) < 2] == []
