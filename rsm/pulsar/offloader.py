"""LedgerOffloader: PIP-17's operations for any ledger, over a chunk storage or without a store.

Compatible with Pulsar in both directions: same bytes, names and user metadata. It writes the data
object first and the index second, so that an index proves complete data; a failed offload leaves
neither. It refuses an object whose user metadata does not name the format's version.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from uuid import UUID

from rsm.cache.noted_positions import NotedPositions
from rsm.layout.block_v1.block_format import DEFAULT_BLOCK_BYTES, MAX_BLOCK_BYTES, MIN_BLOCK_BYTES
from rsm.layout.block_v1.block_index import MAX_INDEX_BYTES, BlockIndex, decode_index, encode_index
from rsm.layout.block_v1.ledger_attributes import Role, check_attributes, ledger_attributes
from rsm.layout.block_v1.ledger_walk import READ_BUFFER_BYTES, DataObject
from rsm.layout.block_v1.offloaded_ledger import OffloadedLedger
from rsm.layout.keys import LedgerPart, ledger_name
from rsm.pulsar.ledger import Ledger, LedgerBlocks
from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.local_segment import BytesSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage


class LedgerOffloader(ABC):
    """PIP-17's LedgerOffloader. Implementations are thread-safe."""

    @abstractmethod
    def offload(
        self, ledger: Ledger, uuid: UUID, extra_metadata: Mapping[str, str] | None = None
    ) -> None:
        """Write a ledger's two objects; `uuid` names this attempt only.

        Not idempotent: raises AlreadyExistsError. Raises InvalidConfigError for a ledger that is
        empty, open or not as its metadata says, or whose ids are not consecutive. Raises
        UnsupportedError for an entry of almost 2 GiB, and the errors of the entries and the store.
        """

    @abstractmethod
    def read_offloaded(self, ledger_id: int, uuid: UUID) -> OffloadedLedger:
        """Open an offloaded ledger.

        Raises NotFoundError, CorruptError if the objects are invalid or of different ledgers.
        """

    @abstractmethod
    def delete_offloaded(self, ledger_id: int, uuid: UUID) -> None:
        """Delete both objects; absent ones count as deleted. Idempotent.

        Raises RetriableError that names the remaining objects.
        """


def open_offloader(
    storage: ChunkStorage | None,
    *,
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    read_buffer_bytes: int = READ_BUFFER_BYTES,
) -> LedgerOffloader:
    """Return the offloader of a store, which the caller closes; without a store PIP-17's default.

    S3 needs `block_bytes` of at least 5 MiB, because it accepts no smaller part. Raises
    InvalidConfigError for a size outside the format's limits.
    """
    if storage is None:
        return NullLedgerOffloader()
    return StoreLedgerOffloader(
        storage, block_bytes=block_bytes, read_buffer_bytes=read_buffer_bytes
    )


class NullLedgerOffloader(LedgerOffloader):
    """The offloader without a store: each call raises UnsupportedError and does nothing.

    Source: Pulsar's NullLedgerOffloader.
    """

    def offload(
        self, ledger: Ledger, uuid: UUID, extra_metadata: Mapping[str, str] | None = None
    ) -> None:
        raise _no_store("offload a ledger", ledger.ledger_id, uuid)

    def read_offloaded(self, ledger_id: int, uuid: UUID) -> OffloadedLedger:
        raise _no_store("read an offloaded ledger", ledger_id, uuid)

    def delete_offloaded(self, ledger_id: int, uuid: UUID) -> None:
        raise _no_store("delete an offloaded ledger", ledger_id, uuid)


class StoreLedgerOffloader(LedgerOffloader):
    """Ledgers in a chunk storage. Thread-safe.

    An offload writes its blocks as the entries come. Memory: one block and one entry for each
    offload, and the store's parts. An open ledger needs the memory of `OffloadedLedger` and its
    index. The positions of entries need 3 MB in total.
    """

    def __init__(
        self,
        storage: ChunkStorage,
        *,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        read_buffer_bytes: int = READ_BUFFER_BYTES,
    ) -> None:
        if not MIN_BLOCK_BYTES <= block_bytes <= MAX_BLOCK_BYTES:
            raise InvalidConfigError(
                "the block size is invalid",
                found=block_bytes,
                expected=f"{MIN_BLOCK_BYTES}..{MAX_BLOCK_BYTES}",
            )
        self._storage = storage
        self._block_bytes = block_bytes
        self._read_buffer_bytes = max(1, read_buffer_bytes)
        self._positions = NotedPositions()

    def offload(
        self, ledger: Ledger, uuid: UUID, extra_metadata: Mapping[str, str] | None = None
    ) -> None:
        extra = extra_metadata or {}
        data_name, index_name = _names(ledger.ledger_id, uuid)
        blocks = LedgerBlocks(ledger, block_bytes=self._block_bytes)
        self._storage.create_with_content(
            data_name, blocks, attributes=ledger_attributes(Role.DATA, extra)
        )
        try:
            index = BytesSource(content=encode_index(blocks.index()))
            self._storage.create_with_content(
                index_name, index, attributes=ledger_attributes(Role.INDEX, extra)
            )
        except BaseException:
            with suppress(TieredStorageError):  # the caller gets the first error
                self._storage.delete_many([data_name])
            raise

    def read_offloaded(self, ledger_id: int, uuid: UUID) -> OffloadedLedger:
        data_name, index_name = _names(ledger_id, uuid)
        data_info = self._storage.info(data_name)
        index_info = self._storage.info(index_name)
        check_attributes(data_info.attributes, name=data_name)
        check_attributes(index_info.attributes, name=index_name)
        index = read_index(
            lambda positions: self._storage.read_range(index_name, positions),
            name=index_name,
            object_bytes=index_info.length_bytes,
        )
        require_same_ledger(index, data_name=data_name, data_bytes=data_info.length_bytes)
        return OffloadedLedger(
            ledger_id=ledger_id,
            index=index,
            data=DataObject(
                name=data_name,
                read=lambda positions: self._storage.read_range(data_name, positions),
                read_buffer_bytes=self._read_buffer_bytes,
            ),
            positions=self._positions,
        )

    def delete_offloaded(self, ledger_id: int, uuid: UUID) -> None:
        names = _names(ledger_id, uuid)
        self._positions.forget(names[0])
        failed = [each for each in self._storage.delete_many(names) if each.error is not None]
        if failed:
            raise RetriableError(
                "objects could not be deleted",
                ledger_id=ledger_id,
                keys=tuple(each.name for each in failed),
                reason=failed[0].error,
            ) from failed[0].error


def read_index(read: Callable[[ByteRange], bytes], *, name: str, object_bytes: int) -> BlockIndex:
    """Read the whole index object `name`. CorruptError for a too large one, before any read."""
    if object_bytes > MAX_INDEX_BYTES:
        raise CorruptError(
            "the index has a wrong length",
            object=name,
            position=4,
            expected=f"at most {MAX_INDEX_BYTES}",
            found=object_bytes,
        )
    return decode_index(read(ByteRange(start_position=0, end_position=object_bytes)), name=name)


def require_same_ledger(index: BlockIndex, *, data_name: str, data_bytes: int) -> None:
    """Check that a data object of this length can belong to the index. Raises CorruptError."""
    # If Pulsar's offloader stopped at a too large entry, the index's length omits the last block.
    is_cut_off = index.end_entry_id <= index.last_entry_id
    if data_bytes != index.data_bytes and not (is_cut_off and data_bytes > index.data_bytes):
        raise CorruptError(
            "index and data disagree",
            object=data_name,
            position=min(data_bytes, index.data_bytes),
            expected=f"{index.data_bytes} bytes",
            found=data_bytes,
        )


def _no_store(what: str, ledger_id: int, uuid: UUID) -> UnsupportedError:
    return UnsupportedError(
        f"cannot {what}: no store is configured. Open the offloader with a store",
        ledger_id=ledger_id,
        uuid=uuid,
    )


def _names(ledger_id: int, uuid: UUID) -> tuple[str, str]:
    return (
        ledger_name(ledger_id, uuid, LedgerPart.DATA),
        ledger_name(ledger_id, uuid, LedgerPart.INDEX),
    )
