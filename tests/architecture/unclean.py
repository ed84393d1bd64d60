"""The files that break a rule of language still, by check; writes their list."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from tests.architecture import language
from tests.architecture.tree import CHECKOUT, handwritten_files

LIST = CHECKOUT / "tests" / "architecture" / "unclean.txt"

Found = Mapping[str, list[str]]


@cache
def _words_in_pages() -> Found:
    return _with_findings(
        (language.name_of(path), language.banned_in(language.page_prose(path), metaphors=True))
        for path in language.pages()
    )


@cache
def _words_in_product() -> Found:
    return _with_findings(
        (file.name, language.banned_in(language.python_prose(file), metaphors=True))
        for file in language.product_files()
    )


@cache
def _words_in_tests() -> Found:
    return _with_findings(
        (file.name, language.banned_in(language.python_prose(file), metaphors=False))
        for file in handwritten_files("tests")
        if not file.name.startswith("tests/architecture/")
    )


@cache
def _words_in_schemas() -> Found:
    return _with_findings(
        (
            language.name_of(path),
            language.banned_in(
                "\n".join(
                    line.partition("//")[2]
                    for line in path.read_text().splitlines()
                    if "//" in line
                ),
                metaphors=True,
            ),
        )
        for root in ("rlmm", "rsm")
        for path in sorted((CHECKOUT / root).rglob("*.proto"))
    )


@cache
def _names() -> Found:
    return _with_findings(
        (file.name, language.banned_names(file)) for file in language.product_files()
    )


@cache
def _long_sentences() -> Found:
    return _with_findings(
        (
            language.name_of(path),
            [
                each
                for each in language.sentences(language.page_prose(path))
                if language.word_count(each) > language.MAX_SENTENCE_WORDS
            ],
        )
        for path in language.pages()
    )


CHECKS: Mapping[str, Callable[[], Found]] = {  # each is searched once in a run
    "words of pages": _words_in_pages,
    "words of code": _words_in_product,
    "words of tests": _words_in_tests,
    "words of schemas": _words_in_schemas,
    "names": _names,
    "long sentences": _long_sentences,
}


def listed(check: str) -> set[str]:
    """The files that are known to break a rule."""
    lines = (line.partition(": ") for line in LIST.read_text().splitlines())
    return {name for kind, _, name in lines if kind == check}


def _with_findings(found: Iterable[tuple[str, list[str]]]) -> Found:
    return {name: what for name, what in found if what}


def main() -> None:
    """Write the list; with `-v`, print what is found instead."""
    found = {check: search() for check, search in CHECKS.items()}
    if "-v" in sys.argv:
        for check, files in found.items():
            for name, what in files.items():
                sys.stdout.write(f"{check}: {name}: {'; '.join(what)}\n")
        return
    lines = [f"{check}: {name}" for check, files in found.items() for name in sorted(files)]
    LIST.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
