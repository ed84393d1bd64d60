"""The tables after a run show whether tests or their shared services took the time."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.integration.nested_run import run_pytest

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
    done = _run(tmp_path, f"import threading\n{_FIRST}", workers=workers)

    assert done.returncode == 0
    printed = done.stdout

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


def test_report_when_a_worker_crashes_then_the_other_tests_run_and_are_in_it(
    tmp_path: Path,
) -> None:
    """For example, a native library may abort the process."""
    crash = "import os\ndef test_crash(): os.abort()\ndef test_other(): pass\n"

    done = _run(tmp_path, crash, workers="1")

    assert "INTERNALERROR" not in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert re.search(r"^FAILED .*test_one.py::test_crash - worker", done.stdout, re.MULTILINE)
    assert re.search(r"^.* +\d  e2e$", done.stdout, re.MULTILINE)


def _run(directory: Path, tests: str, *, workers: str) -> subprocess.CompletedProcess[str]:
    level = directory / "tests" / "e2e"
    level.mkdir(parents=True)
    (level / "test_one.py").write_text(tests)
    return run_pytest(directory, _CONFTEST, "tests", workers=workers)
