"""Where retention begins and ends, to the byte and the offset."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from rlm.policy.retention import ExpiryCut, expiry_cut, log_pieces
from rlm.policy.view import PolicyLimits
from rlmm.events.policy import PolicyState
from rsm.segment.epochs import Lineage
from tests.unit.rlm.policy.views import (
    HOUR_MS,
    Given,
    local,
    policy,
    remote,
    stored_up_to,
)

# Ten segments of 1000 bytes, an hour old; 500 bytes are being written.
STORED = Given(segments=stored_up_to(1000), rolled=(local(900, 1000),), local_start=900)
CUT_AT_50 = Lineage.of((0, 0), (1, 50))
OLD = replace(STORED, policy=policy(retention_ms=HOUR_MS // 2))


def _cut(given: Given) -> int | None:
    cut = expiry_cut(given.view())
    return None if cut is None else cut.offset


@pytest.mark.parametrize(
    ("retention_bytes", "expected"),
    [(9_501, None), (9_500, 100), (501, 900), (500, 1000), (0, 1000)],
)
def test_expiry_when_exactly_the_limit_would_be_left_then_the_oldest_expires(
    retention_bytes: int, expected: int | None
) -> None:
    assert _cut(replace(STORED, policy=policy(retention_bytes=retention_bytes))) == expected


def test_expiry_when_over_size_then_reason_is_what_was_left_before_the_last_one() -> None:
    cut = expiry_cut(replace(STORED, policy=policy(retention_bytes=8_500)).view())

    assert cut == ExpiryCut(offset=200, reason="retention.bytes=8500 measured=9500")


def test_expiry_when_the_active_segment_has_expired_bytes_then_they_do_not_count() -> None:
    """The broker keeps its active file whole, so a stream's expired parts are still in it."""
    given = replace(
        STORED,
        segments=(remote(950, 1000, size=250),),
        rolled=(local(800, 900),),
        local_start=950,
        log_start=950,
        policy=policy(retention_bytes=250),
    )

    assert _cut(given) is None


@pytest.mark.parametrize("log_start", [None, 0])
def test_pieces_when_nothing_is_stored_then_each_local_one_with_its_bytes(
    log_start: int | None,
) -> None:
    pieces = log_pieces(Given(log_start=log_start).view())
    assert [piece.size_bytes for piece in pieces] == [1000] * 10


def test_pieces_when_a_stored_segment_is_one_offset_long_then_it_counts() -> None:
    view = Given(segments=(remote(0, 1),), rolled=(local(1, 100),)).view()
    assert [piece.offsets.end_offset for piece in log_pieces(view)] == [1, 100]


def test_pieces_when_one_lies_inside_another_then_those_after_it_count() -> None:
    stored = (remote(0, 100), remote(20, 80), remote(100, 200))
    pieces = log_pieces(Given(segments=stored, rolled=()).view())
    assert [piece.offsets.start_offset for piece in pieces] == [0, 100]


def test_pieces_when_one_overlaps_another_then_no_byte_counts_twice() -> None:
    stored = (remote(0, 100), remote(100, 200), remote(150, 250, size=1600), remote(250, 300))
    pieces = log_pieces(Given(segments=stored, rolled=()).view())
    assert [piece.size_bytes for piece in pieces] == [1000, 1000, 600, 1000]


def test_pieces_when_one_overlaps_two_that_have_more_bytes_then_counts_without_bytes() -> None:
    stored = (remote(0, 100), remote(50, 120, size=1100), remote(60, 150, size=2000))
    pieces = log_pieces(Given(segments=stored, rolled=()).view())
    assert [piece.size_bytes for piece in pieces] == [1000, 100, 0]


def test_pieces_when_each_overlaps_the_next_then_every_other_one_counts_whole() -> None:
    stored = tuple(remote(start, start + 110) for start in range(0, 1000, 100))

    pieces = log_pieces(Given(segments=stored, rolled=()).view())

    assert sum(piece.size_bytes for piece in pieces) == 5 * 1000


def test_pieces_when_an_election_cut_one_off_then_its_unknown_rest_counts_without_bytes() -> None:
    stored = (remote(0, 100), remote(50, 200, epochs=CUT_AT_50))
    given = Given(segments=stored, rolled=(), stored_lineage=CUT_AT_50, checkpoint=CUT_AT_50)

    pieces = log_pieces(given.view())

    assert [(each.offsets.end_offset, each.size_bytes) for each in pieces] == [(50, 0), (200, 1000)]


@given_any(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=12), st.data())
def test_pieces_when_segments_overlap_then_never_more_bytes_than_the_log_has(
    bounds: list[tuple[int, int]], data: st.DataObject
) -> None:
    record_bytes = data.draw(st.lists(st.integers(1, 50), min_size=42, max_size=42))
    stored = tuple(
        remote(start, start + count, size=sum(record_bytes[start : start + count]), number=number)
        for number, (start, count) in enumerate(bounds)
    )

    pieces = log_pieces(Given(segments=stored, rolled=()).view())

    for number, piece in enumerate(pieces, start=1):
        left_bytes = sum(each.size_bytes for each in pieces[number:])
        assert left_bytes <= sum(record_bytes[piece.offsets.end_offset :])


def test_pieces_when_one_ends_at_the_log_start_then_left_out() -> None:
    given = Given(segments=stored_up_to(300), log_start=100)

    pieces = log_pieces(given.view())

    assert [piece.offsets.start_offset for piece in pieces] == list(range(100, 1000, 100))


def test_pieces_when_a_local_one_begins_where_the_stored_ends_then_has_its_bytes() -> None:
    given = Given(segments=(*stored_up_to(100), remote(100, 150)))

    sizes = [(p.offsets.start_offset, p.size_bytes) for p in log_pieces(given.view())]

    assert sizes[:4] == [(0, 1000), (100, 1000), (100, 0), (200, 1000)]


@pytest.mark.parametrize(("log_start", "expected"), [(999, 1000), (1000, None)])
def test_expiry_when_the_log_starts_there_already_then_does_not_move(
    log_start: int, expected: int | None
) -> None:
    given = replace(OLD, log_start=log_start, local_start=900)
    assert _cut(given) == expected


@pytest.mark.parametrize(("local_start", "expected"), [(100, None), (200, None), (201, 201)])
def test_expiry_when_the_local_log_starts_at_the_log_start_then_does_not_go_back(
    local_start: int, expected: int | None
) -> None:
    """While tiering ends, expiry stays below the local log."""
    given = replace(OLD, policy=replace(OLD.policy, state=PolicyState.DISABLING))
    assert _cut(replace(given, log_start=200, local_start=local_start)) == expected


@pytest.mark.parametrize(
    ("state", "untierable", "expected"),
    [
        (PolicyState.ACTIVE, None, 1000),
        (PolicyState.ACTIVE, "cleanup.policy=compact", 900),
        (PolicyState.DISABLING, None, 900),
    ],
)
def test_expiry_when_the_local_log_may_not_be_trimmed_then_up_to_its_start(
    state: PolicyState, untierable: str | None, expected: int
) -> None:
    given = replace(OLD, policy=replace(OLD.policy, state=state))

    cut = expiry_cut(replace(given.view(), untierable=untierable))

    assert cut is not None
    assert cut.offset == expected


@pytest.mark.parametrize(
    ("state", "delete_remote"), [(PolicyState.DISABLED, False), (PolicyState.ACTIVE, True)]
)
def test_expiry_when_remote_data_is_to_stay_then_disabling_moves_nothing(
    state: PolicyState, *, delete_remote: bool
) -> None:
    kept = policy(state=state, delete_remote=delete_remote)
    assert _cut(replace(STORED, policy=kept)) is None


@pytest.mark.parametrize(
    ("percent", "expected"),
    [
        (100, ExpiryCut(offset=1050, reason=f"retention.ms={HOUR_MS // 2} no record is younger")),
        (
            90,
            ExpiryCut(
                offset=900,
                reason=f"retention.ms={HOUR_MS // 2} measured={HOUR_MS}",
                waiting_count=1,
            ),
        ),
    ],
)
def test_expiry_when_no_record_is_younger_then_what_is_written_expires_with_the_last_share(
    percent: int, expected: ExpiryCut
) -> None:
    given = replace(OLD, limits=PolicyLimits(expiry_max_percent=percent))

    assert expiry_cut(replace(given.view(), is_past_retention=True)) == expected


def test_expiry_when_no_record_is_younger_but_a_segment_is_kept_then_nothing_expires() -> None:
    younger = (*stored_up_to(900), remote(900, 1000, age_ms=0))
    view = replace(OLD, segments=younger).view()

    cut = expiry_cut(replace(view, is_past_retention=True))

    assert cut is not None
    assert cut.offset == 900


def test_expiry_when_only_one_share_is_due_then_none_waits() -> None:
    given = replace(OLD, limits=PolicyLimits(expiry_max_percent=100))

    cut = expiry_cut(given.view())

    assert cut is not None
    assert (cut.offset, cut.waiting_count) == (1000, 0)
