"""Defines RemoteStorageManager (KIP-405), which copies log segments to objects and reads them back.

rsm.manager implements it: a layout builds the objects, and a chunk storage stores them. Offsets and
leader epochs are stored and returned, but not interpreted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from rsm.segment.errors import UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import (
    AbortedTransaction,
    BatchExtents,
    LogSegmentData,
    SegmentCompanions,
    SizedSource,
)
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange


class IndexType(Enum):
    """Represents the kinds of index that `fetch_index` reads (KIP-405's IndexType)."""

    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    TRANSACTION = "transaction"
    PRODUCER_SNAPSHOT = "producer_snapshot"
    LEADER_EPOCH = "leader_epoch"


class CopyAttempt(ABC):
    """Represents the limits of one attempt to copy. The copy checks them between pieces of work."""

    @abstractmethod
    def check(self) -> None:
        """Return if the attempt may continue.

        Raises RetriableError after its deadline, FencedError if the broker lost the leadership,
        StoppedError if the process stops. Thread-safe.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedObjects:
    """Represents the layout and the objects of a segment to copy, as its metadata records them."""

    layout: str
    objects: tuple[StoredObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedSegment:
    """Represents a finished copy: the written objects with length and CRC32C, and custom metadata.

    Omits planned chunks that were not written. Only the implementation understands
    `custom_metadata` (KIP-917); empty bytes mean none. The segment's record contains them, so that
    each later fetch and deletion receives them.
    """

    objects: tuple[StoredObject, ...]
    custom_metadata: bytes = b""


class SegmentWriter(ABC):
    """Writes the objects of one segment. The segment's end need not be known at the start.

    Append the log, or write it as a whole; then seal the segment, or abort it. Each call needs:

        open      the segment's id and the names of its objects
        append    the next bytes of the log
        write     the whole log: its length, and the extents of its batches if the layout needs them
        seal      the segment's record, and its indexes and lineage

    Until `seal` returns, the objects do not count as the segment: its record is not finished, and
    the companion is missing or not verified. After any error, the written objects are deleted if
    possible, and each later call except `abort` raises the same error again. A process that dies
    may leave objects of the planned names. Not thread-safe.

    Memory: what the store and the layout need. Appended bytes need more than a log written as a
    whole. A layout in blocks buffers one block, and a writer that waits for its log occupies
    one part of the store's upload memory. A store may end a request that gets no bytes within its
    time limit, so a writer should not wait for long.
    """

    @abstractmethod
    def begin_ledger(self, ledger_id: int, first_entry_id: int) -> None:
        """Begin a ledger: the next appended batch is its entry `first_entry_id`.

        Use it for a log that spans files: each file is a ledger, and its id is the file's base
        offset (PIP-76). Ledger ids ascend, and the entry ids of one ledger are consecutive. If this
        method is never called, the log is one ledger: its id is the base offset of the first batch,
        and its entry ids start at 0. Layouts without ledgers ignore the call.
        """

    def reuse(
        self,
        earlier: Sequence[RemoteLogSegmentMetadata],
        *,
        reused: Callable[[int], None],
        unused: Callable[[UUID], None],
    ) -> None:
        """Reuse the bytes that unfinished writers of `earlier` have sent, if they equal the log.

        Call it before the first `append`. All `earlier` segments begin at this segment's base
        offset, and are fenced. The store may create objects with their names; the caller must
        delete these objects. The store may also refuse what their writers still send. `reused` gets
        the lengths of reused bytes, and `unused` the id of each segment that is no longer needed;
        any thread may call them. If this writer fails, the bytes that it has sent stay for a later
        writer, until the segment is deleted. This default reuses nothing.
        """
        del reused
        for each in earlier:
            unused(each.segment_id.id)

    def end_reuse(self) -> None:  # noqa: B027 - most writers reuse nothing
        """Reuse no earlier bytes for the log that is appended after this call."""

    @abstractmethod
    def append(self, log: memoryview) -> None:
        """Append any number of bytes to the log. The caller can then reuse their memory.

        Waits if the store is slower than the caller. Raises the errors of `copy_log_segment_data`.
        """

    @abstractmethod
    def write(self, log: SizedSource, batches: BatchExtents | None = None) -> None:
        """Write the whole log, which the caller's thread reads. Call it instead of `append`.

        `batches` is LogSegmentData.batches. Raises the errors of `copy_log_segment_data`.
        """

    @abstractmethod
    def seal(
        self, metadata: RemoteLogSegmentMetadata, companions: SegmentCompanions
    ) -> CopiedSegment:
        """End the log, write the remaining objects, and return the copied segment.

        `metadata` is the segment's record, with the planned objects and the log's length. Raises
        CorruptError if the record does not match the written segment, and the errors of `append`.
        """

    @abstractmethod
    def abort(self, reason: BaseException) -> None:
        """Delete written objects, if possible, and free all resources.

        A request in flight to the store fails with `reason`. Does nothing after `seal` or an error.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFault:
    """Represents an object that is missing or corrupt; `reason` describes the difference."""

    object_key: str
    is_missing: bool
    reason: str


class RemoteStorageManager(ABC):
    """Stores, reads and deletes the objects of log segments. All methods are thread-safe."""

    @property
    def can_reuse_unfinished(self) -> bool:
        """Return whether a writer can reuse an unfinished writer's bytes (SegmentWriter.reuse)."""
        return False

    @abstractmethod
    def plan_objects(
        self, segment_id: RemoteLogSegmentId, base_offset: int, *, size_bytes: int
    ) -> PlannedObjects:
        """Name the objects that `copy_log_segment_data` would write. Writes nothing.

        `size_bytes` is the log's length. It is 0 if compaction removed all batches; not every
        layout can store such a segment. The caller records the names before the first byte is
        written, so that a crash leaves no unrecorded object.
        """

    def plan_objects_in(
        self, layout: str, segment_id: RemoteLogSegmentId, base_offset: int, *, size_bytes: int
    ) -> PlannedObjects:
        """Name the objects of a segment whose topic sets its own layout, as `plan_objects` does.

        `layout` is a name as in `rsm.config.layout`. A log without batches may get another layout,
        because not every layout can store it. Raises UnsupportedError for an unknown layout. This
        default always raises it, because KIP-405 has no layouts.
        """
        raise UnsupportedError(
            "cannot use the topic's layout: this remote storage manager has no layouts",
            segment_id=segment_id,
            layout=layout,
            advice="Remove the layout from the topic's policy",
        )

    def plan_streamed_objects(
        self,
        segment_id: RemoteLogSegmentId,
        base_offset: int,
        *,
        most_bytes: int,
        layout: str | None = None,
    ) -> PlannedObjects:
        """Name the objects of a segment that is written before its end is known (PIP-76).

        The log has at most `most_bytes`. `layout` is the topic's own layout; if it cannot store a
        stream, the result has another layout. The caller records the names, as for `plan_objects`.
        Raises UnsupportedError if the implementation stores only whole segments. This default
        always raises it, because KIP-405 has no such method.
        """
        raise UnsupportedError(
            "cannot stream a segment: this remote storage manager stores only whole segments",
            segment_id=segment_id,
            advice="Set the topic's offload mode to `segment`",
        )

    def open_segment_writer(
        self,
        segment_id: RemoteLogSegmentId,
        planned: PlannedObjects,
        attempt: CopyAttempt,
    ) -> SegmentWriter:
        """Return a writer of the planned objects, with the guarantees of a copy.

        Raises UnsupportedError if the layout is unknown or the implementation stores only whole
        segments. This default always raises it, because KIP-405 has no such method.
        """
        raise UnsupportedError(
            "cannot stream a segment: this remote storage manager stores only whole segments",
            segment_id=segment_id,
            layout=planned.layout,
            advice="Set the topic's offload mode to `segment`",
        )

    @abstractmethod
    def copy_log_segment_data(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> CopiedSegment:
        """Write and verify the objects that `metadata` names, and no others.

        On return the objects are durable and verified: their length in the store equals the
        source's, and so does their checksum if the store keeps one. With read-back enabled, they
        were also read again. On any error the written objects are deleted if possible; the names in
        `metadata.objects` identify the rest. Not idempotent: a second attempt needs a new id.
        Raises CorruptError if local bytes are invalid or the store returned other bytes. Also
        raises RetriableError, and the errors of `attempt`. The caller checks its limit for custom
        metadata, and deletes a segment that exceeds it.
        """

    @abstractmethod
    def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, positions: ByteRange) -> bytes:
        """Return the bytes of the original `.log` file at `positions`, fewer only at its end.

        The caller limits the range. Raises NotFoundError if an object is missing, CorruptError if
        an object is shorter than recorded, and RetriableError.
        """

    @abstractmethod
    def fetch_log_segment_into(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, target: memoryview
    ) -> int:
        """Fetch into the beginning of `target`, which is large enough; return the byte count."""

    @abstractmethod
    def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        """Return the bytes of one index in the format of the broker's file.

        Raises NotFoundError if the segment has no such index (KIP-405), CorruptError,
        RetriableError.
        """

    @abstractmethod
    def fetch_aborted_transactions(
        self, metadata: RemoteLogSegmentMetadata
    ) -> tuple[AbortedTransaction, ...]:
        """Return all aborted transactions that overlap the segment, wherever their markers are.

        Returns an empty tuple if there are none. A segment without a transaction index may overlap
        some, with markers in later segments. Raises the errors of `fetch_index`.
        """

    @abstractmethod
    def check_objects(
        self, metadata: RemoteLogSegmentMetadata, *, read: bool, attempt: CopyAttempt
    ) -> tuple[ObjectFault, ...]:
        """Compare a finished segment's stored objects with its record; return the faults.

        Compares the length, and the checksum if the store keeps one. With `read` it also reads each
        object in pieces of 1 MiB, bypassing caches, and compares the length and the CRC32C. Raises
        RetriableError if the store does not respond, and the errors of `attempt`.
        """

    @abstractmethod
    def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Delete all objects of a segment; absent ones count as deleted. Idempotent.

        Raises RetriableError with the number of remaining objects and some of their keys.
        """

    @abstractmethod
    def kept_objects(self) -> Collection[str]:
        """Return the keys of all objects with data in a cache of this host."""

    @abstractmethod
    def forget(self, keys: Iterable[str]) -> None:
        """Remove these objects from the caches. A read in progress still gets its bytes."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; idempotent. No call may follow."""
