from __future__ import annotations

from dataclasses import replace

import pytest

from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import LogToWrite, record_stored
from rsm.manager import SegmentStorageManager
from rsm.object_reader import ObjectReader
from rsm.segment.errors import CorruptError, InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import StoredObject
from rsm.segment.ranges import ByteRange
from rsm.storage.memory import MemoryChunkStorage
from tests.contract.segments import LOG, OFFSETS, PARTITION, planned, segment_data

LAYOUT = RawLayout()
METADATA = planned(
    SegmentStorageManager(
        storage=MemoryChunkStorage(wall_ms=lambda: 0), keys=ObjectKeys(), layouts=[LAYOUT]
    )
)


def test_encoding_when_taken_in_order_then_log_then_companion_with_the_logs_record() -> None:
    data = segment_data()
    log, companion = METADATA.objects
    written = replace(log, length_bytes=len(LOG), crc32c=5)

    encoding = LAYOUT.encoding(
        LogToWrite(segment_id=METADATA.segment_id, objects=METADATA.objects, content=data.log)
    )
    first = encoding.log_object
    closing = encoding.closing(record_stored(METADATA, written), data.companions)
    second, *rest = closing

    assert (first.key, first.source) == (log.key, data.log)
    assert second.key == companion.key
    decoded = LAYOUT.decode_companion(b"".join(second.source.chunks()))
    assert decoded.metadata.objects == (written, companion)
    assert decoded.companions == data.companions
    assert not rest


@pytest.mark.parametrize(("start", "end"), [(0, 5), (3, 10**9), (len(LOG), 10**9), (4, 4)])
def test_locate_when_range_is_any_then_within_the_log(start: int, end: int) -> None:
    objects = ObjectReader(MemoryChunkStorage(wall_ms=lambda: 0), decoded_bytes=0)

    located = LAYOUT.locate(METADATA, ByteRange(start_position=start, end_position=end), objects)

    pieces = [LOG[o.positions.start_position : o.positions.end_position] for o in located.ranges]
    assert located.join is None
    assert b"".join(pieces) == LOG[start:end]
    assert all(pieces)


LOG_OBJECT, COMPANION_OBJECT = METADATA.objects


@pytest.mark.parametrize(
    "objects",
    [
        (LOG_OBJECT,),
        (LOG_OBJECT, LOG_OBJECT),
        (LOG_OBJECT, replace(COMPANION_OBJECT, key="other.index")),
        (LOG_OBJECT, COMPANION_OBJECT, LOG_OBJECT),
    ],
)
def test_objects_when_metadata_names_others_then_corrupt(objects: tuple[StoredObject, ...]) -> None:
    with pytest.raises(CorruptError):
        LAYOUT.companion_object(replace(METADATA, objects=objects))


def test_plan_when_no_key_can_hold_the_topic_then_refused() -> None:
    partition = replace(PARTITION, topic="not/a/topic")
    segment_id = RemoteLogSegmentId(topic_id_partition=partition, id=METADATA.segment_id.id)

    with pytest.raises(InvalidConfigError):
        LAYOUT.plan(ObjectKeys(), segment_id, OFFSETS.start_offset, log_bytes=1)
