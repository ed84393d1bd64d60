"""Reads adjacent stored segments as one log, with the companions of one segment."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor

from rlm.policy.stream.merging import SegmentMerge
from rsm.read.segment_scan import RemoteScanner, ScanSettings
from rsm.segment.batches.batch import scan_batches
from rsm.segment.batches.joined_companions import JoinedCompanions
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, NotFoundError
from rsm.segment.local_segment import SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.spi import CopyAttempt, IndexType, RemoteStorageManager

_SETTINGS = ScanSettings(ahead_count=1)


class StoredParts:
    """Represents the log of a merge: a SizedSource with the parts' batches, byte for byte.

    Checks each batch's CRC, offsets and leader epoch, and that the parts have no byte more or less
    than their records say. Memory: that of a scan and of `JoinedCompanions`. Not thread-safe.
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

    @property
    def length_bytes(self) -> int:
        return self._merge.size_bytes

    def chunks(self) -> Iterator[memoryview]:
        """Yield the batches of all parts. Raises NotFoundError if a part was deleted meanwhile."""
        self._joined = JoinedCompanions(self._merge.offsets.start_offset)
        for part in self._merge.parts:
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
                    "a stored segment has another length than recorded",
                    segment_id=metadata.segment_id,
                    expected=metadata.segment_size_bytes,
                    found=read_bytes,
                )

    def companions(self, lineage: Lineage) -> SegmentCompanions:
        """Return the companions of the whole log, after a pass of `chunks`.

        The producer snapshot is that of the last part: a segment's snapshot is the state at its
        end. Streamed parts have none.
        """
        for part in self._merge.parts:
            self._attempt.check()
            # Raises NotFoundError if the companion is missing. `_index` would return None for it.
            aborted = self._storage.fetch_aborted_transactions(part.metadata)
            index = self._index(part.metadata, IndexType.TRANSACTION)
            if index is None and part.metadata.has_transaction_index:
                raise CorruptError(
                    "a stored segment has no transaction index",
                    segment_id=part.metadata.segment_id,
                )
            self._joined.append_transactions(part.offsets, index, aborted)
        last = self._merge.parts[-1].metadata
        return self._joined.companions(
            lineage, producer_snapshot=self._index(last, IndexType.PRODUCER_SNAPSHOT)
        )

    def _index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes | None:
        try:
            return self._storage.fetch_index(metadata, index_type)
        except NotFoundError:
            return None
