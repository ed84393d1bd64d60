"""A store without any of its recorded objects is the wrong one, or not mounted."""

from __future__ import annotations

from typing import NoReturn

import pytest

from rlm.tasks.context.store_witness import StoreWitness, WrongStoreError
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.storage.memory import MemoryChunkStorage
from tests.remote_world import TIP, WHOLE, RemoteWorld, segment_of


class AskedStorage(MemoryChunkStorage):
    """Records for which objects `exists` was called."""

    def __init__(self) -> None:
        super().__init__(wall_ms=lambda: 0)
        self.asked: list[str] = []

    def exists(self, name: str) -> bool:
        self.asked.append(name)
        return super().exists(name)


class Unread(TopicBasedRemoteLogMetadataManager):
    """Metadata that has not read its topic to the end."""

    def __init__(self) -> None:
        pass

    def list_remote_log_segments(self, *_: object, **__: object) -> NoReturn:
        raise RetriableError("the metadata is not read to its end")


class StoredWorld(RemoteWorld):
    """Some stored segments of one led partition."""

    def __init__(self, segments: int) -> None:
        self.chunks = AskedStorage()
        super().__init__(self.chunks)
        self.claim()
        self.segments = [self.store(segment_of(number)) for number in range(segments)]
        self.hosted: tuple[TopicIdPartition, ...] = (TIP,)
        self.witness = StoreWitness(self.chunks, self.metadata)

    def require(self) -> None:
        self.witness.require(self.hosted)

    def lose(self, *numbers: int) -> None:
        for number in numbers:
            for stored in self.segments[number].objects:
                self.chunks.delete(stored.key)


def test_store_when_nothing_is_stored_or_hosted_then_any_is_accepted() -> None:
    world = StoredWorld(0)
    world.require()

    world = StoredWorld(3)
    world.hosted = ()
    world.lose(0, 1, 2)
    world.require()


def test_store_when_an_object_was_found_then_later_checks_look_for_that_one_only() -> None:
    world = StoredWorld(3)

    world.require()
    first = list(world.chunks.asked)
    world.require()

    assert len(first) == 1
    assert world.chunks.asked == first * 2


def test_store_when_the_known_object_is_lost_then_another_one_identifies_it() -> None:
    world = StoredWorld(3)
    world.require()
    (known,) = world.chunks.asked

    world.lose(1, 2)
    world.require()
    world.require()

    left = world.segments[0].objects[0].key
    assert known in {each.key for each in world.segments[2].objects}
    assert world.chunks.asked == [known, known, known, left, left]


def test_store_when_all_objects_are_missing_then_refused_until_one_is_back() -> None:
    world = StoredWorld(3)
    key = world.segments[1].objects[0].key
    content = world.chunks.read_range(key, WHOLE)
    world.lose(0, 1, 2)

    for _ in range(2):
        with pytest.raises(WrongStoreError, match="It is another store, or it is not mounted"):
            world.require()

    world.chunks.create(key)
    world.chunks.append(key, 0, content)
    world.require()


def test_store_when_the_only_segment_is_missing_then_accepted() -> None:
    """The manager must be able to copy the only segment again."""
    world = StoredWorld(1)
    world.lose(0)

    world.require()


def test_store_when_it_does_not_answer_then_neither_accepted_nor_refused() -> None:
    class Silent(MemoryChunkStorage):
        def exists(self, name: str) -> bool:
            raise RetriableError("the request to the store failed")

    world = StoredWorld(2)
    witness = StoreWitness(Silent(wall_ms=lambda: 0), world.metadata)

    with pytest.raises(RetriableError, match="request to the store failed"):
        witness.require(world.hosted)


def test_store_when_a_bucket_has_only_the_newest_object_left_then_accepted() -> None:
    """A lifecycle rule, for example, deletes objects; repairs handle their loss."""
    world = StoredWorld(12)
    world.lose(*range(11))

    world.require()


def test_store_when_a_written_object_is_not_in_it_then_another_store_answered() -> None:
    """The wrong store accepted the bytes, and by now the right one answers again."""
    world = StoredWorld(2)
    world.require()
    own = [world.segments[0].objects[0].key]
    world.witness.require_with(own)

    world.lose(0)

    with pytest.raises(WrongStoreError, match="another store answered"):
        world.witness.require_with(own)


def test_store_when_its_known_object_is_gone_and_metadata_unread_then_neither() -> None:
    world = StoredWorld(2)
    world.require()
    world.lose(0, 1)
    world.witness._metadata = Unread()

    with pytest.raises(RetriableError, match="cannot recognize the store") as raised:
        world.require()

    assert not isinstance(raised.value, WrongStoreError)
