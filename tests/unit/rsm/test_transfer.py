from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from rsm.layout.block_v1.block_log import BlockedLog
from rsm.layout.blocks.block_plan import BlockPlanner
from rsm.segment.errors import CorruptError, RetriableError
from rsm.segment.local_segment import ContentSource, PartBounds, parts_of
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import Capabilities, ChunkInfo
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.wrappers.throttle import ThrottledChunkStorage
from rsm.transfer import ReadBack, put_verified
from tests.contract.segments import CountedAttempt
from tests.contract.sources import source_of
from tests.fakes.clock import FakeClock
from tests.segment_builder import pack_batch


class LyingStorage(MemoryChunkStorage):
    """Reports or returns other bytes than those stored."""

    def __init__(
        self,
        *,
        reported: Callable[[ChunkInfo], ChunkInfo] = lambda info: info,
        read: Callable[[bytes], bytes] = lambda content: content,
    ) -> None:
        super().__init__(wall_ms=lambda: 0)
        self._reported = reported
        self._read = read

    def info(self, name: str) -> ChunkInfo:
        return self._reported(super().info(name))

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        return self._read(super().read_range(name, positions))


class ConfirmingStorage(LyingStorage):
    """Its creations return when the store has confirmed them."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, has_confirmed_creation=True)

    def info(self, name: str) -> ChunkInfo:
        raise AssertionError("another request would return no more")


def put(storage: MemoryChunkStorage, *, read_back: bool = False) -> None:
    put_verified(
        storage,
        "a",
        source_of(b"abc", b"def"),
        attempt=CountedAttempt(),
        read_back=ReadBack(piece_bytes=4) if read_back else None,
    )


def test_put_when_store_returns_another_length_then_corrupt() -> None:
    with pytest.raises(CorruptError, match="differs=length_bytes"):
        put(LyingStorage(reported=lambda info: replace(info, length_bytes=5)))


def test_put_when_store_returns_another_checksum_then_corrupt() -> None:
    with pytest.raises(CorruptError, match="differs=crc32c"):
        put(LyingStorage(reported=lambda info: replace(info, crc32c=1)))


def test_put_when_store_keeps_no_checksum_then_the_length_decides() -> None:
    put(LyingStorage(reported=lambda info: replace(info, crc32c=None)), read_back=True)


def test_put_when_store_confirmed_the_creation_then_it_is_not_asked_again() -> None:
    put(ConfirmingStorage())


def test_put_when_store_confirmed_the_creation_then_still_read_back_where_asked_for() -> None:
    with pytest.raises(CorruptError, match="differ from the written bytes"):
        put(ConfirmingStorage(read=bytes.upper), read_back=True)


@pytest.mark.parametrize("read", [bytes.upper, lambda content: content[:-1]])
def test_put_when_read_back_gives_other_bytes_then_corrupt(read: Callable[[bytes], bytes]) -> None:
    with pytest.raises(CorruptError, match="differ from the written bytes"):
        put(LyingStorage(read=read), read_back=True)


def test_put_when_attempt_is_over_then_no_piece_more_is_taken() -> None:
    attempt = CountedAttempt(error=RetriableError("past its deadline"), fails_at=1)
    taken: list[int] = []
    source = source_of(b"abc", b"def", b"ghi")

    with pytest.raises(RetriableError, match="past its deadline"):
        put_verified(
            MemoryChunkStorage(wall_ms=lambda: 0),
            "a",
            replace(source, before_piece=taken.append),
            attempt=attempt,
        )

    assert taken == [0]


def test_put_when_attempt_ends_before_the_source_does_then_nothing_is_written() -> None:
    """R11: a stream waits for its end. Meanwhile others may delete its objects and records."""
    attempt = CountedAttempt(error=RetriableError("past its deadline"), fails_at=2)
    storage = MemoryChunkStorage(wall_ms=lambda: 0)

    with pytest.raises(RetriableError, match="past its deadline"):
        put_verified(storage, "a", source_of(b"abc"), attempt=attempt)

    assert not storage.exists("a")


class PartsStorage(MemoryChunkStorage):
    """Records the parts of each creation."""

    def __init__(self) -> None:
        super().__init__(wall_ms=lambda: 0)
        self.parts: list[Sequence[int] | PartBounds] = []

    def create_with_content(
        self, name: str, source: ContentSource, *, attributes: Mapping[str, str] | None = None
    ) -> int:
        self.parts.append(parts_of(source))
        return super().create_with_content(name, source, attributes=attributes)


def test_put_when_a_source_has_parts_then_the_store_gets_them() -> None:
    storage = PartsStorage()
    blocks = BlockPlanner(block_bytes=300)
    batches = [pack_batch(bytes(100)), pack_batch(bytes(50))]
    planned = [blocks.add(len(batch)) for batch in batches]
    parted = BlockedLog(
        log=source_of(*batches), blocks=[each for each in [*planned, blocks.finish()] if each]
    )
    throttled = ThrottledChunkStorage(storage, FakeClock(), bytes_per_second=1 << 30)

    put_verified(throttled, "a", parted, attempt=CountedAttempt())
    put_verified(throttled, "b", source_of(b"abc"), attempt=CountedAttempt())

    assert storage.parts == [parted.parts, PartBounds.ANY]
    assert len(parted.blocks) == 2
