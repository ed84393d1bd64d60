"""When the open segment of a stream ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.policy.stream.ending import EndReason, StreamProgress, end_because, gives_way
from rlm.policy.stream.permit import StreamPermit
from rsm.segment.batches.batch import MAX_BATCH_BYTES
from rsm.segment.offload_settings import OffloadMode, OffloadSettings
from rsm.segment.ranges import OffsetRange

LIMITS = OffloadSettings(
    mode=OffloadMode.STREAM, segment_max_bytes=1_000, segment_rollover_ms=5_000
)
PERMIT = StreamPermit(begin_offset=100, limits=LIMITS)
PROGRESS = StreamProgress(
    offsets=OffsetRange(start_offset=100, end_offset=150),
    size_bytes=999,
    open_ms=4_999,
    waited_ms=4_999,
    is_caught_up=True,
)


def ended(
    progress: StreamProgress = PROGRESS,
    permit: StreamPermit | None = PERMIT,
    *,
    others_wait: bool = False,
) -> EndReason | None:
    return end_because(progress, LIMITS, permit, others_wait=others_wait)


def test_stream_when_below_all_limits_then_continues() -> None:
    assert ended() is None


@pytest.mark.parametrize(("more_bytes", "reason"), [(-1, None), (0, EndReason.SIZE)])
def test_stream_when_its_indexes_could_not_address_two_more_batches_then_ends(
    more_bytes: int, reason: EndReason | None
) -> None:
    """Whatever size is configured: positions in an offset index have 31 bits."""
    largest = replace(LIMITS, segment_max_bytes=1 << 40)
    progress = replace(PROGRESS, size_bytes=(1 << 31) - 2 * MAX_BATCH_BYTES + more_bytes)

    assert end_because(progress, largest, PERMIT, others_wait=False) is reason


def test_stream_when_no_longer_permitted_then_ends_with_what_it_has() -> None:
    assert ended(permit=None) is EndReason.FORBIDDEN


@pytest.mark.parametrize("is_caught_up", [True, False])
def test_stream_when_full_or_old_then_ends_whether_or_not_records_wait(
    *, is_caught_up: bool
) -> None:
    progress = replace(PROGRESS, is_caught_up=is_caught_up)

    assert ended(replace(progress, size_bytes=1_000)) is EndReason.SIZE
    assert ended(replace(progress, open_ms=5_000)) is EndReason.TIME


@pytest.mark.parametrize(("is_caught_up", "reason"), [(True, EndReason.TIME), (False, None)])
def test_stream_when_its_records_waited_before_then_ends_once_caught_up(
    *, is_caught_up: bool, reason: EndReason | None
) -> None:
    """The rollover time had passed when the segment was opened: all records are stored at once."""
    progress = replace(PROGRESS, open_ms=0, waited_ms=5_000, is_caught_up=is_caught_up)

    assert ended(progress) is reason


@pytest.mark.parametrize(("is_caught_up", "reason"), [(True, EndReason.OTHERS_WAIT), (False, None)])
def test_stream_when_others_wait_then_ends_once_caught_up(
    *, is_caught_up: bool, reason: EndReason | None
) -> None:
    assert ended(replace(PROGRESS, is_caught_up=is_caught_up), others_wait=True) is reason


@pytest.mark.parametrize(
    ("waiting_count", "gives"), [(0, []), (1, [10]), (2, [10, 20]), (9, [10, 20, 30])]
)
def test_streams_when_partitions_wait_then_as_many_give_way_the_oldest_first(
    waiting_count: int, gives: list[int]
) -> None:
    opened = [30, 10, 20]

    assert [at for at in sorted(opened) if gives_way(at, opened, waiting_count)] == gives


@pytest.mark.parametrize(
    ("requested", "is_caught_up", "reason"),
    [
        (100, True, None),
        (101, True, EndReason.REQUESTED),
        (150, False, EndReason.REQUESTED),
        (150, True, EndReason.REQUESTED),
        (151, False, None),
        (151, True, None),
    ],
)
def test_stream_when_an_offload_is_requested_then_ends_only_once_it_has_all_of_it(
    requested: int, reason: EndReason | None, *, is_caught_up: bool
) -> None:
    progress = replace(PROGRESS, is_caught_up=is_caught_up)

    assert ended(progress, replace(PERMIT, requested_offset=requested)) is reason


@pytest.mark.parametrize(("stored_from", "reason"), [(151, None), (150, EndReason.STORED_ABOVE)])
def test_stream_when_it_reaches_stored_records_then_ends(
    stored_from: int, reason: EndReason | None
) -> None:
    assert ended(permit=replace(PERMIT, stored_from_offset=stored_from)) is reason


@pytest.mark.parametrize(
    ("open_ms", "longest_ms", "reason"),
    [
        (7_999, 8_000, None),
        (8_000, 8_000, EndReason.TIME),
        (4_999, 1_000, None),
        (5_000, 1_000, EndReason.TIME),
    ],
)
def test_stream_when_history_does_not_fill_it_in_time_then_ends_with_what_it_has(
    open_ms: int, longest_ms: int, reason: EndReason | None
) -> None:
    """Otherwise a stream to a slow store would never complete a segment within the time limit."""
    progress = replace(PROGRESS, open_ms=open_ms, waited_ms=0, is_caught_up=False)

    found = end_because(
        progress,
        LIMITS,
        PERMIT,
        others_wait=False,
        history_end_offset=900,
        history_longest_ms=longest_ms,
    )

    assert found is reason


@pytest.mark.parametrize(
    ("history_end", "open_ms", "size_bytes", "reason"),
    [
        (151, 5_000, 999, None),
        (150, 5_000, 999, EndReason.TIME),
        (151, 5_000, 1_000, EndReason.SIZE),
    ],
)
def test_stream_when_in_the_history_then_ends_by_size_only(
    history_end: int, open_ms: int, size_bytes: int, reason: EndReason | None
) -> None:
    """PIP-76: history is divided into segments of the configured size."""
    progress = replace(PROGRESS, open_ms=open_ms, size_bytes=size_bytes, is_caught_up=False)

    found = end_because(progress, LIMITS, PERMIT, others_wait=False, history_end_offset=history_end)

    assert found is reason


def test_stream_when_an_index_cannot_have_more_then_ends() -> None:
    """Positions and relative offsets of an offset index have 31 bits."""
    limits = replace(LIMITS, segment_max_bytes=1 << 40)
    many = replace(PROGRESS, offsets=OffsetRange(start_offset=0, end_offset=1 << 30))
    large = replace(PROGRESS, size_bytes=2_000_000_000)

    assert end_because(many, LIMITS, PERMIT, others_wait=False) is EndReason.OFFSETS
    assert end_because(large, limits, PERMIT, others_wait=False) is EndReason.SIZE


@given(
    size_bytes=st.integers(0, 2_000),
    open_ms=st.integers(0, 10_000),
    waited_ms=st.integers(0, 10_000),
    is_caught_up=st.booleans(),
    others_wait=st.booleans(),
)
def test_stream_when_in_any_state_then_never_outlives_its_limits(
    size_bytes: int, open_ms: int, waited_ms: int, *, is_caught_up: bool, others_wait: bool
) -> None:
    progress = StreamProgress(
        offsets=OffsetRange(start_offset=100, end_offset=150),
        size_bytes=size_bytes,
        open_ms=open_ms,
        waited_ms=open_ms + waited_ms,
        is_caught_up=is_caught_up,
    )

    found = ended(progress, others_wait=others_wait)

    if size_bytes >= 1_000 or open_ms >= 5_000:
        assert found is not None
    if found is None:
        assert not (is_caught_up and (others_wait or open_ms + waited_ms >= 5_000))
