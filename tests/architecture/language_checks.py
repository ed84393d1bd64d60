"""The rules of language: each check returns the files that break a rule, with the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tests.architecture import language
from tests.architecture.tree import CHECKOUT, handwritten_files

Found = Mapping[str, list[str]]


def _words_in_pages() -> Found:
    return _with_findings(
        (language.name_of(path), language.banned_in(language.page_prose(path), metaphors=True))
        for path in language.pages()
    )


def _words_in_product() -> Found:
    return _with_findings(
        (file.name, language.banned_in(language.python_prose(file), metaphors=True))
        for file in language.product_files()
    )


def _words_in_tests() -> Found:
    return _with_findings(
        (file.name, language.banned_in(language.python_prose(file), metaphors=False))
        for file in handwritten_files("tests")
        if not file.name.startswith("tests/architecture/")
    )


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


def _words_in_build_files() -> Found:
    """Search comments, the help of targets, and the ids and names of import contracts."""
    return _with_findings(
        (name, language.banned_in(language.build_prose(CHECKOUT / name), metaphors=True))
        for name in ("Makefile", "pyproject.toml")
    )


def _names_of_tests() -> Found:
    return _with_findings(
        (
            file.name,
            language.banned_in(
                "\n".join(
                    each.name.replace("_", " ")
                    for each in file.outline.functions
                    if each.name.startswith("test_")
                ),
                metaphors=False,
            ),
        )
        for file in handwritten_files("tests")
    )


def _names() -> Found:
    return _with_findings(
        (file.name, language.banned_names(file)) for file in language.product_files()
    )


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


def _bare_errors() -> Found:
    return _with_findings(
        (file.name, language.bare_errors(file)) for file in language.product_files()
    )


CHECKS: Mapping[str, Callable[[], Found]] = {
    "words of pages": _words_in_pages,
    "words of code": _words_in_product,
    "words of tests": _words_in_tests,
    "words of schemas": _words_in_schemas,
    "words of build files": _words_in_build_files,
    "names of tests": _names_of_tests,
    "names": _names,
    "long sentences": _long_sentences,
    "errors that nothing raises": _bare_errors,
}


def _with_findings(found: Iterable[tuple[str, list[str]]]) -> Found:
    return {name: what for name, what in found if what}
