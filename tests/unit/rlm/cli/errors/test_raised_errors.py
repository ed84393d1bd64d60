"""Every error that a command raises says what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from rlm import cli

_KINDS = frozenset({"InvalidConfigError", "NotFoundError", "RetriableError"})
_SAY_WHAT_TO_DO = frozenset({"advice", "expected", "rule"})


def _raised() -> Iterator[tuple[Path, ast.Call]]:
    for path in Path(cli.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in _KINDS:
                yield path, node


def test_errors_when_raised_by_commands_then_each_has_advice_or_what_is_expected() -> None:
    raised = list(_raised())

    assert len(raised) > len(_KINDS)
    assert [
        f"{path.name}:{call.lineno}"
        for path, call in raised
        # None is a context that is passed on.
        if not {each.arg for each in call.keywords} & {*_SAY_WHAT_TO_DO, None}
    ] == []
