from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from rsm.layout.block_v2.block_stream import EntryPosition
from rsm.layout.block_v2.stream_index import decode_stream_index
from rsm.layout.blocks.block_sequence import MAX_INDEX_BYTES
from rsm.pulsar.offload_handle import OffloadHandle, StreamingLimits
from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    FencedError,
    InvalidConfigError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.local_segment import BytesSource, ContentSource, acknowledge
from rsm.segment.ranges import ByteRange
from rsm.storage.memory import MemoryChunkStorage
from tests.services.waiting import wait_until
from tests.unit.rsm.layout.block_v2.test_block_stream import HugeData

UUID_1 = UUID(int=1)
WHOLE = ByteRange(start_position=0, end_position=1 << 40)
NAMES = [str(UUID_1), f"{UUID_1}-index"]


class PartStorage(MemoryChunkStorage):
    """A store that accepts a part once `accept` allows it, and fails at a name on purpose."""

    def __init__(self) -> None:
        super().__init__(wall_ms=lambda: 0)
        self.taken = 0
        self.failures: dict[str, TieredStorageError] = {}
        self.stores_before_failing = False
        self._permits = threading.Semaphore(0)

    def accept(self, parts: int = 5_000) -> None:
        self._permits.release(parts)

    def create_with_content(
        self, name: str, source: ContentSource, *, attributes: Mapping[str, str] | None = None
    ) -> int:
        content = bytearray()
        for view in source.chunks():
            self.taken += 1
            content += view
            if not name.endswith("-index"):
                assert self._permits.acquire(timeout=30)
            if name in self.failures and not self.stores_before_failing:
                break
            acknowledge(source, len(view))
        if name in self.failures and not self.stores_before_failing:
            raise self.failures[name]
        created = super().create_with_content(
            name, BytesSource(content=bytes(content)), attributes=attributes
        )
        if name in self.failures:
            raise self.failures[name]
        return created

    @property
    def names(self) -> list[str]:
        return [info.name for info in self.list("")]


@pytest.fixture
def store() -> PartStorage:
    return PartStorage()


def opened(
    store: PartStorage,
    *,
    buffer_bytes: int = 1_000,
    segment_bytes: int = 1 << 30,
    index_bytes: int = MAX_INDEX_BYTES // 2,
) -> OffloadHandle:
    limits = StreamingLimits(
        block_bytes=400,
        buffer_bytes=buffer_bytes,
        segment_bytes=segment_bytes,
        index_bytes=index_bytes,
    )
    return open_offloader(store, streaming=limits).streaming_offload(UUID_1)


def end(store: PartStorage, handle: OffloadHandle) -> None:
    """End a handle whose store may still wait for permission."""
    store.accept()
    handle.abort(RetriableError("the test is over"))


def fill(handle: OffloadHandle, size_bytes: int = 260) -> int:
    """Offer entries that fill a block each until one is refused; return how many were taken."""
    last = handle.last_offered
    entry_id = first = 0 if last is None else last.entry_id + 1
    while handle.offer_entry(1, entry_id, bytes(size_bytes)):
        entry_id += 1
    return entry_id - first


def test_offer_when_parts_are_not_accepted_then_the_buffer_fills_and_refuses(
    store: PartStorage,
) -> None:
    handle = opened(store)

    taken = fill(handle)

    assert taken == 2
    assert not handle.can_offer(0)
    assert handle.last_offered == EntryPosition(ledger_id=1, entry_id=1)
    assert not handle.is_sealed
    end(store, handle)


def test_offer_when_a_part_is_accepted_then_there_is_room_for_another(store: PartStorage) -> None:
    handle = opened(store)
    assert fill(handle) == 2

    store.accept(1)

    assert handle.wait_for_room(260, timeout_s=30)
    assert fill(handle) == 1
    store.accept()
    handle.seal()
    assert handle.result().last == EntryPosition(ledger_id=1, entry_id=2)


def test_offer_when_thousands_of_parts_pass_then_never_refused_for_good(
    store: PartStorage,
) -> None:
    """Pulsar's count of buffered bytes leaks, and offers stay refused."""
    handle = opened(store)
    store.accept()

    for entry_id in range(3_000):
        assert handle.wait_for_room(260, timeout_s=30)
        assert handle.offer_entry(1, entry_id, bytes(260))
    handle.seal()

    assert handle.result().last.entry_id == 2_999
    assert store.names == NAMES


def test_offer_when_the_block_has_room_then_taken_though_the_buffer_is_full(
    store: PartStorage,
) -> None:
    handle = opened(store, buffer_bytes=800)
    assert handle.offer_entry(1, 0, bytes(260))
    assert handle.offer_entry(1, 1, bytes(10))

    assert handle.can_offer(238)
    assert not handle.can_offer(239)
    assert not handle.can_offer(0, ledger_id=2)
    assert not handle.offer_entry(2, 0, b"")
    assert handle.offer_entry(1, 2, bytes(238))
    end(store, handle)


@pytest.mark.parametrize("size_bytes", [1_000, 100_000])
def test_offer_when_an_entry_is_larger_than_the_buffer_then_taken_once_it_is_empty(
    store: PartStorage, size_bytes: int
) -> None:
    handle = opened(store)
    assert handle.offer_entry(1, 0, bytes(260))
    assert not handle.can_offer(size_bytes)
    assert not handle.offer_entry(1, 1, bytes(size_bytes))

    store.accept(1)

    assert handle.wait_for_room(size_bytes, timeout_s=30)
    assert handle.offer_entry(1, 1, bytes(size_bytes))
    assert not handle.can_offer(0)
    store.accept()
    handle.seal()
    handle.result()


def test_offer_when_an_open_block_is_before_an_entry_larger_than_the_buffer_then_taken(
    store: PartStorage,
) -> None:
    """The entry completes the block itself, so that there is no deadlock."""
    handle = opened(store)
    assert handle.offer_entry(1, 0, b"a")

    assert handle.can_offer(5_000)
    assert handle.offer_entry(1, 1, bytes(5_000))

    end(store, handle)


def test_wait_when_nothing_is_accepted_in_time_then_false(store: PartStorage) -> None:
    handle = opened(store)
    fill(handle)

    assert not handle.wait_for_room(0, timeout_s=0.01)

    end(store, handle)


def test_offer_when_the_segment_is_full_then_sealed_without_the_entry(store: PartStorage) -> None:
    handle = opened(store, segment_bytes=900)
    store.accept()
    assert handle.offer_entry(1, 0, bytes(260))
    assert handle.offer_entry(1, 1, bytes(100))

    assert not handle.offer_entry(1, 2, bytes(261))

    assert handle.is_sealed
    assert not handle.can_offer(0)
    assert not handle.offer_entry(1, 2, b"")
    assert handle.result().last == EntryPosition(ledger_id=1, entry_id=1)


def test_offer_when_a_single_entry_is_larger_than_the_segment_then_alone_in_it(
    store: PartStorage,
) -> None:
    handle = opened(store, segment_bytes=900)
    store.accept()

    assert handle.offer_entry(1, 0, bytes(2_000))
    handle.wait_for_room(0)
    assert not handle.offer_entry(1, 1, b"a")

    assert handle.result().last.entry_id == 0


@pytest.mark.parametrize(("ledger_id", "entry_id"), [(5, 5), (5, 3), (4, 0)])
def test_offer_when_the_entry_cannot_follow_then_refused_and_the_handle_continues(
    store: PartStorage, ledger_id: int, entry_id: int
) -> None:
    handle = opened(store)
    store.accept()
    handle.offer_entry(5, 3, b"a")

    with pytest.raises(InvalidConfigError):
        handle.offer_entry(ledger_id, entry_id, b"b")
    assert handle.last_offered == EntryPosition(ledger_id=5, entry_id=3)

    assert handle.offer_entry(5, 4, b"c")
    handle.seal()
    assert handle.result().last == EntryPosition(ledger_id=5, entry_id=4)


def test_offer_when_an_entry_exceeds_the_format_then_refused_and_the_handle_continues(
    store: PartStorage,
) -> None:
    handle = opened(store)
    store.accept()
    handle.offer_entry(5, 3, b"a")

    with pytest.raises(UnsupportedError):
        handle.offer_entry(5, 4, HugeData())

    handle.seal()
    assert handle.result().last == EntryPosition(ledger_id=5, entry_id=3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_stored", [False, True])
def test_result_when_the_store_fails_then_its_error_and_nothing_is_left(
    store: PartStorage, name: str, is_stored: bool
) -> None:
    """The store may have the object although its response was lost."""
    store.failures[name] = RetriableError("the store broke")
    store.stores_before_failing = is_stored
    store.accept()
    handle = opened(store)
    handle.offer_entry(1, 0, bytes(260))
    handle.seal()

    for _ in range(2):
        with pytest.raises(RetriableError, match="the store broke"):
            handle.result()

    assert store.names == []


def test_offer_when_the_store_failed_then_its_error_each_time(store: PartStorage) -> None:
    store.failures[NAMES[0]] = CorruptError("other bytes arrived")
    store.accept()
    handle = opened(store)
    handle.offer_entry(1, 0, bytes(260))
    with pytest.raises(CorruptError, match="other bytes arrived"):
        handle.wait_for_room(1_000_000, timeout_s=30)

    for call in (
        lambda: handle.offer_entry(1, 1, b"a"),
        lambda: handle.can_offer(1),
        lambda: handle.wait_for_room(1),
        handle.seal,
        handle.result,
    ):
        with pytest.raises(CorruptError, match="other bytes arrived"):
            call()
    handle.abort(RetriableError("too late"))


def test_result_when_an_object_exists_already_then_it_is_left_alone(store: PartStorage) -> None:
    store.create_with_content(NAMES[1], BytesSource(content=b"other"))
    store.accept()
    handle = opened(store)
    handle.offer_entry(1, 0, b"a")
    handle.seal()

    with pytest.raises(AlreadyExistsError):
        handle.result()

    assert store.names == [NAMES[1]]


@pytest.mark.parametrize("sizes", [[], [10], [260], [260, 10]])
def test_abort_when_an_object_is_begun_then_nothing_is_left_and_the_reason_stays(
    store: PartStorage, sizes: list[int]
) -> None:
    handle = opened(store)
    store.accept()
    for entry_id, size_bytes in enumerate(sizes):
        assert handle.offer_entry(1, entry_id, bytes(size_bytes))

    handle.abort(FencedError("another leader"))
    handle.abort(RetriableError("once more"))

    assert store.names == []
    with pytest.raises(FencedError, match="another leader"):
        handle.result()
    with pytest.raises(FencedError, match="another leader"):
        handle.offer_entry(1, len(sizes), b"a")


def test_abort_when_the_offload_is_sealed_then_it_completes(store: PartStorage) -> None:
    store.accept()
    handle = opened(store)
    handle.offer_entry(1, 0, b"a")
    handle.seal()

    handle.abort(RetriableError("too late"))

    assert handle.result().last.entry_id == 0
    assert store.names == NAMES


def test_seal_when_nothing_was_offered_then_refused_and_nothing_is_written(
    store: PartStorage,
) -> None:
    handle = opened(store)

    handle.seal()

    with pytest.raises(InvalidConfigError, match="no entry"):
        handle.result()
    assert store.names == []


def test_result_when_the_store_takes_too_long_then_retriable_and_later_complete(
    store: PartStorage,
) -> None:
    handle = opened(store)
    handle.offer_entry(1, 0, b"a")
    handle.seal()
    handle.seal()

    with pytest.raises(RetriableError, match="not complete"):
        handle.result(timeout_s=0.01)

    assert store.names == []
    store.accept()
    assert handle.result().first == EntryPosition(ledger_id=1, entry_id=0)


def test_offer_when_it_returns_then_the_callers_buffer_can_be_used_again(
    store: PartStorage,
) -> None:
    handle = opened(store)
    buffer = bytearray(b"abc")

    handle.offer_entry(1, 0, memoryview(buffer))
    buffer[:] = b"xyz"

    store.accept()
    handle.seal()
    handle.result()
    assert b"abc" in store.read_range(NAMES[0], WHOLE)


def test_offer_when_threads_offer_ledgers_at_once_then_each_entry_once_or_refused(
    store: PartStorage,
) -> None:
    """Offers of several threads have one order; an entry that does not follow is refused."""
    handle = opened(store, buffer_bytes=1_000_000)
    store.accept()

    def offer(entry_id: int) -> bool:
        try:
            return handle.offer_entry(1, entry_id, bytes(200))
        except InvalidConfigError:
            return False

    handle.offer_entry(1, 0, b"")
    with ThreadPoolExecutor(8) as threads:
        taken = sum(threads.map(offer, range(1, 200)))

    last = handle.last_offered
    assert last is not None
    assert last.entry_id == taken
    handle.seal()
    assert handle.result().last == last


def test_handle_when_no_block_is_complete_then_no_thread_and_no_request(
    store: PartStorage,
) -> None:
    before = threading.active_count()
    handle = opened(store)
    handle.offer_entry(1, 0, bytes(200))

    assert threading.active_count() == before
    handle.offer_entry(1, 1, bytes(200))
    wait_until(lambda: store.taken == 1, describe=lambda: f"{store.taken} parts are taken")
    end(store, handle)


@pytest.mark.parametrize(
    "sizes", [{"block_bytes": 139}, {"buffer_bytes": 100}, {"segment_bytes": 100}]
)
def test_limits_when_they_hold_less_than_a_block_then_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(InvalidConfigError):
        StreamingLimits(**sizes)


def test_limits_when_not_configured_then_pulsars() -> None:
    limits = StreamingLimits()

    found = (limits.block_bytes, limits.buffer_bytes, limits.segment_bytes)
    assert found == (5 << 20, 10 << 20, 1 << 30)


def test_offer_when_the_index_has_no_room_for_a_block_then_sealed_and_readable(
    store: PartStorage,
) -> None:
    """Each block takes 20 bytes, and the ledger and its info at most 49 after a header of 24."""
    store.accept()
    handle = opened(store, buffer_bytes=100_000, index_bytes=24 + 49 + 3 * 20)

    taken = fill(handle)

    assert (taken, handle.is_sealed) == (3, True)
    assert handle.result(30).last == EntryPosition(ledger_id=1, entry_id=2)
    index = decode_stream_index(store.read_range(NAMES[1], WHOLE), name="i")
    assert len(index.ledgers[0].blocks) == 3


def test_result_when_an_entry_id_is_too_great_then_only_that_entry_is_refused(
    store: PartStorage,
) -> None:
    store.accept()
    handle = opened(store)
    greatest = 2**63 - 2

    assert handle.offer_entry(1, greatest, b"a")
    with pytest.raises(InvalidConfigError, match="position is invalid"):
        handle.offer_entry(1, greatest + 1, b"b")
    handle.seal()

    assert handle.result(30).last == EntryPosition(ledger_id=1, entry_id=greatest)
