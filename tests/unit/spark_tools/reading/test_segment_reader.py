"""The rows of a piece of a stored segment: only its offsets, and errors that name the segment."""

from __future__ import annotations

import pytest

from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError, NotFoundError, TieredStorageError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import SegmentPiece
from spark_tools.reading.segment_reader import read_piece
from tests.remote_world import TIP, WHOLE, RemoteWorld, segment_of


def piece(metadata: RemoteLogSegmentMetadata, start: int, end: int) -> SegmentPiece:
    stored = StoredRange(metadata=metadata, offsets=metadata.offsets)
    return SegmentPiece(stored=stored, offsets=OffsetRange(start_offset=start, end_offset=end))


def options(**given: str) -> ReadOptions:
    return ReadOptions.of({"subscribe": TIP.topic, "columns": "offset", **given})


def offsets_of(world: RemoteWorld, part: SegmentPiece, **given: str) -> list[int]:
    batches = read_piece(part, world.storage, options(**given))
    return [offset for each in batches for offset in each.column("offset").to_pylist()]


@pytest.mark.parametrize(("start", "end"), [(0, 100), (0, 45), (37, 100), (37, 62), (99, 100)])
def test_read_piece_when_it_is_a_part_then_exactly_its_offsets(start: int, end: int) -> None:
    world = RemoteWorld()
    metadata = world.store(segment_of(0))

    assert offsets_of(world, piece(metadata, start, end)) == list(range(start, end))


@pytest.mark.parametrize(
    ("damage", "error"), [(b"", CorruptError), (None, NotFoundError)], ids=["cut off", "away"]
)
def test_read_piece_when_the_object_is_damaged_then_named_once_with_the_offset(
    damage: bytes | None, error: type[TieredStorageError]
) -> None:
    world = RemoteWorld()
    metadata = world.store(segment_of(0))
    key = metadata.objects[0].key
    if damage is None:
        world.objects.delete(key)
    else:
        world.rewrite(key, world.objects.read_range(key, WHOLE)[:-5])

    with pytest.raises(error) as caught:
        offsets_of(world, piece(metadata, 37, 100))

    assert caught.value.context["segment_id"] == metadata.segment_id
    assert caught.value.context["objects"] == ",".join(metadata.object_keys)
    assert caught.value.context["offset"] == 37
    assert str(caught.value).count("a stored segment cannot be read") == 1
    topic = metadata.topic_id_partition.topic
    assert f"`rlm topic resolve {topic} --dry-run`" in str(caught.value)


def test_read_piece_when_the_companion_is_away_then_named_once_with_the_offset() -> None:
    world = RemoteWorld()
    metadata = world.store(segment_of(0))
    world.objects.delete(metadata.objects[-1].key)

    with pytest.raises(NotFoundError) as caught:
        offsets_of(world, piece(metadata, 37, 100))

    assert caught.value.context["segment_id"] == metadata.segment_id
    assert caught.value.context["offset"] == 37
    assert str(caught.value).count("a stored segment cannot be read") == 1
    assert str(caught.value).count("the object is not in the store") == 1


def test_read_piece_when_a_batch_is_corrupt_then_the_rows_before_it() -> None:
    world = RemoteWorld()
    metadata = world.store(segment_of(0))
    key = metadata.objects[0].key
    content = bytearray(world.objects.read_range(key, WHOLE))
    content[len(content) // 2] ^= 4
    world.rewrite(key, bytes(content))

    rows = offsets_of(world, piece(metadata, 0, 100), mode="dropMalformed")

    assert rows == list(range(len(rows)))
    assert 0 < len(rows) < 60
