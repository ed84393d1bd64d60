"""One idiom for log calls: constant text, or a LogLine, whose fields every formatter prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.tree import PRODUCT_PACKAGES, handwritten_files

_METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
_LOGGERS = {"log", "logger"}
# Every file that logs contains this pattern; other files are not parsed.
_USE = re.compile(r"\b_*log(?:ger)?_*(?:[\s\\)]|#.*)*\.", re.IGNORECASE)


def test_log_calls_when_searched_then_all_follow_the_idiom() -> None:
    found = {
        f"{file.name}:{line}"
        for file in handwritten_files(*PRODUCT_PACKAGES)
        if _USE.search(file.text)
        for line in _other_calls(file.parse())
    }

    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        '_log.info("copied %s", name)',
        '_log.info("copied", extra={"name": name})',
        '_log.log(level, "copied name=%s", name)',
        'logger.info("copied")',
    ],
)
def test_call_when_it_breaks_the_idiom_then_is_found(text: str) -> None:
    assert list(_other_calls(ast.parse(text))) == [1]


@pytest.mark.parametrize(
    "text",
    [
        '_log.info("copied")',
        '_log.log(level, LogLine("copied", name=name))',
        '_log.error(LogLine("failed", name=name), exc_info=error)',
    ],
)
def test_call_when_it_follows_the_idiom_then_is_not_found(text: str) -> None:
    assert list(_other_calls(ast.parse(text))) == []


def _other_calls(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        logger, method = node.func.value, node.func.attr
        if method not in _METHODS or not isinstance(logger, ast.Name):
            continue
        if logger.id.strip("_").lower() not in _LOGGERS:
            continue
        text = node.args[1:] if method == "log" else node.args
        others = {keyword.arg for keyword in node.keywords} - {"exc_info"}
        if logger.id != "_log" or len(text) != 1 or others:
            yield node.lineno
