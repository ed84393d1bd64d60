"""Reads adjacent stored segments as one log, and joins their companions into one set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rlm.policy.stream.merging import SegmentMerge
from rsm.read.segment_scan import RemoteScanner, ScanSettings
from rsm.segment.batches.batch import scan_batches
from rsm.segment.batches.joined_companions import JoinedCompanions
from rsm.segment.coverage import StoredRange
from rsm.segment.epochs import Lineage
from rsm.segment.errors import (
    CorruptError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.local_segment import SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.spi import CopyAttempt, IndexType, RemoteStorageManager

_SETTINGS = ScanSettings(ahead_count=1)

# Every later attempt to read the same part would end with the same error.
_PART_ERRORS = (NotFoundError, CorruptError, UnsupportedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadablePart:
    """Represents an unreadable part of a merge.

    `error` is why it is unreadable: a NotFoundError, a CorruptError or an UnsupportedError.
    """

    metadata: RemoteLogSegmentMetadata
    error: TieredStorageError


class UnreadablePartsError(RetriableError):
    """Reports unreadable parts of a merge. A merge without these parts may succeed."""

    def __init__(self, parts: Sequence[UnreadablePart]) -> None:
        first = parts[0]
        super().__init__(
            f"cannot merge: a segment is unreadable: {first.error.message}",
            **{
                **first.error.context,
                "segment_id": first.metadata.segment_id,
                "segments": len(parts),
            },
        )
        self.parts = tuple(parts)


class StoredParts:
    """Represents the log of a merge: a SizedSource with the parts' batches, byte for byte.

    Checks the CRC, the offsets and the leader epoch of each batch, and the length of each part. Not
    thread-safe. Memory: that of a scan and of `JoinedCompanions`.
    """

    def __init__(
        self,
        storage: RemoteStorageManager,
        executor: Executor,
        merge: SegmentMerge,
        attempt: CopyAttempt,
    ) -> None:
        self._storage = storage
        self._scanner = RemoteScanner(storage, executor, _SETTINGS)
        self._merge = merge
        self._attempt = attempt
        self._joined = JoinedCompanions(merge.offsets.start_offset)
        self._producer_snapshot: bytes | None = None
        self._unreadable: list[UnreadablePart] = []

    @property
    def length_bytes(self) -> int:
        return self._merge.size_bytes

    @property
    def unreadable(self) -> tuple[UnreadablePart, ...]:
        """Return the parts that the last `read_companions` or `chunks` could not read."""
        return tuple(self._unreadable)

    def read_companions(self) -> None:
        """Read what `companions` needs from the parts, before the first byte of their logs.

        Reads the companions of all parts, then raises the error of the first unreadable part, if
        any. The producer snapshot is that of the last part, because a segment's snapshot is the
        state at the segment's end. Streamed parts have no snapshot.
        """
        for part in self._merge.parts:
            self._attempt.check()
            with suppress(*_PART_ERRORS), self._noting(part.metadata):
                self._join_transactions(part)
        if self._unreadable:
            raise self._unreadable[0].error
        last = self._merge.parts[-1].metadata
        with self._noting(last):
            self._producer_snapshot = self._index(last, IndexType.PRODUCER_SNAPSHOT)

    def chunks(self) -> Iterator[memoryview]:
        """Yield the batches of all parts. Raises the error of the first unreadable part."""
        self._joined.forget_batches()
        self._unreadable.clear()
        for part in self._merge.parts:
            with self._noting(part.metadata):
                yield from self._log_of(part)

    def companions(self, lineage: Lineage) -> SegmentCompanions:
        """Return the companions of the whole log.

        Call this method after `read_companions`, and after the last batch of `chunks`.
        """
        return self._joined.companions(lineage, producer_snapshot=self._producer_snapshot)

    def _log_of(self, part: StoredRange) -> Iterator[memoryview]:
        metadata = part.metadata
        read_bytes = 0
        start_offset = part.offsets.start_offset
        for run in self._scanner.scan([(part, start_offset)], start_offset):
            self._attempt.check()
            self._joined.append_batches(header for _, header in scan_batches(run.data))
            read_bytes += len(run.data)
            yield run.data
        if read_bytes != metadata.segment_size_bytes:
            raise CorruptError(
                "the stored segment is invalid: its length differs from the recorded one",
                segment_id=metadata.segment_id,
                expected=metadata.segment_size_bytes,
                found=read_bytes,
            )

    def _join_transactions(self, part: StoredRange) -> None:
        # This call raises NotFoundError if the companion is missing; `_index` would return None.
        aborted = self._storage.fetch_aborted_transactions(part.metadata)
        index = self._index(part.metadata, IndexType.TRANSACTION)
        if index is None and part.metadata.has_transaction_index:
            raise CorruptError(
                "the stored segment is invalid: its transaction index is missing",
                segment_id=part.metadata.segment_id,
            )
        self._joined.append_transactions(part.offsets, index, aborted)

    def _index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes | None:
        try:
            return self._storage.fetch_index(metadata, index_type)
        except NotFoundError:
            return None

    @contextmanager
    def _noting(self, metadata: RemoteLogSegmentMetadata) -> Iterator[None]:
        """Remember the part as unreadable if every later attempt would also fail to read it."""
        try:
            yield
        except _PART_ERRORS as error:
            self._unreadable.append(UnreadablePart(metadata=metadata, error=error))
            raise
