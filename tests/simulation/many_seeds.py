"""Runs many seeds on all processors at once: no simulation depends on another."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from tests.simulation.simulation import STEPS, Failure, Simulation

_SEEDS_AT_ONCE = 4
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The result so far: the seeds, the time that passed on their clocks, the first failure."""

    seeds_count: int = 0
    simulated_ms: int = 0
    failure: tuple[int, Failure] | None = None

    @property
    def simulated_hours(self) -> int:
        return self.simulated_ms // _HOUR_MS

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            seeds_count=self.seeds_count + other.seeds_count,
            simulated_ms=self.simulated_ms + other.simulated_ms,
            failure=self.failure or other.failure,
        )


@contextmanager
def seed_processes() -> Iterator[Executor]:
    """Start one process for each processor. They leave Ctrl-C to the process that started them."""
    spawning = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), spawning, _prepare) as executor:
        yield executor


def tallies(executor: Executor, seeds: range, steps: int = STEPS) -> Iterator[Tally]:
    """Yield the sum so far; the last one has all seeds, or the lowest that fails."""
    parts = [seeds[i : i + _SEEDS_AT_ONCE] for i in range(0, len(seeds), _SEEDS_AT_ONCE)]
    total = Tally()
    for part in executor.map(partial(_run, steps), parts):
        total += part
        yield total
        if total.failure is not None:
            return


def first_failure(
    executor: Executor, seeds: range, steps: int = STEPS
) -> tuple[int, Failure] | None:
    """Return the lowest of these seeds that fails, or None."""
    found = (tally.failure for tally in tallies(executor, seeds, steps))
    return next((failure for failure in found if failure is not None), None)


def _prepare() -> None:
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(steps: int, seeds: range) -> Tally:
    total = Tally()
    for seed in seeds:
        simulation = Simulation(seed)
        failure = simulation.run(steps)
        found = None if failure is None else (seed, failure)
        passed_ms = simulation.world.clock.monotonic_ms()
        total += Tally(seeds_count=1, simulated_ms=passed_ms, failure=found)
        if found is not None:
            break
    return total
