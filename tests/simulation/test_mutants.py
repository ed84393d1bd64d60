"""A seed detects each lost guard, by the faults that its absence causes."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.processes import SimulatedProcess
from tests.simulation.shrinking import shrink
from tests.simulation.simulation import Failure, Simulation

SEEDS = 400


def _failure(seed: int, mutant: Mutant, process_type: type[SimulatedProcess]) -> Failure | None:
    simulation = Simulation(
        seed,
        process_type=process_type,
        favored=mutant.favored,
        storage_type=mutant.storage_type,
    )
    return simulation.run()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.process_type.__name__)
def test_mutant_when_a_guard_is_missing_then_a_seed_finds_it(mutant: Mutant) -> None:
    """Scenarios 14, 28, 72, 76, 79, 80, 83, 100, 105, 106, 108, 125; R1, R2, R5-R8, R11, R13, R23.

    The manager with all guards passes the same story, so only the missing guard makes it fail.
    """
    found = next(
        (
            seed
            for seed in (mutant.seed, *range(SEEDS))
            if _failure(seed, mutant, mutant.process_type) is not None
            and _failure(seed, mutant, SimulatedProcess) is None
        ),
        None,
    )

    assert found is not None


def test_failure_when_shrunk_then_needs_fewer_steps_and_still_fails() -> None:
    """Scenario 103."""
    mutant = MUTANTS[0].process_type
    seed, failure = next(
        (seed, failure)
        for seed in range(SEEDS)
        if (failure := Simulation(seed, process_type=mutant).run()) is not None and failure.step > 5
    )

    skipped, shortest = shrink(seed, failure, mutant)

    assert len(skipped) > 0
    assert Simulation(seed, process_type=mutant, skipped=skipped).run() is not None
    assert shortest.step - len(skipped) < failure.step
