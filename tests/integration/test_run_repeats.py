"""A run repeats failed tests with services once, and no others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.integration.nested_run import run_pytest

_CONFTEST = """
from tests.run_repeats import RunRepeats

def pytest_addoption(parser):
    parser.addoption("--repeat", type=int, default=0)
    parser.addoption("--services")

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunRepeats(config.getoption("--repeat")))
"""
# The file records that the test has failed.
_FAILS_ONCE = """
from pathlib import Path

def test_{name}():
    failed = Path("failed-{name}")
    if not failed.exists():
        failed.touch()
        raise AssertionError("the first time")
"""
_FAILS = "def test_two(): raise AssertionError('always')\n"


@pytest.mark.parametrize("workers", ["0", "1"])
def test_run_when_a_test_with_services_fails_once_then_passes_and_shows_the_failure(
    tmp_path: Path, workers: str
) -> None:
    says_more = "import atexit\natexit.register(print, 'at the end')\n"
    tests = {"e2e": says_more + _FAILS_ONCE.format(name="one"), "unit": "def test_three(): pass\n"}

    done = _run(tmp_path, tests, workers=workers)

    assert done.returncode == 0, done.stdout
    assert "AssertionError: the first time" in done.stdout
    printed = done.stdout.splitlines()
    assert "FAILED ONCE tests/e2e/test_e2e.py::test_one" in printed
    assert any(line.startswith("1 passed, 1 failed once") for line in printed)


def test_run_when_set_up_fails_once_then_is_repeated_like_a_test(tmp_path: Path) -> None:
    fails_once = _FAILS_ONCE.format(name="one").replace("def test_one", "def set_up")
    tests = {"hosts": f"import pytest\n{fails_once}\none = pytest.fixture(set_up)\n"}
    tests["hosts"] += "def test_one(one): pass\n"

    done = _run(tmp_path, tests)

    assert done.returncode == 0, done.stdout
    assert "1 failed once" in done.stdout.splitlines()[-1]


def test_run_when_a_test_fails_twice_then_fails(tmp_path: Path) -> None:
    tests = {"e2e": _FAILS_ONCE.format(name="one"), "hosts": _FAILS}

    done = _run(tmp_path, tests)

    assert done.returncode == 1
    assert "FAILED ONCE" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("2 failed")


@pytest.mark.parametrize("level", ["unit", "contract", "simulation", "architecture"])
def test_run_when_a_test_without_services_fails_once_then_repeats_nothing(
    tmp_path: Path, level: str
) -> None:
    tests = {"e2e": _FAILS_ONCE.format(name="one"), level: _FAILS_ONCE.format(name="two")}

    done = _run(tmp_path, tests)

    assert done.returncode == 1
    assert "repeated" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("2 failed")


def test_run_when_more_tests_fail_than_allowed_then_repeats_nothing(tmp_path: Path) -> None:
    tests = {level: _FAILS_ONCE.format(name=level) for level in ("e2e", "hosts", "integration")}

    done = _run(tmp_path, tests, repeat=2)

    assert done.returncode == 1
    assert "repeated" not in done.stdout


@pytest.mark.parametrize("workers", ["0", "1"])
def test_run_when_a_file_cannot_be_collected_then_fails(tmp_path: Path, workers: str) -> None:
    tests = {"e2e": _FAILS_ONCE.format(name="one"), "hosts": "import a_module_that_is_missing\n"}

    done = _run(tmp_path, tests, workers=workers)

    assert done.returncode != 0
    assert "FAILED ONCE" not in done.stdout


def test_run_when_the_repeated_test_is_skipped_then_fails(tmp_path: Path) -> None:
    fails_once = _FAILS_ONCE.format(name="one")
    skips = f"from unittest import SkipTest\n{fails_once}    raise SkipTest('the second time')\n"

    done = _run(tmp_path, {"e2e": skips})

    assert done.returncode == 1
    assert "FAILED ONCE" not in done.stdout


def test_run_when_all_pass_then_repeats_nothing(tmp_path: Path) -> None:
    done = _run(tmp_path, {"e2e": "def test_one(): pass\n"})

    assert done.returncode == 0
    assert "repeated" not in done.stdout


def _run(
    directory: Path, tests: dict[str, str], *, workers: str = "0", repeat: int = 3
) -> subprocess.CompletedProcess[str]:
    """Run test files, given by their levels."""
    (directory / "pytest.ini").touch()
    for level, text in tests.items():
        folder = directory / "tests" / level
        folder.mkdir(parents=True)
        (folder / f"test_{level}.py").write_text(text)
    return run_pytest(directory, _CONFTEST, f"--repeat={repeat}", "tests", workers=workers)
