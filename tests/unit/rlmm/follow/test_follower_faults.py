from __future__ import annotations

from rlmm.positions import TopicIdentity
from rlmm.record_keys import RecordKind, parse_record_key
from rlmm.spi import UnreadyReason
from rsm.segment.errors import RetriableError
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


def following() -> World:
    """A ready follower with one segment in its cache."""
    world = World()
    world.write(step(SEGMENT, FINISHED))
    world.step(2)
    assert world.ready
    return world


def test_topic_when_deleted_under_the_follower_then_is_not_created_again() -> None:
    """Scenario 37: every process would take an empty topic for the truth."""
    world = following()
    world.log.delete()

    world.step(5)

    assert "followed is gone" in world.follower.readiness.reason
    assert world.log.deleted
    assert world.cache.segment(SEGMENT.segment_id) is not None


def test_topic_when_deleted_before_the_start_then_is_not_created_again() -> None:
    """Scenario 37."""
    world = following()
    world.log.delete()

    world.restart()
    world.step(5)

    assert "followed is gone" in world.follower.readiness.reason
    assert world.log.deleted
    assert world.store.kept == []


def test_topic_when_never_followed_then_is_created() -> None:
    world = World()
    world.log.delete()

    world.step(2)

    assert world.ready
    assert not world.log.deleted


def test_topic_when_it_comes_back_with_another_id_then_the_old_cache_is_set_aside() -> None:
    """Scenario 37: rebuilt, not merged; the old data is kept aside."""
    world = following()
    world.log.delete()
    world.step(3)
    world.log.recreate("topic-2")

    world.step(3)

    assert world.ready
    assert world.store.kept == ["topic-1"]
    assert world.cache.segments(ORDERS) == []


def test_cache_when_of_another_cluster_then_is_set_aside() -> None:
    """Scenario 38."""
    world = World()
    world.cache.reset(TopicIdentity(cluster_id="other", topic_id="theirs", partition_count=1))

    world.step(2)

    assert world.ready
    assert world.store.kept == ["theirs"]


def test_cache_when_it_cannot_be_written_then_is_not_ready_and_shows_its_lag() -> None:
    world = following()
    world.store.disk_full = True
    world.write(registration(), step(segment_metadata(2), FINISHED))

    world.step()

    assert world.follower.readiness.reason == "the cache cannot be used: no space left"
    assert world.follower.metrics().lag_events_count == 2


def test_cache_when_it_cannot_be_written_for_long_then_the_lag_grows_and_pauses_too() -> None:
    world = following()
    world.store.disk_full = True
    world.write(registration())
    pauses = world.step(30)
    world.write(step(segment_metadata(2), FINISHED))

    world.step(3)

    assert not world.ready
    assert max(pauses) == SETTINGS.retry_backoff_max_ms
    assert world.follower.metrics().lag_events_count == 2


def test_cache_when_there_is_space_again_then_recovers_by_itself() -> None:
    world = following()
    world.store.disk_full = True
    world.write(step(segment_metadata(2), FINISHED))
    world.step(5)
    world.store.disk_full = False

    world.step(3)

    assert world.ready
    assert world.store.reopened_count >= 1
    assert len(world.cache.segments(ORDERS)) == 2
    assert world.counts == {"applied": 2, "rebuilds": 0}


def test_cache_when_damaged_then_answers_nothing_until_it_was_caught_up_with_again() -> None:
    """An empty cache must not answer that nothing is stored while the topic is unreachable."""
    world = following()
    world.store.damaged = True
    world.topic.ensure_error = RetriableError("unreachable")

    world.step(5)

    assert not world.ready
    assert world.cache.segments(ORDERS) == []
    assert world.follower.caught_up == {}
    world.topic.ensure_error = None
    world.step(5)
    assert world.ready
    assert world.follower.caught_up
    assert len(world.cache.segments(ORDERS)) == 1


def test_cache_when_unwritable_but_not_damaged_then_continues_answering() -> None:
    world = following()
    world.store.disk_full = True
    world.write(registration())

    world.step(5)

    assert not world.ready
    assert world.follower.caught_up


def test_topic_when_unreachable_for_long_then_what_its_cleaner_took_is_not_missed() -> None:
    """R12: meanwhile a segment was deleted, and compaction removed its tombstones."""
    world = World()
    world.write(claim(), step(SEGMENT, FINISHED))
    world.step(2)
    assert world.ready
    world.topic.poll_error = world.topic.ensure_error = RetriableError("unreachable")
    world.step(3)
    _delete_and_forget(world)
    world.step(3)
    world.topic.poll_error = world.topic.ensure_error = None

    world.step(6)

    assert world.ready
    assert world.counts["rebuilds"] == 1
    assert world.cache.segments(ORDERS) == []


def test_topic_when_unreachable_for_a_while_then_is_read_on() -> None:
    world = following()
    world.topic.poll_error = world.topic.ensure_error = RetriableError("unreachable")
    world.step(3)
    world.clock.now_ms += SETTINGS.delete_retention_ms // 3
    world.step(3)
    assert not world.ready
    world.topic.poll_error = world.topic.ensure_error = None

    world.step(6)

    assert world.ready
    assert world.counts["rebuilds"] == 0


def _delete_and_forget(world: World) -> None:
    """Delete the segment, and let time pass until the topic has nothing left of it."""
    world.clock.now_ms += 1_000
    deletion = step(SEGMENT, DELETE_STARTED, by=OWNER, expected_state=FINISHED)
    world.write(deletion, step(SEGMENT, DELETE_FINISHED))
    for record in world.log.records(0):
        if parse_record_key(record.key).kind is RecordKind.SEGMENT:
            world.log.append(0, record.key, None)
    world.clock.now_ms += SETTINGS.delete_retention_ms
    world.write(registration())
    world.log.compact(0, world.log.end_offset(0), drop_tombstones=True)


def test_topic_when_cut_and_written_again_under_the_follower_then_read_from_its_start() -> None:
    """Scenario 37, R12: the length is the same; the end of the leader epoch shows the change."""
    world = following()
    world.log.cut(0, 0)
    other = segment_metadata(2)
    world.write(step(other, FINISHED), registration())

    world.step(5)

    assert world.ready
    assert world.counts["rebuilds"] == 1
    assert world.store.kept == ["topic-1"]
    assert [r.metadata.segment_id for r in world.cache.segments(ORDERS)] == [other.segment_id]


def test_topic_when_cut_and_written_again_meanwhile_then_is_read_from_its_beginning() -> None:
    """Scenario 37, R12: found when reading on from the checkpoint."""
    world = following()
    world.log.cut(0, 0)
    world.write(registration(1), registration(2), registration(3))

    world.restart()
    world.step(5)

    assert world.ready
    assert world.counts == {"applied": 3, "rebuilds": 1}
    assert world.cache.segments(ORDERS) == []


def test_topic_when_cut_and_grown_to_the_same_length_then_nothing_old_is_ever_answered() -> None:
    """Scenario 37, R12: a checkpoint at the very end is confirmed before it is trusted."""
    world = following()
    world.log.cut(0, 0)
    world.write(registration())
    world.restart()
    seen = []

    for _ in range(4):
        world.step()
        seen.append((world.ready, 0 in world.follower.caught_up, world.counts["rebuilds"]))

    assert seen == [(False, False, 0), (False, False, 0), (False, False, 1), (True, True, 1)]


def test_topic_when_it_loses_only_what_was_not_read_then_nothing_is_rebuilt() -> None:
    world = following()
    world.write(registration())
    world.log.cut(0, 1)
    world.write(registration(2))

    world.step(3)

    assert world.ready
    assert world.counts == {"applied": 2, "rebuilds": 0}


def test_cache_when_the_disk_is_full_at_the_start_then_is_ready_once_there_is_space() -> None:
    """Scenario 98: the process starts degraded, with the reason."""
    world = World()
    world.write(step(SEGMENT, FINISHED))
    world.store.disk_full = True
    world.step(3)
    readiness = world.follower.readiness
    world.store.disk_full = False

    world.step(3)

    assert (readiness.is_ready, readiness.kind) == (False, UnreadyReason.CACHE)
    assert world.ready
    assert len(world.cache.segments(ORDERS)) == 1
