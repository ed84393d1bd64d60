"""Adjacent stored segments are read as one log, with the companions of one segment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.stream.merging import SegmentMerge
from rlm.tasks.copying.stored_parts import StoredParts
from rsm.segment.batches.batch import scan_batches
from rsm.segment.batches.index_builder import IndexBuilder
from rsm.segment.coverage import StoredRange
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, NotFoundError, RetriableError, TieredStorageError
from rsm.segment.indexes import TransactionIndex
from rsm.segment.local_segment import AbortedTransaction, BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.spi import CopyAttempt
from tests.log_dir_builder import EPOCH_ZERO
from tests.remote_world import RemoteWorld, segment_of
from tests.segment_builder import BuiltSegment

LINEAGE = Lineage.of((0, 0), (2, 200))
FIRST = AbortedTransaction(producer_id=7, first_offset=20, last_offset=50, last_stable_offset=51)
ACROSS = AbortedTransaction(producer_id=8, first_offset=90, last_offset=130, last_stable_offset=131)


class Attempt(CopyAttempt):
    def __init__(self, checks_left: int = 1_000) -> None:
        self.checks_left = checks_left

    def check(self) -> None:
        self.checks_left -= 1
        if self.checks_left < 0:
            raise RetriableError("past its deadline")


def segments() -> list[BuiltSegment]:
    epochs = (0, 0, 2)
    return [segment_of(n * 100, leader_epoch=epoch) for n, epoch in enumerate(epochs)]


def stored(world: RemoteWorld, built: list[BuiltSegment]) -> list[RemoteLogSegmentMetadata]:
    world.claim(LINEAGE)
    indexes = (TransactionIndex(transactions=(FIRST,)), TransactionIndex(transactions=(ACROSS,)))
    with_index = [
        replace(built[0], transaction_index=indexes[0].to_bytes()),
        replace(built[1], transaction_index=indexes[1].to_bytes()),
        built[2],
    ]
    aborted = ((FIRST, ACROSS), (ACROSS,), ())
    return [
        world.store(segment, lineage=LINEAGE, aborted=each)
        for segment, each in zip(with_index, aborted, strict=True)
    ]


def parts_of(
    world: RemoteWorld, found: list[RemoteLogSegmentMetadata], attempt: CopyAttempt | None = None
) -> StoredParts:
    merge = SegmentMerge(
        parts=tuple(StoredRange(metadata=each, offsets=each.offsets) for each in found)
    )
    return StoredParts(world.storage, world.executor, merge, attempt or Attempt())


def test_parts_when_read_then_their_bytes_follow_each_other() -> None:
    world, built = RemoteWorld(), segments()
    parts = parts_of(world, stored(world, built))

    content = b"".join(map(bytes, parts.chunks()))

    assert content == b"".join(each.log for each in built)
    assert parts.length_bytes == len(content)


@pytest.mark.parametrize("passes", [1, 2])
def test_companions_when_read_then_they_are_those_of_the_whole_log(passes: int) -> None:
    world, built = RemoteWorld(), segments()
    parts = parts_of(world, stored(world, built))
    content = b""
    parts.read_companions()
    for _ in range(passes):
        content = b"".join(map(bytes, parts.chunks()))
    expected = IndexBuilder(base_offset=0)
    for _, header in scan_batches(memoryview(content)):
        expected.append(header)

    companions = parts.companions(LINEAGE)

    assert companions.offset_index == expected.offset_index().to_bytes()
    assert companions.time_index == expected.time_index().to_bytes()
    assert companions.transaction_index == TransactionIndex(transactions=(FIRST, ACROSS)).to_bytes()
    assert companions.aborted_transactions == (FIRST, ACROSS)
    assert companions.producer_snapshot is None
    assert companions.lineage == LINEAGE


def test_companions_when_no_part_has_a_transaction_index_then_there_is_none() -> None:
    world, built = RemoteWorld(), segments()
    world.claim(LINEAGE)
    parts = parts_of(world, [world.store(each, lineage=LINEAGE) for each in built])
    parts.read_companions()
    b"".join(map(bytes, parts.chunks()))

    assert parts.companions(LINEAGE).transaction_index is None


def test_companions_when_a_recorded_transaction_index_is_missing_then_corrupt() -> None:
    world = RemoteWorld()
    world.claim(EPOCH_ZERO)
    first = replace(world.store(segment_of(0)), has_transaction_index=True)
    parts = parts_of(world, [first])

    with pytest.raises(CorruptError, match="its transaction index is missing"):
        parts.read_companions()


def test_parts_when_an_object_is_gone_then_not_found() -> None:
    world, built = RemoteWorld(), segments()
    found = stored(world, built)
    world.objects.delete(found[1].objects[0].key)

    with pytest.raises(NotFoundError):
        b"".join(map(bytes, parts_of(world, found).chunks()))


def test_companions_when_some_are_gone_then_not_found_and_all_of_them_are_known() -> None:
    world, built = RemoteWorld(), segments()
    found = stored(world, built)
    for metadata in found[1:]:
        world.objects.delete(metadata.objects[-1].key)
    parts = parts_of(world, found)

    with pytest.raises(NotFoundError):
        parts.read_companions()

    assert [each.metadata for each in parts.unreadable] == found[1:]


def test_parts_when_another_pass_reads_all_then_none_is_unreadable() -> None:
    world, built = RemoteWorld(), segments()
    found = stored(world, built)
    key = found[1].objects[0].key
    parts = parts_of(world, found)
    world.objects.delete(key)
    with pytest.raises(NotFoundError):
        b"".join(map(bytes, parts.chunks()))
    unreadable = [each.metadata for each in parts.unreadable]
    world.objects.create_with_content(key, BytesSource(content=built[1].log))

    b"".join(map(bytes, parts.chunks()))

    assert unreadable == [found[1]]
    assert parts.unreadable == ()


@pytest.mark.parametrize("changed_bytes", [-1, 61])
def test_parts_when_an_object_has_another_length_then_corrupt(changed_bytes: int) -> None:
    world, built = RemoteWorld(), segments()
    found = stored(world, built)
    wrong = replace(found[0], segment_size_bytes=len(built[0].log) + changed_bytes)

    with pytest.raises(TieredStorageError):
        b"".join(map(bytes, parts_of(world, [wrong, *found[1:]]).chunks()))


def test_parts_when_a_batch_is_corrupt_then_corrupt() -> None:
    world, built = RemoteWorld(), segments()
    found = stored(world, built)
    log = bytearray(built[1].log)
    log[-1] ^= 1
    world.rewrite(found[1].objects[0].key, bytes(log))

    with pytest.raises(CorruptError):
        b"".join(map(bytes, parts_of(world, found).chunks()))


def test_parts_when_the_attempt_is_over_then_its_error_is_raised() -> None:
    world, built = RemoteWorld(), segments()
    found = stored(world, built)

    with pytest.raises(RetriableError, match="deadline"):
        b"".join(map(bytes, parts_of(world, found, Attempt(checks_left=1)).chunks()))
    with pytest.raises(RetriableError, match="deadline"):
        parts_of(world, found, Attempt(checks_left=1)).read_companions()
