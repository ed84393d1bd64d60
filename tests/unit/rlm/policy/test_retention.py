from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.policy.plan import plan
from rlm.policy.retention import expiry_cut, log_pieces
from rlm.policy.view import PolicyLimits
from rlmm.events.policy import PolicyState
from rlmm.events.registration import AppliedPosition, ProcessRegistered, ProcessRole
from rlmm.positions import MetadataPosition
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from tests.unit.rlm.policy.views import (
    HOUR_MS,
    NOW_MS,
    THEM,
    Given,
    local,
    policy,
    remote,
    stored_up_to,
)


def _cut(given: Given) -> int | None:
    cut = expiry_cut(given.view())
    return None if cut is None else cut.offset


AGEING = Given(
    segments=tuple(
        remote(s, s + 100, age_ms=(10 - s // 100) * HOUR_MS) for s in range(0, 1000, 100)
    ),
    rolled=(local(900, 1000),),
    local_start=900,
)


def test_expiry_when_older_than_limit_then_oldest_first_up_to_the_first_younger() -> None:
    """Scenario 67."""
    given = replace(AGEING, policy=policy(retention_ms=7 * HOUR_MS + HOUR_MS // 2))
    assert _cut(given) == 300


def test_expiry_when_exactly_at_limit_then_kept() -> None:
    """Scenario 69: Kafka's local rule is strict, and it is the only rule."""
    given = replace(AGEING, policy=policy(retention_ms=10 * HOUR_MS))
    assert _cut(given) is None


def test_expiry_when_a_younger_segment_lies_before_older_ones_then_ends_there() -> None:
    segments = (remote(0, 100, age_ms=0), remote(100, 200, age_ms=9 * HOUR_MS))
    given = Given(segments=segments, policy=policy(retention_ms=HOUR_MS))
    assert _cut(given) is None


def test_expiry_when_a_younger_segment_is_stored_in_part_then_ends_before_it() -> None:
    """Scenario 67: expiry does not pass a segment of which another one has only a part."""
    given = Given(
        segments=(remote(0, 150, age_ms=9 * HOUR_MS),),
        rolled=(local(100, 200, age_ms=0), local(200, 300, age_ms=9 * HOUR_MS)),
        local_start=100,
        policy=policy(retention_ms=HOUR_MS),
    )
    assert _cut(given) == 150


def test_expiry_when_record_time_is_in_the_future_then_kept() -> None:
    """Scenario 101."""
    given = Given(segments=(remote(0, 100, age_ms=-HOUR_MS),), policy=policy(retention_ms=0))
    assert _cut(given) is None


def test_expiry_when_over_size_then_what_is_left_is_at_least_the_limit() -> None:
    """Scenario 68: ten stored segments of 1000 bytes, an active one of 500."""
    given = replace(AGEING, policy=policy(retention_bytes=7_600))
    assert _cut(given) == 200


def test_expiry_when_local_and_remote_overlap_then_each_offset_counts_once() -> None:
    """Scenario 68."""
    given = Given(segments=stored_up_to(1000), policy=policy(retention_bytes=10_500))
    assert _cut(given) is None


def test_expiry_when_a_range_is_stored_twice_then_counts_once() -> None:
    """Scenario 6."""
    given = Given(segments=(*stored_up_to(1000), remote(0, 100, writer=THEM, number=1)))
    assert len(log_pieces(given.view())) == 10


def test_expiry_when_copy_is_only_started_then_not_counted() -> None:
    """Scenario 71."""
    started = remote(1000, 1100, state=SegmentState.COPY_SEGMENT_STARTED)
    given = replace(
        AGEING, segments=(*AGEING.segments, started), policy=policy(retention_bytes=10_500)
    )
    assert _cut(given) is None


def test_expiry_when_local_data_is_not_stored_then_it_expires_too() -> None:
    """R10: the broker's own retention is off."""
    given = Given(
        rolled=(local(0, 100, age_ms=9 * HOUR_MS), local(100, 200)),
        policy=policy(retention_ms=2 * HOUR_MS),
    )
    assert _cut(given) == 100


def test_expiry_when_claim_is_another_managers_then_nothing() -> None:
    """Scenario 35, 70: no decision before the manager has read its own claim back."""
    given = replace(AGEING, owner=THEM, policy=policy(retention_ms=0))
    assert _cut(given) is None


def test_expiry_when_broker_lost_data_then_nothing() -> None:
    """R5."""
    given = replace(AGEING, high_watermark=500, policy=policy(retention_ms=0))
    assert _cut(given) is None


def test_expiry_when_above_high_watermark_then_cut_at_it() -> None:
    given = Given(
        rolled=(local(0, 100, age_ms=9 * HOUR_MS),),
        high_watermark=60,
        policy=policy(retention_ms=HOUR_MS),
    )
    assert _cut(given) == 60


def test_expiry_when_disabled_and_remote_is_kept_then_continues_below_local_start() -> None:
    """Scenario 77: the local log is the broker's own again."""
    disabled = policy(state=PolicyState.DISABLED, retention_ms=0)
    assert _cut(replace(AGEING, policy=disabled)) == 900


def test_expiry_when_disabled_and_remote_is_deleted_then_log_start_moves_to_local_start() -> None:
    """Scenario 77."""
    disabled = policy(state=PolicyState.DISABLED, delete_remote=True)
    assert _cut(replace(AGEING, policy=disabled)) == 900


def test_plan_when_expiry_is_due_then_log_start_moves_and_nothing_is_deleted_yet() -> None:
    """Scenario 67, R2: deletions are decided on the accepted log start only."""
    decided = plan(replace(AGEING, policy=policy(retention_ms=HOUR_MS)).view())
    assert decided.log_start is not None
    assert decided.deletions == ()


def test_plan_when_log_start_moved_then_segments_wholly_below_go_oldest_first() -> None:
    """Scenarios 67, 113: the segment that contains the log start stays."""
    decided = plan(replace(AGEING, log_start=250).view())
    assert [d.record.metadata.offsets.start_offset for d in decided.deletions] == [0, 100]


def test_plan_when_local_start_is_below_log_start_then_local_log_is_trimmed_first() -> None:
    """R2: log start, then the local log, then objects."""
    decided = plan(
        Given(
            segments=stored_up_to(1000), log_start=200, policy=policy(local_retention_ms=-1)
        ).view()
    )
    assert decided.trim.offset == 200
    assert decided.deletions == ()


def test_plan_when_tiering_begins_then_log_start_is_fixed_at_local_start() -> None:
    """Scenario 4, 23."""
    decided = plan(Given(log_start=None, local_start=150, checkpoint=Lineage.of((0, 150))).view())
    assert decided.log_start is not None
    assert decided.log_start.offset == 150


def test_plan_when_somebody_moved_the_local_start_then_remote_start_stays() -> None:
    """R6: the manager reports it, and guesses no log start."""
    view = replace(AGEING, local_start=950, log_start=0, trimmed=900).view()
    assert view.has_external_start
    assert plan(view).log_start is None


@pytest.mark.parametrize("in_flight", [True, False])
def test_plan_when_own_copy_is_started_then_deleted_only_if_not_in_flight(
    *, in_flight: bool
) -> None:
    """Scenario 10."""
    started = remote(0, 100, state=SegmentState.COPY_SEGMENT_STARTED)
    ids = frozenset({started.metadata.segment_id.id}) if in_flight else frozenset()
    decided = plan(Given(segments=(started,), in_flight=ids).view())
    assert bool(decided.deletions) is not in_flight


@pytest.mark.parametrize(("broker_ms", "expected"), [(999, 0), (1000, 0), (1001, 1)])
def test_plan_when_another_brokers_copy_is_started_then_deleted_after_its_deadline(
    broker_ms: int, expected: int
) -> None:
    """Scenario 5: a deposed leader may finish its copy."""
    started = remote(
        0, 100, state=SegmentState.COPY_SEGMENT_STARTED, writer=THEM, copy_deadline_ms=1000
    )
    decided = plan(Given(segments=(started,), broker_ms=broker_ms).view())
    assert len(decided.deletions) == expected


def test_plan_when_deletion_was_started_then_it_is_finished() -> None:
    started = remote(0, 100, state=SegmentState.DELETE_SEGMENT_STARTED)
    assert len(plan(Given(segments=(started,)).view()).deletions) == 1


def test_plan_when_deletion_is_a_dead_letter_then_it_is_left_to_repair() -> None:
    """Scenario 73."""
    buried = remote(0, 100, state=SegmentState.DELETE_SEGMENT_STARTED, is_dead_lettered=True)
    assert plan(Given(segments=(buried,)).view()).deletions == ()


@pytest.mark.parametrize(("broker_ms", "expected"), [(86_402_000, 0), (86_402_001, 1)])
def test_plan_when_deleted_then_forgotten_only_past_deadline_and_grace(
    broker_ms: int, expected: int
) -> None:
    """R11."""
    gone = remote(
        0, 100, state=SegmentState.DELETE_SEGMENT_FINISHED, copy_deadline_ms=2000, changed_ms=1000
    )
    assert len(plan(Given(segments=(gone,), broker_ms=broker_ms).view()).purges) == expected


def test_plan_when_claim_is_another_managers_then_no_action_at_all() -> None:
    """R7."""
    decided = plan(replace(AGEING, owner=THEM, log_start=500).view())
    assert (decided.copies, decided.log_start, decided.deletions, decided.purges) == (
        (),
        None,
        (),
        (),
    )
    assert decided.trim.offset is None


EXPIRED = replace(AGEING, policy=policy(retention_ms=HOUR_MS // 2))


@pytest.mark.parametrize(("percent", "expected"), [(1, 100), (25, 200), (50, 500), (100, 1000)])
def test_expiry_when_much_is_over_then_a_share_of_the_segments_expires_in_one_cycle(
    percent: int, expected: int
) -> None:
    """Ten segments are too old. At least one expires in each cycle, so expiry comes to an end."""
    given = replace(EXPIRED, limits=PolicyLimits(expiry_max_percent=percent))
    assert _cut(given) == expected


def test_expiry_when_a_share_has_expired_then_the_rest_is_shown() -> None:
    blocked = plan(
        replace(EXPIRED, limits=PolicyLimits(expiry_max_percent=30)).view()
    ).expiry_blocked
    assert blocked is not None
    assert blocked.reason == "share_per_cycle"
    assert blocked.values["waiting_segments"] == 7


def test_expiry_when_the_managers_clock_is_far_ahead_then_the_brokers_clock_decides() -> None:
    """Scenario 101: a clock that jumps forward by hours expires nothing."""
    given = replace(
        AGEING, policy=policy(retention_ms=12 * HOUR_MS), broker_ms=NOW_MS - 5 * HOUR_MS
    )
    believed = replace(given, policy=policy(retention_ms=4 * HOUR_MS))
    assert (_cut(given), _cut(believed)) == (None, 200)


GATEWAY = ProcessRegistered(
    event_id=UUID(int=1),
    process_id=UUID(int=1),
    role=ProcessRole.GATEWAY,
    broker_id=1,
    http_address="",
    heartbeat_interval_ms=5_000,
    version="0",
    gateway_address="gateway:9092",
    applied=(AppliedPosition(partition=0, offset=7),),
)


@pytest.mark.parametrize(("offset", "goes"), [(6, True), (7, False)])
def test_plan_when_a_gateway_does_not_know_of_a_deletion_then_its_objects_wait(
    offset: int, *, goes: bool
) -> None:
    """R15: otherwise the gateway would read them, and report them as missing."""
    started = remote(
        0,
        100,
        state=SegmentState.DELETE_SEGMENT_STARTED,
        changed_at=MetadataPosition(partition=0, offset=offset),
    )
    decided = plan(Given(segments=(started,), gateways=(GATEWAY,)).view())
    assert bool(decided.deletions) is goes
    assert (decided.expiry_blocked is None) is goes
