"""The output of `rlm topic resolve` about damaged segments."""

from __future__ import annotations

import json
from dataclasses import replace

from rlm.cli.topics.damaged_segments import damaged_segments
from rlm.cli.topics.resolve import PartitionLosses, resolved_text
from rlm.policy.losses import CutOff, Losses, losses
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.partition_state import PartitionState
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import SegmentState
from tests.metadata_builder import ORDERS, anomaly, segment_metadata

FINISHED = SegmentState.COPY_SEGMENT_FINISHED
WHOLE, DAMAGED = (
    segment_metadata(1, 0, 100, state=FINISHED),
    segment_metadata(2, 100, 200, state=FINISHED),
)
ID = id_to_text(DAMAGED.segment_id.id)
MISSING = anomaly(2, key="orders/0/100.log")


def _found(*anomalies: Anomaly, is_deleted: bool = False) -> list[PartitionLosses]:
    state = PartitionState(anomalies=anomalies)
    deleted = replace(DAMAGED, state=SegmentState.DELETE_SEGMENT_STARTED)
    segments = (WHOLE, deleted if is_deleted else DAMAGED)
    damaged = damaged_segments(state, segments)
    lost = losses(state, segments, 0)
    return [PartitionLosses(ORDERS, lost, 0, damaged)] if damaged or lost.has_losses else []


def test_text_when_a_segment_is_damaged_then_its_offsets_and_the_command() -> None:
    """The command must not print "nothing to resolve"."""
    text = resolved_text(_found(MISSING), accepted=True, as_json=False)

    assert f"orders:0 damaged segment {ID}: offsets 100..199" in text
    assert "object orders/0/100.log: missing" in text
    assert f"rlm topic resolve orders:0 --lost-segment={ID}" in text
    assert "nothing to resolve" not in text


def test_text_when_its_loss_is_accepted_already_then_no_command() -> None:
    accepted = anomaly(2, key=MISSING.object_key, kind=AnomalyKind.LOSS_ACCEPTED)

    text = resolved_text(_found(MISSING, accepted), accepted=True, as_json=False)

    assert "its loss is accepted" in text
    assert "--lost-segment" not in text


def test_text_when_one_of_two_objects_is_accepted_then_the_command_again() -> None:
    accepted = anomaly(2, key=MISSING.object_key, kind=AnomalyKind.LOSS_ACCEPTED)
    other = anomaly(2, key="orders/0/100.meta", kind=AnomalyKind.CORRUPT)

    text = resolved_text(_found(MISSING, accepted, other), accepted=True, as_json=False)

    assert "orders/0/100.meta: corrupt" in text
    assert f"--lost-segment={ID}" in text


def test_text_when_an_election_cut_off_segments_then_the_offsets_from_first_to_last() -> None:
    cut = CutOff(leader_epoch=3, start_offset=150, end_offset=200, segment_count=1)
    lost = Losses(cut_off=cut, moved_from_offset=None, local_start_offset=0)

    text = resolved_text([PartitionLosses(ORDERS, lost, 0, ())], accepted=False, as_json=False)

    assert "orders:0 diverged: an election cut off offsets 150..199 of leader epochs" in text


def test_text_when_the_damaged_segment_is_being_deleted_then_nothing_to_resolve() -> None:
    found = _found(MISSING, is_deleted=True)

    assert resolved_text(found, accepted=True, as_json=False) == "nothing to resolve"


def test_json_when_a_segment_is_damaged_then_not_accepted_and_has_the_command() -> None:
    (document,) = json.loads(resolved_text(_found(MISSING), accepted=True, as_json=True))

    assert document["accepted"] is False
    (segment,) = document["damaged_segments"]
    assert (segment["segment_id"], segment["start_offset"], segment["end_offset"]) == (ID, 100, 200)
    assert segment["anomalies"][0]["object"] == MISSING.object_key
    assert segment["command"] == f"rlm topic resolve orders:0 --lost-segment={ID}"
