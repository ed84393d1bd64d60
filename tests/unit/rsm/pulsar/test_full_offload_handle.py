"""A handle whose object or index has no room for the next entry (PIP-76)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rsm.layout.block_v2.block_stream import EntryPosition
from rsm.layout.block_v2.ledger_info import LedgerInfo
from rsm.layout.block_v2.stream_index import decode_stream_index
from rsm.pulsar.offload_handle import OffloadHandle
from rsm.segment.errors import FencedError, InvalidConfigError, RetriableError
from tests.unit.rsm.pulsar.test_offload_handle import NAMES, WHOLE, PartStorage, opened

INFO = LedgerInfo(ledger_id=1, entry_count=9, size_bytes=900, closed_ms=7)
LAST = EntryPosition(ledger_id=1, entry_id=1)

# Each call finds that an entry of 261 bytes does not fit, because it would begin a block.
ASKS: dict[str, Callable[[OffloadHandle], bool]] = {
    "can_offer": lambda handle: handle.can_offer(261),
    "wait_for_room": lambda handle: handle.wait_for_room(261),
    "offer_entry": lambda handle: handle.offer_entry(1, 2, bytes(261)),
}

each_ask = pytest.mark.parametrize("ask", ASKS.values(), ids=list(ASKS))


@pytest.fixture
def store() -> PartStorage:
    store = PartStorage()
    store.accept()
    return store


@pytest.fixture(params=[{"segment_bytes": 900}, {"index_bytes": 24 + 49 + 2 * 20}])
def handle(store: PartStorage, request: pytest.FixtureRequest) -> OffloadHandle:
    """A handle with a complete block and an open one, and without room for a third."""
    handle = opened(store, buffer_bytes=100_000, **request.param)
    assert handle.offer_entry(1, 0, bytes(260))
    assert handle.offer_entry(1, 1, bytes(100))
    return handle


def stored_info(store: PartStorage) -> LedgerInfo:
    return decode_stream_index(store.read_range(NAMES[1], WHOLE), name="i").ledgers[0].info


@each_ask
def test_ask_when_the_object_is_full_then_false_and_sealed(
    store: PartStorage, handle: OffloadHandle, ask: Callable[[OffloadHandle], bool]
) -> None:
    assert not ask(handle)

    assert handle.is_sealed
    for each in ASKS.values():
        assert not each(handle)
    assert not handle.can_offer(0)
    assert store.names == []
    assert handle.result(30).last == LAST
    assert store.names == NAMES


def test_can_offer_when_a_smaller_entry_fits_then_it_is_accepted(handle: OffloadHandle) -> None:
    assert handle.can_offer(100)
    assert handle.offer_entry(1, 2, bytes(100))

    handle.seal()
    assert handle.result(30).last.entry_id == 2


def test_wait_when_the_object_is_full_and_the_store_accepts_nothing_then_false_at_once() -> None:
    store = PartStorage()
    handle = opened(store, buffer_bytes=400, segment_bytes=900)
    assert handle.offer_entry(1, 0, bytes(260))
    assert not handle.can_offer(260)
    store.accept(1)
    assert handle.wait_for_room(260, timeout_s=30)
    assert handle.offer_entry(1, 1, bytes(260))

    assert not handle.wait_for_room(260)

    store.accept()
    assert handle.result(30).last == LAST


@each_ask
def test_seal_when_the_object_is_full_then_the_index_has_its_infos(
    store: PartStorage, handle: OffloadHandle, ask: Callable[[OffloadHandle], bool]
) -> None:
    ask(handle)

    handle.seal({1: INFO})

    assert handle.result(30).last == LAST
    assert stored_info(store) == INFO


def test_seal_when_the_object_ended_without_its_infos_then_refused(
    store: PartStorage, handle: OffloadHandle
) -> None:
    """If the infos were ignored, the index would silently lack them."""
    handle.can_offer(261)
    handle.result(30)

    with pytest.raises(InvalidConfigError, match="other infos"):
        handle.seal({1: INFO})
    handle.seal()

    assert stored_info(store) == LedgerInfo(ledger_id=1, entry_count=2, size_bytes=360)


def test_seal_when_called_again_then_the_first_infos_stay(
    store: PartStorage, handle: OffloadHandle
) -> None:
    handle.seal({1: INFO})

    handle.seal({1: INFO})
    handle.seal()

    handle.result(30)
    assert stored_info(store) == INFO


@each_ask
def test_result_when_it_waits_and_the_object_gets_full_then_it_returns(
    store: PartStorage, handle: OffloadHandle, ask: Callable[[OffloadHandle], bool]
) -> None:
    """Pulsar's callers wait for the result from the start, and have no other call to end it."""
    with pytest.raises(RetriableError, match="not complete"):
        handle.result(0)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(handle.result, 30)

        assert not ask(handle)

        assert waiting.result(30).last == LAST
    assert store.names == NAMES


def test_abort_when_the_object_is_full_then_nothing_is_left(
    store: PartStorage, handle: OffloadHandle
) -> None:
    handle.can_offer(261)

    handle.abort(FencedError("another leader"))

    with pytest.raises(FencedError, match="another leader"):
        handle.result(30)
    assert store.names == []
