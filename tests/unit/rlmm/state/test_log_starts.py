"""Log starts and their requests, after an unclean election has cut off their log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlmm.state.log_starts import LogStart, uncovered
from rsm.segment.epochs import Lineage
from tests.folding import append, folded, log_of, refusals
from tests.metadata_builder import (
    ORDERS,
    claim,
    gap,
    gaps,
    log_start,
    log_start_request,
    trim,
    writer,
)

CUT = Lineage.of((0, 0), (1, 30))
"""The leader of epoch 1 did not have the records from offset 30 on."""


@st.composite
def lineages(draw: st.DrawFn) -> Lineage:
    epochs = sorted(draw(st.sets(st.integers(0, 5))))
    begins = sorted(draw(st.sets(st.integers(0, 20), min_size=len(epochs), max_size=len(epochs))))
    return Lineage.of(*zip(epochs, begins, strict=True))


STARTS = st.lists(st.builds(LogStart, st.integers(0, 20), st.integers(-1, 5)))


@given(STARTS, lineages())
def test_starts_when_what_is_covered_is_forgotten_then_reach_as_far_in_any_lineage(
    starts: list[LogStart], lineage: Lineage
) -> None:
    """R11: it does not matter which of the records compaction removed."""
    kept = uncovered(starts)

    assert max((each.within(lineage) for each in kept), default=0) == max(
        (each.within(lineage) for each in starts), default=0
    )
    assert uncovered([*kept, *starts]) == kept


def test_log_start_request_when_above_the_log_start_then_is_known_until_it_is_met() -> None:
    """R13, scenario 75: a request is a maximum and not fenced; the leader's log start meets it."""
    requested = log_of(claim(), log_start(10), log_start_request(50), log_start_request(40))
    met = log_of(claim(), log_start(10), log_start_request(50), log_start(60))

    assert folded(requested).partition_state(ORDERS).log_start_requested_offset == 50
    assert refusals(requested) == {"below_current": 1}
    assert folded(met).partition_state(ORDERS).log_start_requested_offset is None


def test_log_start_when_a_later_epoch_begins_below_it_then_moves_down_to_where_that_does() -> None:
    """An unclean election: the new leader's records there did not expire."""
    lost = log_of(claim(), log_start(50), claim(writer(1), lineage=CUT))
    kept = log_of(claim(), claim(writer(1), lineage=CUT), log_start(50, by=writer(1)))

    assert folded(lost).partition_state(ORDERS).log_start_offset == 30
    assert folded(kept).partition_state(ORDERS).log_start_offset == 50


def test_request_when_a_later_epoch_begins_below_it_then_reaches_up_to_there() -> None:
    """Nobody requested the deletion of records from after an unclean election."""
    asked = log_of(claim(), log_start_request(50), claim(writer(1), lineage=CUT))
    again = log_of(
        claim(),
        log_start_request(50),
        claim(writer(1)),
        log_start_request(40),
        trim(0, by=writer(1), lineage=CUT),
    )

    assert folded(asked).partition_state(ORDERS).log_start_requested_offset == 30
    assert folded(again).partition_state(ORDERS).log_start_requested_offset == 40


def test_request_when_a_later_leader_took_it_then_is_of_its_epoch() -> None:
    """It does not matter whether that leader's process has claimed the partition yet."""
    asked = log_start_request(50, leader_epoch=1)
    early = log_of(claim(), asked, claim(writer(1), lineage=CUT))
    late = log_of(claim(), claim(writer(1), lineage=CUT), asked)
    of_before = log_of(
        claim(), claim(writer(1), lineage=CUT), log_start_request(50, leader_epoch=0)
    )

    assert folded(early).partition_state(ORDERS).log_start_requested_offset == 50
    assert folded(late).partition_state(ORDERS).log_start_requested_offset == 50
    assert folded(of_before).partition_state(ORDERS).log_start_requested_offset == 30


def test_request_when_it_was_met_before_an_unclean_election_then_never_comes_back() -> None:
    """R11: not even if compaction removed the log start that had met the request."""
    first, last = claim(), log_start(60, by=writer(1))
    events = (log_start_request(50), claim(writer(1), lineage=CUT), log_start(40, by=writer(1)))

    live = folded(log_of(first, log_start(60), *events)).partition_state(ORDERS)
    later = folded(log_of(first, log_start(60), *events, last)).partition_state(ORDERS)
    compacted = folded(log_of(first, *events, last)).partition_state(ORDERS)

    assert (live.log_start_offset, live.log_start_requested_offset) == (40, None)
    assert later == compacted
    assert (later.log_start_offset, later.log_start_requested_offset) == (60, None)


def test_log_start_when_the_former_history_is_elected_again_then_reaches_as_far_as_before() -> None:
    """Records that had expired in it are not readable again."""
    back = Lineage.of((0, 0), (2, 70))
    log = log_of(claim(), log_start(60), claim(writer(1), lineage=CUT))
    append(log, trim(10, by=writer(1), lineage=CUT))

    assert folded(log).partition_state(ORDERS).log_start_offset == 30
    append(log, claim(writer(2), lineage=back))

    assert folded(log).partition_state(ORDERS).log_start_offset == 60


def test_request_when_nobody_owns_the_partition_yet_then_holds() -> None:
    log = log_of(log_start_request(50), claim())

    assert folded(log).partition_state(ORDERS).log_start_requested_offset == 50


def test_gaps_when_below_the_log_start_or_cut_off_then_count_no_more() -> None:
    """Records of the later leader are no gap: a reader would skip them."""
    recorded = gaps(gap(10, 20), gap(25, 50), gap(70, 80))
    later = gaps(gap(40, 50), by=writer(1))

    expired = log_of(claim(), log_start(60), recorded)
    cut_off = log_of(claim(), recorded, claim(writer(1), lineage=CUT))
    recorded_anew = log_of(claim(), recorded, claim(writer(1), lineage=CUT), later)

    assert folded(expired).partition_state(ORDERS).gaps == recorded.gaps[2:]
    assert folded(cut_off).partition_state(ORDERS).gaps == (gap(10, 20), gap(25, 30))
    assert folded(recorded_anew).partition_state(ORDERS).gaps == later.gaps


def test_log_start_when_the_cut_is_known_only_afterwards_then_holds() -> None:
    """The later leader's log start belongs to its epoch, whatever the former leader's is."""
    log = log_of(claim(), log_start(60), claim(writer(1)), log_start(40, by=writer(1)))

    assert folded(log).partition_state(ORDERS).log_start_offset == 60
    append(log, trim(0, by=writer(1), lineage=CUT))

    assert folded(log).partition_state(ORDERS).log_start_offset == 40


def test_log_start_when_below_the_request_then_the_request_stays() -> None:
    log = log_of(claim(), log_start_request(50), log_start(40))

    assert folded(log).partition_state(ORDERS).log_start_requested_offset == 50
