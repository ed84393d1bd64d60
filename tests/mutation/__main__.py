"""Change deciding code, one expression at a time, and count the changes noticed by a test.

`make mutants` tries mutants drawn with a seed from each group, and all mutants of some groups.
`make mutants ALL=1` tries all mutants of all groups.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.mutation.explained import EXPLAINED_FILE, Explanation, outdated, read_explanations
from tests.mutation.fresh import survives_import
from tests.mutation.groups import CHECKOUT, GROUPS, Group, chosen_groups
from tests.mutation.mutants import Mutant, drawn, mutants_of
from tests.mutation.processes import Ended, Outcome, Task, run_tasks
from tests.mutation.report import (
    FLOOR,
    GOAL,
    Tried,
    as_json,
    broken_lines,
    group_rows,
    row,
    rows_by,
    survivor_lines,
    table,
)
from tests.mutation.session import Baseline, NeedsImport, serve

_DIRECTORY = CHECKOUT / "build" / "mutants" / f"run-{os.getpid()}"
_IMPORT_CPU_S = 120
_INTERRUPTED = 130
_END_S = 30
_KILLS = {Outcome.KILLED, Outcome.TIMED_OUT}


def main() -> int:
    """Return 0 if every group is at its floor or above.

    Return 1 if a group is below its floor, an explanation is outdated, or tests ended without a
    result.
    """
    options = _options()
    # Ctrl-C also works in a background process, and kill ends the run in the same way.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        groups = chosen_groups(options.only)
        explanations = read_explanations(EXPLAINED_FILE.read_text())
    except ValueError as error:
        _say(f"cannot start: {error}")
        return 2
    every = {file: mutants_of(file) for group in groups for file in group.sources}
    chosen = [mutant for group in groups for mutant in _chosen(group, every, options)]
    _say(f"seed {options.seed}: {len(chosen)} of {sum(map(len, every.values()))} mutants")
    tried: list[Tried] = []
    started = time.monotonic()
    _DIRECTORY.mkdir(parents=True)
    try:
        for one in _tried(groups, dict(enumerate(chosen)), explanations, options):
            tried.append(one)
            for line in survivor_lines([one]):
                _say(f"survived: {line}")
            _show_progress(len(tried), len(chosen), time.monotonic() - started)
    except _TestsFailError as error:
        _say(str(error))
        return 2
    except KeyboardInterrupt:
        _say(f"\ninterrupted after {len(tried)} of {len(chosen)} mutants")
        return _INTERRUPTED
    finally:
        shutil.rmtree(_DIRECTORY)
    tried.sort(key=lambda one: (list(every).index(one.mutant.file), one.mutant.line))
    took_s = time.monotonic() - started
    stale = [*outdated(explanations, every), *_contradicted(explanations, tried)]
    return _report(groups, tried, stale, seed=options.seed, took_s=took_s, out=options.out)


def _options() -> argparse.Namespace:
    names = ", ".join(group.name for group in GROUPS)
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="draws the same mutants again (1)")
    parser.add_argument("--per-group", type=int, default=100, help="mutants of a group (100)")
    parser.add_argument("--all", action="store_true", help="try every mutant")
    parser.add_argument("--only", nargs="+", default=[], help=f"groups to try: {names}")
    parser.add_argument("--function", nargs="+", default=[], help="try every mutant of these")
    parser.add_argument(
        "--test-seconds", type=float, default=10, help="processor time of a mutant's tests (10)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, help="a file for the same as JSON")
    return parser.parse_args()


def _chosen(
    group: Group, every: Mapping[str, Sequence[Mutant]], options: argparse.Namespace
) -> list[Mutant]:
    mutants = [mutant for file in group.sources for mutant in every[file]]
    if options.function:
        return [mutant for mutant in mutants if mutant.function in options.function]
    at_most = len(mutants) if options.all or group.every else options.per_group
    return drawn(mutants, seed=f"{options.seed} {group.name}", at_most=at_most)


class _TestsFailError(Exception):
    """The tests fail without a mutant."""


def _tried(
    groups: Sequence[Group],
    mutants: Mapping[int, Mutant],
    explanations: Sequence[Explanation],
    options: argparse.Namespace,
) -> Iterator[Tried]:
    for ended in _ends(groups, mutants, options):
        mutant = mutants[ended.key]
        survived = ended.outcome is Outcome.SURVIVED
        reasons = (entry.reason for entry in explanations if survived and entry.is_about(mutant))
        yield Tried(
            mutant=mutant,
            outcome=ended.outcome,
            remark=ended.remark,
            reason=next(reasons, ""),
            seconds=ended.seconds,
        )


def _ends(
    groups: Sequence[Group], mutants: Mapping[int, Mutant], options: argparse.Namespace
) -> Iterator[Ended]:
    """Yield the end of each mutant: first those of loaded functions, then those to import."""
    context = multiprocessing.get_context("fork")
    answers, sending = context.Pipe(duplex=False)
    session = context.Process(
        target=serve,
        args=(groups, mutants),
        kwargs={
            "jobs": options.jobs,
            "test_cpu_s": options.test_seconds,
            "directory": _DIRECTORY,
            "answers": sending,
        },
    )
    session.start()
    sending.close()
    to_import: list[NeedsImport] = []
    has_run = False
    try:
        while True:
            try:
                message = answers.recv()
            except EOFError:
                break
            match message:
                case Ended():
                    yield message
                case NeedsImport():
                    to_import.append(message)
                case Baseline():
                    _check(message)
                    has_run = True
    finally:
        if session.is_alive():
            os.kill(session.pid or 0, signal.SIGINT)
        session.join(_END_S)
        session.kill()
        session.join()
    if not has_run:
        log = (_DIRECTORY / "session.log").read_text()
        raise _TestsFailError(f"the tests cannot be loaded:\n{log}")
    tasks = (
        Task(
            key=one.key,
            run=lambda remark, one=one: survives_import(mutants[one.key], one.tests, remark),  # type: ignore[misc]  # no types for a lambda's defaults
            cpu_s=_IMPORT_CPU_S,
        )
        for one in to_import
    )
    yield from run_tasks(tasks, jobs=options.jobs, directory=_DIRECTORY)


def _check(baseline: Baseline) -> None:
    if baseline.failed:
        failed = "\n".join(baseline.failed)
        raise _TestsFailError(f"these tests fail without a mutant:\n{failed}")
    _say(f"{baseline.test_count} tests without a mutant: {baseline.seconds:.0f} s")


def _contradicted(explanations: Sequence[Explanation], tried: Sequence[Tried]) -> list[Explanation]:
    return [
        entry
        for entry in explanations
        if any(entry.is_about(one.mutant) and one.outcome in _KILLS for one in tried)
    ]


def _report(
    groups: Sequence[Group],
    tried: Sequence[Tried],
    stale: Sequence[Explanation],
    *,
    seed: int,
    took_s: float,
    out: Path | None,
) -> int:
    rows = group_rows(groups, tried)
    total = row("all", tried)
    _say("\n" + table("module", rows_by(tried, lambda mutant: mutant.file), total))
    _say("\n" + table("kind of change", rows_by(tried, lambda mutant: mutant.kind), total))
    _say("\n" + table("group", rows, total))
    survivors = survivor_lines(tried)
    _say("\n".join([f"\n{len(survivors)} survivors that nothing explains", *survivors]))
    for entry in stale:
        _say(f"outdated in {EXPLAINED_FILE.name}: {entry.file} {entry.function}: {entry.before}")
    low = [one.name for one in rows if one.ratio < FLOOR]
    _say(f"\nseed {seed}, {took_s / 60:.1f} minutes, goal {GOAL}, floor {FLOOR}")
    if low:
        _say(f"below the floor: {', '.join(low)}")
    broken = broken_lines(tried)
    for line in broken:
        _say(f"broken, no test is named that failed: {line}")
    if out is not None:
        out.write_text(json.dumps(as_json(rows, tried, seed=seed), indent=1, ensure_ascii=False))
    return int(bool(low or stale or broken))


def _show_progress(done: int, count: int, seconds: float) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(f"\r{done} of {count} mutants, {seconds:.0f} s ")
        sys.stdout.flush()
    elif done % 100 == 0:
        _say(f"{done} of {count} mutants, {seconds:.0f} s")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
