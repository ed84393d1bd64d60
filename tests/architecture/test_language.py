"""The language of the project: banned words, the length of sentences, one class for each name."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from tests.architecture import language, language_checks
from tests.architecture.tree import CHECKOUT

MAX_TERMS = 80

# Classes here have the names of Kafka's message schemas; each module is one API.
NAMED_BY_KAFKA = "rlm/wire/api/"


@pytest.mark.parametrize("check", language_checks.CHECKS)
def test_files_when_searched_then_none_breaks_the_rules(check: str) -> None:
    assert language_checks.CHECKS[check]() == {}


def test_public_classes_when_named_then_no_two_share_a_name() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for file in language.product_files():
        if file.name.startswith(NAMED_BY_KAFKA):
            continue
        for name in re.findall(r"^class ([A-Z]\w*)", file.text, re.MULTILINE):
            files[name].append(file.name)

    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def test_glossary_when_read_then_is_short_and_in_order() -> None:
    page = (CHECKOUT / "docs" / "glossary.md").read_text()
    terms = re.findall(r"^\*\*(.+?)\*\*", page, re.MULTILINE)

    assert 0 < len(terms) <= MAX_TERMS
    assert terms == sorted(terms, key=str.lower)


@pytest.mark.parametrize(
    ("prose", "found"),
    [
        ("the door is open", ["'door'"]),
        ("a dead letter, changed in place", []),
        ("told anew", ["'anew'", "'told'"]),
        ("the store's outstanding requests", []),
        ("it lags behind", []),
        ("what lies behind the end", ["'behind'"]),
    ],
)
def test_prose_when_searched_then_only_whole_ones_are_found(prose: str, found: list[str]) -> None:
    banned = language.banned_in(prose, metaphors=True)

    assert [each.partition(" (")[0] for each in banned] == found


def test_sentences_when_counted_then_a_code_span_counts_once() -> None:
    prose = language.without_spans("Set `a = b c d` first. Then\n- one item\n- two `x y`.")

    assert [language.word_count(each) for each in language.sentences(prose)] == [3, 1, 2, 2]
