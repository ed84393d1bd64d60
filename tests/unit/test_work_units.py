"""The worker that fills the pauses of the others: its units, and the time of its tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import CHECKOUT
from tests.work_units import is_filling_worker, next_computing

_CONFTEST = """
import os
from tests.work_units import give_more_time, is_filling_worker

def pytest_collection_modifyitems(items):
    if is_filling_worker(os.environ):
        give_more_time(items)
"""


def test_next_computing_when_services_and_computing_wait_then_simulation_before_unit() -> None:
    waiting = ["tests/hosts", "tests/unit/rsm/test_a.py", "tests/simulation/test_seeds.py"]

    assert next_computing(waiting) == "tests/simulation/test_seeds.py"


def test_next_computing_when_only_services_wait_then_none() -> None:
    assert next_computing(["tests/hosts", "tests/e2e/test_chaos.py"]) is None


@pytest.mark.parametrize(
    ("worker", "workers", "fills"), [("gw2", 3, True), ("gw1", 3, False), ("gw1", 2, False)]
)
def test_worker_when_it_is_the_last_of_three_then_it_fills_pauses(
    worker: str, workers: int, *, fills: bool
) -> None:
    environ = {"PYTEST_XDIST_WORKER": worker, "PYTEST_XDIST_WORKER_COUNT": str(workers)}

    assert is_filling_worker(environ) is fills
    assert not is_filling_worker({})


def test_filling_worker_when_starved_then_its_tests_have_more_time(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    slow = "import threading\ndef test_one(): threading.Event().wait(0.5)\n"
    (tmp_path / "test_one.py").write_text(slow)

    def passes(worker: str) -> bool:
        environ = {"PYTEST_XDIST_WORKER": worker, "PYTEST_XDIST_WORKER_COUNT": "3"}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--timeout=0.1", "test_one.py"]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**environ, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            timeout=300.0,
            check=False,
        )
        return done.returncode == 0

    assert passes("gw2")
    assert not passes("gw0")
