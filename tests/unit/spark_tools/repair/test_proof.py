from __future__ import annotations

from collections.abc import Mapping

import pytest

from rlmm.partitioner import metadata_partition
from rlmm.positions import MetadataPosition
from rsm.segment.metadata import SegmentState
from spark_tools.repair.proof import MetadataSource, RepairAction, decide
from tests.metadata_builder import ORDERS

PARTITIONS = 5
OWN = metadata_partition(ORDERS, PARTITIONS)
AT_17 = MetadataPosition(partition=OWN, offset=17)


def decided(
    state: SegmentState | None,
    *,
    delete_started: MetadataPosition | None = AT_17,
    letter_of: str = "topic-a",
    position: int = 18,
    unread: Mapping[str, int] | None = None,
) -> RepairAction:
    source = MetadataSource(
        topic_id="topic-a",
        partition_count=PARTITIONS,
        positions=dict.fromkeys(range(PARTITIONS), position),
        unread=unread or {},
    )
    return decide(
        state,
        partition=ORDERS,
        delete_started=delete_started,
        metadata_topic_id=letter_of,
        source=source,
    ).action


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (SegmentState.COPY_SEGMENT_STARTED, RepairAction.REFUSE),
        (SegmentState.COPY_SEGMENT_FINISHED, RepairAction.REFUSE),
        (SegmentState.DELETE_SEGMENT_STARTED, RepairAction.DELETE),
        (SegmentState.DELETE_SEGMENT_FINISHED, RepairAction.DELETE_OBJECTS),
    ],
)
def test_decide_when_the_metadata_knows_the_segment_then_its_state_decides(
    state: SegmentState, action: RepairAction
) -> None:
    """R22."""
    unread = {"corrupt": 1}
    assert decided(state, delete_started=None, letter_of="", position=0, unread=unread) is action


def test_decide_when_the_segment_is_gone_then_proof_only_after_its_deletion() -> None:
    """R22: complete, of the same topic, and read past the dead letter's own deletion."""
    assert decided(None) is RepairAction.DELETE_OBJECTS
    assert decided(None, position=17) is RepairAction.REFUSE
    assert decided(None, letter_of="topic-b") is RepairAction.REFUSE
    assert decided(None, letter_of="") is RepairAction.REFUSE
    assert decided(None, delete_started=None) is RepairAction.REFUSE
    elsewhere = MetadataPosition(partition=(OWN + 1) % PARTITIONS, offset=0)
    assert decided(None, delete_started=elsewhere) is RepairAction.REFUSE


@pytest.mark.parametrize("letter_of", ["topic-a", "topic-b", ""])
def test_decide_when_the_metadata_is_not_whole_then_an_unknown_segment_waits(
    letter_of: str,
) -> None:
    """R14 and R22: a newer version may find the segment in records that this one cannot read."""
    assert decided(None, letter_of=letter_of, unread={"newer_version": 1}) is RepairAction.WAIT


@pytest.mark.parametrize(("offset", "held"), [(16, True), (17, True), (18, False)])
def test_source_when_asked_for_a_record_then_holds_those_below_its_position(
    offset: int, *, held: bool
) -> None:
    source = MetadataSource(topic_id="a", partition_count=2, positions={0: 18}, unread={})

    assert source.has_record_at(MetadataPosition(partition=0, offset=offset)) == held


def test_source_when_nothing_of_a_partition_was_read_then_holds_none_of_it() -> None:
    source = MetadataSource(topic_id="a", partition_count=2, positions={0: 18}, unread={})

    assert not source.has_record_at(MetadataPosition(partition=1, offset=0))
