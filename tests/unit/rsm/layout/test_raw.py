from __future__ import annotations

from dataclasses import replace

import pytest

from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.errors import CorruptError, InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.ranges import ByteRange
from rsm.storage.memory import MemoryChunkStorage
from tests.contract.segments import LOG, OFFSETS, PARTITION, planned, segment_data

LAYOUT = RawLayout()
METADATA = planned(
    SegmentStorageManager(
        storage=MemoryChunkStorage(wall_ms=lambda: 0), keys=ObjectKeys(), layouts=[LAYOUT]
    )
)


def test_next_object_when_asked_until_the_end_then_log_then_companion_with_the_logs_record() -> (
    None
):
    data = segment_data()
    log, companion = METADATA.objects
    first = LAYOUT.next_object(METADATA, data)
    log = replace(log, length_bytes=len(LOG), crc32c=5)
    second = LAYOUT.next_object(replace(METADATA, objects=(log, companion)), data)
    companion = replace(companion, length_bytes=1, crc32c=6)

    end = LAYOUT.next_object(replace(METADATA, objects=(log, companion)), data)

    assert first is not None
    assert (first.key, first.source) == (log.key, data.log)
    assert second is not None
    assert second.key == companion.key
    written = LAYOUT.decode_companion(b"".join(second.source.chunks()))
    assert written.metadata.objects[0] == log
    assert written.companions == data.companions
    assert end is None


@pytest.mark.parametrize(("start", "end"), [(0, 5), (3, 10**9), (len(LOG), 10**9), (4, 4)])
def test_locate_when_range_is_any_then_within_the_log(start: int, end: int) -> None:
    located = LAYOUT.locate(METADATA, ByteRange(start_position=start, end_position=end))

    pieces = [LOG[o.positions.start_position : o.positions.end_position] for o in located]
    assert b"".join(pieces) == LOG[start:end]
    assert all(pieces)


def test_objects_when_metadata_names_others_then_corrupt() -> None:
    with pytest.raises(CorruptError):
        LAYOUT.companion_object(replace(METADATA, objects=METADATA.objects[:1]))


def test_plan_when_no_key_can_hold_the_topic_then_refused() -> None:
    partition = replace(PARTITION, topic="not/a/topic")
    segment_id = RemoteLogSegmentId(topic_id_partition=partition, id=METADATA.segment_id.id)

    with pytest.raises(InvalidConfigError):
        LAYOUT.plan(ObjectKeys(), segment_id, OFFSETS.start_offset)
