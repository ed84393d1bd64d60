"""Reads the metadata topic as typed events, for monitoring and other programs.

MetadataConsumer returns each readable record in the log, including tombstones and records that the
fold (rlmm/fold.py) refuses. To read the folded state, use a RemoteLogMetadataManager instead.

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
    """Lists the named starts. To begin at chosen offsets, pass a mapping instead."""

    BEGINNING = "beginning"
    NOW = "now"


class TopicReader(Protocol):
    """Represents the topic as a consumer reads it. Implemented by rlmm.topic.kafka_reader."""

    def partitions(self, timeout_ms: int) -> Sequence[int]: ...

    def end_offsets(self, partitions: Sequence[int], timeout_ms: int) -> Mapping[int, int]: ...

    def assign(self, positions: Mapping[int, ReadPosition]) -> None: ...

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]: ...

    def positions(self) -> Mapping[int, int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedRecord:
    """Represents one record; `event` is None in a tombstone, which removes the key's record."""

    position: MetadataPosition
    append_time_ms: int
    key: RecordKey
    event: Event | None


class MetadataConsumer:
    """Reads the topic's partitions from a chosen start. Not thread-safe.

    With `topic`, returns only records about user topics of that name. It returns their tombstones
    only after it has read such a record of the same topic id. Skips unreadable records, counts them
    by reason, and logs the first of each reason. Raises NotFoundError if the metadata topic does
    not exist or no longer contains the offset to read. Raises RetriableError if the topic cannot be
    read now; call again. Memory: the records of one `poll`, and the topic ids found.
    """

    def __init__(
        self,
        reader: TopicReader,
        start: Start | Mapping[int, int] = Start.BEGINNING,
        *,
        topic: str | None = None,
        timeout_ms: int = 10_000,
    ) -> None:
        """Begin at `start`.

        A mapping contains the first offset to read of each partition; other partitions are not
        read. `timeout_ms` bounds each request that finds the start.
        """
        self._reader = reader
        self._topic = topic
        self._topic_ids: set[bytes] = set()
        self._skipped: Counter[str] = Counter()
        reader.assign(_start_positions(reader, start, timeout_ms))

    def poll(self, *, timeout_ms: int = 1_000, max_records: int = 1_000) -> list[ConsumedRecord]:
        """Wait up to `timeout_ms` for records; return them in log order per partition."""
        records = self._reader.poll(max_records=max_records, timeout_ms=timeout_ms)
        return [taken for record in records if (taken := self._taken(record)) is not None]

    def positions(self) -> Mapping[int, int]:
        """Return each partition's next offset to read; another consumer can start from these."""
        return self._reader.positions()

    def skipped(self) -> Mapping[str, int]:
        """Return how many records were skipped, by reason: `unsupported` or `corrupt`."""
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
