"""The output of `rlm topic resolve --lost-segment`."""

from __future__ import annotations

import json
from dataclasses import replace

from rlm.cli.topics.lost_segment import loss_as_json, loss_lines, losses_text
from rlm.operator.loss_acceptance import AcceptableLoss
from rsm.segment.ids import RemoteLogSegmentId, id_to_text
from rsm.segment.ranges import OffsetRange
from rsm.spi import ObjectFault
from tests.metadata_builder import ORDERS, segment_metadata

SEGMENT_ID = RemoteLogSegmentId(
    topic_id_partition=ORDERS, id=segment_metadata(7, 10, 20).segment_id.id
)
LOSS = AcceptableLoss(
    segment_id=SEGMENT_ID,
    lost=(OffsetRange(start_offset=10, end_offset=20),),
    later_count=0,
    faults={"7.log": ObjectFault(object_key="7.log", is_missing=True, reason="not found")},
)


def test_lines_when_accepted_then_name_offsets_objects_and_what_happens_next() -> None:
    lines = list(loss_lines(LOSS, accepted=True))

    assert "offsets 10..19 (10 offsets)" in lines[0]
    assert lines[1] == "  object 7.log: missing"
    assert lines[-1].startswith("accepted: ")


def test_lines_when_only_shown_then_say_that_nothing_was_changed() -> None:
    *_, last = loss_lines(LOSS, accepted=False)

    assert last.startswith("nothing was changed")


def test_lines_when_more_ranges_are_lost_then_say_that_they_are_not_given_up() -> None:
    text = "\n".join(loss_lines(replace(LOSS, later_count=44), accepted=True))

    assert "more lost ranges of offsets: 44; they are not given up now" in text


def test_json_when_accepted_then_has_the_same() -> None:
    document = json.loads(json.dumps(loss_as_json(LOSS, accepted=True)))

    assert document == {
        "topic": ORDERS.topic,
        "partition": ORDERS.partition,
        "segment_id": id_to_text(SEGMENT_ID.id),
        "lost": [{"start_offset": 10, "end_offset": 20}],
        "later_ranges": 0,
        "objects": [{"object": "7.log", "kind": "missing", "reason": "not found"}],
        "accepted": True,
    }


def test_text_when_several_segments_are_given_up_then_names_each() -> None:
    """A lifecycle rule may delete many objects at once."""
    other = replace(LOSS, segment_id=replace(SEGMENT_ID, id=segment_metadata(8).segment_id.id))

    text = losses_text([LOSS, other], accepted=True, as_json=False)
    documents = json.loads(losses_text([LOSS, other], accepted=True, as_json=True))

    ids = [id_to_text(each.segment_id.id) for each in (LOSS, other)]
    assert all(f"lost segment {each}" in text for each in ids)
    assert [each["segment_id"] for each in documents] == ids
