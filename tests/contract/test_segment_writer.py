"""The contract of segment writers over every chunk storage: a segment's end is not known before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from uuid import UUID

import pytest

from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.batches.batch import scan_batches
from rsm.segment.errors import AlreadyExistsError, CorruptError, FencedError, RetriableError
from rsm.segment.local_segment import ContentSource, interrupt_of
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.spi import CopyAttempt, PlannedObjects, RemoteStorageManager, SegmentWriter
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper
from rsm.transfer import ReadBack
from tests.contract.segments import (
    COMPANIONS,
    LOG,
    CountedAttempt,
    finished,
    planned,
    segment_data,
)
from tests.contract.sources import PiecesSource, source_of

WHOLE = ByteRange(start_position=0, end_position=1 << 40)
LAYOUTS: Mapping[str, SegmentLayout] = {
    "raw": RawLayout(),
    "block_v1": BlockV1Layout(),
    "block_v1 with a block for each batch": BlockV1Layout(block_bytes=220),
    "block_v2": BlockV2Layout(),
    "block_v2 with a block for each batch": BlockV2Layout(block_bytes=140),
    "chunked": ChunkedLayout(max_chunk_bytes=100),
    "chunked in one chunk": ChunkedLayout(max_chunk_bytes=1 << 20),
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> SegmentLayout:
    return LAYOUTS[request.param]


@pytest.fixture
def manager(storage: ChunkStorage, layout: SegmentLayout) -> RemoteStorageManager:
    return manager_of(storage, layout)


def manager_of(storage: ChunkStorage, layout: SegmentLayout) -> RemoteStorageManager:
    return SegmentStorageManager(
        storage=storage,
        keys=ObjectKeys(),
        layouts=[layout],
        read_back=ReadBack(piece_bytes=150),
    )


def opened(
    manager: RemoteStorageManager,
    metadata: RemoteLogSegmentMetadata,
    attempt: CopyAttempt | None = None,
) -> SegmentWriter:
    names = PlannedObjects(layout=metadata.layout, objects=metadata.objects)
    return manager.open_segment_writer(metadata.segment_id, names, attempt or CountedAttempt())


def append_all(writer: SegmentWriter, pieces: Sequence[bytes]) -> None:
    """Append each piece through one buffer, as a reader of files does."""
    buffer = bytearray(max(map(len, pieces)))
    for piece in pieces:
        buffer[: len(piece)] = piece
        writer.append(memoryview(buffer)[: len(piece)])
        buffer[:] = bytes(len(buffer))


def batches() -> Iterator[tuple[int, int]]:
    for _, header in scan_batches(memoryview(LOG)):
        yield header.base_offset, header.length_bytes


def stored_objects(
    storage: ChunkStorage, metadata: RemoteLogSegmentMetadata
) -> list[tuple[str, bytes, object]]:
    keys = list(metadata.object_keys)
    return [(key, storage.read_range(key, WHOLE), storage.info(key).attributes) for key in keys]


def stored_keys(storage: ChunkStorage) -> list[str]:
    return [info.name for info in storage.list("")]


@pytest.mark.parametrize("cuts", [[], [1], [5, 6, 7, 100, 101], list(range(1, len(LOG), 7))])
def test_writer_when_appended_in_odd_pieces_then_the_objects_of_the_whole_copy(
    storage: ChunkStorage, manager: RemoteStorageManager, cuts: list[int]
) -> None:
    metadata = planned(manager)
    data = replace(segment_data(), batches=batches)
    copied = finished(metadata, manager.copy_log_segment_data(metadata, data, CountedAttempt()))
    of_copy = stored_objects(storage, copied)
    manager.delete_log_segment_data(copied)

    writer = opened(manager, metadata)
    append_all(writer, [LOG[a:b] for a, b in pairwise([0, *cuts, len(LOG)])])
    sealed = finished(metadata, writer.seal(metadata, COMPANIONS))

    assert sealed == copied
    assert stored_objects(storage, sealed) == of_copy
    assert manager.fetch_log_segment(sealed, WHOLE) == LOG


def test_writer_when_not_sealed_yet_then_no_companion_and_not_the_whole_log(
    storage: ChunkStorage, manager: RemoteStorageManager
) -> None:
    """A process that dies here leaves no readable segment."""
    metadata = planned(manager)
    writer = opened(manager, metadata)

    writer.append(memoryview(LOG))

    left = stored_keys(storage)
    assert metadata.object_keys[-1] not in left
    assert sum(storage.info(key).length_bytes for key in left) < len(LOG)
    writer.abort(RetriableError("the process died"))
    assert stored_keys(storage) == []


class ProcessDiedError(BaseException):
    """The process has died; none of its code may run."""


class DyingStorage(ChunkStorageWrapper):
    """The store of a process that dies before it creates object `last_number`, counted from 0."""

    def __init__(self, inner: ChunkStorage, last_number: int) -> None:
        super().__init__(inner)
        self._left = last_number

    @contextmanager
    def _request(self, operation: str, name: str) -> Iterator[None]:
        if operation == "create_with_content":
            self._left -= 1
        if self._left < 0:
            raise ProcessDiedError
        yield


def test_seal_when_the_process_dies_between_two_objects_then_what_is_left_is_found_by_the_plan(
    storage: ChunkStorage, layout: SegmentLayout
) -> None:
    metadata = planned(manager_of(storage, layout))
    keys = list(metadata.object_keys)

    for number in range(1, len(keys)):
        writer = opened(manager_of(DyingStorage(storage, number), layout), metadata)
        with pytest.raises(ProcessDiedError):
            append_and_seal(writer, metadata)

        assert stored_keys(storage) == sorted(keys[:number])
        manager_of(storage, layout).delete_log_segment_data(metadata)
        assert stored_keys(storage) == []


def append_and_seal(writer: SegmentWriter, metadata: RemoteLogSegmentMetadata) -> None:
    append_all(writer, [LOG])
    writer.seal(metadata, COMPANIONS)


def test_writer_when_aborted_then_nothing_is_left_and_it_stays_failed(
    storage: ChunkStorage, manager: RemoteStorageManager
) -> None:
    metadata = planned(manager)
    writer = opened(manager, metadata)
    writer.append(memoryview(LOG[:100]))

    writer.abort(FencedError("leadership lost"))
    writer.abort(RetriableError("once more"))

    assert stored_keys(storage) == []
    with pytest.raises(FencedError, match="leadership lost"):
        writer.append(memoryview(LOG[100:]))
    with pytest.raises(FencedError, match="leadership lost"):
        writer.seal(metadata, COMPANIONS)
    assert stored_keys(storage) == []


def test_writer_when_nothing_was_appended_then_abort_leaves_nothing(
    storage: ChunkStorage, manager: RemoteStorageManager
) -> None:
    opened(manager, planned(manager)).abort(RetriableError("nothing came"))

    assert stored_keys(storage) == []


def test_writer_when_the_attempt_fails_at_any_check_then_nothing_is_left(
    storage: ChunkStorage, manager: RemoteStorageManager
) -> None:
    """Scenario 5: leadership lost while a segment is streamed."""
    metadata = planned(manager)
    whole = CountedAttempt()
    manager.delete_log_segment_data(written(manager, metadata, whole))

    for fails_at in range(whole.asked_count):
        attempt = CountedAttempt(error=FencedError("leadership lost"), fails_at=fails_at)
        with pytest.raises(FencedError, match="leadership lost"):
            written(manager, metadata, attempt)
        assert stored_keys(storage) == []


def written(
    manager: RemoteStorageManager, metadata: RemoteLogSegmentMetadata, attempt: CopyAttempt
) -> RemoteLogSegmentMetadata:
    writer = opened(manager, metadata, attempt)
    append_all(writer, [LOG[:77], LOG[77:300], LOG[300:]])
    return finished(metadata, writer.seal(metadata, COMPANIONS))


class PartFailingStorage(ChunkStorageWrapper):
    """A store in which a part of the log fails while more of the log is appended."""

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        interrupt = interrupt_of(source)
        assert interrupt is not None
        interrupt(RetriableError("a part failed"))
        return super().create_with_content(name, source, attributes=attributes)


def test_append_when_a_part_failed_then_it_raises_and_nothing_is_left(
    storage: ChunkStorage, layout: SegmentLayout
) -> None:
    manager = manager_of(PartFailingStorage(storage), layout)
    writer = opened(manager, planned(manager))

    with pytest.raises(RetriableError, match="a part failed"):
        append_all(writer, [LOG[:100], LOG[100:200]])

    assert stored_keys(storage) == []


def test_seal_when_an_append_failed_then_refused_with_the_same_error(
    storage: ChunkStorage, manager: RemoteStorageManager
) -> None:
    metadata = planned(manager)
    attempt = CountedAttempt(error=RetriableError("past its deadline"), fails_at=0)
    writer = opened(manager, metadata, attempt)
    with pytest.raises(RetriableError, match="past its deadline"):
        append_all(writer, [LOG])

    with pytest.raises(RetriableError, match="past its deadline"):
        writer.seal(metadata, COMPANIONS)

    assert stored_keys(storage) == []


@pytest.mark.parametrize("number", [0, -1])
def test_writer_when_an_object_is_there_already_then_it_is_left_alone(
    storage: ChunkStorage, manager: RemoteStorageManager, number: int
) -> None:
    metadata = planned(manager)
    taken = metadata.objects[number].key
    storage.create_with_content(taken, source_of(b"someone else's"))

    with pytest.raises(AlreadyExistsError):
        written(manager, metadata, CountedAttempt())

    assert stored_keys(storage) == [taken]
    assert storage.read_range(taken, WHOLE) == b"someone else's"


def test_seal_when_the_record_is_of_another_log_then_corrupt_and_nothing_is_left(
    storage: ChunkStorage, manager: RemoteStorageManager
) -> None:
    metadata = planned(manager)
    for other in (
        replace(metadata, segment_size_bytes=len(LOG) + 1),
        replace(metadata, segment_id=planned(manager, 2).segment_id),
        replace(metadata, objects=planned(manager, 2).objects),
    ):
        writer = opened(manager, metadata)
        append_all(writer, [LOG])
        with pytest.raises(CorruptError, match="differs from its record"):
            writer.seal(other, COMPANIONS)
        assert stored_keys(storage) == []


def test_seal_when_sealed_before_then_refused_and_the_segment_stays(
    manager: RemoteStorageManager,
) -> None:
    metadata = planned(manager)
    writer = opened(manager, metadata)
    append_all(writer, [LOG])
    sealed = finished(metadata, writer.seal(metadata, COMPANIONS))

    with pytest.raises(ValueError, match="sealed"):
        writer.seal(metadata, COMPANIONS)
    writer.abort(RetriableError("too late"))

    assert manager.fetch_log_segment(sealed, WHOLE) == LOG


@pytest.mark.parametrize("announced_bytes", [len(LOG) - 1, len(LOG) + 1])
def test_write_when_the_log_has_another_length_then_corrupt_and_it_stays_failed(
    storage: ChunkStorage, manager: RemoteStorageManager, announced_bytes: int
) -> None:
    metadata = planned(manager)
    writer = opened(manager, metadata)
    lying = PiecesSource(pieces=(LOG,), announced_bytes=announced_bytes)

    with pytest.raises((CorruptError, RetriableError)):
        writer.write(lying, cut_batches)

    with pytest.raises((CorruptError, RetriableError)):
        writer.seal(metadata, COMPANIONS)
    assert stored_keys(storage) == []


def cut_batches() -> Iterator[tuple[int, int]]:
    yield from [*batches()][:-1]


def test_write_when_the_log_is_begun_then_refused_and_nothing_is_left(
    storage: ChunkStorage, manager: RemoteStorageManager
) -> None:
    writer = opened(manager, planned(manager))
    append_all(writer, [LOG[:10]])

    with pytest.raises(ValueError, match="already"):
        writer.write(source_of(LOG))

    assert stored_keys(storage) == []


def test_reuse_when_the_store_uses_nothing_again_then_the_objects_are_the_same(
    storage: ChunkStorage, manager: RemoteStorageManager
) -> None:
    """No store of this suite keeps what an unfinished creation has sent."""
    data = segment_data()
    earlier, metadata = planned(manager), planned(manager, number=2)
    unused: list[UUID] = []
    lengths: list[int] = []
    writer = opened(manager, metadata)

    writer.reuse([earlier], reused=lengths.append, unused=unused.append)
    writer.end_reuse()
    append_all(writer, [LOG])
    copied = writer.seal(metadata, data.companions)

    assert not manager.can_reuse_unfinished
    assert lengths == []
    assert set(unused) <= {earlier.segment_id.id}
    assert stored_keys(storage) == sorted(each.key for each in copied.objects)
