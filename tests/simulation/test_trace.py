"""The same seed twice gives the same trace, event by event."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from uuid import UUID

import pytest

from rlmm.events.pause import PausableTask
from rsm.segment.errors import RetriableError
from tests.architecture.tree import CHECKOUT
from tests.simulation.simulation import Simulation
from tests.simulation.trace import Trace, canonical, first_difference

SEEDS = (4, 10, 18, 19)
_COVERED = (
    *(" dies ", "FAILED ", "interruption: failure", "partition=1", "the topic is deleted"),
    *("a share group comes to", "is elected though it lags", "is leased", "action: paused"),
    *("dead_letter DeadLetter", "the topic is streamed", "publish OffloadSegmentChanged"),
    *("an upload of manager", "are used again"),
)
_RUN_TIMEOUT_S = 600


def _trace(seed: int) -> list[str]:
    trace = Trace()
    Simulation(seed, trace=trace).run()
    return trace.events


def _trace_of_a_process(seed: int, *, hash_seed: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--trace"],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        timeout=_RUN_TIMEOUT_S,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def traces() -> Mapping[int, list[str]]:
    return {seed: _trace(seed) for seed in SEEDS}


def test_trace_when_a_seed_runs_twice_in_one_process_then_is_equal_event_by_event(
    traces: Mapping[int, list[str]],
) -> None:
    """Scenarios 103, 130."""
    for seed in SEEDS:
        difference = first_difference(traces[seed], _trace(seed))

        assert difference is None, f"seed {seed}: {difference}"


@pytest.mark.parametrize("seed", SEEDS)
def test_trace_when_two_interpreters_hash_differently_then_is_equal_event_by_event(
    traces: Mapping[int, list[str]], seed: int
) -> None:
    """Scenarios 103, 130: no order of a set or of hashed texts decides what happens."""
    for hash_seed in (1, 2):
        found = _trace_of_a_process(seed, hash_seed=hash_seed)

        difference = first_difference(traces[seed], found)
        assert difference is None, f"seed {seed}, PYTHONHASHSEED={hash_seed}: {difference}"


def test_traces_when_searched_then_cover_faults_partitions_deletions_and_other_users(
    traces: Mapping[int, list[str]],
) -> None:
    """Scenario 130: equal traces prove little if nothing happens in them."""
    events = "\n".join(event for trace in traces.values() for event in trace)

    assert [text for text in _COVERED if text not in events] == []
    assert all("check: all invariants hold" in trace[-1] for trace in traces.values())


def test_trace_when_recorded_then_the_simulation_is_the_same_as_without() -> None:
    """Scenario 130: recording changes nothing."""
    plain, recorded = Simulation(12), Simulation(12, trace=Trace())

    outcomes = plain.run(), recorded.run()

    assert outcomes[0] == outcomes[1]
    assert plain.trail == recorded.trail
    assert len(plain.trail) > 20


def test_difference_when_two_traces_part_then_is_shown_with_the_events_before_it() -> None:
    """Scenario 130."""
    left = [f"event {number}" for number in range(20)]

    found = first_difference(left, [*left[:15], "another one", *left[16:]])

    assert found is not None
    assert found.splitlines()[0] == "event 15 differs; 8 events before it:"
    assert found.splitlines()[-2:] == ["  < event 15", "  > another one"]
    assert "    event 7" in found
    assert "event 6" not in found


def test_difference_when_one_trace_ends_early_then_is_found() -> None:
    """Scenario 130."""
    assert "> the trace ends" in (first_difference(["a", "b"], ["a"]) or "")
    assert first_difference(["a"], ["a"]) is None


def test_canonical_form_when_made_of_a_set_then_is_sorted() -> None:
    """Scenario 130: an enum's hash differs between interpreters."""
    tasks = frozenset(PausableTask)

    assert canonical(tasks) == f"{{{', '.join(sorted(task.name for task in PausableTask))}}}"
    assert canonical({UUID(int=255): b"\x01"}) == "{#ff: 01}"
    assert "8 bytes" not in canonical(b"12345678")
    assert canonical(b"1" * 100).startswith("100 bytes ")
    assert "RetriableError" in canonical(RetriableError("away", partition=3))
