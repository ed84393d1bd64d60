"""Selects the prose and names that the language tests check, and lists banned words with reasons.

Prose is the text outside of code spans, code blocks and link targets. In Python it is docstrings,
comments and string literals with a space in them; a literal without one is a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.tree import (
    CHECKOUT,
    PRODUCT_PACKAGES,
    PROGRAMS,
    SourceFile,
    handwritten_files,
)

MAX_SENTENCE_WORDS = 35
_TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")

# Banned everywhere, in tests too. The right side has what to write instead.
WORDS_EVERYWHERE = {
    r"anew": "again, from the start",
    r"for ?ever": "permanently, without limit",
    r"so (?:many|much)": "name the quantity",
    r"whoever": "name the actor",
    r"whose word": "the reporter",
    r"mended": "fixed, repaired",
    r"in force": "active, effective",
    r"told|tells?": "reports, returns, is notified of",
    r"words?": "status, report, name",
    r"behind": "after",
    r"beside": "next to, with",
    r"of now": "at this moment, currently",
    r"(?:let|lets|letting) go|goes": "releases, is sent, leads",
    r"at the most": "at most",
    r"to and fro": "in both directions",
    r"how manieth": "number",
    r"stands?": "is, represents",
    r"by and by": "gradually",
    r"can't": "cannot",
    r"we|us|ours?": "rlm, the manager, its",
    r"(?:go|going|went) on": "continue",
}

# Banned in the code, the programs and the docs; tests may have a world and its parts.
METAPHORS = {
    r"doors?|doorkeepers?": "endpoint, listener",
    r"guests?": "stray connection",
    r"grounds?": "context, reason",
    r"places?|placed": "location, position, slot",
    r"verdicts?|judg\w+|rulings?": "decision, cached response",
    r"stor(?:y|ies)": "scenario, history",
    r"letters?": "dead letter",
    r"twins?": "in-memory implementation, fake",
    r"cards?": "description",
    r"pressed": "saturated, under memory pressure",
    r"held": "blocked, buffered, cached, leased",
    r"turns?": "slot, permit, queue entry",
    r"steps?": "action, phase; `step` is the loop's verb only",
}

# Allowed uses: the pattern is removed before the search.
ALLOWED_IN_PROSE = {
    r"in place\b": "changed where it is: the field's term",
    r"status word": "a bit field of a format",
    r"dead[-\s]+letters?": "the field's term",
    r"lower-case letters?|letters?, digits": "characters of a name",
    r"(?:lags?|lagging|falls?|fallen|is|are) behind\b": "a lag, as consumers have one",
    r"behind (?:a|an|the) (?:gateway|proxy|load balancer|address|firewall|NAT)": "a network path",
    r"turn(?:s|ed)? (?:on|off)": "a switch",
    r"for words? of": "text made of words",
    r"STEPS=": "a variable of make",
    r"stand ins?": "a replacement, in a test's name",
}

BANNED_IN_NAMES = frozenset(
    {"anew", "beside", "begun", "card", "door", "doorkeeper", "doors", "ground", "guest", "guests"}
    | {"judge", "judgement", "judges", "judging", "ruling", "rulings"}
    | {"held", "letter", "letters", "mended", "place", "placed", "places", "pressed", "said"}
    | {"stand", "stands", "story", "tells", "told", "turn", "turns", "twin", "twins", "verdict"}
    | {"verdicts", "whoever", "word", "words"}
)

# Names of another API, or with a literal meaning.
ALLOWED_NAMES = {
    "addInPlace": "Spark's accumulator API",
    "is_in_place": "the file is where its name says",
    "words": "text that is made of words",
    "word": "one of a text",
}
ALLOWED_IN_FILES = {
    # The names in the responses of managers up to 0.2.0.
    "rlm/status/document.py": {"copy_held", "trim_held", "expiry_held"},
    "rlm/status/retention_preview.py": {"trim_held", "expiry_held"},
    "rlm/status/explanation.py": {"place"},
}
_ALLOWED_PARTS = {("dead", "letter"), ("dead", "letters"), ("in", "place")}

_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4,}.*\n)+")
_SPAN = re.compile(r"(`+)(?:(?!\1).)+?\1", re.DOTALL)
_LINK_TARGET = re.compile(r"\]\([^)]*\)|https?://\S+|<[^>\n]+>")
_BLOCK_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|>#]|\d+\.)\s?)|(?<!\|)\|(?!\|)")
_SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)[.!?](?=[\s)\"']|$)")
# In running text; a table that begins with an error's name has two spaces after it.
_BARE_ERROR = re.compile(r"[a-z`)][.;]\s+[A-Z]\w*Error(?= if | for |[,.;]|$)")
_COMMENT = re.compile(r"(?:^|\s)#:? (.*)$", re.MULTILINE)
_BUILD_COMMENT = re.compile(r"(?:^|\s)##? (.*)$", re.MULTILINE)
_CONTRACT = re.compile(r'^(?:id|name) = "(.*)"$', re.MULTILINE)
_NAME = re.compile(r"[a-z]+(?:_[a-z]+)*")
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def pages() -> list[Path]:
    """Return the pages that users read."""
    tops = (CHECKOUT / name for name in _TOP_PAGES)
    return [*(path for path in tops if path.exists()), *sorted((CHECKOUT / "docs").rglob("*.md"))]


def product_files() -> list[SourceFile]:
    """Return the files of the product packages and of the programs."""
    return handwritten_files(*PRODUCT_PACKAGES, *PROGRAMS)


def name_of(path: Path) -> str:
    """Return a path relative to the checkout."""
    return path.relative_to(CHECKOUT).as_posix()


def page_prose(path: Path) -> str:
    """Return a page without code and link targets; a code span counts as one word."""
    text = _INDENTED.sub("\n", _FENCE.sub("\n\n", path.read_text())).replace("<br>", " | ")
    return _LINK_TARGET.sub("] ", without_spans(text))


def without_spans(text: str) -> str:
    """Return a text with one word in place of each code span."""
    return _SPAN.sub("code", text)


def sentences(prose: str) -> Iterator[str]:
    """Yield the sentences of paragraphs, list items, headings and table cells."""
    for block in _BLOCK_END.split(prose):
        for sentence in _SENTENCE_END.split(block):
            if sentence and sentence.strip():
                yield " ".join(sentence.split())


def word_count(sentence: str) -> int:
    """Words, numbers and code spans."""
    return sum(1 for each in sentence.split() if re.search(r"\w", each))


@cache
def python_prose(file: SourceFile) -> str:
    """Return docstrings, comments and messages of a Python file."""
    comments = (match[1] for match in _COMMENT.finditer(file.text))
    return "\n".join(map(without_spans, (*comments, *_texts(file))))


def bare_errors(file: SourceFile) -> list[str]:
    """Return sentences that name an error but not what raises it."""
    return [each for each in _texts(file) if _BARE_ERROR.search(each)]


def _texts(file: SourceFile) -> Iterator[str]:
    return (each for each in file.outline.strings if " " in each)


def build_prose(path: Path) -> str:
    """Return comments of a Makefile or TOML file, and words of contracts' ids and names."""
    text = path.read_text()
    contracts = (match[1].replace("-", " ") for match in _CONTRACT.finditer(text))
    comments = (match[1] for match in _BUILD_COMMENT.finditer(text))
    return "\n".join(map(without_spans, (*comments, *contracts)))


def banned_in(prose: str, *, metaphors: bool) -> list[str]:
    """Return the banned words of a text, each with what to write instead."""
    words = WORDS_EVERYWHERE | (METAPHORS if metaphors else {})
    found = {match.lastgroup: match[0] for match in _search(metaphors).finditer(prose)}
    return [
        f"{found[f'w{number}']!r} (say {better})"
        for number, better in enumerate(words.values())
        if f"w{number}" in found
    ]


@cache
def _search(metaphors: bool) -> re.Pattern[str]:
    """Return a pattern whose groups match banned words.

    Allowed uses come first and have no group, so a search skips them.
    """
    words = WORDS_EVERYWHERE | (METAPHORS if metaphors else {})
    allowed = "|".join(rf"\b(?:{each})" for each in ALLOWED_IN_PROSE)
    banned = "|".join(rf"(?P<w{number}>{word})" for number, word in enumerate(words))
    return re.compile(rf"{allowed}|(?<![\w-])(?:{banned})(?![\w-])", re.IGNORECASE)


def banned_names(file: SourceFile) -> list[str]:
    """Return the names that a file defines and that contain a banned word."""
    allowed = ALLOWED_IN_FILES.get(file.name, set())
    literals = set(filter(_NAME.fullmatch, file.outline.strings))
    return sorted({*filter(_is_banned, file.outline.defined_names | literals)} - allowed)


@cache
def _is_banned(name: str) -> bool:
    if name in ALLOWED_NAMES:
        return False
    parts = [each.lower() for each in _PARTS.findall(name)]
    return any(
        each in BANNED_IN_NAMES and (before, each) not in _ALLOWED_PARTS
        for before, each in zip(["", *parts], parts, strict=False)
    )
