"""MetadataConsumer: reads the metadata topic as typed events, for monitoring and other programs.

It returns each readable record as it is in the log, even a refused one or a tombstone. The fold
(rlmm/fold.py) decides which are accepted; use a RemoteLogMetadataManager for the outcome.

    reader = KafkaTopicReader({"bootstrap.servers": "broker:9092"}, "__remote_log_segment_metadata")
    consumer = MetadataConsumer(reader, Start.NOW)
    while True:
        for record in consumer.poll():
            print(record.position, record.event)
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from rlmm.codec import decode
from rlmm.events.event import Event
from rlmm.events.registry import family_of
from rlmm.positions import MetadataPosition, ReadPosition, TopicRecord
from rlmm.record_keys import RecordKey, parse_record_key
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_TOPIC_ID_BYTES = 16


class Start(Enum):
    """Where to begin; alternatively pass a mapping of partitions to offsets."""

    BEGINNING = "beginning"
    NOW = "now"


class TopicReader(Protocol):
    """The topic as a consumer needs it; implemented by rlmm.topic.kafka_reader."""

    def partitions(self, timeout_ms: int) -> Sequence[int]: ...

    def end_offsets(self, partitions: Sequence[int], timeout_ms: int) -> Mapping[int, int]: ...

    def assign(self, positions: Mapping[int, ReadPosition]) -> None: ...

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]: ...

    def positions(self) -> Mapping[int, int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedRecord:
    """One record; `event` None is a tombstone, which removes the record with this key."""

    position: MetadataPosition
    append_time_ms: int
    key: RecordKey
    event: Event | None


class MetadataConsumer:
    """Reads the topic's partitions from a chosen start. Not thread-safe.

    With `topic`, it returns only records about user topics of that name, and their tombstones after
    it has seen the topic's id. It skips unreadable records, counts them by reason and logs each
    reason once. Raises NotFoundError if the topic does not exist or no longer has the offset to
    read. Raises RetriableError if the topic cannot be read now; call again. Memory: the records of
    one `poll`.
    """

    def __init__(
        self,
        reader: TopicReader,
        start: Start | Mapping[int, int] = Start.BEGINNING,
        *,
        topic: str | None = None,
        timeout_ms: int = 10_000,
    ) -> None:
        """`start` as a mapping: the next offset to read of each partition; others are not read."""
        self._reader = reader
        self._topic = topic
        self._topic_ids: set[bytes] = set()
        self._skipped: Counter[str] = Counter()
        reader.assign(_start_positions(reader, start, timeout_ms))

    def poll(self, *, timeout_ms: int = 1_000, max_records: int = 1_000) -> list[ConsumedRecord]:
        """Return the next records after waiting up to `timeout_ms`; in order per partition."""
        records = self._reader.poll(max_records=max_records, timeout_ms=timeout_ms)
        return [taken for record in records if (taken := self._taken(record)) is not None]

    def positions(self) -> Mapping[int, int]:
        """Return the next offset of each partition, from which another consumer can continue."""
        return self._reader.positions()

    def skipped(self) -> Mapping[str, int]:
        """Return how many records could not be read, by reason."""
        return dict(self._skipped)

    def _taken(self, record: TopicRecord) -> ConsumedRecord | None:
        try:
            key = parse_record_key(record.key)
            event = None if record.value is None else decode(record.key, record.value)
        except UnsupportedError as error:
            self._skip(record, "unsupported", error)
            return None
        except CorruptError as error:
            self._skip(record, "corrupt", error)
            return None
        if not self._is_wanted(key, event):
            return None
        return ConsumedRecord(
            position=MetadataPosition(partition=record.partition, offset=record.offset),
            append_time_ms=record.append_time_ms,
            key=key,
            event=event,
        )

    def _is_wanted(self, key: RecordKey, event: Event | None) -> bool:
        if self._topic is None:
            return True
        topic_id = key.subject[:_TOPIC_ID_BYTES]
        if event is not None and family_of(event).topic_of(event) == self._topic:
            self._topic_ids.add(topic_id)
            return True
        return event is None and topic_id in self._topic_ids

    def _skip(self, record: TopicRecord, reason: str, error: Exception) -> None:
        self._skipped[reason] += 1
        if self._skipped[reason] == 1:
            _log.warning(
                LogLine(
                    "skipped a metadata record: further ones of this kind are only counted",
                    reason=reason,
                    partition=record.partition,
                    offset=record.offset,
                    error=error,
                )
            )


def _start_positions(
    reader: TopicReader, start: Start | Mapping[int, int], timeout_ms: int
) -> Mapping[int, ReadPosition]:
    if not isinstance(start, Start):
        return {partition: ReadPosition(offset=offset) for partition, offset in start.items()}
    partitions = reader.partitions(timeout_ms)
    if start is Start.BEGINNING:
        return dict.fromkeys(partitions, ReadPosition(offset=0))
    ends = reader.end_offsets(partitions, timeout_ms)
    return {partition: ReadPosition(offset=end) for partition, end in ends.items()}
