"""Where a partition's stream continues, while a cycle, a watch and a lane look at it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.facts.local_log import LogPosition
from rlm.policy.stream.permit import StreamPermit
from rlm.tasks.leadership.stream_state import OpenStream, StreamState
from rsm.segment.offload_settings import OffloadMode, OffloadSettings

PERMIT = StreamPermit(begin_offset=100, limits=OffloadSettings(mode=OffloadMode.STREAM))
SEALED = LogPosition(offset=200, file_base_offset=150, position=9, entry_id=3)


def permitted() -> StreamState:
    state = StreamState()
    state.permit_from(PERMIT, state.version())
    return state


def offered(state: StreamState) -> list[tuple[StreamPermit, LogPosition]]:
    found: list[tuple[StreamPermit, LogPosition]] = []

    def start(permit: StreamPermit, begin: LogPosition) -> bool:
        found.append((permit, begin))
        return True

    state.offer(start)
    return found


def test_stream_when_a_cycle_permits_it_then_begins_where_the_cycle_says() -> None:
    assert offered(permitted()) == [(PERMIT, LogPosition(offset=100))]


def test_stream_when_no_cycle_permits_it_then_is_not_started() -> None:
    state = permitted()
    state.permit_from(None, version=-1)

    assert offered(StreamState()) == []
    assert offered(state) == []


def test_stream_when_sealed_while_a_cycle_looked_then_the_cycle_moves_nothing_back() -> None:
    """Otherwise the next segment would store the same records again."""
    state = permitted()
    seen = state.version()
    state.continue_after(SEALED)

    state.permit_from(PERMIT, seen)

    assert state.begin == SEALED


@pytest.mark.parametrize(("stored_from", "offers"), [(201, 1), (200, 0), (199, 0)])
def test_stream_when_it_reaches_what_is_stored_above_then_waits_for_a_cycle(
    stored_from: int, offers: int
) -> None:
    """The next segment would begin at stored records."""
    state = StreamState()
    state.permit_from(replace(PERMIT, stored_from_offset=stored_from), state.version())

    state.continue_after(SEALED)
    before = len(offered(state))
    state.permit_from(replace(PERMIT, begin_offset=300), state.version())

    assert (before, len(offered(state))) == (offers, 1)


def test_stream_when_a_later_cycle_sees_the_sealed_end_then_keeps_the_position_in_the_file() -> (
    None
):
    state = permitted()
    state.continue_after(SEALED)

    state.permit_from(replace(PERMIT, begin_offset=200), state.version())

    assert state.begin == SEALED


def test_stream_when_a_later_cycle_finds_a_hole_then_begins_there() -> None:
    state = permitted()
    state.continue_after(SEALED)

    state.permit_from(replace(PERMIT, begin_offset=150), state.version())

    assert state.begin == LogPosition(offset=150)


def test_stream_when_given_up_then_waits_for_a_cycle_that_looks_afterwards() -> None:
    state = permitted()
    seen = state.version()
    state.withdraw_permit()
    state.permit_from(PERMIT, seen)
    before = offered(state)

    state.permit_from(PERMIT, state.version())

    assert (before, len(offered(state))) == ([], 1)


def test_wait_when_records_are_known_then_counts_from_the_first_look_with_them() -> None:
    state = permitted()
    begin = LogPosition(offset=100)

    waited = [
        state.waited_ms(begin, now_ms, has_records=has_records)
        for now_ms, has_records in ((0, False), (50, True), (90, True), (95, False), (99, True))
    ]

    assert waited == [0, 0, 40, 0, 0]


@pytest.mark.parametrize(
    ("looks", "waited_ms"),
    [
        ([(100, True), (130, True)], [130, 160]),
        ([(100, False), (130, True)], [0, 0]),
        ([(100, True), (130, False), (140, True)], [130, 0, 0]),
    ],
)
def test_wait_when_counted_from_before_then_only_records_of_the_first_look_are_older(
    looks: list[tuple[int, bool]], waited_ms: list[int]
) -> None:
    state = StreamState()
    state.count_from(-30)
    state.permit_from(PERMIT, state.version())
    begin = LogPosition(offset=100)

    found = [state.waited_ms(begin, now_ms, has_records=has) for now_ms, has in looks]

    assert (found, state.is_new) == (waited_ms, False)


def test_wait_when_the_begin_moves_before_the_first_look_then_counts_from_that_look() -> None:
    state = StreamState()
    state.count_from(-30)
    state.permit_from(PERMIT, state.version())
    state.permit_from(replace(PERMIT, begin_offset=150), state.version())

    assert state.waited_ms(LogPosition(offset=150), 100, has_records=True) == 0


def test_wait_when_a_segment_is_sealed_then_counts_again_for_the_next_records() -> None:
    state = permitted()
    state.waited_ms(LogPosition(offset=100), 0, has_records=True)
    state.continue_after(SEALED)

    assert state.waited_ms(LogPosition(offset=100), 70, has_records=True) == 0
    assert state.waited_ms(SEALED, 80, has_records=True) == 0
    assert state.waited_ms(SEALED, 95, has_records=True) == 15


def opened(at_ms: int) -> OpenStream:
    return OpenStream(
        begin_offset=100, end_offset=120, size_bytes=9, opened_at_ms=at_ms, is_caught_up=True
    )


def test_unstored_when_records_are_known_then_counts_on_while_their_segment_is_open() -> None:
    state = permitted()
    begin = LogPosition(offset=100)
    none_known = state.unstored_ms(5)
    state.waited_ms(begin, 10, has_records=True)
    state.open_stream = opened(40)

    while_open = state.unstored_ms(70)
    state.open_stream = None
    state.continue_after(SEALED)

    assert (none_known, while_open, state.unstored_ms(80)) == (None, 60, None)


def test_unstored_when_a_segment_follows_at_once_then_counts_from_its_begin() -> None:
    state = permitted()
    state.continue_after(SEALED)
    state.open_stream = opened(40)

    assert state.unstored_ms(70) == 30


def test_history_when_permitted_then_ends_where_the_log_did_until_it_is_forbidden() -> None:
    state = StreamState()

    ends = []
    for permit, committed_end_offset in ((PERMIT, 500), (PERMIT, 600), (None, 700), (PERMIT, 800)):
        state.permit_from(permit, state.version(), committed_end_offset)
        ends.append(state.history_end_offset)

    assert ends == [500, 500, 500, 800]
