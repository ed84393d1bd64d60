"""A broker, a manager of this version and its store, composed to leave a state on disk.

The manager is the real one: it reads a log dir, writes a file system store, and caches metadata in
RocksDB. The broker and the topics are in memory. Ids and clocks are counters, so that the same
calls write the same records and objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlm.policy.view import PolicyLimits
from rlm.source.logdir import LogDirSource
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.events.event import Event
from rlmm.events.segment import SegmentEvent
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.segment.ids import TopicIdPartition
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.fakes.broker import MemoryBroker
from tests.fakes.clock import FakeClock
from tests.fakes.dead_letters import MemoryDeadLetters
from tests.fakes.ids import CountedIds
from tests.fakes.metadata import FreshMetadata
from tests.fakes.process import FakeSystems, Process, ProcessSettings
from tests.fakes.share_groups import MemoryShareGroups
from tests.hosted_partitions import user_partitions
from tests.log_dir_builder import make_log_dir
from tests.released_states.written_logs import WrittenLog, replicas, write_log_dir

METADATA_PARTITIONS = 3
INTERVAL_MS = 30_000
_CYCLES = 5
_SMALL_BLOCK_BYTES = 65_536
_PADDED_BLOCK_BYTES = 4_096
_SMALL_CHUNK_BYTES = 128
_ALL_PARTITIONS = tuple(
    user_partitions(number, METADATA_PARTITIONS)[0] for number in range(METADATA_PARTITIONS)
)
NO_POLLING = ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0))


class WholeMetadata(FreshMetadata):
    """Metadata that applies all partitions of the topic before it answers."""

    def refresh(self) -> None:
        self.those_caught_up(_ALL_PARTITIONS)


class RawProcess(Process):
    """A manager that writes new segments in the layout `raw`."""

    metadata_type = WholeMetadata

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return (RawLayout(), BlockV1Layout(block_bytes=_SMALL_BLOCK_BYTES))


class BlockProcess(RawProcess):
    """A manager that writes new segments in the layout `block_v1`."""

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return tuple(reversed(super().make_layouts()))


class StreamProcess(RawProcess):
    """A manager that writes streamed segments in the layout `block_v2`."""

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return (BlockV2Layout(block_bytes=_PADDED_BLOCK_BYTES), *super().make_layouts())


class ChunkedProcess(RawProcess):
    """A manager that writes new segments in the layout `chunked`."""

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return (ChunkedLayout(max_chunk_bytes=_SMALL_CHUNK_BYTES), *super().make_layouts())


class RecordedCluster:
    """One broker that leads all partitions, and one manager at a time.

    `directory` gets a log dir, a store and a cache.
    """

    def __init__(self, directory: Path, partitions: Sequence[TopicIdPartition]) -> None:
        self.clock = FakeClock()
        self.new_id = CountedIds()
        self.topic = MemoryLog(
            self.clock,
            partition_count=METADATA_PARTITIONS,
            cluster_id="released-states",
            topic_id="bWV0YWRhdGEtdG9waWMtMQ",
        )
        self.dead_letters = MemoryDeadLetters()
        self.logs = {
            tip: WrittenLog(topic_id_partition=tip, clock=self.clock) for tip in partitions
        }
        self.broker = MemoryBroker(1, replicas(tuple(self.logs.values())))
        self.log_dir = make_log_dir(directory / "logs")
        self.store_path = directory / "store"
        self.store_path.mkdir()
        self.cache_path = directory / "cache"
        self.objects = FilesystemChunkStorage(self.store_path)
        self._process: Process | None = None
        self._deadly = ""
        self._unpublished: SegmentEvent | None = None

    def start(self, process_type: type[Process], *, idle_copy_ms: int = -1) -> Process:
        """Stop the running manager, and start one of this kind."""
        self.stop()
        outside = FakeSystems(
            broker=self.broker,
            source=LogDirSource([self.log_dir], clock=self.clock),
            objects=self.objects,
            topic=self.topic,
            dead_letters=self.dead_letters,
            share_groups=MemoryShareGroups(),
            cache=RocksDbStore(self.cache_path),
            clock=self.clock,
            new_id=self.new_id,
        )
        limits = PolicyLimits(local_trim_min_age_ms=0, idle_copy_ms=idle_copy_ms)
        self._process = process_type(outside, ProcessSettings(limits=limits), self._witness)
        return self._process

    def stop(self) -> None:
        """End the manager, if one runs."""
        if self._process is not None:
            self._process.ports.metadata.close()
            self._process = None

    def kill_before(self, publication: str) -> SegmentEvent:
        """Let the manager work, and kill it right before this publication.

        Returns the event that it has not published.
        """
        self._deadly = f"publish {publication}"
        self.settle()
        assert self._unpublished is not None, f"the manager did not try: {publication}"
        return self._unpublished

    def settle(self) -> None:
        """Run the manager until it has nothing left to do for the logs."""
        assert self._process is not None, "no manager runs"
        for _ in range(_CYCLES):
            self.clock.advance(INTERVAL_MS)
            write_log_dir(self.log_dir, tuple(self.logs.values()))
            self._process.step()
            self._process.watch.step()

    def _witness(self, process: Process, name: str, subject: object) -> None:
        if name == self._deadly and isinstance(subject, SegmentEvent):
            self._deadly, self._unpublished = "", subject
            process.effects.crash()

    def open_metadata(self) -> TopicBasedRemoteLogMetadataManager:
        """Stop the manager; open the metadata over its cache, and catch up."""
        self.stop()
        cache = MetadataCache(RocksDbStore(self.cache_path))
        metadata = TopicBasedRemoteLogMetadataManager(
            MemoryTopic(self.topic), cache, self.clock, NO_POLLING
        )
        readiness = metadata.wait_ready(60_000)
        assert readiness.is_ready, readiness.reason
        return metadata


def publish(metadata: TopicBasedRemoteLogMetadataManager, *events: Event) -> None:
    """Publish events, and require that each is accepted."""
    for event in events:
        result = metadata.publish(event)
        assert result.accepted, f"{event}: {result.refusal}"
