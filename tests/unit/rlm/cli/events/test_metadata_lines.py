from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest

from rlm.cli.events.metadata_lines import (
    Document,
    consumed_document,
    human_line,
    json_line,
    native_finding_document,
)
from rlmm.codec import encode
from rlmm.consumer import ConsumedRecord
from rlmm.events.event import Event
from rlmm.events.pause import PausableTask
from rlmm.events.registry import FAMILIES
from rlmm.native.audit import NativeFinding, NativeFindingKind, NativePosition
from rlmm.positions import MetadataPosition
from rlmm.record_keys import parse_record_key
from rsm.segment.ids import id_to_text
from rsm.segment.ranges import OffsetRange
from tests import metadata_builder as build

_SEGMENT, _, _DELETION, _ = build.life(build.segment_metadata(1, 100, 200, epochs=((3, 100),)))
_EVENTS: list[Event] = [
    _SEGMENT,
    _DELETION,
    build.claim(),
    build.trim(5),
    build.log_start(5),
    build.log_start_request(5),
    build.loss_accepted(1, 2),
    build.gaps(build.gap(0, 1)),
    build.anomaly_reported(),
    build.offload_request(2),
    build.offload_segment_changed(),
    build.partition_delete(build.MARKED),
    build.read_lease(1, 10, 50),
    build.paused(PausableTask.COPY, PausableTask.TRIM),
    build.paused(),
    build.dead_lettered(build.segment_metadata()),
    build.policy(),
    build.policy_level(),
    build.registration(),
    build.cluster_secret(2, previous=1),
]


def _consumed(event: Event, *, tombstone: bool = False) -> ConsumedRecord:
    return ConsumedRecord(
        position=MetadataPosition(partition=3, offset=17),
        append_time_ms=1_700_000_000_000,
        key=parse_record_key(encode(event).key),
        event=None if tombstone else event,
    )


def test_events_when_all_kinds_are_counted_then_each_is_shown_here() -> None:
    assert {type(event) for event in _EVENTS} == {family.event_type for family in FAMILIES}


def test_segment_when_shown_then_has_the_names_of_kafka_and_its_last_offset() -> None:
    document = json.loads(json_line(consumed_document(_consumed(_SEGMENT))))

    assert (document["MetadataPartition"], document["MetadataOffset"]) == (3, 17)
    assert document["Type"] == "RemoteLogSegmentMetadata"
    assert document["RemoteLogSegmentId"]["TopicIdPartition"]["Name"] == "orders"
    assert (document["StartOffset"], document["EndOffset"]) == (100, 199)
    assert document["SegmentLeaderEpochs"] == [{"LeaderEpoch": 3, "Offset": 100}]
    assert document["RemoteLogSegmentState"] == "COPY_SEGMENT_STARTED"
    assert {"BrokerId", "MaxTimestampMs", "SegmentSizeInBytes", "CustomMetadata"} < set(document)


@pytest.mark.parametrize("event", _EVENTS, ids=lambda event: type(event).__name__)
def test_event_when_shown_then_is_one_line_either_way(event: Event) -> None:
    document = consumed_document(_consumed(event))

    assert json.loads(json_line(document)) == document
    assert "\n" not in human_line(document)
    assert human_line(document).startswith("3:17  2023-11-14T22:13:20.000Z  ")


@pytest.mark.parametrize("event", _EVENTS, ids=lambda event: type(event).__name__)
def test_tombstone_when_shown_then_says_what_it_removes(event: Event) -> None:
    document = consumed_document(_consumed(event, tombstone=True))

    assert document["Type"] == "Tombstone"
    assert json.loads(json_line(document)) == document


def test_finding_when_shown_then_has_its_place_and_the_last_offset() -> None:
    native_position = NativePosition(
        position=MetadataPosition(partition=3, offset=17), append_time_ms=0
    )
    finding = NativeFinding(
        kind=NativeFindingKind.GAP,
        native_position=native_position,
        topic_id_partition=build.ORDERS,
        offsets=OffsetRange(start_offset=10, end_offset=15),
    )

    line = human_line(native_finding_document(finding))

    assert line == (
        "3:17  1970-01-01T00:00:00.000Z  gap  "
        "TopicIdPartition=orders-AAAAAAAAAAAAAAAAAAAN5Q:0  StartOffset=10  EndOffset=14"
    )


@pytest.mark.parametrize("line", [json_line, human_line])
def test_cluster_secret_when_shown_then_only_its_id_is(line: Callable[[Document], str]) -> None:
    event = build.cluster_secret(2, previous=1)

    shown = line(consumed_document(_consumed(event)))

    assert id_to_text(event.current.secret_id) in shown
    for secret in (build.secret(1), build.secret(2)):
        assert "Key" not in shown
        assert base64.b64encode(secret.key).decode() not in shown
        assert secret.key.hex() not in repr(event)
        assert repr(secret.key) not in repr(event)
