from __future__ import annotations

from pathlib import Path

from rlm.config.reference import render
from rlm.config.sections import known_keys

CHECKOUT = Path(__file__).resolve().parents[4]


def test_config_page_when_made_again_then_equals_the_committed() -> None:
    assert (CHECKOUT / "docs" / "config.md").read_text(encoding="utf-8") == render()


def test_config_page_when_made_then_lists_every_key_once() -> None:
    page = render()

    assert [key for key in known_keys() if page.count(f"| `{key}` |") != 1] == []
