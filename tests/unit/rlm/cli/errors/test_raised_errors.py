"""Every error of a command, and of the packages that act for commands, says what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import rlm

_RLM = Path(rlm.__path__[0])
_PACKAGES = ("cli", "operator", "topics")
_CHECKS = ("end_to_end.py", "dead_letter_retry.py")
"""The errors of these files are results in a table, next to the name of what was checked."""
_KINDS = frozenset({"InvalidConfigError", "NotFoundError", "RetriableError"})
_SAY_WHAT_TO_DO = frozenset({"advice", "expected", "rule"})


def _raised() -> Iterator[tuple[Path, ast.Call]]:
    for path in (each for package in _PACKAGES for each in (_RLM / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in _KINDS:
                yield path, node


def test_errors_when_raised_by_commands_then_each_has_advice_or_what_is_expected() -> None:
    raised = list(_raised())

    assert len(raised) > len(_KINDS)
    assert [
        f"{path.name}:{call.lineno}"
        for path, call in raised
        if path.name not in _CHECKS
        # A keyword named None is a `**context` that is passed on.
        and not {each.arg for each in call.keywords} & {*_SAY_WHAT_TO_DO, None}
    ] == []
