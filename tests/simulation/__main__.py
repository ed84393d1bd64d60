"""Run many seeds on all processors: `make sim SEEDS=100000`, or tell one: `make sim SEED=7`.

`--seed 7 --trace` prints every event of it; two runs of one seed print the same.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.simulation.many_seeds import first_failure, tellers
from tests.simulation.simulation import STEPS, Simulation
from tests.simulation.telling import told
from tests.simulation.trace import Trace


def main() -> int:
    """1 at the first seed that fails, with its story."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="this one alone, with all that happens")
    parser.add_argument("--seeds", type=int, default=2_000, help="so many")
    parser.add_argument("--first", type=int, default=0, help="from this one on")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--trace", action="store_true", help="with --seed: print every event")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if options.seed is not None and options.trace:
        return _traced(options.seed, options.steps)
    if options.seed is not None:
        return _one(options.seed, options.steps)
    return _many(range(options.first, options.first + options.seeds), options.steps)


def _one(seed: int, steps: int) -> int:
    simulation = Simulation(seed)
    failure = simulation.run(steps)
    _say("\n".join(simulation.trail))
    _say("all invariants hold" if failure is None else told(seed, failure))
    return int(failure is not None)


def _traced(seed: int, steps: int) -> int:
    trace = Trace()
    failure = Simulation(seed, trace=trace).run(steps)
    _say("\n".join(trace.events))
    return int(failure is not None)


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")


def _many(seeds: range, steps: int) -> int:
    began = time.monotonic()
    with tellers() as executor:
        found = first_failure(executor, seeds, steps)
    if found is not None:
        _say(told(*found))
        return 1
    took_s = time.monotonic() - began
    _say(f"{len(seeds)} seeds of {steps} steps, {len(seeds) / took_s:.0f} a second: all hold")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
