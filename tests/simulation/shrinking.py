"""Shortens the story of a failing seed to the steps that are needed, and describes them."""

from __future__ import annotations

from tests.simulation.processes import SimulatedProcess
from tests.simulation.simulation import Failure, Simulation

_TAIL_LINES = 60


def shrink(
    seed: int, failure: Failure, process_type: type[SimulatedProcess] = SimulatedProcess
) -> tuple[frozenset[int], Failure]:
    """Return the steps that can be omitted, latest first, and the remaining failure.

    A story ends at its first failure, so the later steps are omitted from the beginning.
    """
    skipped: frozenset[int] = frozenset()
    steps = failure.steps if failure.at_the_end else failure.step + 1
    for step in reversed(range(failure.step)):
        shorter = Simulation(seed, process_type=process_type, skipped=skipped | {step})
        still = shorter.run(steps, to_the_end=failure.at_the_end)
        if still is not None:
            skipped, failure = skipped | {step}, still
    return skipped, failure


def failure_text(seed: int, failure: Failure) -> str:
    """Return the seed, the step, what is wrong, and the end of the shortest story found."""
    skipped, shortest = shrink(seed, failure)
    return "\n".join(
        (
            f"make sim SEED={seed} STEPS={failure.steps}  # fails at step {failure.step}",
            failure.problem,
            f"the same without steps {sorted(skipped)}: {shortest.problem}",
            *shortest.trail[-_TAIL_LINES:],
        )
    )
