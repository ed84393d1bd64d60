"""Recorded damage of stored objects: what it blocks, and how the status shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.anomalies import anomalies_text, blocked_by_anomalies, object_counts, open_anomalies
from rlm.policy.view import Damage
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.partition_state import PartitionState
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import SegmentState
from tests.metadata_builder import anomaly, segment_metadata
from tests.unit.rlm.policy.views import Given, stored_up_to

LOST = anomaly(1)
ACCEPTED = anomaly(1, kind=AnomalyKind.LOSS_ACCEPTED)
OTHER = anomaly(1, key="orders/7.meta")


@pytest.mark.parametrize(
    ("anomalies", "text"),
    [
        ((), ""),
        ((LOST,), "missing: orders/7.log"),
        ((LOST, ACCEPTED), "missing: orders/7.log"),
        ((LOST, ACCEPTED, OTHER), "missing: orders/7.log and 1 more"),
    ],
)
def test_text_when_a_loss_is_accepted_then_each_object_counts_once(
    anomalies: tuple[Anomaly, ...], text: str
) -> None:
    assert anomalies_text(anomalies) == text


def test_text_when_there_are_several_then_names_the_first_one_found() -> None:
    later = replace(OTHER, first_ms=LOST.first_ms + 1)

    assert anomalies_text((later, LOST)) == "missing: orders/7.log and 1 more"


def test_open_when_segments_are_being_deleted_then_only_those_of_finished_ones() -> None:
    """The objects of a segment under deletion may be missing."""
    anomalies = tuple(anomaly(number) for number in (1, 2, 3))
    segments = (
        segment_metadata(1, state=SegmentState.DELETE_SEGMENT_STARTED),
        segment_metadata(2, state=SegmentState.COPY_SEGMENT_FINISHED),
    )

    assert open_anomalies(PartitionState(anomalies=anomalies), segments) == (anomalies[1],)


@pytest.mark.parametrize("anomalies", [(ACCEPTED, LOST, OTHER), (OTHER, LOST, ACCEPTED)])
def test_counts_when_a_loss_is_accepted_then_its_object_counts_as_that_only(
    anomalies: tuple[Anomaly, ...],
) -> None:
    counts = object_counts(anomalies)

    assert counts == {AnomalyKind.LOSS_ACCEPTED: 1, AnomalyKind.MISSING: 1}


def test_trim_when_a_reader_reported_damage_then_says_which_object() -> None:
    record = stored_up_to(300)[1]
    segment = record.metadata.segment_id.id
    view = Given(segments=stored_up_to(300), anomalies=(anomaly(segment.int),)).view()

    blocked = blocked_by_anomalies(view, 300)

    assert blocked is not None
    assert blocked.values == {
        "sound_end_offset": 100,
        "segment_id": id_to_text(segment),
        "object": "orders/7.log",
        "kind": "missing",
    }


def test_trim_when_the_manager_found_damage_itself_then_says_so() -> None:
    record = stored_up_to(300)[1]
    segment = record.metadata.segment_id.id
    view = Given(segments=stored_up_to(300)).view()

    blocked = blocked_by_anomalies(replace(view, damage=Damage(damaged=frozenset({segment}))), 300)

    assert blocked is not None
    assert blocked.values == {
        "sound_end_offset": 100,
        "segment_id": id_to_text(segment),
        "object": record.metadata.objects[0].key,
        "kind": "found_by_manager",
    }
