"""RemoteFetcher: serves one partition's part of a fetch from stored segments.

The fetcher locates the segment in this process's metadata. It knows the position of the batch for a
sequential reader and for a segment's first offset; otherwise it reads the offset index. For a
sequential reader, it takes a whole chunk from memory or by one read of the store. For other readers
it reads about the requested bytes. It returns complete batches within the limit, then prefetches.

`read_now` returns a sequential reader's batches at once if all of them are in memory and verified.
Responses refer to bytes in the chunk cache, without a copy. If a segment has no batch at the offset
or above, the fetch continues in the next segment, so that a missing batch does not make the
response empty.

Memory: the cache's budget for chunks and indexes, including leased ones, and a quarter of it for
free buffers. In addition: the state of `reader_count` readers, the storage manager's memory, and
two chunks for each prefetching thread if these are evicted during verification. Fetches that wait
use no memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from uuid import UUID

from rlm.gateway.fetch.remote_result import FetchOutcome, RemoteSlice, SliceRequest
from rlm.gateway.remote.future_chain import Chain, run_chain
from rlm.gateway.remote.read_ahead_depth import ReadAheadDepth
from rlm.gateway.remote.read_plan import ReadPlan, ReadPlans
from rlm.gateway.remote.sequential_readers import (
    LocatedSegment,
    SequentialReader,
    SequentialReaders,
)
from rlm.remote_read.anomalies import ReadAnomalies
from rlm.remote_read.chunk_window import BatchStart, ChunkWindow, Cut, Incomplete, SegmentChunk
from rlm.remote_read.segment_division import SegmentDivision
from rlm.remote_read.segment_parts import SegmentPart, SegmentParts
from rlmm.lookup import (
    Absence,
    NotStored,
    locate_around,
    locate_sound,
    readable_ranges,
)
from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.partition_state import PartitionState
from rsm.cache.chunk_buffers import ChunkBuffers
from rsm.cache.chunk_cache import ChunkCache
from rsm.cache.chunk_lease import ChunkLease
from rsm.read.segment_indexes import IndexedPosition, SegmentIndexes
from rsm.segment.clock import Clock
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError, NotFoundError
from rsm.segment.metadata import RemoteLogSegmentMetadata, short_keys
from rsm.segment.ranges import OffsetRange
from rsm.spi import RemoteStorageManager

_Lease = ChunkLease[SegmentPart]

_MOST_CHUNK_FACTOR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFetchSettings:
    """Represents the chunk size, the range of prefetch depths, and the number of known readers.

    Depending on measurements of the store, chunks grow up to four times `chunk_bytes`.
    """

    chunk_bytes: int = 4 << 20
    read_ahead_least_bytes: int = 8 << 20
    read_ahead_most_bytes: int = 64 << 20
    reader_count: int = 10_000

    def __post_init__(self) -> None:
        if not (
            self.chunk_bytes > 0
            and 0 <= self.read_ahead_least_bytes <= self.read_ahead_most_bytes
            and self.reader_count > 0
        ):
            limits = "chunk_bytes and reader_count must be positive, and 0 <= least <= most"
            raise ValueError(f"the fetch settings are invalid: {limits}: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Represents a fetch in one segment, from `offset`, which may be above the requested one.

    `is_sequential`: the reader requests the offset after its last response.
    """

    fetch: SliceRequest
    reader: SequentialReader
    located: LocatedSegment
    offset: int
    is_sequential: bool

    @property
    def stored(self) -> StoredRange:
        return self.located.stored


class RemoteFetcher:
    """Reads batches of stored segments. Thread-safe; never waits for the store.

    The cache's executor reads the store. The caller looks up metadata and verifies the batches that
    are not verified yet; after a read of the store, the reading thread does so.
    """

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        storage: RemoteStorageManager,
        cache: ChunkCache[SegmentPart],
        anomalies: ReadAnomalies,
        clock: Clock,
        settings: RemoteFetchSettings | None = None,
    ) -> None:
        settings = settings or RemoteFetchSettings()
        self._metadata = metadata
        self._storage = storage
        self._cache = cache
        self._anomalies = anomalies
        division = SegmentDivision(
            least_bytes=settings.chunk_bytes,
            most_bytes=_MOST_CHUNK_FACTOR * settings.chunk_bytes,
            share_bytes=cache.share_bytes,
        )
        self._parts = SegmentParts(
            storage,
            division=division,
            buffers=ChunkBuffers(
                budget_bytes=cache.budget_bytes,
                most_bytes=_MOST_CHUNK_FACTOR * settings.chunk_bytes,
            ),
            clock=clock,
            peek=cache.peek,
        )
        self._plans = ReadPlans(
            self._parts,
            has_chunk=cache.contains,
            max_requested_bytes=settings.chunk_bytes,
            most_bytes=_MOST_CHUNK_FACTOR * settings.chunk_bytes,
        )
        self._readers = SequentialReaders(
            metadata=metadata,
            cache=cache,
            parts=self._parts,
            first_depth=ReadAheadDepth.begin(
                least_bytes=settings.read_ahead_least_bytes,
                most_bytes=settings.read_ahead_most_bytes,
                chunk_bytes=settings.chunk_bytes,
            ),
            limit_count=settings.reader_count,
        )

    def fetch(
        self, fetch: SliceRequest, state: PartitionState | None = None
    ) -> Future[FetchOutcome]:
        """Return batches, which the caller releases; NotStored if there are none.

        `state` is the partition's metadata, if the caller has just read it. A `NotStored` with
        BEYOND_STORED names the offset to request from the broker. It is above the requested offset
        only if the offsets in between are in a recorded gap, or compaction removed their batches.

        The future raises NotFoundError if an object is missing, or CorruptError. Both name the
        segment and are recorded as anomalies. It also raises RetriableError, and UnsupportedError
        for a batch larger than the cache. Canceling the future releases everything; a started read
        of the store still fills the cache.
        """
        return run_chain(self._read_chain(fetch, state), unwanted=_release)

    def read_now(self, fetch: SliceRequest, state: PartitionState) -> RemoteSlice | None:
        """Return a sequential reader's verified batches if enough are in memory; else None.

        Neither waits nor verifies; the duration does not depend on the response's size. `state` is
        the partition's current metadata.
        """
        reader = _reader_of(fetch)
        found = self._readers.continued(reader, fetch.offset, state)
        if found is None:
            return None
        located, begin = found
        metadata = located.stored.metadata
        keys, following = self._plans.keys(fetch, metadata, begin.position)
        lease = self._cache.read_now(keys, reader=reader, extend=following)
        if lease is None:
            return None
        window = _window(located.stored, lease)
        cut = window.checked(begin.position, fetch.offset, max_bytes=fetch.max_bytes)
        if cut is None or _is_little(cut, fetch, metadata):
            lease.release()
            return None
        self._readers.record_read(reader, fetch.offset, located, cut, waited=False)
        return _slice(metadata, window, cut, lease)

    def forget(self, client: Hashable) -> None:
        """Remove a disconnected client's state and end its prefetches. Idempotent."""
        self._readers.forget(client)

    def _read_chain(
        self, fetch: SliceRequest, asked_state: PartitionState | None
    ) -> Chain[_Lease, FetchOutcome]:
        partition, offset = fetch.topic_id_partition, fetch.offset
        reader = _reader_of(fetch)
        is_sequential = self._readers.check_sequential(reader, offset)
        failed: set[UUID] = set()
        while True:
            state = asked_state or self._metadata.partition_state(partition)
            asked_state = None  # Later rounds need the current state.
            stored = locate_around(state, self._metadata, partition, offset, failed)
            if isinstance(stored, NotStored):
                if stored.absence is Absence.RECORDED_GAP and stored.until_offset is not None:
                    offset = stored.until_offset
                    continue
                return stored
            located = LocatedSegment(stored=stored, state=state)
            wanted = _Target(
                fetch=fetch,
                reader=reader,
                located=located,
                offset=offset,
                is_sequential=is_sequential,
            )
            try:
                found = yield from self._in_segment(wanted)
            except (NotFoundError, CorruptError) as error:
                if isinstance(error, NotFoundError) and not self._can_still_answer(wanted):
                    continue  # Meanwhile, the metadata made the segment unreadable.
                self._anomalies.record(stored.metadata, error, offset=offset)
                failed.add(stored.metadata.segment_id.id)
                if locate_sound(self._metadata, partition, offset, failed) is None:
                    raise
                continue
            if found is not None:
                return found
            offset = stored.offsets.end_offset

    def _can_still_answer(self, wanted: _Target) -> bool:
        """Return whether the metadata still allows reading the offset from this segment."""
        segment_id = wanted.stored.metadata.segment_id
        readable = readable_ranges(self._metadata, segment_id.topic_id_partition, wanted.offset)
        return any(
            each.metadata.segment_id == segment_id and wanted.offset in each.offsets
            for each in readable
        )

    def _in_segment(self, wanted: _Target) -> Chain[_Lease, RemoteSlice | None]:
        """Return batches of one segment; None if it has no batch at the offset or above."""
        fetch, metadata = wanted.fetch, wanted.stored.metadata
        begin = self._readers.begin(wanted.reader, wanted.stored, wanted.offset)
        if begin is None:
            at = yield from self._look_up(wanted)
            found = yield from self._guess(wanted, at)
            if found is not None:
                return found
            begin = BatchStart(position=at.entry.position, entry=at.entry)
            plan = self._plans.plan_range(fetch, metadata, begin.position, at.reach_position)
        elif begin.position >= metadata.segment_size_bytes:
            return None
        elif wanted.is_sequential:
            plan = self._plans.plan_chunks(fetch, metadata, begin.position, begin.position + 1)
        else:
            plan = self._plans.plan_range(fetch, metadata, begin.position)
        waited = False
        while True:
            reading = self._read(wanted, plan)
            if not waited and not reading.done():
                waited = True
                self._prefetch_next(wanted, plan)
            lease = yield reading
            cut = self._cut(wanted, begin, lease)
            if isinstance(cut, Cut):
                return self._record_served(wanted, cut, lease, waited=waited, is_cold=waited)
            lease.release()  # A fetch never keeps a lease while it waits for another.
            if cut is None:
                return None
            if cut.position > begin.position:
                begin = BatchStart(position=cut.position, at_least_offset=cut.next_offset)
            plan = self._plans.plan_chunks(fetch, metadata, begin.position, cut.end_position)

    def _look_up(self, wanted: _Target) -> Chain[_Lease, IndexedPosition]:
        """Return the position of the batch according to the offset index."""
        metadata = wanted.stored.metadata
        reading = self._cache.read([self._parts.indexes(metadata)], reader=wanted.reader)
        with (yield reading) as lease:
            (indexes,) = _indexes(lease)
            return indexes.location(wanted.offset, metadata.segment_size_bytes)

    def _guess(self, wanted: _Target, at: IndexedPosition) -> Chain[_Lease, RemoteSlice | None]:
        """Return batches from the probable start of the offset's batch; None if the guess is wrong.

        A corrupt batch there does not prove that earlier bytes are corrupt.
        """
        if at.likely is None:
            return None
        metadata, position = wanted.stored.metadata, at.likely.position
        plan = self._plans.plan_range(wanted.fetch, metadata, position, at.reach_position)
        try:
            reading = self._read(wanted, plan)
            is_cold = not reading.done()
            lease = yield reading
            cut = self._cut(wanted, BatchStart(position=position, entry=at.likely), lease)
        except CorruptError:
            return None
        if isinstance(cut, Cut) and cut.base_offset <= wanted.offset:
            return self._record_served(wanted, cut, lease, waited=True, is_cold=is_cold)
        lease.release()
        return None

    def _read(self, wanted: _Target, plan: ReadPlan) -> Future[_Lease]:
        return self._cache.read(plan.requests, reader=wanted.reader, extend=plan.following)

    def _prefetch_next(self, wanted: _Target, plan: ReadPlan) -> None:
        if wanted.is_sequential:
            self._readers.prefetch_next(wanted.reader, wanted.stored, plan.end_position - 1)

    def _record_served(
        self, wanted: _Target, cut: Cut, lease: _Lease, *, waited: bool, is_cold: bool
    ) -> RemoteSlice:
        self._readers.record_read(
            wanted.reader, wanted.fetch.offset, wanted.located, cut, waited=waited
        )
        found = _slice(wanted.stored.metadata, _window(wanted.stored, lease), cut, lease)
        if is_cold:  # A cache hit does not prove that the store works.
            read = OffsetRange(start_offset=wanted.offset, end_offset=found.next_offset)
            self._anomalies.record_success(found.segment_id, read)
        return found

    def _cut(self, wanted: _Target, begin: BatchStart, lease: _Lease) -> Cut | Incomplete | None:
        try:
            return _window(wanted.stored, lease).cut(
                begin,
                wanted.offset,
                max_bytes=wanted.fetch.max_bytes,
                min_one_batch=wanted.fetch.min_one_batch,
            )
        except CorruptError as error:
            metadata = wanted.stored.metadata
            self._forget_corrupt(metadata, lease)
            raise CorruptError(
                "a stored batch is corrupt",
                segment_id=metadata.segment_id,
                objects=",".join(short_keys(metadata.object_keys)),
                offset=wanted.offset,
                reason=error,
            ) from error

    def _forget_corrupt(self, metadata: RemoteLogSegmentMetadata, lease: _Lease) -> None:
        """Remove the cached data. If only that is corrupt, the next fetch succeeds."""
        keys = lease.keys
        lease.release()
        for key in keys:
            self._cache.discard(key)
        self._storage.forget(metadata.object_keys)


def _is_little(cut: Cut, fetch: SliceRequest, metadata: RemoteLogSegmentMetadata) -> bool:
    """Return whether a cut is too small: each response costs the reader a round trip."""
    is_end = cut.end_position >= metadata.segment_size_bytes
    return not is_end and 4 * (cut.end_position - cut.position) < fetch.max_bytes


def _reader_of(fetch: SliceRequest) -> SequentialReader:
    return SequentialReader(
        client=fetch.client,
        topic_id_partition=fetch.topic_id_partition,
        read_committed=fetch.read_committed,
    )


def _window(stored: StoredRange, lease: _Lease) -> ChunkWindow:
    return ChunkWindow(stored, [part for part in lease.values if isinstance(part, SegmentChunk)])


def _indexes(lease: _Lease) -> list[SegmentIndexes]:
    return [part for part in lease.values if isinstance(part, SegmentIndexes)]


def _slice(
    metadata: RemoteLogSegmentMetadata, window: ChunkWindow, cut: Cut, lease: _Lease
) -> RemoteSlice:
    offsets = OffsetRange(start_offset=cut.base_offset, end_offset=cut.next_offset)
    return RemoteSlice(
        segment_id=metadata.segment_id,
        base_offset=cut.base_offset,
        next_offset=cut.next_offset,
        buffers=window.view(cut.position, cut.end_position),
        aborted_transactions=tuple(
            each for indexes in _indexes(lease) for each in indexes.aborted_within(offsets)
        ),
        lease=lease,
    )


def _release(outcome: FetchOutcome) -> None:
    if isinstance(outcome, RemoteSlice):
        outcome.release()
