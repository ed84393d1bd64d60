"""Writes the entries of one or more ledgers to the store as they arrive (PIP-76).

    offer_entry   entry -> block -> buffer -> part of the upload -> accepted by the store
    seal          last block -> end of the data object -> index object -> result

A complete block stays in the buffer until the store has accepted it as a part. While the buffer is
full, the handle accepts no entry that begins a block: the caller offers it again later. Nothing is
readable before the index object is written.
Source: Pulsar's OffloadHandle and BlobStoreManagedLedgerOffloader.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from rsm.layout.block_v2.block_stream import (
    DEFAULT_STREAM_BLOCK_BYTES,
    BlockStream,
    EntryPosition,
    require_block_size,
)
from rsm.layout.block_v2.ledger_info import LedgerInfo
from rsm.layout.block_v2.stream_index import encode_stream_index
from rsm.layout.blocks.block_sequence import MAX_INDEX_BYTES
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.local_segment import ContentSource
from rsm.storage.uploads.piece_stream import PieceBuffer

WritePair = Callable[[ContentSource, Callable[[], bytes]], None]
"""Writes a data object, and then the index object from the result of the function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingLimits:
    """Represents the minimum length of a block, and the limits of the buffer and the objects.

    An index object may slightly exceed `index_bytes`, which does not include the infos passed to
    `seal`. The defaults of the other limits are Pulsar's. S3 needs `block_bytes` of at least 5 MiB,
    because it accepts no smaller part except the last. A single entry may exceed `buffer_bytes` and
    `segment_bytes`.
    """

    block_bytes: int = DEFAULT_STREAM_BLOCK_BYTES
    buffer_bytes: int = 10 << 20
    segment_bytes: int = 1 << 30
    index_bytes: int = MAX_INDEX_BYTES // 2

    def __post_init__(self) -> None:
        """Raise InvalidConfigError for an invalid block size or a limit below one block."""
        require_block_size(self.block_bytes)
        for name, found in (("buffer", self.buffer_bytes), ("segment", self.segment_bytes)):
            if found < self.block_bytes:
                raise InvalidConfigError(
                    f"the {name} is smaller than a block",
                    found=found,
                    expected=f">= {self.block_bytes}",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadResult:
    """Represents a complete offload: its id, and its first and last entries."""

    uuid: UUID
    first: EntryPosition
    last: EntryPosition


class OffloadHandle:
    """Writes one streamed object and its index.

    Thread-safe. The handle takes concurrent offers one at a time; the callers must ensure their
    order. Only `result`, `wait_for_room` and `abort` wait for the store. After an error of the
    store, each method except `abort` raises that error, and the handle deletes what it may have
    written, if the store permits it. RetriableError is such an error if the handle's thread cannot
    start. The upload stays open until you call `seal` or `abort`, or `result` on a full handle.

    Memory: `buffer_bytes`; more if a large entry and the block before it do not fit. The handle
    starts one thread when the first block is complete.
    """

    def __init__(self, *, uuid: UUID, limits: StreamingLimits, write: WritePair) -> None:
        self._uuid = uuid
        self._limits = limits
        self._write = write
        self._stream = BlockStream(block_bytes=limits.block_bytes)
        self._buffer = PieceBuffer[OffloadResult]()
        self._infos: Mapping[int, LedgerInfo] = {}
        self._lock = threading.Lock()
        self._is_started = False
        self._is_sealed = False
        self._is_ended = False
        self._is_awaited = False

    @property
    def last_offered(self) -> EntryPosition | None:
        """Return the last accepted entry; None if there is none."""
        return self._stream.last

    @property
    def is_sealed(self) -> bool:
        """Return whether the handle accepts no more entries."""
        return self._is_sealed

    def can_offer(self, size_bytes: int, ledger_id: int | None = None) -> bool:
        """Return whether the handle would accept an entry of this size now.

        The default of `ledger_id` is the last entry's ledger. Seals the handle if the entry does
        not fit into the maximum size of the segment or the index.
        """
        with self._lock:
            self._buffer.check()
            return self._accepts(self._new_block_bytes(ledger_id, size_bytes))

    def offer_entry(self, ledger_id: int, entry_id: int, data: bytes | memoryview) -> bool:
        """Take an entry. Returns False if the buffer is full or the handle is sealed.

        Copies the data. While no block waits for the store, the buffer has room for an entry of any
        size. Seals the handle if the entry does not fit into the maximum size of the segment or the
        index. `seal` or `result` then ends the object.

        Raises InvalidConfigError unless entry ids are consecutive within a ledger, and ledger ids
        ascend; all must be >= 0. Raises UnsupportedError for an entry longer than MAX_ENTRY_BYTES
        (almost 2 GiB). After both errors, the handle stays usable. Also raises the error of the
        store.
        """
        with self._lock:
            self._buffer.check()
            if self._is_sealed:
                return False
            self._stream.require_next(ledger_id, entry_id, len(data))
            if not self._accepts(self._new_block_bytes(ledger_id, len(data))):
                return False
            self._pass_on(self._stream.add(ledger_id, entry_id, data))
            return True

    def wait_for_room(
        self, size_bytes: int, ledger_id: int | None = None, *, timeout_s: float | None = None
    ) -> bool:
        """Wait until the buffer has room for an entry of this size; then return `can_offer`.

        Waits at most `timeout_s`. Returns False at once if the handle is sealed.
        """
        if self.can_offer(size_bytes, ledger_id):
            return True
        with self._lock:
            most_bytes = self._most_bytes(self._new_block_bytes(ledger_id, size_bytes))
        if most_bytes is not None and not self._is_sealed:
            self._buffer.wait_until(most_bytes, timeout_s)
        return self.can_offer(size_bytes, ledger_id)

    def seal(self, infos: Mapping[int, LedgerInfo] | None = None) -> None:
        """End the object; the index is written when the store has all blocks. Idempotent.

        `infos` describes ledgers by their ids, as in `BlockStream.index`. Raises InvalidConfigError
        if `infos` is given but the object has already ended with other infos or none. Does not
        wait.
        """
        with self._lock:
            self._buffer.check()
            if not self._is_ended:
                self._infos = dict(infos or {})
                self._end()
            elif infos and dict(infos) != self._infos:
                raise InvalidConfigError(
                    "cannot seal the object: it has already ended with other infos",
                    uuid=self._uuid,
                    advice="Pass the infos to the first call of `seal`, before `result`",
                )

    def abort(self, reason: BaseException) -> None:
        """Give up the offload with `reason`; return when its upload has ended. Idempotent.

        If the object has already ended, waits for the offload instead.
        """
        with self._lock:
            self._is_sealed = self._is_ended = True
            self._fail_unstarted(reason)
        self._buffer.abort(reason)

    def result(self, timeout_s: float | None = None) -> OffloadResult:
        """Wait until the offload is complete; return its id and range. Does not seal the handle.

        Once this call has begun, a full handle ends its object itself, without the infos of `seal`.
        Raises the error of the store, or the reason of `abort`. Raises InvalidConfigError if no
        entry was offered, and RetriableError after `timeout_s`.
        """
        with self._lock:
            self._is_awaited = True
            if self._is_sealed:
                self._end()
        try:
            return self._buffer.result(timeout_s)
        except TimeoutError as error:
            raise RetriableError(
                "cannot return the offload's result: the offload did not complete in time",
                uuid=self._uuid,
            ) from error

    def _accepts(self, new_bytes: int) -> bool:
        """Return whether an entry that begins a block of this length is accepted now.

        Seals the handle before an entry that would never be accepted.
        """
        if not self._is_sealed and self._is_full(new_bytes):
            self._is_sealed = True
            if self._is_awaited:
                self._end()
        most_bytes = self._most_bytes(new_bytes)
        has_room = most_bytes is None or self._buffer.buffered_bytes <= most_bytes
        return has_room and not self._is_sealed

    def _new_block_bytes(self, ledger_id: int | None, size_bytes: int) -> int:
        """Return the length of the block that this entry would begin; 0 if it would begin none."""
        last = self._stream.last
        if ledger_id is None:
            ledger_id = 0 if last is None else last.ledger_id
        return self._stream.new_block_bytes(ledger_id, size_bytes)

    def _most_bytes(self, new_bytes: int) -> int | None:
        """Return the limit of buffered bytes for taking an entry; None if there is no limit."""
        if not new_bytes:
            return None
        taken_bytes = self._stream.open_block_bytes + new_bytes
        return max(0, self._limits.buffer_bytes - taken_bytes)

    def _is_full(self, new_bytes: int) -> bool:
        """Return whether the object ends before an entry that begins a block of this length."""
        data_bytes, limits = self._stream.data_bytes, self._limits
        return data_bytes > 0 and (
            data_bytes + new_bytes > limits.segment_bytes
            or (new_bytes > 0 and self._stream.index_bytes >= limits.index_bytes)
        )

    def _pass_on(self, blocks: tuple[bytearray, ...]) -> None:
        for block in blocks:
            if not self._is_started:
                self._is_started = True
                self._buffer.start(self._run, name="offload")
            self._buffer.add(block)

    def _end(self) -> None:
        """Pass on the last block and end the data object, unless it has already ended."""
        if self._is_ended:
            return
        self._is_sealed = self._is_ended = True
        self._fail_unstarted(
            None
            if self._stream.last
            else InvalidConfigError(
                "the offload is empty: no entry was offered",
                uuid=self._uuid,
                advice="Offer at least one entry",
            )
        )
        self._pass_on(self._stream.finish())
        self._buffer.end()

    def _fail_unstarted(self, reason: BaseException | None) -> None:
        if reason is not None and not self._is_started:
            self._is_started = True
            self._buffer.fail(reason)

    def _run(self) -> OffloadResult:
        """Write both objects; runs in the thread of the upload."""
        self._write(self._buffer, self._index)
        first, last = self._stream.first, self._stream.last
        assert first is not None
        assert last is not None
        return OffloadResult(uuid=self._uuid, first=first, last=last)

    def _index(self) -> bytes:
        return encode_stream_index(self._stream.index(self._infos))
