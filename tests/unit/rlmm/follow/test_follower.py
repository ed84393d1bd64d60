from __future__ import annotations

import pytest

from rlmm.codec import encode
from rlmm.follow.follower import DELETE_RETENTION_MS
from rlmm.spi import PartitionKey
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.metadata import SegmentState
from tests.follower_world import SETTINGS, World
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    OWNER,
    claim,
    registration,
    segment_metadata,
    step,
)

SEGMENT = segment_metadata()


def test_follower_when_new_then_is_ready_once_all_that_was_there_is_applied() -> None:
    """Scenario 35: ready means up to the end seen at the start."""
    world = World()
    world.write(step(SEGMENT, FINISHED))

    world.step()
    before = world.ready
    world.step()

    assert (before, world.ready) == (False, True)
    assert world.cache.segment(SEGMENT.segment_id) is not None


def test_segment_when_deleted_and_forgotten_in_one_batch_then_its_partition_has_changed() -> None:
    """A process that caches data made from a partition's metadata learns of all changes."""
    world = World()
    world.write(claim(), step(SEGMENT, FINISHED))
    world.step(2)
    before = world.cache.changes.since(0)
    deletion = step(SEGMENT, DELETE_STARTED, by=OWNER, expected_state=FINISHED)
    world.write(deletion, step(SEGMENT, DELETE_FINISHED))
    for record in world.log.records(0)[1:]:
        world.log.append(0, record.key, None)

    world.step()

    changed = world.cache.changes.since(before.count)
    assert world.cache.segments(ORDERS, states=list(SegmentState)) == []
    assert changed.partition_keys == frozenset({PartitionKey(ORDERS.topic_id, ORDERS.partition)})


def test_follower_when_the_topic_is_unreachable_at_start_then_recovers_by_itself() -> None:
    """Scenario 33: it starts degraded, with the reason, and retries after growing pauses."""
    world = World()
    world.topic.ensure_error = RetriableError("no broker")
    pauses = world.step(9)
    reason = world.follower.readiness.reason
    world.topic.ensure_error = None

    world.step(2)

    assert pauses == [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]
    assert "no broker" in reason
    assert world.ready


def test_follower_when_the_topic_has_a_wrong_shape_then_says_so_until_repaired() -> None:
    """Scenario 40."""
    world = World()
    world.topic.ensure_error = InvalidConfigError("wrong shape", setting="replication.factor")
    world.step()
    reason = world.follower.readiness.reason
    world.topic.ensure_error = None

    world.step(2)

    assert "replication.factor" in reason
    assert world.ready


def test_follower_when_reading_fails_then_stays_ready_and_loses_no_record() -> None:
    """Scenario 34: known records stay valid while the topic cannot be reached."""
    world = World()
    world.step(2)
    world.write(step(SEGMENT, FINISHED))
    world.topic.poll_error = RetriableError("no broker")
    world.step()
    ready = world.ready
    world.topic.poll_error = None

    world.step()

    assert ready
    assert world.cache.segment(SEGMENT.segment_id) is not None


def test_follower_when_no_records_arrive_between_two_checks_then_reads_again() -> None:
    """A client may stop fetching without an error when a leader fails."""
    world = World()
    world.step(2)
    world.topic.is_stalled = True
    world.write(step(SEGMENT, FINISHED))
    found = []
    for _ in range(2):
        world.clock.sleep_ms(SETTINGS.check_interval_ms)
        world.step(3)
        found.append(world.cache.segment(SEGMENT.segment_id) is not None)

    assert found == [False, True]


def test_follower_when_restarted_then_continues_where_it_was() -> None:
    world = World()
    world.write(step(SEGMENT, FINISHED))
    world.step(2)

    world.restart()
    world.step(2)

    assert world.ready
    assert world.counts == {"applied": 0, "rebuilds": 0}
    assert world.cache.segment(SEGMENT.segment_id) is not None


def test_follower_when_the_topic_was_recreated_meanwhile_then_rebuilds() -> None:
    """Scenarios 37, 38: nothing of the old topic is merged."""
    world = World()
    world.write(step(SEGMENT, FINISHED))
    world.step(2)
    world.log.recreate("topic-2")
    other = segment_metadata(2)
    world.write(step(other, FINISHED))

    world.restart()
    world.step(2)

    assert world.counts == {"applied": 1, "rebuilds": 1}
    assert world.store.kept == ["topic-1"]
    assert [r.metadata.segment_id for r in world.cache.segments(ORDERS)] == [other.segment_id]


def test_follower_when_the_topic_is_recreated_under_it_then_rebuilds() -> None:
    """Scenario 37, while running, with as many records as were read before."""
    world = World()
    world.write(step(SEGMENT, FINISHED))
    world.step(2)
    world.log.recreate("topic-2")
    world.write(registration())
    world.clock.now_ms += SETTINGS.check_interval_ms

    world.step(3)

    assert world.counts["rebuilds"] == 1
    assert world.cache.segments(ORDERS) == []


def test_follower_when_the_topic_shrank_under_it_then_rebuilds() -> None:
    world = World()
    world.write(step(SEGMENT, FINISHED))
    world.step(2)
    world.log.recreate("topic-1")

    world.step(3)

    assert world.ready
    assert world.counts["rebuilds"] == 1
    assert world.cache.segments(ORDERS) == []


def test_follower_when_away_for_half_of_delete_retention_then_rebuilds() -> None:
    """R12: tombstones may have been written and forgotten meanwhile."""
    world = World()
    event = step(SEGMENT, FINISHED)
    world.write(event)
    world.step(2)
    world.log.append(0, encode(event).key, None)
    world.log.compact(0, 2, drop_tombstones=True)
    world.clock.now_ms += DELETE_RETENTION_MS // 2 + 1

    world.restart()
    world.step(2)

    assert world.counts["rebuilds"] == 1
    assert world.cache.segments(ORDERS) == []


def test_follower_when_its_own_clock_is_wrong_then_the_brokers_time_counts() -> None:
    """R12: by broker time."""
    world = World()
    world.write(step(SEGMENT, FINISHED))
    world.step(2)
    left_ms = world.clock.now_ms
    world.clock.now_ms += DELETE_RETENTION_MS
    world.write(registration())
    world.clock.now_ms = left_ms

    world.restart()
    world.step(4)

    assert world.ready
    assert world.counts["rebuilds"] == 1


def test_follower_when_a_record_is_bad_then_counts_it_and_continues() -> None:
    world = World()
    world.log.append(0, b"\x01short", b"value")
    world.log.append(0, b"\x7fof a newer version", b"value")
    world.write(step(SEGMENT, FINISHED))

    world.step(2)

    metrics = world.follower.metrics()
    assert metrics.skipped_events_count == {"corrupt": 1, "unsupported": 1}
    assert metrics.applied_events_count == 1
    assert world.ready


@pytest.mark.parametrize(("events", "expected"), [(2, []), (3, [True, False])])
def test_follower_when_much_is_missing_at_first_then_the_cache_knows_until_it_is_ready(
    events: int, expected: list[bool]
) -> None:
    world = World()
    world.write(*[registration() for _ in range(events)])

    world.step(2)

    assert world.ready
    assert world.store.expected == expected


def test_follower_when_the_cache_fails_meanwhile_then_it_is_notified_again() -> None:
    """A reopened store has lost its bulk mode."""
    world = World()
    world.write(*[registration() for _ in range(3)])
    world.step()
    world.store.disk_full = True
    world.step()
    world.store.disk_full = False

    world.step(2)

    assert world.ready
    assert world.store.expected == [True, True, False]
