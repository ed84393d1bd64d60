"""Reads the start and end times of copies from the metadata topic, by the brokers' clock."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from rlmm.consumer import MetadataConsumer
from rlmm.events.segment import SegmentEvent
from rlmm.topic.kafka_reader import KafkaTopicReader
from rsm.segment.metadata import SegmentState
from tests.services.kafka import KafkaCluster

_METADATA_TOPIC = "__remote_log_segment_metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCopy:
    """Represents a finished copy. Its times are the LogAppendTime of its events."""

    partition: int
    end_offset: int
    size_bytes: int
    started_ms: int
    finished_ms: int


def copied_segments(cluster: KafkaCluster, topic: str) -> list[FinishedCopy]:
    """Return all finished copies of a topic's segments."""
    reader = KafkaTopicReader({"bootstrap.servers": cluster.bootstrap_servers}, _METADATA_TOPIC)
    started_ms: dict[object, int] = {}
    found: list[FinishedCopy] = []
    with closing(reader):
        consumer = MetadataConsumer(reader, topic=topic)
        ends = reader.end_offsets(reader.partitions(10_000), 10_000)
        while any(consumer.positions().get(p, 0) < end for p, end in ends.items()):
            for record in consumer.poll():
                event = record.event
                if not isinstance(event, SegmentEvent):
                    continue
                metadata = event.metadata
                if metadata.state is SegmentState.COPY_SEGMENT_STARTED:
                    started_ms[metadata.segment_id] = record.append_time_ms
                elif metadata.state is SegmentState.COPY_SEGMENT_FINISHED:
                    found.append(
                        FinishedCopy(
                            partition=metadata.topic_id_partition.partition,
                            end_offset=metadata.offsets.end_offset,
                            size_bytes=metadata.segment_size_bytes,
                            started_ms=started_ms[metadata.segment_id],
                            finished_ms=record.append_time_ms,
                        )
                    )
    return found
