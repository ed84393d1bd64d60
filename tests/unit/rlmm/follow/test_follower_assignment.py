from __future__ import annotations

from rlmm.cache.ordered_store import Table
from rlmm.codec import FOLD_VERSION, encode
from rlmm.events.event import Event
from rlmm.events.policy import topic_policies
from rlmm.partitioner import event_partition
from rlmm.positions import TopicIdentity
from rlmm.proto import events_pb2 as pb
from tests.folding import contents
from tests.follower_world import SETTINGS, World
from tests.hosted_partitions import stored, user_partitions
from tests.metadata_builder import claim, policy, segment_id, trim

COUNT = 3
(ONE,), (TWO,) = (user_partitions(number, COUNT) for number in (1, 2))


def new_world() -> World:
    return World(partition_count=COUNT, follows_all=False)


def write(world: World, *events: Event) -> None:
    for event in events:
        record = encode(event)
        world.log.append(event_partition(event, COUNT), record.key, record.value)


def test_follower_when_nothing_is_hosted_then_follows_the_cluster_partition_only() -> None:
    world = new_world()
    write(world, policy(), stored(ONE))

    world.step(3)

    assert world.ready
    assert world.follower.caught_up.keys() == {0}
    assert len(topic_policies(world.cache)) == 1
    assert world.cache.segments(ONE) == []


def test_partition_when_hosted_later_then_answers_once_caught_up() -> None:
    """Scenario 35: up to the end as of the assignment; the rest of the process continues."""
    world = new_world()
    write(world, *(stored(ONE, number) for number in range(1, 9)))
    world.step(3)

    world.assignment.add([ONE])
    world.step()
    before = world.follower.caught_up.keys()
    world.step()

    assert before == {0}
    assert world.follower.caught_up.keys() == {0, 1}
    assert len(world.cache.segments(ONE)) == 8


def test_partition_when_hosted_later_and_much_is_missing_then_the_cache_knows_meanwhile() -> None:
    """A process begins with the cluster's metadata partition alone, even if its cache is lost."""
    world = new_world()
    write(world, *(stored(ONE, number) for number in range(1, 4)))
    world.step(3)
    ready = world.ready

    world.assignment.add([ONE])
    world.step()
    meanwhile = list(world.store.expected)
    world.step()

    assert ready
    assert (meanwhile, world.store.expected) == ([True], [True, False])


def test_partition_when_dropped_while_much_is_missing_then_the_cache_knows_no_longer() -> None:
    world = new_world()
    write(world, *(stored(ONE, number) for number in range(1, 4)))
    world.step(3)
    world.assignment.add([ONE])
    world.step()

    world.assignment.remove([ONE])
    world.step()

    assert world.store.expected == [True, False]


def test_partition_when_hosted_no_longer_then_nothing_of_it_is_left() -> None:
    world = new_world()
    world.assignment.add([ONE, TWO])
    world.step(2)
    write(world, claim(partition=ONE), stored(ONE), stored(TWO), trim(1), policy())
    world.step(2)

    world.assignment.remove([ONE])
    world.step()

    assert world.follower.caught_up.keys() == {0, 2}
    assert world.cache.segments(ONE) == []
    assert world.cache.positions().keys() == {0, 2}
    only_two = new_world()
    only_two.log = world.log
    only_two.restart()
    only_two.assignment.add([TWO])
    only_two.step(4)
    assert contents(world.store) == contents(only_two.store)


def test_metadata_partition_when_another_of_its_partitions_is_hosted_then_is_kept() -> None:
    one, other = user_partitions(1, COUNT, 2)
    world = new_world()
    write(world, stored(one), stored(other))
    world.assignment.add([one, other])
    world.step(3)

    world.assignment.remove([one])
    world.step()

    assert len(world.cache.segments(other)) == 1
    assert world.follower.caught_up.keys() == {0, 1}


def test_partition_when_hosted_again_then_is_read_from_its_beginning() -> None:
    """Data that was dropped is not merged with records that are read again."""
    world = new_world()
    write(world, stored(ONE))
    world.assignment.add([ONE])
    world.step(3)
    world.assignment.remove([ONE])
    world.step()
    write(world, stored(ONE, 2))

    world.assignment.add([ONE])
    world.step(3)

    assert len(world.cache.segments(ONE)) == 2
    assert world.counts == {"applied": 3, "rebuilds": 0}


def test_follower_when_restarted_then_continues_with_its_partitions_until_assigned_others() -> None:
    world = new_world()
    world.assignment.add([ONE, TWO])
    write(world, stored(ONE), stored(TWO))
    world.step(3)

    world.restart()
    world.step(2)
    held = set(world.follower.caught_up)
    world.assignment.add([ONE])
    world.step(2)

    assert (held, set(world.follower.caught_up)) == ({0, 1, 2}, {0, 1})
    assert world.counts == {"applied": 0, "rebuilds": 0}
    assert len(world.cache.segments(ONE)) == 1
    assert world.store.get(Table.CHECKPOINT, b"p\0\0\0\2") is None


def test_partition_when_its_end_cannot_be_asked_then_the_others_are_followed_on() -> None:
    world = new_world()
    world.assignment.add([ONE])
    world.step(2)
    world.topic.unknown_ends = frozenset({2})
    world.assignment.add([TWO])
    write(world, stored(ONE), stored(TWO))
    world.step(3)
    before = (len(world.cache.segments(ONE)), world.ready, set(world.follower.caught_up))
    world.topic.unknown_ends = frozenset()
    world.clock.now_ms += SETTINGS.retry_backoff_max_ms

    world.step(4)

    assert before == (1, True, {0, 1})
    assert world.follower.caught_up.keys() == {0, 1, 2}
    assert len(world.cache.segments(TWO)) == 1


def test_partition_when_the_cache_is_started_again_then_does_not_answer_meanwhile() -> None:
    """Scenario 37: an empty cache must not look like an empty store."""
    world = new_world()
    world.assignment.add([ONE])
    world.step(2)
    write(world, stored(ONE))
    world.log.recreate("topic-2")
    write(world, stored(ONE))
    world.clock.now_ms += SETTINGS.check_interval_ms

    world.step(2)
    meanwhile = set(world.follower.caught_up)
    world.step()

    assert meanwhile == set()
    assert world.follower.caught_up.keys() == {0, 1}


def test_dropped_partition_when_its_drop_fails_then_does_not_answer_and_is_dropped_later() -> None:
    world = new_world()
    world.assignment.add([ONE])
    write(world, stored(ONE))
    world.step(3)
    world.store.disk_full = True
    world.assignment.remove([ONE])
    world.step()
    meanwhile = set(world.follower.caught_up)
    world.store.disk_full = False

    world.step(3)

    assert meanwhile == {0}
    assert world.ready
    assert world.cache.segments(ONE) == []


def test_numbers_when_a_partition_is_followed_again_then_differ() -> None:
    """So a query can detect that the data was dropped during the query."""
    world = new_world()
    world.assignment.add([ONE])
    world.step(2)
    before = world.follower.caught_up[1]
    world.assignment.remove([ONE])
    world.step()
    world.assignment.add([ONE])

    world.step(2)

    assert world.follower.caught_up[1] != before
    assert world.follower.identity == TopicIdentity(
        cluster_id="memory", topic_id="topic-1", partition_count=COUNT
    )


def test_record_when_on_a_partition_that_is_not_its_own_then_changes_nothing() -> None:
    """Otherwise a process that follows only some partitions would have a different state."""
    world = World(partition_count=COUNT)
    newer = pb.MetadataEvent(min_fold_version=FOLD_VERSION + 1).SerializeToString()
    write(world, stored(ONE))
    for event in (stored(ONE, 2), policy()):
        record = encode(event)
        for value in (record.value, newer, None):
            world.log.append(2, record.key, value)
    write(world, stored(TWO))

    world.step(6)

    assert world.ready
    assert world.follower.metrics().skipped_events_count == {"misplaced": 6}
    assert [each.metadata.segment_id for each in world.cache.segments(ONE)] == [segment_id(1, ONE)]
    assert len(world.cache.segments(TWO)) == 1
    assert topic_policies(world.cache) == ()
    assert world.cache.newer_records_count() == 0
