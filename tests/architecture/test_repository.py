"""No file may contain a machine's paths or registries, unfinished parts, or unchecked tests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.architecture.tree import CHECKOUT, PRODUCT_PACKAGES, PROGRAMS, repository_files, text_of

ITSELF = Path(__file__).resolve()

EVERYWHERE = {
    "a path of one machine": r"(?<![\w.~])/(?:work|root|home|Users)/\w",
    "a registry's host": r"pythonhosted\.org|pypi\.org|repo1?\.maven|proxy\.golang|npmjs\.org",
}
IN_PYTHON = {
    "an unfinished part": r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b",
    "a type error hidden without its code and reason": r"type: ignore(?!\[[\w, -]+\]  # \w)",
}
IN_TESTS = {
    "a test that doesn't run": r"pytest\.(?:skip|importorskip)|mark\.(?:skip|skipif|xfail)\b",
    "our own code replaced in place": r"\bmock\.patch|monkeypatch\.setattr|@patch\b",
    "a sleep instead of a condition": r"\btime\.sleep\(",
}
OF_ANOTHER_SESSION = {
    "a process that no Ctrl-C reaches": r"\bstart_new_session\b|\bos\.setsid\b|\bprocess_group=",
}
MAY_START_SESSIONS = {
    # It starts processes with a watcher, so they end with the process that started them.
    CHECKOUT / "tests" / "services" / "process.py",
    # The engine that `make containers-here` starts serves until `make containers-end`.
    CHECKOUT / "tests" / "containers" / "local_engine.py",
}
MAY_SLEEP = {CHECKOUT / "tests" / "services" / "waiting.py"}


@pytest.mark.parametrize("what", EVERYWHERE)
def test_any_file_when_searched_then_holds_nothing_of_one_machine(what: str) -> None:
    assert _found(EVERYWHERE[what], repository_files()) == []


@pytest.mark.parametrize("what", IN_PYTHON)
def test_python_file_when_searched_then_is_finished(what: str) -> None:
    assert _found(IN_PYTHON[what], _python(*PRODUCT_PACKAGES, *PROGRAMS, "tests")) == []


@pytest.mark.parametrize("what", IN_TESTS)
def test_test_file_when_searched_then_really_tests(what: str) -> None:
    files = [path for path in _python("tests") if path not in MAY_SLEEP]

    assert _found(IN_TESTS[what], files) == []


@pytest.mark.parametrize("what", OF_ANOTHER_SESSION)
def test_program_of_tests_when_searched_then_leaves_no_process_when_interrupted(what: str) -> None:
    files = [path for path in _python("tests", "bench", "demo") if path not in MAY_START_SESSIONS]

    assert _found(OF_ANOTHER_SESSION[what], files) == []


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_locked_requirements_when_read_then_every_one_is_pinned_with_hashes(name: str) -> None:
    logical_lines = (CHECKOUT / name).read_text().replace("\\\n", " ").splitlines()

    requirements = [line for line in logical_lines if line and not line.lstrip().startswith("#")]
    assert requirements
    assert [line for line in requirements if not re.match(r"\S+==\S+ .*--hash=sha256:", line)] == []


def _python(*roots: str) -> list[Path]:
    return [path for root in roots for path in sorted((CHECKOUT / root).rglob("*.py"))]


def _found(pattern: str, files: Iterable[Path]) -> list[str]:
    expression = re.compile(pattern)
    return [
        f"{path.relative_to(CHECKOUT)}:{number}: {line.strip()}"
        for path in files
        if path != ITSELF and expression.search(text_of(path))
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if expression.search(line)
    ]
