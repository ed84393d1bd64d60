from __future__ import annotations

from collections.abc import Mapping

import pytest

from rlmm.partitioner import metadata_partition
from rlmm.positions import MetadataPosition
from rsm.segment.metadata import SegmentState
from spark_tools.repair.proof import Decision, MetadataSource, judge
from tests.metadata_builder import ORDERS

PARTITIONS = 5
OWN = metadata_partition(ORDERS, PARTITIONS)
AT_17 = MetadataPosition(partition=OWN, offset=17)


def judged(
    state: SegmentState | None,
    *,
    delete_started: MetadataPosition | None = AT_17,
    letter_of: str = "topic-a",
    position: int = 18,
    unread: Mapping[str, int] | None = None,
) -> Decision:
    source = MetadataSource(
        topic_id="topic-a",
        partition_count=PARTITIONS,
        positions=dict.fromkeys(range(PARTITIONS), position),
        unread=unread or {},
    )
    return judge(
        state,
        partition=ORDERS,
        delete_started=delete_started,
        metadata_topic_id=letter_of,
        source=source,
    ).decision


@pytest.mark.parametrize(
    ("state", "decision"),
    [
        (SegmentState.COPY_SEGMENT_STARTED, Decision.REFUSE),
        (SegmentState.COPY_SEGMENT_FINISHED, Decision.REFUSE),
        (SegmentState.DELETE_SEGMENT_STARTED, Decision.DELETE),
        (SegmentState.DELETE_SEGMENT_FINISHED, Decision.SWEEP),
    ],
)
def test_judge_when_the_metadata_knows_the_segment_then_its_state_decides(
    state: SegmentState, decision: Decision
) -> None:
    """R22."""
    unread = {"corrupt": 1}
    assert judged(state, delete_started=None, letter_of="", position=0, unread=unread) is decision


def test_judge_when_the_segment_is_gone_then_proof_only_after_its_deletion() -> None:
    """R22: complete, of the same topic, and read past the dead letter's own deletion."""
    assert judged(None) is Decision.SWEEP
    assert judged(None, position=17) is Decision.REFUSE
    assert judged(None, letter_of="topic-b") is Decision.REFUSE
    assert judged(None, letter_of="") is Decision.REFUSE
    assert judged(None, delete_started=None) is Decision.REFUSE
    elsewhere = MetadataPosition(partition=(OWN + 1) % PARTITIONS, offset=0)
    assert judged(None, delete_started=elsewhere) is Decision.REFUSE


@pytest.mark.parametrize("letter_of", ["topic-a", "topic-b", ""])
def test_judge_when_the_metadata_is_not_whole_then_an_unknown_segment_waits(letter_of: str) -> None:
    """R14 and R22: a newer version may find the segment in records that this one cannot read."""
    assert judged(None, letter_of=letter_of, unread={"newer_version": 1}) is Decision.WAIT


@pytest.mark.parametrize(("offset", "held"), [(16, True), (17, True), (18, False)])
def test_source_when_asked_for_a_record_then_holds_those_below_its_position(
    offset: int, *, held: bool
) -> None:
    source = MetadataSource(topic_id="a", partition_count=2, positions={0: 18}, unread={})

    assert source.holds(MetadataPosition(partition=0, offset=offset)) == held


def test_source_when_nothing_of_a_partition_was_read_then_holds_none_of_it() -> None:
    source = MetadataSource(topic_id="a", partition_count=2, positions={0: 18}, unread={})

    assert not source.holds(MetadataPosition(partition=1, offset=0))
