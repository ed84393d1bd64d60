"""Cached data of a segment is dropped when nobody can read the segment (scenario 120)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rlm.gateway.remote.cache_cleaner import CacheCleaner, ChunksOfObjects, GoneReason
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.spi import RemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.cache.chunk_cache import ChunkCache
from rsm.cache.disk_cached import DiskCachedChunkStorage
from rsm.cache.disk_chunks import DiskChunks, DiskChunksSettings
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.errors import RetriableError
from rsm.segment.ranges import ByteRange
from tests.log_dir_builder import ManualClock
from tests.remote_world import positions_of, segment_of
from tests.segment_builder import BuiltSegment
from tests.unit.rlm.gateway.remote.fetch_world import FetchWorld, content_of, taken

_WHOLE_INTERVAL_MS = 600_000
_HEADER_BYTES = 61
WHOLE = ByteRange(start_position=0, end_position=20_000)


class CachingWorld(FetchWorld):
    """Three segments of 100 offsets, all of them cached: in memory, as indexes, and on disk."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(disk=opened(directory))
        self.claim()
        self.built = [segment_of(base) for base in (0, 100, 200)]
        self.stored = [self.store(each) for each in self.built]
        for base in (0, 50, 100, 150, 200, 250):
            content_of(self.slice(base, client="reader"))
        self.fetcher.forget("reader")
        self.counts: Counter[GoneReason] = Counter()
        self.cleaner = self.cleaner_by(self.metadata)

    def cleaner_by(self, metadata: RemoteLogMetadataManager) -> CacheCleaner:
        return CacheCleaner(
            metadata,
            storage=self.storage,
            chunks=ChunksOfObjects(self.cache),
            clock=self.clock,
            dropped=lambda why, count: self.counts.update({why: count}),
        )

    def cached(self) -> set[int]:
        """Return the numbers of the segments with data in the caches of this process."""
        kept = {*self.storage.kept_objects(), *ChunksOfObjects(self.cache).kept_objects()}
        return {
            number
            for number, metadata in enumerate(self.stored)
            if any(stored.key in kept for stored in metadata.objects)
        }

    def on_disk(self) -> set[int]:
        """Return the numbers of the segments with data in the files of the cache's directory."""
        return {number for number, each in enumerate(self.built) if is_in(self.directory, each)}


class Restarted:
    """A process that takes over another process's directory, with its own metadata."""

    def __init__(
        self, world: CachingWorld, *, is_caught_up: bool = True, knows_nothing: bool = False
    ) -> None:
        topic = MemoryTopic(MemoryLog(world.clock) if knows_nothing else world.log)
        settings = ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0))
        self.metadata = TopicBasedRemoteLogMetadataManager(
            topic, MetadataCache(MemoryStore()), world.clock, settings
        )
        if is_caught_up:
            assert self.metadata.wait_ready(10_000).is_ready
        storage = SegmentStorageManager(
            storage=DiskCachedChunkStorage(world.watched, opened(world.directory)),
            keys=ObjectKeys(),
            layouts=[RawLayout()],
        )
        self.cleaner = CacheCleaner(
            self.metadata,
            storage=storage,
            chunks=ChunksOfObjects(ChunkCache(executor=world.held, clock=world.clock)),
            clock=world.clock,
            dropped=lambda _why, _count: None,
        )
        self.on_disk = world.on_disk


def opened(directory: Path) -> DiskChunks:
    settings = DiskChunksSettings(directory=directory, budget_bytes=10 << 20)
    return DiskChunks(settings, ManualClock())


def is_in(directory: Path, segment: BuiltSegment) -> bool:
    """Return whether a file there contains the header of a batch of the segment."""
    files = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    begins = positions_of(segment)[:-1]
    headers = [segment.log[position : position + _HEADER_BYTES] for position in begins]
    return any(header in content for header in headers for content in files)


@pytest.fixture
def world(tmp_path: Path) -> CachingWorld:
    world = CachingWorld(tmp_path / "cache")
    assert (world.cached(), world.on_disk()) == ({0, 1, 2}, {0, 1, 2})
    world.cleaner.step()
    assert (world.cached(), world.on_disk()) == ({0, 1, 2}, {0, 1, 2})
    return world


def test_step_when_the_log_start_moves_then_nothing_below_is_cached(world: CachingWorld) -> None:
    """A segment that reaches above the log start stays."""
    world.advance_log_start(150)
    world.cleaner.step()
    assert (world.cached(), world.on_disk()) == ({1, 2}, {1, 2})
    assert world.counts == {GoneReason.BELOW_LOG_START: 2}
    assert content_of(world.slice(150))


def test_step_when_a_segment_expires_then_nothing_of_it_is_cached(world: CachingWorld) -> None:
    world.begin_deletion(world.stored[1])
    world.cleaner.step()
    assert (world.cached(), world.on_disk()) == ({0, 2}, {0, 2})
    assert world.counts == {GoneReason.SEGMENT_DELETED: 2}


def test_step_when_the_topic_was_deleted_then_nothing_is_cached(world: CachingWorld) -> None:
    world.begin_partition_deletion()
    world.cleaner.step()
    assert (world.cached(), world.on_disk()) == (set(), set())
    assert world.counts == {GoneReason.PARTITION_DELETED: 6}


def test_step_when_deleted_while_the_process_was_away_then_what_it_left_is_dropped(
    world: CachingWorld,
) -> None:
    """After a restart, cached data of a segment that the metadata does not know is dropped."""
    world.begin_deletion(world.stored[0])
    again = Restarted(world)
    assert again.on_disk() == {0, 1, 2}
    again.cleaner.step()
    assert again.on_disk() == {1, 2}


def test_step_before_the_metadata_was_read_then_an_unknown_segment_stays(
    world: CachingWorld,
) -> None:
    """The process may not have read the segment's record yet."""
    again = Restarted(world, is_caught_up=False)
    with pytest.raises(RetriableError):
        again.cleaner.step()
    assert again.on_disk() == {0, 1, 2}

    assert again.metadata.wait_ready(10_000).is_ready
    again.cleaner.step()
    assert again.on_disk() == {0, 1, 2}


def test_step_when_the_metadata_knows_nothing_then_what_an_earlier_process_left_is_dropped(
    world: CachingWorld,
) -> None:
    """After the purge of a deleted topic's records, the metadata does not know its segments."""
    again = Restarted(world, knows_nothing=True)
    again.cleaner.step()
    assert again.on_disk() == set()


def test_step_when_a_fetch_reads_then_it_keeps_its_bytes_until_it_ends(
    world: CachingWorld,
) -> None:
    reading = world.slice(0, client="late")
    whole = b"".join(reading.buffers)
    world.advance_log_start(100)

    world.cleaner.step()
    during = (b"".join(reading.buffers), world.cached(), world.on_disk())
    reading.release()

    assert during == (whole, {0, 1, 2}, {1, 2})
    assert world.cached() == {1, 2}


def test_step_when_a_read_of_the_store_ends_after_it_then_the_next_drops_what_it_read(
    tmp_path: Path,
) -> None:
    """A fetch that found its segment before the log start moved may fill the caches later."""
    world = CachingWorld(tmp_path / "cache")
    world.cleaner.step()
    world.storage.forget(world.storage.kept_objects())
    world.cache.forget(world.cache.names())
    fetching = world.fetch(0, client="late")
    world.advance_log_start(100)

    world.cleaner.step()
    world.held.run_all()
    assert content_of(taken(fetching))
    filled = world.on_disk()
    world.cleaner.step()

    assert filled == {0}
    assert (world.cached(), world.on_disk()) == (set(), set())


def test_step_when_ten_minutes_have_passed_then_all_is_looked_at_again(world: CachingWorld) -> None:
    """A fetch may have waited for the store for longer than two steps."""
    world.advance_log_start(100)
    for _ in range(3):
        world.cleaner.step()
    world.storage.fetch_log_segment(world.stored[0], WHOLE)
    world.cleaner.step()
    filled = world.on_disk()

    world.clock.sleep_ms(_WHOLE_INTERVAL_MS)
    world.cleaner.step()

    assert filled == {0, 1, 2}
    assert world.on_disk() == {1, 2}


def test_step_when_a_cached_object_is_of_no_segment_then_it_is_dropped(world: CachingWorld) -> None:
    """Nothing proves that anybody may read it."""
    positions = ByteRange(start_position=0, end_position=7)
    opened(world.directory).put("no segment's", positions, b"content")
    again = Restarted(world)
    again.cleaner.step()
    assert again.on_disk() == {0, 1, 2}
    assert not any(path.read_bytes().startswith(b"content") for path in world.directory.iterdir())
