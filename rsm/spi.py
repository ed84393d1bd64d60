"""RemoteStorageManager (KIP-405): log segments to objects, and back.

The implementation is rsm.manager; what an object looks like is a layout's matter, where it lies a
chunk storage's. Offsets and leader epochs are carried, never interpreted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import AbortedTransaction, LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange


class IndexType(Enum):
    """KIP-405's IndexType, and the record of the segment itself that the store keeps."""

    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    TRANSACTION = "transaction"
    PRODUCER_SNAPSHOT = "producer_snapshot"
    LEADER_EPOCH = "leader_epoch"


class CopyAttempt(ABC):
    """The bounds of one attempt to copy; asked between any two pieces of work."""

    @abstractmethod
    def check(self) -> None:
        """Return if the attempt may go on.

        Raises RetriableError past its deadline, FencedError if its leadership was lost.
        Thread-safe.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedObjects:
    """How a segment is to be stored, as its metadata records it."""

    layout: str
    objects: tuple[StoredObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedSegment:
    """What a copy made: the planned objects with lengths and CRC32C, and custom metadata.

    `custom_metadata` are bytes that only the implementation understands (KIP-917), empty for none.
    They stay with the segment's record, so that they come back with the metadata of every later
    fetch and deletion.
    """

    objects: tuple[StoredObject, ...]
    custom_metadata: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFault:
    """An object that is not as it was stored: missing, or with the reason why it is corrupt."""

    object_key: str
    is_missing: bool
    reason: str


class RemoteStorageManager(ABC):
    """Stores, reads and deletes the objects of log segments. All methods are thread-safe."""

    @abstractmethod
    def plan_objects(
        self, segment_id: RemoteLogSegmentId, base_offset: int, *, size_bytes: int
    ) -> PlannedObjects:
        """Name the objects that `copy_log_segment_data` would write; nothing is written.

        `size_bytes` is the log's length: 0 where compaction took all of a segment, and not every
        layout can hold that. The names are published before the first byte is written, so that a
        crash leaves nothing that is not recorded.
        """

    @abstractmethod
    def copy_log_segment_data(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> CopiedSegment:
        """Write and verify all objects of a segment, those that `metadata` names and no others.

        After return they are durable and verified: the store's length equals what was handed
        over, and so does the store's checksum where it keeps one (a read back where the setting
        says so). On any error whatever was written is deleted if it can be; what cannot be is
        found by the names in `metadata.objects`. Not idempotent: a second attempt has a new id.
        Raises CorruptError (local bytes bad, or store returned others), RetriableError,
        FencedError. A caller that bounds custom metadata deletes a segment that has more.
        """

    @abstractmethod
    def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, positions: ByteRange) -> bytes:
        """Bytes of the original `.log` at `positions`, cut at its end.

        Raises NotFoundError if the object is gone, CorruptError if it is shorter than recorded,
        RetriableError. The caller bounds the range.
        """

    @abstractmethod
    def fetch_log_segment_into(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, target: memoryview
    ) -> int:
        """As `fetch_log_segment`, to the beginning of `target`, which has room; how many bytes."""

    @abstractmethod
    def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        """One companion's bytes as the broker had them.

        Raises NotFoundError if the segment has no such companion (KIP-405), CorruptError,
        RetriableError.
        """

    @abstractmethod
    def fetch_aborted_transactions(
        self, metadata: RemoteLogSegmentMetadata
    ) -> tuple[AbortedTransaction, ...]:
        """All aborted transactions that overlap the segment, wherever their markers lie.

        Empty if there is none, also for a segment without a transaction index. Raises as
        `fetch_index`.
        """

    @abstractmethod
    def check_objects(
        self, metadata: RemoteLogSegmentMetadata, *, read: bool, attempt: CopyAttempt
    ) -> tuple[ObjectFault, ...]:
        """Compare a finished segment's objects in the store with their records; empty if all are.

        Length, and the checksum that the store keeps. With `read` each object is read as well, in
        pieces of 1 MiB, and its CRC32C computed. Uses nothing that was cached. Raises
        RetriableError if the store cannot say, and what `attempt` raises.
        """

    @abstractmethod
    def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Delete all objects of a segment; absent ones count as deleted. Idempotent.

        Raises RetriableError naming the keys that are still there.
        """

    @abstractmethod
    def kept_objects(self) -> Collection[str]:
        """The keys of objects of which anything that was read is kept on this host."""

    @abstractmethod
    def forget(self, keys: Iterable[str]) -> None:
        """Keep nothing that was read of these objects. Whoever reads one now keeps its bytes."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held; idempotent. No call may follow."""
