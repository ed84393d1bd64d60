"""When a partition may be streamed, from where, and when its stream opens."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.facts.local_log import LocalLog, LogFileSize, LogPosition
from rlm.policy.candidates import copy_blocked, copy_candidates, offload_end_offset
from rlm.policy.plan import plan
from rlm.policy.stream.permit import (
    OPEN_BYTES,
    DueReason,
    StreamPermit,
    check_interval_ms,
    counted_from,
    due_because,
    stream_permit,
    unstored_bytes,
    waited_before_ms,
)
from rlm.policy.view import AttemptFailure, PartitionView, PolicyLimits
from rlmm.events.pause import PausableTask
from rlmm.events.policy import PolicyState
from rsm.segment.offload_settings import OffloadMode, OffloadSettings
from tests.metadata_builder import DELETE_STARTED, STARTED
from tests.unit.rlm.policy.views import NOW_MS, POLICY, THEM, Given, remote, stored_up_to

ROLLOVER_MS = 5_000
STREAMED = replace(
    POLICY,
    offload_mode=OffloadMode.STREAM,
    offload_segment_max_bytes=3_000,
    offload_segment_rollover_ms=ROLLOVER_MS,
)
LIMITS = OffloadSettings(
    mode=OffloadMode.STREAM, segment_max_bytes=3_000, segment_rollover_ms=ROLLOVER_MS
)
GIVEN = Given(policy=STREAMED)
PERMIT = StreamPermit(
    begin_offset=100, limits=replace(LIMITS, segment_max_bytes=1 << 30), requested_offset=0
)


def files_from(log: LocalLog, offset: int) -> list[LogFileSize]:
    """Return the files of a log, from the one that contains the offset on."""
    files = [
        *((each.file_base_offset, each.size_bytes) for each in log.rolled),
        (log.active_base_offset, log.active_size_bytes),
    ]
    first = max(0, sum(base <= offset for base, _ in files) - 1)
    return [LogFileSize(base_offset=base, size_bytes=size) for base, size in files[first:]]


def view(given: Given = GIVEN) -> PartitionView:
    return given.view()


def test_permit_when_nothing_is_stored_then_from_the_local_start_and_no_copies() -> None:
    found = view(replace(GIVEN, local_start=200, log_start=200))

    assert stream_permit(found) == StreamPermit(begin_offset=200, limits=LIMITS)
    assert copy_candidates(found) == ()
    assert plan(found).stream == stream_permit(found)


def test_permit_when_a_part_is_stored_then_from_its_end_even_within_a_file() -> None:
    found = stream_permit(view(replace(GIVEN, segments=(remote(0, 450),))))

    assert found is not None
    assert found.begin_offset == 450


def test_permit_when_records_are_stored_above_a_hole_then_up_to_them() -> None:
    segments = (remote(0, 100), remote(300, 400), remote(600, 700))

    found = stream_permit(view(replace(GIVEN, segments=segments)))

    assert found is not None
    assert (found.begin_offset, found.stored_from_offset) == (100, 300)


def test_permit_when_the_manager_streams_then_topics_without_a_mode_too() -> None:
    limits = PolicyLimits(offload=LIMITS)

    assert stream_permit(view(Given(limits=limits))) == StreamPermit(begin_offset=0, limits=LIMITS)
    own = replace(POLICY, offload_mode=OffloadMode.SEGMENT)
    assert stream_permit(view(Given(limits=limits, policy=own))) is None


@pytest.mark.parametrize(
    "found",
    [
        view(Given()),
        view(replace(GIVEN, owner=THEM)),
        view(replace(GIVEN, policy=replace(STREAMED, state=PolicyState.DISABLED))),
        replace(view(), paused=frozenset({PausableTask.COPY})),
        replace(view(), is_store_reachable=False),
        replace(view(), untierable="compacted"),
    ],
)
def test_permit_when_copies_are_forbidden_then_none(found: PartitionView) -> None:
    assert stream_permit(found) is None


def test_permit_when_a_stream_of_an_earlier_leader_is_open_then_waits_until_it_is_fenced() -> None:
    """PIP-76: when the next segment begins, nobody can end the earlier one any more."""
    started = remote(100, 101, state=STARTED, writer=THEM, size=0, copy_deadline_ms=NOW_MS)
    opened = replace(started, metadata=replace(started.metadata, is_open=True))
    fenced = replace(started, metadata=replace(started.metadata, state=DELETE_STARTED))
    stored = remote(0, 100)

    assert stream_permit(view(replace(GIVEN, segments=(stored, opened)))) is None
    assert stream_permit(view(replace(GIVEN, segments=(stored, fenced)))) is not None


def test_permit_when_tiering_ends_then_streams_to_the_end() -> None:
    found = view(replace(GIVEN, policy=replace(STREAMED, state=PolicyState.DISABLING)))

    assert stream_permit(found) is not None


def test_copy_blocked_when_streams_fail_then_says_so_though_nothing_is_rolled() -> None:
    failure = AttemptFailure(error="e", cause="c", is_corrupt=False, attempts=2)
    given = replace(GIVEN, rolled=(), segments=stored_up_to(1000))

    found = replace(given, local_start=1000).view()

    blocked = copy_blocked(replace(found, copy_failure=failure))

    assert blocked is not None
    assert (blocked.reason, blocked.values["base_offset"]) == ("failing", 1000)


def test_copy_blocked_when_a_copy_lag_is_set_then_streams_ignore_it() -> None:
    lagging = replace(STREAMED, copy_lag_ms=-1, local_retention_ms=-1)

    assert copy_blocked(view(replace(GIVEN, policy=lagging))) is None


def test_active_bytes_when_a_streamed_segment_reaches_into_them_then_count_once() -> None:
    found = view(replace(GIVEN, segments=(remote(0, 1020, size=10_300),)))

    assert found.active_unstored_bytes == 0


def test_offload_when_requested_then_all_committed_records_below_it() -> None:
    found = view()
    state = replace(found.state, offload_requested_offset=1040)

    assert offload_end_offset(replace(found, state=state)) == 1040
    beyond = replace(found.state, offload_requested_offset=5_000)
    assert offload_end_offset(replace(found, state=beyond)) == 1050


FINISHED_AT_450 = remote(0, 450, changed_ms=NOW_MS - 3_000)


@pytest.mark.parametrize(
    ("given", "waited_ms"),
    [
        (replace(GIVEN, segments=(FINISHED_AT_450,)), 3_000),
        (replace(GIVEN, segments=(remote(0, 450, changed_ms=NOW_MS - 9_000),)), ROLLOVER_MS),
        (replace(GIVEN, segments=(FINISHED_AT_450,), broker_ms=NOW_MS - 3_001), 0),
        # Of two segments that end there, the one that finished first counts.
        (replace(GIVEN, segments=(FINISHED_AT_450, remote(400, 450, changed_ms=NOW_MS))), 3_000),
        # A segment that does not end at the begin shows nothing about the age.
        (replace(GIVEN, segments=(remote(500, 600, changed_ms=NOW_MS),)), ROLLOVER_MS),
        (replace(GIVEN, segments=(remote(0, 450, state=STARTED, changed_ms=NOW_MS),)), ROLLOVER_MS),
        (GIVEN, ROLLOVER_MS),
        (replace(GIVEN, log_start=None), 0),
        (Given(segments=(FINISHED_AT_450,)), 0),
    ],
)
def test_wait_when_the_process_is_new_then_counts_from_the_segment_before_within_limits(
    given: Given, waited_ms: int
) -> None:
    assert waited_before_ms(given.view()) == waited_ms


@pytest.mark.parametrize(
    ("end", "unstored", "waited_ms", "requested", "reason"),
    [
        (100, OPEN_BYTES, ROLLOVER_MS, 500, None),
        (101, 0, 0, 0, None),
        (101, (8 << 20) - 1, ROLLOVER_MS - 1, 100, None),
        (101, 8 << 20, 0, 0, DueReason.SIZE),
        (101, 0, ROLLOVER_MS, 0, DueReason.TIME),
        (101, 0, 0, 101, DueReason.REQUESTED),
        (101, 0, 0, 102, None),
        (101, 0, ROLLOVER_MS, 102, DueReason.TIME),
    ],
)
def test_stream_when_records_wait_then_due_by_size_time_or_request(
    end: int, unstored: int, waited_ms: int, requested: int, reason: DueReason | None
) -> None:
    found = due_because(
        replace(PERMIT, requested_offset=requested),
        begin_offset=100,
        committed_end_offset=end,
        unstored_bytes=unstored,
        waited_ms=waited_ms,
    )

    assert found is reason


@pytest.mark.parametrize(
    ("unstored", "waited_ms", "reason"),
    [
        ((1 << 30) - 1, ROLLOVER_MS - 1, None),
        (1 << 30, 0, DueReason.SIZE),
        (1, ROLLOVER_MS, DueReason.TIME),
    ],
)
def test_stream_when_none_is_free_then_due_at_its_time_or_with_a_full_segment(
    unstored: int, waited_ms: int, reason: DueReason | None
) -> None:
    found = due_because(
        PERMIT,
        begin_offset=100,
        committed_end_offset=101,
        unstored_bytes=unstored,
        waited_ms=waited_ms,
        is_any_free=False,
    )

    assert found is reason


def test_stream_when_segments_are_small_then_due_at_their_size() -> None:
    small = StreamPermit(begin_offset=0, limits=LIMITS)

    found = due_because(
        small, begin_offset=0, committed_end_offset=1, unstored_bytes=3_000, waited_ms=0
    )

    assert found is DueReason.SIZE


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (LogPosition(offset=0), 10_500),
        (LogPosition(offset=900), 1_500),
        (LogPosition(offset=950), 500),
        (LogPosition(offset=1050), 0),
        (LogPosition(offset=950, file_base_offset=900, position=700), 800),
        (LogPosition(offset=1000, file_base_offset=900, position=1000), 500),
        (LogPosition(offset=1000, file_base_offset=1000, position=600), 0),
        (LogPosition(offset=1050, file_base_offset=1000, position=480), 20),
    ],
)
def test_unstored_bytes_when_the_position_is_known_then_from_there_else_the_files_above(
    position: LogPosition, expected: int
) -> None:
    files = files_from(Given().view().local, position.offset)

    assert unstored_bytes(files, counted_from(files, position)) == expected


def test_unstored_bytes_when_the_file_grows_from_an_unknown_position_then_what_it_grew_by() -> None:
    log = Given().view().local
    counted = counted_from(files_from(log, 1040), LogPosition(offset=1040))
    longer = replace(log, active_size_bytes=log.active_size_bytes + 70)

    assert unstored_bytes(files_from(longer, 1040), counted) == 70


def test_unstored_bytes_when_the_position_is_below_all_files_then_all_of_them() -> None:
    """The stream's position was deleted from the broker's log meanwhile."""
    found = Given().view().local
    shorter = replace(found, rolled=found.rolled[1:])

    assert unstored_bytes(files_from(shorter, 0), LogPosition(offset=0)) == 9_500


@pytest.mark.parametrize(
    ("rollover_ms", "interval_ms"),
    [(1_000, 200), (5_004, 1_000), (10_009, 2_001), (60_000, 5_000)],
)
def test_look_interval_when_of_a_rollover_then_a_fifth_in_whole_milliseconds(
    rollover_ms: int, interval_ms: int
) -> None:
    found = check_interval_ms(rollover_ms)

    assert (found, type(found)) == (interval_ms, int)


@pytest.mark.parametrize(
    ("grown_bytes", "during_ms", "interval_ms"),
    [
        (0, 1_000, 1_000),
        (OPEN_BYTES, 1_000, 1_000),
        (OPEN_BYTES - 1, 1_000, 1_000),
        (4 * OPEN_BYTES, 1_000, 250),
        (4 * OPEN_BYTES, 600, 150),
        (100 * OPEN_BYTES, 1_000, 50),
        (1, 0, 50),
    ],
)
def test_look_interval_when_a_log_grows_fast_then_as_long_as_a_part_takes(
    grown_bytes: int, during_ms: int, interval_ms: int
) -> None:
    assert check_interval_ms(5_000, grown_bytes=grown_bytes, during_ms=during_ms) == interval_ms


@given(st.integers(1_000, 10**9))
def test_look_interval_when_of_any_rollover_then_a_fifth_within_bounds(rollover_ms: int) -> None:
    found = check_interval_ms(rollover_ms)

    assert 200 <= found <= 5_000
    assert found <= rollover_ms / 5 or found == 200
