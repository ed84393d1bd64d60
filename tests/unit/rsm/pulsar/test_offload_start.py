"""A streaming offload whose thread cannot start."""

from __future__ import annotations

from uuid import UUID

import pytest

from rsm.pulsar.offload_handle import OffloadHandle, StreamingLimits
from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import RetriableError
from rsm.storage.memory import MemoryChunkStorage
from tests.thread_starts import no_thread_starts

_FAILURE = "cannot start the upload"


@pytest.fixture
def store() -> MemoryChunkStorage:
    return MemoryChunkStorage(wall_ms=lambda: 0)


@pytest.fixture
def handle(store: MemoryChunkStorage) -> OffloadHandle:
    limits = StreamingLimits(block_bytes=400, buffer_bytes=1_000)
    return open_offloader(store, streaming=limits).streaming_offload(UUID(int=1))


def test_offer_when_no_thread_starts_then_each_method_raises_it_and_abort_ends(
    store: MemoryChunkStorage, handle: OffloadHandle
) -> None:
    with no_thread_starts(), pytest.raises(RetriableError, match=_FAILURE):
        handle.offer_entry(1, 0, bytes(300))

    for call in (handle.result, handle.seal, lambda: handle.can_offer(1)):
        with pytest.raises(RetriableError, match=_FAILURE):
            call()
    handle.abort(RetriableError("given up"))
    assert not list(store.list(""))


def test_seal_when_no_thread_starts_for_the_only_block_then_result_raises_it(
    handle: OffloadHandle,
) -> None:
    handle.offer_entry(1, 0, b"a")
    with no_thread_starts(), pytest.raises(RetriableError, match=_FAILURE):
        handle.seal()

    with pytest.raises(RetriableError, match=_FAILURE):
        handle.result()
