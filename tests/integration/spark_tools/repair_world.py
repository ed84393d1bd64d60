"""Builds segments whose deletion failed: in a bucket, the metadata topic, and as dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast
from uuid import uuid4

from confluent_kafka import Consumer, Producer, TopicPartition
from crc32c import crc32c

from rlmm.dead_letters.dead_letter import DeadLetter, encode
from rlmm.events.claim import LeadershipClaimed
from rlmm.spi import RemoteLogMetadataManager
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.s3.settings import S3Settings
from tests.metadata_builder import DELETE_STARTED, FINISHED, OWNER, STARTED, segment_metadata, step

_CONTENT = b"stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairWorld:
    """What a repair job works on. `options` are the job's; tests share the open `storage`."""

    options: Mapping[str, str]
    settings: S3Settings
    storage: ChunkStorage
    servers: str
    dead_letters: str
    partition: TopicIdPartition

    @property
    def arguments(self) -> list[str]:
        """The options as command-line arguments of a job."""
        return [word for item in self.options.items() for word in ("--option", "=".join(item))]

    @property
    def parked(self) -> str:
        return f"{self.dead_letters}.parked"

    @property
    def keys(self) -> ObjectKeys:
        return ObjectKeys(prefix=self.options["rsm.config.key.prefix"])

    def names(self) -> set[str]:
        """Return the names of all existing objects."""
        return {chunk.name for chunk in self.storage.list(f"{self.partition.topic}/")}

    def store(
        self, metadata: RemoteLogMetadataManager, state: SegmentState, start_offset: int = 0
    ) -> DeadLetter:
        """Store a segment of 100 offsets in this state, with its objects; return a dead letter."""
        segment_id = RemoteLogSegmentId(topic_id_partition=self.partition, id=uuid4())
        names = (
            ObjectKey(segment_id=segment_id, base_offset=start_offset, suffix=suffix)
            for suffix in ("log", "meta")
        )
        objects = tuple(
            StoredObject(
                key=self.keys.build(name), length_bytes=len(_CONTENT), crc32c=crc32c(_CONTENT)
            )
            for name in names
        )
        end_offset = start_offset + 100
        segment = replace(
            segment_metadata(1, start_offset, end_offset, partition=self.partition, state=STARTED),
            segment_id=segment_id,
            objects=objects,
        )
        for each in objects:
            self.storage.create_with_content(each.key, BytesSource(content=_CONTENT))
        assert metadata.publish(step(segment, STARTED)).accepted
        assert metadata.publish(step(segment, FINISHED)).accepted
        if state is DELETE_STARTED:
            event = step(segment, DELETE_STARTED, by=OWNER, expected_state=FINISHED)
            assert metadata.publish(event).accepted
        return self.dead_letter(segment.in_state(DELETE_STARTED, event_timestamp_ms=1))

    def claim(self, metadata: RemoteLogMetadataManager) -> None:
        event = LeadershipClaimed(
            event_id=uuid4(),
            topic_id_partition=self.partition,
            writer=OWNER,
            lineage=Lineage.of((0, 0)),
        )
        assert metadata.publish(event).accepted

    def dead_letter(self, segment: RemoteLogSegmentMetadata, attempts: int = 5) -> DeadLetter:
        return DeadLetter(
            metadata=segment,
            reason="the store refused",
            attempts=attempts,
            first_attempt_ms=1,
            last_attempt_ms=2,
        )

    def send(self, *dead_letters: DeadLetter | bytes, key: bytes | None = None) -> None:
        """Send dead letters; `key` is that of records that are not dead letters."""
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "enable.idempotence": True,
                "message.max.bytes": 2_000_000,
            }
        )
        for each in dead_letters:
            if isinstance(each, bytes):
                producer.produce(self.dead_letters, key=key, value=each)
            else:
                record = encode(each)
                producer.produce(self.dead_letters, key=record.key, value=record.value)
        assert producer.flush(30.0) == 0

    def received(self, topic: str) -> list[tuple[bytes, dict[str, bytes]]]:
        """Return values and headers of all records of a topic of one partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "any",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[tuple[bytes, dict[str, bytes]]] = []
        while (message := consumer.poll(30.0)) is not None and message.error() is None:
            headers = cast("list[tuple[str, bytes]]", message.headers() or [])
            found.append((message.value() or b"", dict(headers)))
        consumer.close()
        return found
