"""Reads one partition of a fetch from the store, or returns why that is not possible.

**Skipped data:** a client that gets OFFSET_OUT_OF_RANGE resets its offset or skips records. So the
gateway must prove that the offset is below the log start or above the log end. The proof is the
metadata, followed to the topic's end after the broker's response. Without this proof, the client
gets KAFKA_STORAGE_ERROR and retries.
"""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import Future
from typing import Protocol

from rlm.gateway.fetch.remote_log_bounds import LookupCache
from rlm.gateway.fetch.remote_result import (
    FetchOutcome,
    GapBelow,
    LogDivergence,
    ReadRefused,
    RemoteSlice,
    SliceRequest,
)
from rlm.gateway.model.actions import PartitionFetch
from rlm.wire.error_codes import ErrorCode
from rlmm.lookup import Absence, NotStored, locate, log_start_offset
from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError

_STORAGE_ERROR = ReadRefused(ErrorCode.KAFKA_STORAGE_ERROR)
_OUT_OF_RANGE = ReadRefused(ErrorCode.OFFSET_OUT_OF_RANGE)

# This is several times the usual duration: a slow metadata topic must not make every fetch fail.
LEAST_CATCH_UP_MS = 2_000


class Fetcher(Protocol):
    """Reads the store (rlm.gateway.remote.fetcher.RemoteFetcher). Thread-safe."""

    def fetch(self, fetch: SliceRequest, state: PartitionState) -> Future[FetchOutcome]:
        """Start to read. The future returns a slice, which the caller releases, or NotStored."""

    def read_now(self, fetch: SliceRequest, state: PartitionState) -> RemoteSlice | None:
        """Return a sequential reader's batches if they are in memory and verified; else None."""

    def forget(self, client: Hashable) -> None:
        """Remove a disconnected client's state."""


class RemotePartitionReader:
    """Starts reads of stored records, and chooses the outcome if there are none. Thread-safe.

    `begin` and `absent` may block on the metadata topic, never on the store. They block for at most
    `catch_up_ms`, because fetches that do not need the topic use the same threads.
    """

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        fetcher: Fetcher,
        *,
        catch_up_ms: int = LEAST_CATCH_UP_MS,
    ) -> None:
        self._metadata = metadata
        self._fetcher = fetcher
        self._states = LookupCache(metadata, metadata.partition_state)
        self._catch_up_ms = catch_up_ms

    def begin(
        self, read: PartitionFetch, *, read_committed: bool, client: Hashable
    ) -> Future[FetchOutcome] | ReadRefused | LogDivergence:
        """Start to read; return an error or a divergence if nothing may be read.

        Raises RetriableError if the metadata topic cannot be followed to its end. The future raises
        the errors of the fetcher's future.
        """
        if read.is_above_end:
            return self._above_end(read)
        state = self._state_of(read)
        if read.offset >= _lost_below(state):
            # The broker lacks an offset that is not known to be trimmed: this metadata may be old.
            self._catch_up(read)
            state = self._state_of(read)
        refused = _compared_epoch(read, state.lineage)
        if refused is not None:
            return refused
        fetch = _fetch_of(read, read_committed=read_committed, client=client)
        return self._fetcher.fetch(fetch, state)

    def read_now(
        self, read: PartitionFetch, *, read_committed: bool, client: Hashable
    ) -> RemoteSlice | None:
        """Return the slice that `begin` would read; None if only `begin` can decide.

        Reads neither the store nor the metadata topic. Raises the errors of the metadata.
        """
        if read.is_above_end:
            return None
        state = self._state_of(read)
        if read.offset >= _lost_below(state) or _compared_epoch(read, state.lineage) is not None:
            return None
        fetch = _fetch_of(read, read_committed=read_committed, client=client)
        return self._fetcher.read_now(fetch, state)

    def absent(self, read: PartitionFetch, found: NotStored) -> ReadRefused | GapBelow:
        """Return the outcome for an offset that both tiers seem to lack. Raises RetriableError."""
        if found.absence is not Absence.BELOW_LOG_START and found.offset > read.offset:
            return self._after_gap(read, found)
        self._catch_up(read)
        again = locate(self._metadata, read.topic_id_partition, read.offset)
        if not isinstance(again, NotStored):
            return _STORAGE_ERROR
        start_offset = log_start_offset(
            self._metadata, read.topic_id_partition, read.local_start_offset
        )
        return _OUT_OF_RANGE if read.offset < start_offset else _STORAGE_ERROR

    def forget(self, client: Hashable) -> None:
        """Remove a disconnected client's state."""
        self._fetcher.forget(client)

    def _after_gap(self, read: PartitionFetch, found: NotStored) -> ReadRefused | GapBelow:
        """Return the outcome if the store has no batch from `read.offset` up to `found.offset`.

        If `found` is a hole, or the local log starts above it, records may be missing in between.
        Otherwise only recorded gaps are in between.
        """
        if found.absence is Absence.HOLE or found.offset < read.local_start_offset:
            return _STORAGE_ERROR
        self._catch_up(read)
        again = locate(self._metadata, read.topic_id_partition, found.offset)
        return GapBelow(found.offset) if again == found else _STORAGE_ERROR

    def _above_end(self, read: PartitionFetch) -> ReadRefused:
        """Return OFFSET_OUT_OF_RANGE; KAFKA_STORAGE_ERROR if the store has the offset."""
        self._catch_up(read)
        found = locate(self._metadata, read.topic_id_partition, read.offset)
        return _OUT_OF_RANGE if isinstance(found, NotStored) else _STORAGE_ERROR

    def _state_of(self, read: PartitionFetch) -> PartitionState:
        self._states.forget_changed()
        return self._states.get(read.topic_id_partition)

    def _catch_up(self, read: PartitionFetch) -> None:
        if not self._metadata.caught_up(read.topic_id_partition, timeout_ms=self._catch_up_ms):
            raise RetriableError(
                "cannot follow the metadata topic to its end", partition=read.topic_id_partition
            )


def _compared_epoch(read: PartitionFetch, lineage: Lineage) -> ReadRefused | LogDivergence | None:
    """Compare the reader's last fetched epoch with the lineage, as a broker does (KIP-595)."""
    last_epoch = read.last_fetched_epoch
    if last_epoch < 0 or not lineage:
        return None
    known = [entry.epoch for entry in lineage.entries if entry.epoch <= last_epoch]
    epoch = known[-1] if known else last_epoch
    end_offset = lineage.end_offset(last_epoch)
    if end_offset is None:
        # No known epoch follows `last_epoch`. If it is unknown itself, the metadata may be old.
        return None if epoch == last_epoch else _STORAGE_ERROR
    if epoch < last_epoch or end_offset < read.offset:
        return LogDivergence(epoch=epoch, end_offset=end_offset)
    return None


def _fetch_of(read: PartitionFetch, *, read_committed: bool, client: Hashable) -> SliceRequest:
    return SliceRequest(
        topic_id_partition=read.topic_id_partition,
        offset=read.offset,
        max_bytes=max(read.max_bytes, 1),
        min_one_batch=True,
        read_committed=read_committed,
        client=client,
    )


def _lost_below(state: PartitionState) -> int:
    """Return the offset below which the broker is known to have no records."""
    return max(state.trimmed_offset or 0, state.first_readable_offset or 0)
