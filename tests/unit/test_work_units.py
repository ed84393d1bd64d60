"""The test worker that fills pauses with tests that need no services, and its units."""

from __future__ import annotations

import pytest

from tests.work_units import is_filling_worker, next_computing, unit_of, uses_services


def test_next_computing_when_services_and_computing_wait_then_simulation_before_unit() -> None:
    waiting = ["tests/hosts", "tests/unit/rsm/test_a.py", "tests/simulation/test_seeds.py"]

    assert next_computing(waiting) == "tests/simulation/test_seeds.py"


def test_next_computing_when_only_services_wait_then_none() -> None:
    assert next_computing(["tests/hosts", "tests/e2e/test_chaos.py"]) is None


def test_unit_when_of_the_compose_stack_then_its_files_share_it_and_may_be_repeated() -> None:
    faults, pages = (f"tests/containers/test_{each}.py::test_it" for each in ("faults", "pages"))

    assert unit_of(faults) == unit_of(pages)
    assert uses_services(faults)


@pytest.mark.parametrize(
    ("worker", "workers", "fills"), [("gw2", 3, True), ("gw1", 3, False), ("gw1", 2, False)]
)
def test_worker_when_it_is_the_last_of_three_then_it_fills_pauses(
    worker: str, workers: int, *, fills: bool
) -> None:
    environ = {"PYTEST_XDIST_WORKER": worker, "PYTEST_XDIST_WORKER_COUNT": str(workers)}

    assert is_filling_worker(environ) is fills
    assert not is_filling_worker({})
