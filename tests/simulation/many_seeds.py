"""Tells many seeds, on all processors at once: no story knows of another."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context

from tests.simulation.simulation import STEPS, Failure, Simulation

_SEEDS_AT_ONCE = 20


@contextmanager
def tellers() -> Iterator[Executor]:
    """One process for each processor."""
    spawning = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), spawning, logging.disable) as executor:
        yield executor


def first_failure(
    executor: Executor, seeds: range, steps: int = STEPS
) -> tuple[int, Failure] | None:
    """The lowest of these seeds whose story fails, or None."""
    parts = [seeds[i : i + _SEEDS_AT_ONCE] for i in range(0, len(seeds), _SEEDS_AT_ONCE)]
    found = executor.map(partial(_first_failure, steps), parts)
    return next((each for each in found if each is not None), None)


def _first_failure(steps: int, seeds: range) -> tuple[int, Failure] | None:
    for seed in seeds:
        failure = Simulation(seed).run(steps)
        if failure is not None:
            return seed, failure
    return None
