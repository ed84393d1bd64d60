"""Builds requests for the ends of the broker's logs, for the client's connection. Pure.

An OFFSET_OUT_OF_RANGE response carries no high watermark. The gateway therefore sends ListOffsets
for the local log start, the last stable offset and the high watermark. It sends one request for
each, because a request may name a partition only once.

Memory: for each connection, the log ends that were at most `max_age_ms` old at the last response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from rlm.wire.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rlm.wire.error_codes import ErrorCode
from rsm.segment.ids import TopicIdPartition

# This is the first version with leader epochs. Every broker since Kafka 2.1 supports it.
LIST_OFFSETS_VERSION = 4
_CONSUMER = -1


class LogEndKind(Enum):
    """Represents an end of a log by its timestamp and isolation level in ListOffsets.

    The members are in request order.
    """

    START = (-2, 0)
    LAST_STABLE = (-1, 1)
    HIGH_WATERMARK = (-1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnds:
    """Represents a log's ends as the broker reported them. With an error code, they are invalid."""

    error_code: int = ErrorCode.NONE
    start_offset: int = -1
    last_stable_offset: int = -1
    high_watermark: int = -1


def ends_at_follower(trimmed_offset: int) -> LogEnds:
    """Return the log ends that are certain at a follower; it reports none itself.

    Trimmed offsets are stored and committed. Nothing above them is certain, because a follower's
    high watermark may lag.
    """
    return LogEnds(
        start_offset=trimmed_offset,
        last_stable_offset=trimmed_offset,
        high_watermark=trimmed_offset,
    )


class LogEndsRequests:
    """Represents the three requests for the ends of several logs, and their responses."""

    def __init__(self, leader_epochs: Mapping[TopicIdPartition, int]) -> None:
        """`leader_epochs` maps each log to the client's leader epoch; -1 if it sent none."""
        self._leader_epochs = leader_epochs
        self._found: dict[TopicIdPartition, dict[LogEndKind, int]] = {p: {} for p in leader_epochs}
        self._failed: dict[TopicIdPartition, int] = {}

    def request(self, end: LogEndKind) -> ListOffsetsRequest:
        timestamp, isolation_level = end.value
        by_topic: dict[str, list[ListOffsetsPartition]] = {}
        for partition, epoch in self._leader_epochs.items():
            by_topic.setdefault(partition.topic, []).append(
                ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=epoch,
                    timestamp=timestamp,
                )
            )
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=isolation_level,
            topics=tuple(
                ListOffsetsTopic(name=name, partitions=tuple(partitions))
                for name, partitions in by_topic.items()
            ),
        )

    def record_response(self, end: LogEndKind, response: ListOffsetsResponse) -> None:
        rows = {
            (topic.name, row.partition_index): row
            for topic in response.topics
            for row in topic.partitions
        }
        for partition, found in self._found.items():
            row = rows.get((partition.topic, partition.partition))
            if row is None:
                self._failed[partition] = ErrorCode.UNKNOWN_SERVER_ERROR
            elif row.error_code != ErrorCode.NONE:
                self._failed[partition] = row.error_code
            else:
                found[end] = row.offset

    def ends(self) -> dict[TopicIdPartition, LogEnds]:
        """Return each log's ends or error code. Call this after recording all three responses."""
        ends = {}
        for partition, found in self._found.items():
            if partition in self._failed or len(found) < len(LogEndKind):
                code = self._failed.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
                ends[partition] = LogEnds(error_code=code)
            else:
                ends[partition] = LogEnds(
                    start_offset=found[LogEndKind.START],
                    last_stable_offset=found[LogEndKind.LAST_STABLE],
                    high_watermark=found[LogEndKind.HIGH_WATERMARK],
                )
        return ends


class KnownLogEnds:
    """Represents the log ends that one connection received within `max_age_ms`."""

    def __init__(self, *, max_age_ms: int) -> None:
        self._max_age_ms = max_age_ms
        self._known: dict[TopicIdPartition, tuple[int, LogEnds]] = {}

    def get(self, partition: TopicIdPartition, now_ms: int) -> LogEnds | None:
        """Return a log's ends; None if they are unknown or too old."""
        asked_ms, ends = self._known.get(partition, (0, None))
        return ends if ends is not None and now_ms - asked_ms <= self._max_age_ms else None

    def unknown(
        self, partitions: Sequence[TopicIdPartition], now_ms: int
    ) -> list[TopicIdPartition]:
        """Return the partitions whose ends must be requested."""
        return [each for each in partitions if self.get(each, now_ms) is None]

    def record(self, ends: Mapping[TopicIdPartition, LogEnds], now_ms: int) -> None:
        """Record ends that have no error, and remove old ends."""
        limit_ms = now_ms - self._max_age_ms
        self._known = {p: known for p, known in self._known.items() if known[0] >= limit_ms}
        self._known.update(
            {p: (now_ms, e) for p, e in ends.items() if e.error_code == ErrorCode.NONE}
        )
