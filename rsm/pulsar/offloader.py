"""Implements the LedgerOffloader of PIP-17 and PIP-76 for any ledger.

An offloader is compatible with Pulsar in both directions: in the formats, the names and the user
metadata. It writes the data object before the index, so an index proves that all data was written.
It deletes what a failed offload wrote, if the store permits it. It refuses an object whose user
metadata does not name the format's version.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import pairwise
from uuid import UUID

from rsm.cache.noted_positions import NotedPositions
from rsm.layout.block_v1.block_index import decode_index, encode_index
from rsm.layout.block_v2.block_stream import require_block_size
from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.layout.block_v2.stream_index import StreamedLedger, decode_stream_index
from rsm.layout.blocks.block_format import DEFAULT_BLOCK_BYTES, MAX_ID
from rsm.layout.blocks.ledger_attributes import Role, check_attributes, ledger_attributes
from rsm.layout.blocks.ledger_walk import READ_BUFFER_BYTES, noted_object
from rsm.layout.blocks.offloaded_ledger import LedgerFragment, OffloadedLedger
from rsm.layout.keys import LedgerPart, ledger_name, streamed_name
from rsm.object_deletion import delete_unfinished
from rsm.pulsar.ledger import Ledger, LedgerBlocks
from rsm.pulsar.object_pair import (
    PairObject,
    PairReading,
    match_stream,
    open_fragment,
    open_ledger,
    read_index,
    write_pair,
)
from rsm.pulsar.offload_handle import OffloadHandle, StreamingLimits
from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    RetriableError,
    UnsupportedError,
)
from rsm.storage.chunk_storage import ChunkStorage

DriverMetadata = Mapping[str, str]
"""Names the store of offloaded data. For a missing key, the offloader's own value applies."""


class LedgerOffloader(ABC):
    """Defines Pulsar's LedgerOffloader. Implementations are thread-safe.

    Calls with `driver_metadata` raise InvalidConfigError if it names another store.
    """

    @abstractmethod
    def offload(
        self, ledger: Ledger, uuid: UUID, extra_metadata: Mapping[str, str] | None = None
    ) -> None:
        """Write a closed ledger's two objects (PIP-17); `uuid` names this attempt only.

        Raises AlreadyExistsError if one of the objects exists. Raises InvalidConfigError for a
        ledger that is empty, open or different from its metadata, or whose ids are not consecutive.
        Raises UnsupportedError for an entry longer than MAX_ENTRY_BYTES (almost 2 GiB). Also raises
        the errors of the entries and of the store.
        """

    @abstractmethod
    def streaming_offload(
        self, uuid: UUID, driver_metadata: DriverMetadata | None = None
    ) -> OffloadHandle:
        """Begin a streamed object and its index (PIP-76); `uuid` names this attempt only.

        Sends no request to the store. If the objects exist already, the handle raises
        AlreadyExistsError later and does not change them.
        """

    @abstractmethod
    def read_offloaded(
        self, ledger_id: int, context: OffloadContext, driver_metadata: DriverMetadata | None = None
    ) -> OffloadedLedger:
        """Open an offloaded ledger from its context's segments; if there are none, from its pair.

        Leaves out segments that the context lists as incomplete. Raises InvalidConfigError if the
        context names no complete object or ends before its last segment. Raises NotFoundError if an
        object does not exist. Raises CorruptError if the objects are invalid, belong to different
        ledgers, or are not consecutive.
        """

    @abstractmethod
    def delete_offloaded(
        self,
        uuid: UUID,
        driver_metadata: DriverMetadata | None = None,
        *,
        ledger_id: int | None = None,
        still_used_by: Iterable[OffloadContext] = (),
    ) -> None:
        """Delete a streamed object and its index; PIP-17's two objects if `ledger_id` is given.

        **Data loss:** a streamed object contains entries of several ledgers. Delete it only after
        all of its ledgers are deleted (PIP-76). Pass the contexts of ledgers that still exist as
        `still_used_by`. Raises InvalidConfigError and deletes nothing if a context names `uuid`.
        Raises RetriableError with the names of objects that may remain. Absent objects count as
        deleted. Idempotent.
        """


def open_offloader(
    storage: ChunkStorage | None,
    *,
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    read_buffer_bytes: int = READ_BUFFER_BYTES,
    streaming: StreamingLimits | None = None,
    driver_metadata: DriverMetadata | None = None,
) -> LedgerOffloader:
    """Return a store's offloader; PIP-17's default if there is no store. Never closes `storage`.

    S3 needs `block_bytes` of at least 5 MiB, because it accepts no smaller part except the last.
    `driver_metadata` names the store. Raises InvalidConfigError for a size outside the format's
    limits.
    """
    if storage is None:
        return NullLedgerOffloader()
    return StoreLedgerOffloader(
        storage,
        block_bytes=block_bytes,
        read_buffer_bytes=read_buffer_bytes,
        streaming=streaming or StreamingLimits(),
        driver_metadata=driver_metadata or {},
    )


class NullLedgerOffloader(LedgerOffloader):
    """Raises UnsupportedError in each call, because no store is configured.

    Source: Pulsar's NullLedgerOffloader.
    """

    def offload(
        self, ledger: Ledger, uuid: UUID, extra_metadata: Mapping[str, str] | None = None
    ) -> None:
        raise _no_store("offload a ledger", ledger_id=ledger.ledger_id, uuid=uuid)

    def streaming_offload(
        self, uuid: UUID, driver_metadata: DriverMetadata | None = None
    ) -> OffloadHandle:
        raise _no_store("stream entries", uuid=uuid)

    def read_offloaded(
        self, ledger_id: int, context: OffloadContext, driver_metadata: DriverMetadata | None = None
    ) -> OffloadedLedger:
        raise _no_store("read an offloaded ledger", ledger_id=ledger_id)

    def delete_offloaded(
        self,
        uuid: UUID,
        driver_metadata: DriverMetadata | None = None,
        *,
        ledger_id: int | None = None,
        still_used_by: Iterable[OffloadContext] = (),
    ) -> None:
        raise _no_store("delete an offload", uuid=uuid)


class StoreLedgerOffloader(LedgerOffloader):
    """Offloads ledgers to a chunk storage. Thread-safe.

    An offload writes each block when its entries have arrived. Memory: one block and one entry for
    each offload, the memory of each OffloadHandle, and the store's parts. Each open ledger adds an
    `OffloadedLedger` and its indexes. The positions of entries need up to 3 MB in total.
    """

    def __init__(
        self,
        storage: ChunkStorage,
        *,
        block_bytes: int,
        read_buffer_bytes: int,
        streaming: StreamingLimits,
        driver_metadata: DriverMetadata,
    ) -> None:
        require_block_size(block_bytes)
        self._storage = storage
        self._block_bytes = block_bytes
        self._streaming = streaming
        self._driver_metadata = driver_metadata
        self._positions = NotedPositions()
        self._reading = PairReading(
            positions=self._positions, read_buffer_bytes=max(1, read_buffer_bytes)
        )

    def offload(
        self, ledger: Ledger, uuid: UUID, extra_metadata: Mapping[str, str] | None = None
    ) -> None:
        blocks = LedgerBlocks(ledger, block_bytes=self._block_bytes)
        write_pair(
            self._storage,
            _names(uuid, ledger.ledger_id),
            tuple(ledger_attributes(role, extra_metadata or {}) for role in Role),
            blocks,
            lambda: encode_index(blocks.index()),
        )

    def streaming_offload(
        self, uuid: UUID, driver_metadata: DriverMetadata | None = None
    ) -> OffloadHandle:
        self._require_own_store(driver_metadata)
        attributes = ledger_attributes(None, {})
        return OffloadHandle(
            uuid=uuid,
            limits=self._streaming,
            write=partial(write_pair, self._storage, _names(uuid), (attributes, attributes)),
        )

    def read_offloaded(
        self, ledger_id: int, context: OffloadContext, driver_metadata: DriverMetadata | None = None
    ) -> OffloadedLedger:
        self._require_own_store(driver_metadata)
        if context.segments:
            return self._open_streamed(ledger_id, _complete(ledger_id, context.segments))
        data, index = self._open_pair(context.uuid, ledger_id)
        return open_ledger(ledger_id, read_index(index, decode_index), data, self._reading)

    def delete_offloaded(
        self,
        uuid: UUID,
        driver_metadata: DriverMetadata | None = None,
        *,
        ledger_id: int | None = None,
        still_used_by: Iterable[OffloadContext] = (),
    ) -> None:
        self._require_own_store(driver_metadata)
        if any(uuid in _named_by(context) for context in still_used_by):
            raise InvalidConfigError(
                "cannot delete the object: another ledger still has entries in it", uuid=uuid
            )
        names = _names(uuid, ledger_id)
        for key in self._positions.keys():  # noqa: SIM118 - not a mapping
            if noted_object(key) == names[0]:
                self._positions.forget(key)
        failures = delete_unfinished(self._storage, names)
        if failures:
            error = next(iter(failures.values()))
            raise RetriableError(
                "cannot delete all objects of the offload",
                uuid=uuid,
                keys=tuple(failures),
                reason=error,
            ) from error

    def _open_streamed(
        self, ledger_id: int, segments: tuple[OffloadSegment, ...]
    ) -> OffloadedLedger:
        found = [self._open_segment(ledger_id, segment) for segment in segments]
        fragments = [fragment for _, fragment in found]
        for segment, (fragment, following) in zip(segments, pairwise(fragments), strict=False):
            _require_consecutive(segment, fragment, following)
        last = segments[-1].last_entry_id
        last_entry_id = fragments[-1].find_end_entry_id() - 1 if last is None else last
        if last_entry_id < fragments[-1].first_entry_id:
            raise InvalidConfigError(
                "the offload context is invalid: it ends before its last segment",
                ledger_id=ledger_id,
                expected=f">= {fragments[-1].first_entry_id}",
                found=last_entry_id,
            )
        return OffloadedLedger(
            ledger_id=ledger_id,
            metadata=found[-1][0].info.metadata(last_entry_id),
            fragments=fragments,
            last_entry_id=last_entry_id,
        )

    def _open_segment(
        self, ledger_id: int, segment: OffloadSegment
    ) -> tuple[StreamedLedger, LedgerFragment]:
        data, index_object = self._open_pair(segment.uuid)
        stated = read_index(index_object, decode_stream_index)
        index = match_stream(stated, data, self._reading)
        ledger = index.ledger(ledger_id)
        if ledger is None:
            raise CorruptError(
                "the segment does not contain the ledger",
                object=index_object.name,
                position=0,
                expected=f"ledger {ledger_id}",
                found=f"ledgers {index.ledgers[0].ledger_id} to {index.ledgers[-1].ledger_id}",
            )
        return ledger, open_fragment(ledger, data, self._reading)

    def _open_pair(
        self, uuid: UUID | None, ledger_id: int | None = None
    ) -> tuple[PairObject, PairObject]:
        """Check the user metadata of both objects, and return the data and the index."""
        if uuid is None:
            raise InvalidConfigError(
                "the offload context names no object", ledger_id=ledger_id, expected="a UUID"
            )
        data, index = (self._open_object(name) for name in _names(uuid, ledger_id))
        return data, index

    def _open_object(self, name: str) -> PairObject:
        info = self._storage.info(name)
        check_attributes(info.attributes, name=name)
        return PairObject(
            name=name,
            length_bytes=info.length_bytes,
            read=lambda positions: self._storage.read_range(name, positions),
        )

    def _require_own_store(self, driver_metadata: DriverMetadata | None) -> None:
        for key, found in (driver_metadata or {}).items():
            expected = self._driver_metadata.get(key, found)
            if found != expected:
                raise InvalidConfigError(
                    "cannot use the data: it is in another store",
                    key=key,
                    found=found,
                    expected=expected,
                )


def _complete(ledger_id: int, segments: tuple[OffloadSegment, ...]) -> tuple[OffloadSegment, ...]:
    """Return all segments except those listed as incomplete, which may not have an index yet."""
    complete = tuple(segment for segment in segments if segment.is_complete is not False)
    if not complete:
        raise InvalidConfigError(
            "the offload context has no complete segment",
            ledger_id=ledger_id,
            segments=len(segments),
            advice="Read the ledger again when one of its segments is complete",
        )
    return complete


def _require_consecutive(
    segment: OffloadSegment, fragment: LedgerFragment, following: LedgerFragment
) -> None:
    """Check the entry ids of adjacent segments, as far as they are known before a read."""
    least = fragment.first_entry_id + 1
    most = MAX_ID if segment.last_entry_id is None else segment.last_entry_id + 1
    if not least <= following.first_entry_id <= most:
        raise CorruptError(
            "a segment does not continue the one before it",
            object=following.data_name,
            position=0,
            expected=f"entry {least}..{most}",
            found=following.first_entry_id,
        )


def _no_store(what: str, **context: object) -> UnsupportedError:
    return UnsupportedError(
        f"cannot {what}: no store is configured",
        **context,
        advice="Open the offloader with a store",
    )


def _named_by(context: OffloadContext) -> set[UUID | None]:
    return {context.uuid, *(segment.uuid for segment in context.segments)}


def _names(uuid: UUID, ledger_id: int | None = None) -> tuple[str, str]:
    """Return the names of a data object and its index; PIP-17's names if `ledger_id` is given."""
    if ledger_id is None:
        return streamed_name(uuid, LedgerPart.DATA), streamed_name(uuid, LedgerPart.INDEX)
    return (
        ledger_name(ledger_id, uuid, LedgerPart.DATA),
        ledger_name(ledger_id, uuid, LedgerPart.INDEX),
    )
