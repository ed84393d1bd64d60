"""Writes to the metadata topic; first finds the result of an earlier write if it is unknown.

After a delivery timeout, a broker may have appended the record above the high watermark, where no
end offset shows it. So the next write to that partition is a barrier: a tombstone of a key that no
record has. Once the barrier has been read back, everything before it has been read, which gives the
result of each open write. Until then, nothing else is written to the partition.

The network may deliver a request even after the barrier. The fold rules cover this case: see "When
a write's result is unknown" in docs/metadata.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from uuid import UUID

from rlmm.record_keys import (
    CLUSTER_KINDS,
    PARTITION_SUBJECT_BYTES,
    RecordKey,
    RecordKind,
    parse_record_key,
)
from rlmm.topic.event_topic import EventTopic, PublishedPosition, UnknownResultError
from rsm.segment.errors import RetriableError

_NOBODY = UUID(int=0).bytes


@dataclass(frozen=True, eq=False, slots=True)
class _OpenWrite:
    """Represents a partition's newest write with an unknown result; compared by identity."""

    key: bytes


class KnownWrites:
    """Writes records to one topic. Thread-safe. Memory: at most one key per partition."""

    def __init__(self, topic: EventTopic, read_past: Callable[[PublishedPosition], bool]) -> None:
        """`read_past` waits until a record is read back and applied; returns False on timeout."""
        self._topic = topic
        self._read_past = read_past
        self._open: dict[int, _OpenWrite] = {}
        self._lock = Lock()

    def write(
        self, partition: int, key: bytes, value: bytes | None, was_read: Callable[[], bool]
    ) -> PublishedPosition | None:
        """Write one record; return None if its ack was lost but `was_read` shows the record.

        Raises RetriableError if the record was not written. Raises UnknownResultError if the result
        of this write, or of an earlier write to the partition, stays unknown.
        """
        self.settle(partition)
        try:
            return self._publish(partition, key, value)
        except UnknownResultError as error:
            if not was_read():
                self._settle_after(error, partition)
            if was_read():
                return None
            raise RetriableError(
                "cannot write a metadata record: it was not written",
                partition=partition,
                reason=error,
            ) from error

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        """Write one record.

        Raises RetriableError if the record was not written. Raises UnknownResultError if the result
        of this write, or of an earlier write to the partition, is unknown.
        """
        self.settle(partition)
        return self._publish(partition, key, value)

    def settle(self, partition: int) -> None:
        """Read the partition past all writes with unknown results. Raises UnknownResultError."""
        with self._lock:
            opened = self._open.get(partition)
        if opened is None:
            return
        try:
            barrier = self._topic.publish(partition, barrier_key(opened.key), None)
        except RetriableError as error:
            raise _not_known(partition, error) from error
        if not self._read_past(barrier):
            raise _not_known(partition, "this process did not read the topic back in time")
        with self._lock:
            newest = self._open.get(partition)
            if newest is opened:
                del self._open[partition]
        if newest not in (opened, None):  # Another result was lost meanwhile.
            raise _not_known(partition, "the brokers did not respond to further writes")

    def _settle_after(self, error: UnknownResultError, partition: int) -> None:
        try:
            self.settle(partition)
        except UnknownResultError as unknown:
            raise UnknownResultError(
                "cannot find out whether the record was written: it may still arrive",
                partition=partition,
                reason=error,
                advice="Try again when the cluster responds: rlm then reads the topic first",
            ) from unknown

    def _publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        try:
            return self._topic.publish(partition, key, value)
        except UnknownResultError:
            with self._lock:
                self._open[partition] = _OpenWrite(key)
            raise


def barrier_key(key: bytes) -> bytes:
    """Return a key of the same metadata partition that no record has.

    The fold of every version ignores the key's tombstones. Compaction keeps only the last one.
    """
    written = parse_record_key(key)
    if written.kind in CLUSTER_KINDS:
        return RecordKey(kind=RecordKind.REGISTRATION, subject=_NOBODY).to_bytes()
    subject = written.subject[:PARTITION_SUBJECT_BYTES]
    return RecordKey(kind=RecordKind.TRIM, subject=subject, event_id=_NOBODY).to_bytes()


def _not_known(partition: int, reason: object) -> UnknownResultError:
    return UnknownResultError(
        "cannot write to the partition: the result of an earlier write is not known",
        partition=partition,
        reason=reason,
    )
