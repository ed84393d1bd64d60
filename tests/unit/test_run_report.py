"""The tables after a run: whether a test or what it shares with others took the time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import CHECKOUT

_CONFTEST = """
import threading, pytest
from tests.run_report import RunReport

def pytest_configure(config):
    config.pluginmanager.register(RunReport())

@pytest.fixture(scope="session")
def broker():
    threading.Event().wait(0.4)
    yield
    threading.Event().wait(0.3)

@pytest.fixture(scope="session")
def topic(broker):
    threading.Event().wait(0.1)
"""
_FIRST = "def test_first(topic): pass\ndef test_second(topic): threading.Event().wait(0.2)\n"


@pytest.mark.parametrize("workers", ["0", "1"])
def test_report_when_tests_share_a_fixture_then_its_time_is_apart_from_theirs(
    tmp_path: Path, workers: str
) -> None:
    level = tmp_path / "tests" / "e2e"
    level.mkdir(parents=True)
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (level / "test_one.py").write_text(f"import threading\n{_FIRST}")
    own = {name: text for name, text in os.environ.items() if "PYTEST" not in name}

    printed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "no:randomly", "tests"],
        cwd=tmp_path,
        env={**own, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=60.0,
        check=True,
    ).stdout

    seconds = r" +([0-9.]+) s"
    levels = re.search(rf"^{seconds * 3} +2  e2e$", printed, re.MULTILINE)
    fixtures = re.findall(rf"^{seconds} +1 times  (\w+)$", printed, re.MULTILINE)
    tests = re.findall(rf"^{seconds}  e2e/test_one.py::(\w+)$", printed, re.MULTILINE)
    assert levels is not None, printed
    setup_s, tests_s, teardown_s = map(float, levels.groups())
    assert setup_s >= 0.5
    assert tests_s >= 0.2
    assert teardown_s >= 0.3
    assert [name for _, name in fixtures] == ["broker", "topic"]
    assert [name for _, name in tests] == ["test_second", "test_first"]
    assert float(tests[1][0]) < float(fixtures[0][0])
