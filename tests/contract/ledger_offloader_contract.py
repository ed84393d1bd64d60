"""The contract of the LedgerOffloader, for whole ledgers and streams, over every chunk storage."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

import pytest

from rsm.layout.block_v2.block_stream import EntryPosition
from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.pulsar.ledger import Ledger
from rsm.pulsar.offload_handle import OffloadHandle, StreamingLimits
from rsm.pulsar.offloader import LedgerOffloader, open_offloader
from rsm.segment.errors import (
    AlreadyExistsError,
    FencedError,
    InvalidConfigError,
    NotFoundError,
)
from rsm.storage.chunk_storage import ChunkStorage
from tests import golden_ledger
from tests.contract.sources import source_of

UUID_1, UUID_2 = UUID(int=1), UUID(int=2)
Entries = list[tuple[int, int, bytes]]


def stored(storage: ChunkStorage) -> list[str]:
    return [info.name for info in storage.list("")]


def offer(handle: OffloadHandle, entries: Entries) -> None:
    for ledger_id, entry_id, data in entries:
        while not handle.offer_entry(ledger_id, entry_id, data):
            assert handle.wait_for_room(len(data), ledger_id, timeout_s=60)


def context_of(*uuids: UUID) -> OffloadContext:
    return OffloadContext(segments=tuple(OffloadSegment(uuid=uuid) for uuid in uuids))


class LedgerOffloaderContract:
    """The fixture `storage` is empty; parts of its uploads have at least `block_bytes`."""

    block_bytes = 400

    @pytest.fixture
    def offloader(self, storage: ChunkStorage) -> LedgerOffloader:
        return open_offloader(
            storage,
            block_bytes=self.block_bytes,
            read_buffer_bytes=max(1 << 16, self.block_bytes // 5),
            streaming=StreamingLimits(
                block_bytes=self.block_bytes, buffer_bytes=2 * self.block_bytes
            ),
        )

    def entries(self, ledger_id: int, first_entry_id: int, count: int) -> Entries:
        """Return entries of a third of a block, except an empty one and one longer than a block."""
        sizes = [self.block_bytes // 3, self.block_bytes + 7, 0, *[self.block_bytes // 3] * count]
        return [
            (ledger_id, first_entry_id + number, bytes([number]) * size)
            for number, size in enumerate(sizes[:count])
        ]

    def test_offload_when_it_returns_then_every_entry_can_be_read(
        self, offloader: LedgerOffloader
    ) -> None:
        entries = [(entry_id, data) for _, entry_id, data in self.entries(7, 0, 6)]

        offloader.offload(Ledger(ledger_id=7, entries=iter(entries)), UUID_1, {"A": "b"})

        ledger = offloader.read_offloaded(7, OffloadContext(uuid=UUID_1))
        assert list(ledger.entries()) == entries
        assert list(ledger.entries(2, 4)) == entries[2:4]

    def test_stream_when_it_is_sealed_then_every_entry_of_each_ledger_can_be_read(
        self, offloader: LedgerOffloader
    ) -> None:
        first, second = self.entries(7, 130, 6), self.entries(9, 0, 4)
        handle = offloader.streaming_offload(UUID_1)

        offer(handle, [*first, *second])
        handle.seal()
        result = handle.result()

        assert result.first == EntryPosition(ledger_id=7, entry_id=130)
        assert result.last == EntryPosition(ledger_id=9, entry_id=3)
        for entries in (first, second):
            expected = [(entry_id, data) for _, entry_id, data in entries]
            ledger = offloader.read_offloaded(entries[0][0], context_of(UUID_1))
            assert list(ledger.entries()) == expected
            start = expected[1][0]
            assert list(ledger.entries(start, start + 2)) == expected[1:3]

    def test_stream_when_a_ledger_is_in_two_objects_then_read_as_one(
        self, offloader: LedgerOffloader
    ) -> None:
        entries = self.entries(7, 0, 6)
        for uuid, part in ((UUID_1, entries[:4]), (UUID_2, entries[4:])):
            handle = offloader.streaming_offload(uuid)
            offer(handle, part)
            handle.seal()
            handle.result()

        ledger = offloader.read_offloaded(7, context_of(UUID_1, UUID_2))

        expected = [(entry_id, data) for _, entry_id, data in entries]
        assert list(ledger.entries()) == expected
        assert list(ledger.entries(3, 5)) == expected[3:5]

    def test_stream_when_many_parts_pass_the_buffer_then_each_leaves_it_once_accepted(
        self, offloader: LedgerOffloader
    ) -> None:
        handle = offloader.streaming_offload(UUID_1)
        data = bytes(self.block_bytes - 140)

        offer(handle, [(7, entry_id, data) for entry_id in range(8)])
        handle.seal()

        assert handle.result().last.entry_id == 7

    def test_stream_when_it_is_not_sealed_then_nothing_can_be_read(
        self, offloader: LedgerOffloader, storage: ChunkStorage
    ) -> None:
        handle = offloader.streaming_offload(UUID_1)
        offer(handle, self.entries(7, 0, 4))

        with pytest.raises(NotFoundError):
            offloader.read_offloaded(7, context_of(UUID_1))
        assert stored(storage) == []

        handle.abort(FencedError("another leader"))
        assert stored(storage) == []
        with pytest.raises(FencedError, match="another leader"):
            handle.result()

    def test_read_when_the_last_segment_is_not_complete_then_the_ledger_ends_before_it(
        self, offloader: LedgerOffloader
    ) -> None:
        """The last object of a ledger that is being offloaded has no index yet."""
        written, open_one = offloader.streaming_offload(UUID_1), offloader.streaming_offload(UUID_2)
        entries = self.entries(7, 0, 6)
        offer(written, entries[:4])
        written.seal()
        written.result()
        offer(open_one, entries[4:])
        incomplete = OffloadSegment(uuid=UUID_2, is_complete=False)
        complete = OffloadSegment(uuid=UUID_1, is_complete=True)

        ledger = offloader.read_offloaded(7, OffloadContext(segments=(complete, incomplete)))

        assert list(ledger.entries()) == [(entry_id, data) for _, entry_id, data in entries[:4]]
        with pytest.raises(InvalidConfigError, match="no complete segment"):
            offloader.read_offloaded(7, OffloadContext(segments=(incomplete,)))
        open_one.abort(FencedError("another leader"))

    @pytest.mark.parametrize("suffix", ["", "-index"])
    def test_stream_when_an_object_exists_already_then_it_alone_is_left(
        self, offloader: LedgerOffloader, storage: ChunkStorage, suffix: str
    ) -> None:
        taken = f"{UUID_1}{suffix}"
        storage.create_with_content(taken, source_of(b"someone else's"))
        handle = offloader.streaming_offload(UUID_1)

        with pytest.raises(AlreadyExistsError):
            self._stream_all(handle)

        assert stored(storage) == [taken]

    def _stream_all(self, handle: OffloadHandle) -> None:
        offer(handle, self.entries(7, 0, 1))
        handle.seal()
        handle.result()

    def test_offload_when_the_entries_break_then_nothing_is_left(
        self, offloader: LedgerOffloader, storage: ChunkStorage
    ) -> None:
        def entries() -> Iterator[tuple[int, bytes]]:
            yield from ((entry_id, data) for _, entry_id, data in self.entries(7, 0, 4))
            raise FencedError("another leader")

        with pytest.raises(FencedError, match="another leader"):
            offloader.offload(Ledger(ledger_id=7, entries=entries()), UUID_1)

        assert stored(storage) == []

    def test_offload_when_the_entries_break_and_the_object_exists_then_it_is_left(
        self, offloader: LedgerOffloader, storage: ChunkStorage
    ) -> None:
        taken = f"{UUID_1}-ledger-7"
        storage.create_with_content(taken, source_of(b"someone else's"))
        not_consecutive = iter([(0, b"a"), (2, b"b")])

        with pytest.raises((InvalidConfigError, AlreadyExistsError)):
            offloader.offload(Ledger(ledger_id=7, entries=not_consecutive), UUID_1)

        assert stored(storage) == [taken]

    def test_abort_when_the_object_exists_then_it_is_left(
        self, offloader: LedgerOffloader, storage: ChunkStorage
    ) -> None:
        taken = f"{UUID_1}"
        storage.create_with_content(taken, source_of(b"someone else's"))
        handle = offloader.streaming_offload(UUID_1)

        with suppress(AlreadyExistsError):  # some stores refuse before the end
            offer(handle, self.entries(7, 0, 4))
        handle.abort(FencedError("another leader"))

        assert stored(storage) == [taken]

    def test_delete_when_called_twice_then_only_this_offload_is_gone(
        self, offloader: LedgerOffloader, storage: ChunkStorage
    ) -> None:
        offloader.offload(Ledger(ledger_id=7, entries=iter([(0, b"a")])), UUID_1)
        for uuid in (UUID_1, UUID_2):
            self._stream_all(offloader.streaming_offload(uuid))

        for _ in range(2):
            offloader.delete_offloaded(UUID_1)
        assert stored(storage) == [
            f"{UUID_1}-ledger-7",
            f"{UUID_1}-ledger-7-index",
            f"{UUID_2}",
            f"{UUID_2}-index",
        ]
        for _ in range(2):
            offloader.delete_offloaded(UUID_1, ledger_id=7)
            offloader.delete_offloaded(UUID_2)
        assert stored(storage) == []

    def test_read_when_pulsar_wrote_the_objects_then_every_entry_is_there(
        self, offloader: LedgerOffloader, storage: ChunkStorage
    ) -> None:
        golden_ledger.put(storage)
        golden_ledger.put_stream(storage)

        whole = offloader.read_offloaded(golden_ledger.LEDGER_ID, golden_ledger.CONTEXT)
        streamed = [
            (ledger_id, entry_id, data)
            for ledger_id in (21, 22)
            for entry_id, data in offloader.read_offloaded(
                ledger_id, golden_ledger.STREAM_CONTEXT
            ).entries()
        ]

        assert [
            (entry_id, len(data), hashlib.sha256(data).hexdigest())
            for entry_id, data in whole.entries()
        ] == golden_ledger.manifest()
        assert [
            golden_ledger.StreamedEntry(
                ledger_id, entry_id, len(data), hashlib.sha256(data).hexdigest()
            )
            for ledger_id, entry_id, data in streamed
        ] == golden_ledger.stream_manifest()
