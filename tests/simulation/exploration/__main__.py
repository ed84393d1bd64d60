"""Explore every interleaving of a few managers and events, in small scopes, up to equal states.

After each step the invariants of the simulation must hold, and at each end nothing may be left
undone. A schedule that breaks something is printed with the command that replays it.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from tests.simulation.exploration.explorer import (
    BrokenSchedule,
    Exploration,
    Explorer,
    parsed,
    replay,
    written,
)
from tests.simulation.exploration.scopes import SCOPES, Scope
from tests.simulation.mutants import MUTANTS
from tests.simulation.processes import SimulatedProcess

_EXAMPLES = """examples:
  make explore                      explore all small scopes, in about a minute
  make explore LARGE=1              explore the large ones, too
  make explore SCOPE=claims         explore one scope
  make explore SCOPE=claims WITHOUT=WithoutFencing
                                    explore it with managers that lack a guard
  make explore SCOPE=claims SCHEDULE=0x3,1x2
                                    replay a schedule: actor 0 three steps, actor 1 two

exit codes: 0 all holds, 1 a schedule breaks something, 2 wrong use, 130 interrupted by Ctrl-C
"""
_INTERRUPTED = 128 + signal.SIGINT
_VARIANTS = {mutant.process_type.__name__: mutant.process_type for mutant in MUTANTS}


def main() -> int:
    """Return 1 if a schedule breaks something, 130 after Ctrl-C."""
    options = _parser().parse_args()
    logging.disable(logging.CRITICAL)
    process_type = _VARIANTS.get(options.without, SimulatedProcess)
    scopes = [each for each in SCOPES if options.scope in (None, each.name)]
    if options.schedule is not None:
        if options.scope is None:
            sys.stderr.write("cannot replay a schedule: no scope is given. Add --scope.\n")
            return 2
        return _replay(scopes[0], process_type, options.schedule)
    if options.scope is None and not options.large:
        scopes = [scope for scope in scopes if not scope.is_large]
    try:
        return max(_explore(scope, process_type, as_json=options.json) for scope in scopes)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.exploration",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [scope.name for scope in SCOPES]
    parser.add_argument("--scope", choices=names, help="this one alone (default: all small ones)")
    parser.add_argument("--large", action="store_true", help="large scopes, too: some minutes")
    parser.add_argument("--schedule", help="with --scope: replay this schedule step by step")
    parser.add_argument("--without", choices=sorted(_VARIANTS), help="managers without a guard")
    parser.add_argument("--json", action="store_true", help="print one line of JSON per scope")
    return parser


def _explore(scope: Scope, process_type: type[SimulatedProcess], *, as_json: bool) -> int:
    started = time.monotonic()
    found = Explorer(lambda: scope.stage(process_type), max_states=scope.max_states).explore()
    took_s = round(time.monotonic() - started, 1)
    if as_json:
        _print(json.dumps(_counts(scope, found, took_s)))
    else:
        _print(summary(scope, found, took_s))
    if found.broken is None:
        return 0
    if not as_json:
        _print(report(scope, found.broken, process_type))
    return 1


def _counts(scope: Scope, found: Exploration, took_s: float) -> Mapping[str, object]:
    counts = asdict(found)
    broken = found.broken
    counts["broken"] = None if broken is None else broken.problem
    counts["schedule"] = None if broken is None else written(broken.schedule)
    return {"scope": scope.name, **counts, "seconds": took_s}


def summary(scope: Scope, found: Exploration, took_s: float) -> str:
    """Return one line: what was explored, and whether all invariants hold."""
    outcome = "all invariants hold" if found.broken is None else "BROKEN"
    return (
        f"{scope.name}: {found.interleavings:.2g} interleavings as {found.states} states, "
        f"{found.endings} endings, {found.replays} replays, {found.pruned} pruned "
        f"({found.inferred} inferred), depth {found.depth}, {took_s} s: {outcome}"
    )


def report(
    scope: Scope, broken: BrokenSchedule, process_type: type[SimulatedProcess] = SimulatedProcess
) -> str:
    """Return what is broken, after which steps, and how to replay them."""
    without = "" if process_type is SimulatedProcess else f" WITHOUT={process_type.__name__}"
    command = f"make explore SCOPE={scope.name}{without} SCHEDULE={written(broken.schedule)}"
    return "\n".join((command, f"explores {scope.explores}", *broken.trail, broken.problem))


def _replay(scope: Scope, process_type: type[SimulatedProcess], schedule: str) -> int:
    stage = scope.stage(process_type)
    try:
        for number, (step, problems) in enumerate(replay(stage, parsed(schedule))):
            _print(f"{number:3} {step}")
            if problems:
                return _broken(problems)
    except ValueError as error:
        sys.stderr.write(
            f"cannot replay the schedule: {error}. Replay it with the guards it was found with.\n"
        )
        return 2
    finally:
        stage.close()
    _print("all invariants hold")
    return 0


def _broken(problems: Sequence[str]) -> int:
    _print("; ".join(problems))
    return 1


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
