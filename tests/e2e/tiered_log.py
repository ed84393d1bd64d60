"""One partition under test: the produced records, the broker's log, and the stored segments."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported without __all__

from rlm.source.logdir import LogDirSource
from rlmm.events.policy import UNLIMITED, PolicyState, TopicPolicy, TopicPolicyChanged
from rlmm.spi import RemoteLogMetadataManager
from rsm.layout.companion import Companion, decode_companion
from rsm.layout.originals import OriginalsKeys
from rsm.layout.raw import NAME as RAW
from rsm.opening import open_segments
from rsm.segment.coverage import covered_end, stored_ranges
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import ByteRange
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.store_settings import SegmentSettings
from rsm.system_clock import SystemClock
from tests.log_dir_builder import segment_file
from tests.services.kafka import KafkaCluster, admin_client, dump_log_segments
from tests.services.waiting import wait_until

SEGMENT_BYTES = 1 << 20
VALUE_BYTES = 16_000
_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """A segment as the broker wrote it."""

    base_offset: int
    content: bytes


class TieredLog:
    """Partition 0 of a topic with small segments, and its copies in one store."""

    def __init__(self, cluster: KafkaCluster, topic: str, store: Path) -> None:
        self.topic = topic
        self._cluster = cluster
        self._store = store

    @classmethod
    def create(
        cls, cluster: KafkaCluster, topic: str, store: Path, *, segment_bytes: int = SEGMENT_BYTES
    ) -> TieredLog:
        """Create the topic; the broker itself removes nothing from it."""
        config = {"segment.bytes": str(segment_bytes), "retention.ms": "-1"}
        cluster.create_topic(topic, config=config)
        log = cls(cluster, topic, store)
        wait_until(log.directories, describe="the broker has made the log's directory")
        return log

    @property
    def directory(self) -> Path:
        """The partition's directory on the broker."""
        (found,) = self.directories()
        return found

    def directories(self) -> list[Path]:
        """Return the partition's directory; empty if it does not exist yet."""
        name = f"{self.topic}-0"
        log_dirs = self._cluster.broker.log_dirs
        return [log_dir / name for log_dir in log_dirs if (log_dir / name).is_dir()]

    @property
    def partition(self) -> TopicIdPartition:
        """The partition's identity, from the broker's own files."""
        source = LogDirSource(self._cluster.broker.log_dirs, clock=SystemClock())
        (found,) = [each for each in source.partitions() if each.topic == self.topic]
        return found

    def produce(self, segments: int, *, timestamp_ms: int = 0) -> None:
        """Write until this many more segments are rolled; `timestamp_ms` 0 means now."""
        wanted = max(len(self.base_offsets()), 1) + segments  # the first file may not be there yet
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 5,
            }
        )
        while len(self.base_offsets()) < wanted:
            for _ in range(8):
                value = random.SystemRandom().randbytes(VALUE_BYTES)
                producer.produce(
                    self.topic, key=b"key", value=value, partition=0, timestamp=timestamp_ms
                )
            assert producer.flush(30.0) == 0

    def base_offsets(self) -> list[int]:
        """Return the base offsets of the local segment files; the last one is active."""
        return sorted(int(path.stem) for path in self.directory.glob("*.log"))

    def files(self) -> list[SegmentFile]:
        """Return the local segment files, also the active one, without those being deleted."""
        found = []
        for base_offset in self.base_offsets():
            with suppress(FileNotFoundError):
                content = segment_file(self.directory, base_offset, "log").read_bytes()
                found.append(SegmentFile(base_offset=base_offset, content=content))
        return found

    def local_start_offset(self) -> int:
        """Return the local start offset that the broker reports."""
        return self._offset(OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # ships untyped

    def end_offset(self) -> int:
        """Return the end offset that the broker reports."""
        return self._offset(OffsetSpec.latest())  # type: ignore[no-untyped-call]  # ships untyped

    def _offset(self, spec: OffsetSpec) -> int:
        # A new client each time: an old one would use a leader epoch that a restart has ended.
        admin = admin_client(self._cluster.bootstrap_servers)
        asked = TopicPartition(self.topic, 0)
        offset: int = admin.list_offsets({asked: spec})[asked].result(30.0).offset
        return offset

    def set_policy(
        self,
        metadata: RemoteLogMetadataManager,
        *,
        retention_ms: int = UNLIMITED,
        local_retention_ms: int = 1,
    ) -> None:
        """Tier the topic: publish the policy that `rlm topic set` would publish."""
        policy = TopicPolicy(
            topic=self.topic,
            topic_id=self.partition.topic_id,
            state=PolicyState.ACTIVE,
            retention_ms=retention_ms,
            retention_bytes=UNLIMITED,
            local_retention_ms=local_retention_ms,
        )
        assert metadata.publish(TopicPolicyChanged(event_id=uuid4(), policy=policy)).accepted

    def finished(self, metadata: RemoteLogMetadataManager) -> list[RemoteLogSegmentMetadata]:
        """Return the stored segments, ascending."""
        return self.in_states(metadata, SegmentState.COPY_SEGMENT_FINISHED)

    def in_states(
        self, metadata: RemoteLogMetadataManager, *states: SegmentState
    ) -> list[RemoteLogSegmentMetadata]:
        """Return the segments in one of these states, ascending."""
        records = metadata.list_remote_log_segments(self.partition, states=states)
        return [record.metadata for record in records]

    def covered_end_offset(self, metadata: RemoteLogMetadataManager, from_offset: int) -> int:
        """Return the end of what is stored without a gap from `from_offset` on."""
        lineage = metadata.partition_state(self.partition).lineage
        return covered_end(stored_ranges(lineage, self.finished(metadata)), from_offset)

    def object_keys(self) -> set[str]:
        """Return the names of all objects in the store."""
        storage = FilesystemChunkStorage(self._store)
        try:
            return {chunk.name for chunk in storage.list("")}
        finally:
            storage.close()

    def segment_keys(self) -> set[str]:
        """Return these names without the objects about topics."""
        keys = OriginalsKeys()
        return {key for key in self.object_keys() if keys.parse(key) is None}

    def stored_content(self, segment: RemoteLogSegmentMetadata) -> bytes:
        """Return a stored segment's log; in the layout `raw` the whole `.log` object."""
        if segment.layout == RAW:
            return self.object_path(segment, ".log").read_bytes()
        storage = open_segments(SegmentSettings(), FilesystemChunkStorage(self._store))
        whole = ByteRange(start_position=0, end_position=segment.segment_size_bytes)
        return storage.fetch_log_segment(segment, whole)

    def object_path(self, segment: RemoteLogSegmentMetadata, suffix: str) -> Path:
        """Return the path of a stored segment's object."""
        (key,) = [each.key for each in segment.objects if each.key.endswith(suffix)]
        return self._store / key

    def companion(self, segment: RemoteLogSegmentMetadata) -> Companion:
        """Return a stored segment's companion, the last of its objects."""
        return decode_companion((self._store / segment.objects[-1].key).read_bytes())

    def wait_tiered(
        self, metadata: RemoteLogMetadataManager, *, deadline_s: float = _DEADLINE_S
    ) -> None:
        """Wait until `untiered` returns nothing."""
        problem = ""

        def is_tiered() -> bool:
            nonlocal problem
            problem = self.untiered(metadata)
            return not problem

        wait_until(is_tiered, deadline_s, lambda: problem, despite=KafkaException)

    def untiered(self, metadata: RemoteLogMetadataManager) -> str:
        """Return what is not yet stored or trimmed of the local log; empty if nothing is."""
        bases = self.base_offsets()
        finished = self.finished(metadata)
        unfinished = self.in_states(
            metadata, SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED
        )
        stored_end = max((each.offsets.end_offset for each in finished), default=0)
        if stored_end < bases[-1]:
            return f"stored up to {stored_end} of {bases[-1]}"
        if unfinished:
            return f"unfinished: {unfinished}"
        newest_rolled = finished[-1].offsets.start_offset
        if (start := self.local_start_offset()) < newest_rolled:
            return f"local start {start}, newest rolled segment {newest_rolled}"
        return ""


def assert_readable(
    log: TieredLog, metadata: RemoteLogMetadataManager, produced: Iterable[SegmentFile]
) -> None:
    """Check that each byte produced and not expired is stored once or in the broker's log."""
    originals = {each.base_offset: each.content for each in produced}
    finished = log.finished(metadata)
    log_start_offset = metadata.partition_state(log.partition).log_start_offset or 0
    rolled = sorted(originals)[:-1]
    assert [each.offsets.start_offset for each in finished] == [
        base_offset for base_offset in rolled if base_offset >= log_start_offset
    ]
    for segment in finished:
        assert log.stored_content(segment) == originals[segment.offsets.start_offset]
        _assert_found(metadata, segment)
    for local in log.files():
        assert local.content == originals[local.base_offset]
    assert log.local_start_offset() <= log.covered_end_offset(metadata, log_start_offset)


def assert_kafka_accepts(log: TieredLog, segment: RemoteLogSegmentMetadata, directory: Path) -> str:
    """Check that DumpLogSegments accepts the object, and the index in its companion.

    Creates `directory`; returns the tool's output for the index.
    """
    directory.mkdir()
    base_offset = segment.offsets.start_offset
    path = segment_file(directory, base_offset, "log")
    index_path = segment_file(directory, base_offset, "index")
    path.write_bytes(log.stored_content(segment))
    index_path.write_bytes(log.companion(segment).companions.offset_index)

    batches = dump_log_segments(path, deep=False)
    index = dump_log_segments(index_path, deep=False)

    assert f"baseOffset: {base_offset} " in batches
    assert f"lastOffset: {segment.offsets.last_offset} " in batches
    assert "isvalid: true" in batches
    assert "isvalid: false" not in batches
    assert "Mismatches" not in index
    return index


def _assert_found(metadata: RemoteLogMetadataManager, segment: RemoteLogSegmentMetadata) -> None:
    """Check that lookups of a segment's first and last offset return the segment."""
    for offset in (segment.offsets.start_offset, segment.offsets.last_offset):
        found = metadata.remote_log_segment_metadata(segment.topic_id_partition, offset)
        assert found == segment
