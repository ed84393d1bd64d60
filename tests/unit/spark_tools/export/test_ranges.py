from __future__ import annotations

from dataclasses import replace

from rsm.segment.coverage import StoredRange
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from spark_tools.export.ranges import remaining
from spark_tools.reading.plan import SegmentPiece
from tests.metadata_builder import FINISHED, ORDERS, segment_metadata

OTHER = replace(ORDERS, partition=1)


def piece(start: int, end: int, partition: TopicIdPartition = ORDERS) -> SegmentPiece:
    metadata = segment_metadata(1, start, end, partition=partition, state=FINISHED)
    stored = StoredRange(metadata=metadata, offsets=metadata.offsets)
    return SegmentPiece(stored=stored, offsets=OffsetRange(start_offset=start, end_offset=end))


def test_remaining_when_nothing_was_exported_then_one_range_per_partition() -> None:
    planned = remaining([piece(5, 10), piece(10, 30), piece(0, 7, OTHER)], [])

    found = [(each.topic_id_partition, str(each.offsets)) for each in planned]
    assert found == [(ORDERS, "[5, 30)"), (OTHER, "[0, 7)")]


def test_remaining_when_exported_before_then_from_there_on() -> None:
    (first,) = remaining([piece(0, 10)], [])
    done = [first.exported(10)]

    (second,) = remaining([piece(0, 10), piece(10, 25)], done)

    assert str(second.offsets) == "[10, 25)"
    assert second.path != first.path
    assert remaining([piece(0, 10), piece(10, 25)], [*done, second.exported(15)]) == []


def test_path_when_a_range_is_done_again_further_then_it_replaces_itself() -> None:
    """Killed before its line was in the manifest, an export leaves nothing that counts twice."""
    (first,) = remaining([piece(0, 10)], [])
    (again,) = remaining([piece(0, 10), piece(10, 25)], [])

    assert again.path == first.path
