"""The output of `rlm segments list` from the metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rlm.cli.segments.segment_lines import segment_lines, segments_json
from rlm.cli.segments.segments import selected
from rlmm.spi import SegmentRecord
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.metadata import StoredObject
from tests.metadata_builder import (
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    STARTED,
    segment_metadata,
    step,
)
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden, titled
from tests.unit.rlm.cli.long_names import tip
from tests.unit.rlm.cli.stated_managers import Cluster

SECOND = replace(ORDERS, partition=1)
DAY_MS = 86_400_000


def _record(
    number: int, start_offset: int, *, partition: TopicIdPartition = ORDERS, size_bytes: int = 4096
) -> SegmentRecord:
    metadata = segment_metadata(
        number, start_offset, start_offset + 100, state=FINISHED, partition=partition
    )
    sized = replace(metadata, segment_size_bytes=size_bytes, max_timestamp_ms=number * DAY_MS)
    return SegmentRecord(metadata=sized, copy_deadline_ms=0, changed_ms=7_000)


def _found() -> Iterator[tuple[TopicIdPartition, SegmentRecord]]:
    deleting = _record(1, 1_234_567_800, size_bytes=64 << 20)
    yield (
        ORDERS,
        replace(
            deleting, metadata=deleting.metadata.in_state(DELETE_STARTED, event_timestamp_ms=1)
        ),
    )
    yield ORDERS, _record(2, 1_234_567_900, size_bytes=1 << 30)
    yield SECOND, _record(3, 0, partition=SECOND, size_bytes=0)


def test_lines_when_two_partitions_are_stored_then_as_reviewed_and_80_columns() -> None:
    far = tip()
    long = [(far, _record(number, 98_765_432_100 + number, partition=far)) for number in (4, 5)]

    assert_golden(
        "segments_list.txt",
        titled(
            {
                "short names": segment_lines(_found(), wide=False, width=COLUMNS),
                "a long name and large offsets": segment_lines(
                    [*_found(), *long], wide=False, width=COLUMNS
                ),
            }
        ),
    )


def test_lines_when_wide_then_with_epochs_layout_and_keys() -> None:
    _, _, line, *_ = segment_lines(_found(), wide=True, width=COLUMNS)

    assert line.split()[-5:] == [
        "1970-01-02T00:00:00.000Z",
        "0",
        "raw",
        "orders/0/00000000001234567800.log",
        "orders/0/00000000001234567800.meta",
    ]


def test_lines_when_nothing_is_stored_then_say_so() -> None:
    assert list(segment_lines((), wide=False, width=COLUMNS)) == ["no segments"]


def test_lines_when_a_producer_set_a_timestamp_beyond_calendars_then_shown_whole() -> None:
    record = _record(1, 0)
    far = replace(record, metadata=replace(record.metadata, max_timestamp_ms=10**18))

    _, _, line, _ = segment_lines([(ORDERS, far)], wide=False, width=COLUMNS)

    assert line.endswith(f"@{10**18}")


def test_lines_when_segments_never_end_then_each_is_printed_before_the_next_is_read() -> None:
    """The command must not need memory for all segments at once."""

    def endless() -> Iterator[tuple[TopicIdPartition, SegmentRecord]]:
        number = 0
        while True:
            number += 1
            yield ORDERS, _record(number, number * 100)

    for parts in (segment_lines(endless(), wide=True, width=COLUMNS), segments_json(endless())):
        assert [next(parts) for _ in range(5)]


def test_json_when_segments_are_stored_then_one_document_with_totals() -> None:
    document = json.loads("".join(segments_json(_found())))

    first, *_, last = document["segments"]
    assert first["id"] == id_to_text(_record(1, 0).metadata.segment_id.id)
    assert (first["topic"], first["partition"], last["partition"]) == ("orders", 0, 1)
    assert (first["start_offset"], first["end_offset"]) == (1_234_567_800, 1_234_567_900)
    assert (first["state"], first["state_since_ms"]) == ("DELETE_SEGMENT_STARTED", 7_000)
    assert first["leader_epochs"] == [{"epoch": 0, "start_offset": 1_234_567_800}]
    assert (first["layout"], first["max_timestamp_ms"]) == ("raw", DAY_MS)
    assert first["objects"][0]["key"] == "orders/0/00000000001234567800.log"
    assert document["totals"]["segments"] == 3
    assert document["totals"]["size_bytes"] == (64 << 20) + (1 << 30)
    assert document["totals"]["by_state"]["DELETE_SEGMENT_STARTED"] == 1


def test_json_when_nothing_is_stored_then_an_empty_list() -> None:
    assert json.loads("".join(segments_json(())))["segments"] == []


def test_json_when_an_object_is_not_written_yet_then_its_length_is_null() -> None:
    record = _record(1, 0)
    planned = replace(record, metadata=replace(record.metadata, objects=(StoredObject(key="a"),)))

    (segment,) = json.loads("".join(segments_json([(ORDERS, planned)])))["segments"]

    assert segment["objects"] == [{"key": "a", "bytes": None, "crc32c": None}]


@pytest.mark.parametrize(
    ("from_offset", "to_offset", "states", "numbers"),
    [
        (0, None, (), [1, 2, 3]),
        (100, None, (), [2, 3]),
        (99, 101, (), [1, 2]),
        (0, None, (STARTED,), [3]),
    ],
)
def test_selection_when_offsets_or_states_are_given_then_only_such_segments(
    from_offset: int, to_offset: int | None, states: tuple[object, ...], numbers: list[int]
) -> None:
    cluster = Cluster()
    for number, start in ((1, 0), (2, 100), (3, 200)):
        metadata = segment_metadata(number, start, start + 100)
        for state in (STARTED, FINISHED) if number < 3 else (STARTED,):
            assert cluster.metadata.publish(step(metadata, state)).accepted

    found = selected(
        cluster.metadata,
        [ORDERS],
        tuple(each for each in (STARTED, FINISHED) if each in states),
        from_offset=from_offset,
        to_offset=to_offset,
    )

    assert [record.metadata.segment_id.id.int for _, record in found] == numbers
