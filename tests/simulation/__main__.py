"""Run random schedules of crashes, elections and faults in memory, and check all invariants.

Many seeds run on all processors. One seed prints its actions; with --trace it prints every event,
and two runs of one seed print the same.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import time
from importlib.metadata import version

from tests.simulation.many_seeds import Tally, seed_processes, tallies
from tests.simulation.shrinking import failure_text
from tests.simulation.simulation import STEPS, Simulation
from tests.simulation.trace import Trace

_EXAMPLES = """examples:
  make sim                          run seeds 0 to 1999
  make sim SEEDS=100000 FIRST=2000  run 100000 seeds from 2000 on
  make sim SEEDS=20000 JSON=1       print one line of JSON instead of the summary
  make sim SEED=7                   print the actions of seed 7
  python -m tests.simulation --seed 7 --trace
                                    print every event of seed 7

exit codes: 0 all invariants hold, 1 a seed fails, 130 interrupted by Ctrl-C
"""
_PROGRESS_EVERY_S = 10.0
_INTERRUPTED = 128 + signal.SIGINT


def main() -> int:
    """Return 1 at the first seed that fails, with its shortest schedule; 130 after Ctrl-C."""
    options = _parser().parse_args()
    logging.disable(logging.CRITICAL)
    if options.seed is not None and options.trace:
        return _traced(options.seed, options.steps)
    if options.seed is not None:
        return _one(options.seed, options.steps)
    seeds = range(options.first, options.first + options.seeds)
    return _many(seeds, options.steps, as_json=options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="run this seed alone and print its actions")
    parser.add_argument("--trace", action="store_true", help="with --seed: print every event")
    parser.add_argument("--seeds", type=int, default=2_000, help="how many (default: 2000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"per seed (default: {STEPS})")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    return parser


def _one(seed: int, steps: int) -> int:
    simulation = Simulation(seed)
    failure = simulation.run(steps)
    _print("\n".join(simulation.trail))
    _print("all invariants hold" if failure is None else failure_text(seed, failure))
    return int(failure is not None)


def _traced(seed: int, steps: int) -> int:
    trace = Trace()
    failure = Simulation(seed, trace=trace).run(steps)
    _print("\n".join(trace.events))
    return int(failure is not None)


def _many(seeds: range, steps: int, *, as_json: bool) -> int:
    started = time.monotonic()
    reported = started
    tally, interrupted = Tally(), False
    with seed_processes() as executor:
        try:
            for tally in tallies(executor, seeds, steps):
                if time.monotonic() - reported > _PROGRESS_EVERY_S:
                    reported = time.monotonic()
                    sys.stderr.write(f"{_counts(tally, steps)} of {len(seeds)} so far\n")
        except KeyboardInterrupt:
            interrupted = True
            executor.shutdown(wait=False, cancel_futures=True)
    took_s = time.monotonic() - started
    if as_json:
        _print(_as_json(tally, seeds, steps, took_s, interrupted=interrupted))
    else:
        _print(_summary(tally, steps, took_s, interrupted=interrupted))
    if tally.failure is not None:
        return 1
    return _INTERRUPTED if interrupted else 0


def _counts(tally: Tally, steps: int) -> str:
    return f"{tally.seeds_count} seeds of {steps} steps, {tally.simulated_hours} simulated hours"


def _summary(tally: Tally, steps: int, took_s: float, *, interrupted: bool) -> str:
    rate = tally.seeds_count / took_s
    counts = f"{_counts(tally, steps)} in {took_s:.0f} s, {rate:.0f} seeds a second"
    if tally.failure is not None:
        return f"{failure_text(*tally.failure)}\n{counts}: seed {tally.failure[0]} fails"
    return f"{counts}: {'interrupted, ' if interrupted else ''}all invariants hold"


def _as_json(tally: Tally, seeds: range, steps: int, took_s: float, *, interrupted: bool) -> str:
    failed = tally.failure
    return json.dumps(
        {
            "version": version("kafka-rlm"),
            "first_seed": seeds.start,
            "seeds": tally.seeds_count,
            "steps": steps,
            "simulated_hours": tally.simulated_hours,
            "seconds": round(took_s, 1),
            "interrupted": interrupted,
            "failed_seed": None if failed is None else failed[0],
            "problem": None if failed is None else failed[1].problem,
        }
    )


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    raise SystemExit(main())
