"""The earlier records that an accepted event makes superfluous, so that its writer removes them."""

from __future__ import annotations

import pytest

from rlmm.events.event import Event
from rlmm.events.registry import family_of
from rlmm.record_keys import RecordKind
from rlmm.state.log_starts import LogStart
from rlmm.state.partition_state import PartitionState
from tests.metadata_builder import (
    claim,
    gap,
    gaps,
    log_start,
    log_start_request,
    offload_request,
    read_lease,
    trim,
    writer,
)

OWN, OTHER = LogStart(10, 1), LogStart(20, 0)


def superseded(event: Event, state: PartitionState) -> tuple[RecordKind, ...] | None:
    """Return the records that the event supersedes, once it is folded into this state."""
    return family_of(event).superseded_kinds(event, lambda _: state)


@pytest.mark.parametrize(
    ("known", "expected"),
    [((OWN,), (RecordKind.TRIM,)), ((OTHER, OWN), ()), ((OTHER,), ())],
)
def test_trim_when_it_is_the_only_one_that_counts_then_supersedes_the_others(
    known: tuple[LogStart, ...], expected: tuple[RecordKind, ...]
) -> None:
    """The trim of another leader epoch may count again after an unclean election."""
    assert superseded(trim(10, by=writer(1)), PartitionState(trims=known)) == expected


@pytest.mark.parametrize(
    ("known", "requests", "expected"),
    [
        ((OWN,), (), (RecordKind.LOG_START, RecordKind.LOG_START_REQUEST)),
        ((OWN,), (LogStart(50, 1),), (RecordKind.LOG_START,)),
        ((OTHER, OWN), (), (RecordKind.LOG_START_REQUEST,)),
        ((OTHER, OWN), (LogStart(50, 1),), ()),
    ],
)
def test_log_start_when_no_other_counts_or_all_requests_are_met_then_supersedes_them(
    known: tuple[LogStart, ...],
    requests: tuple[LogStart, ...],
    expected: tuple[RecordKind, ...],
) -> None:
    state = PartitionState(log_starts=known, log_start_requests=requests)

    assert superseded(log_start(10, by=writer(1)), state) == expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(gaps(gap(1, 2)), (RecordKind.GAPS,), id="gaps"),
        pytest.param(offload_request(5), (RecordKind.OFFLOAD_REQUEST,), id="offload request"),
        pytest.param(read_lease(), (), id="read lease"),
        pytest.param(claim(), None, id="claim"),
        pytest.param(log_start_request(5), None, id="log start request"),
    ],
)
def test_event_when_accepted_then_supersedes_the_same_whatever_the_state(
    event: Event, expected: tuple[RecordKind, ...] | None
) -> None:
    """A renewal reuses its lease's key, so a lease's writer removes only expired leases."""
    assert superseded(event, PartitionState()) == expected
