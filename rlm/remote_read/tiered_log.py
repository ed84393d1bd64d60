"""TieredLog: reads a partition's records from both tiers, each once and in order.

Stored records come from the store, the others from the broker. The boundary may move during a read.
The broker trims only stored records. So if it no longer has an offset, the reader looks the offset
up in the metadata again. An offset that neither tier contains is an error. Only a recorded gap is
skipped, with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.stored_records import Tier, TierRecords, stored_records
from rlm.remote_read.timestamps import RemoteTimestamps
from rlmm.lookup import Absence, NotStored, locate, log_start_offset
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.batches.aborted import Isolation
from rsm.segment.batches.records import Record
from rsm.segment.errors import CorruptError, InvalidConfigError, NotFoundError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.ranges import OffsetRange
from rsm.spi import RemoteStorageManager

_log = logging.getLogger(__name__)


class BrokerLog(Protocol):
    """Represents the local log of one partition (rlm.broker.partition_reader)."""

    def start_offset(self) -> int:
        """Return the current local start offset. Raises RetriableError, FencedError."""

    def offset_since(self, timestamp_ms: int) -> int | None:
        """Return the first offset with at least `timestamp_ms`; None if no record has it.

        Raises RetriableError.
        """

    def records(self, from_offset: int, end_offset: int) -> Iterator[Sequence[Record]]:
        """Yield the log's records in [from_offset, end_offset), without control records.

        Raises NotFoundError if the broker no longer has an offset; all records below that offset
        were yielded before. Raises RetriableError.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTier:
    """Represents the store and its readers."""

    storage: RemoteStorageManager
    reader: RemoteLogReader
    timestamps: RemoteTimestamps


class TieredLog:
    """Represents one partition, read by one thread. `remote` is None if no store is configured.

    `isolation` must be that of `local`. All methods raise what the tiers raise.
    """

    def __init__(
        self,
        topic_id_partition: TopicIdPartition,
        *,
        metadata: RemoteLogMetadataManager,
        remote: RemoteTier | None,
        local: BrokerLog,
        isolation: Isolation,
    ) -> None:
        self._partition = topic_id_partition
        self._metadata = metadata
        self._remote = remote
        self._local = local
        self._isolation = isolation

    def start_offset(self) -> int:
        """Return the first offset of the log over both tiers."""
        return log_start_offset(self._metadata, self._partition, self._local.start_offset())

    def offset_since(self, timestamp_ms: int) -> int | None:
        """Return the first offset with at least `timestamp_ms` in either tier.

        Returns None if no record has it.
        """
        found = [self._local.offset_since(timestamp_ms)]
        if self._remote is not None:
            found.append(self._remote.timestamps.offset_since(self._partition, timestamp_ms))
        elif self.start_offset() < self._local.start_offset():
            raise _store_needed(self._partition)
        return min((offset for offset in found if offset is not None), default=None)

    def read(self, from_offset: int, end_offset: int) -> Iterator[TierRecords]:
        """Read the records of [from_offset, end_offset), which must be within the log.

        Raises NotFoundError if neither tier contains an offset, or if an object is missing.
        Raises InvalidConfigError if the read needs a store and none is configured. Also raises
        CorruptError and RetriableError.
        """
        position = from_offset
        while position < end_offset:
            stored = locate(self._metadata, self._partition, position)
            if isinstance(stored, NotStored) and stored.absence is Absence.RECORDED_GAP:
                position = yield from self._read_gap(stored, end_offset)
            elif self._remote is None or isinstance(stored, NotStored):
                position = yield from self._read_local(position, end_offset)
            else:
                position = yield from self._read_remote(self._remote, position, end_offset)

    def _read_gap(self, gap: NotStored, end_offset: int) -> Generator[TierRecords, None, int]:
        """Read a gap from the broker if its log contains the gap's start; else warn and skip it."""
        if gap.offset >= self._local.start_offset():
            return (yield from self._read_local(gap.offset, end_offset))
        assert gap.until_offset is not None, "a recorded gap has an end"
        _log.warning(
            LogLine(
                "skipped a recorded gap: neither tier has its records",
                partition=self._partition,
                start_offset=gap.offset,
                end_offset=gap.until_offset,
            )
        )
        return gap.until_offset

    def _read_local(self, from_offset: int, end_offset: int) -> Generator[TierRecords, None, int]:
        """Read to `end_offset` or to the first trimmed offset; return the next offset to read."""
        position = from_offset
        try:
            for records in self._local.records(from_offset, end_offset):
                yield TierRecords(tier=Tier.LOCAL, records=records)
                position = records[-1].offset + 1
        except NotFoundError as error:
            self._require_stored(position, error)
            return position
        return end_offset

    def _require_stored(self, offset: int, local_error: NotFoundError) -> None:
        """Catch up with the metadata; raise unless `offset` is stored or in a recorded gap."""
        if not self._metadata.caught_up(self._partition):
            raise RetriableError(
                "cannot follow the metadata topic to its end", partition=self._partition
            ) from local_error
        stored = locate(self._metadata, self._partition, offset)
        if isinstance(stored, NotStored) and stored.absence is Absence.RECORDED_GAP:
            return
        if isinstance(stored, NotStored):
            raise stored.error() from local_error
        if self._remote is None:
            raise _store_needed(self._partition) from local_error

    def _read_remote(
        self, remote: RemoteTier, from_offset: int, end_offset: int
    ) -> Generator[TierRecords, None, int]:
        """Read as far as segments are stored; return the next offset to read."""
        scan = remote.reader.scan(self._partition, from_offset, end_offset)
        wanted = OffsetRange(start_offset=from_offset, end_offset=end_offset)
        yield from stored_records(scan, wanted, remote.storage, self._isolation)
        if scan.next_offset <= from_offset:
            raise CorruptError(
                "cannot read the stored segment: it contains no batch at or above the offset",
                partition=self._partition,
                offset=from_offset,
            )
        return scan.next_offset


def _store_needed(partition: TopicIdPartition) -> InvalidConfigError:
    return InvalidConfigError(
        "cannot read older records: they are in the store, but no store is configured here",
        partition=partition,
        key="rsm.config.storage.filesystem.root",
        advice="Give the configuration file of `rlm run`, or set the keys of the store",
    )
