from __future__ import annotations

from dataclasses import replace

from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import PartitionState
from rsm.layout.keys import LedgerPart, ObjectKey, ObjectKeys, StreamedKey
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from spark_tools.orphan_proof import PartitionKnowledge, why_not_removable
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    DELETED,
    FINISHED,
    MARKED,
    OWNER,
    STARTED,
    log_starts,
    segment_id,
    segment_metadata,
)

CLAIMED = PartitionState(owner=OWNER, lineage=Lineage.of((0, 0)))


def record(
    number: int, start: int, end: int, state: SegmentState = FINISHED, epoch: int = 0
) -> SegmentRecord:
    metadata = segment_metadata(number, start, end, epochs=((epoch, start),), state=state)
    return SegmentRecord(metadata=metadata, copy_deadline_ms=0, changed_ms=0)


def why(base_offset: int, *segments: SegmentRecord, state: PartitionState = CLAIMED) -> str:
    name = ObjectKey(segment_id=segment_id(9), base_offset=base_offset, suffix="log")
    known = PartitionKnowledge.of(state, segments)
    return why_not_removable(ObjectKeys().build(name), name, known)


def test_proof_when_all_from_its_offset_on_is_stored_elsewhere_then_dead() -> None:
    """R22: an orphan's own proof."""
    assert why(150, record(1, 0, 100), record(2, 100, 200)) == ""
    assert why(150, record(1, 0, 1_000), record(2, 100, 120)) == ""
    assert why(250, record(1, 0, 100), record(2, 200, 300)) == ""


def test_proof_when_nothing_else_holds_its_offset_then_alive() -> None:
    """R22: the metadata may have lost a segment that the store still has."""
    assert "the only copy" in why(200, record(1, 0, 100), record(2, 100, 200))
    assert "the only copy" in why(150, record(1, 0, 100), record(2, 200, 300))
    assert "the only copy" in why(50, record(1, 0, 100), record(2, 200, 300))
    unfinished = (record(1, 0, 100, STARTED), record(2, 0, 100, DELETE_STARTED))
    assert "the only copy" in why(5, *unfinished)
    cut_off = replace(CLAIMED, lineage=Lineage.of((1, 0)))
    assert "the only copy" in why(5, record(1, 0, 100), state=cut_off)


def test_proof_when_its_name_has_no_offset_then_only_a_deleted_one_is_dead() -> None:
    """R22: where a streamed segment begins is not known."""
    name = StreamedKey(segment_id=segment_id(9), part=LedgerPart.DATA)
    key = ObjectKeys().build(name)
    stored = record(1, 0, 1_000)

    alive = PartitionKnowledge.of(CLAIMED, [stored])
    dead = PartitionKnowledge.of(CLAIMED, [stored, record(9, 5, 50, DELETE_FINISHED)])

    assert "the only copy" in why_not_removable(key, name, alive)
    assert why_not_removable(key, name, dead) == ""


def test_proof_when_it_is_below_the_log_start_then_alive() -> None:
    """R22: a recreated metadata topic begins where the broker's log began at that time."""
    started_anew = replace(CLAIMED, log_starts=log_starts(100))
    assert "the only copy" in why(7, record(1, 100, 200), state=started_anew)


def test_proof_when_the_partition_is_unknown_then_alive() -> None:
    """R22: another cluster's object, or a metadata topic that was created again."""
    assert "another cluster" in why(5, state=PartitionState())


def test_proof_when_all_of_the_partition_is_deleted_then_dead() -> None:
    """R22."""
    assert why(5, state=PartitionState(deletion=MARKED)) == ""
    assert why(5, state=PartitionState(deletion=DELETED)) == ""


def test_proof_when_its_segment_is_known_then_only_a_deleted_one_is_dead() -> None:
    """R22, scenario 108: recorded after it was seen."""
    stored = record(1, 0, 100)
    for state in (STARTED, FINISHED, DELETE_STARTED):
        assert state.name in why(5, stored, record(9, 5, 50, state))
    assert why(5, record(9, 5, 50, DELETE_FINISHED)) == ""


def test_proof_when_another_segment_names_it_then_alive() -> None:
    """R22."""
    name = ObjectKey(segment_id=segment_id(9), base_offset=5, suffix="log")
    key = ObjectKeys().build(name)
    metadata = segment_metadata(1, state=FINISHED)
    named = replace(metadata, objects=(replace(metadata.objects[0], key=key),))
    known = PartitionKnowledge.of(
        CLAIMED, [SegmentRecord(metadata=named, copy_deadline_ms=0, changed_ms=0)]
    )

    assert "names it" in why_not_removable(key, name, known)


def test_proof_when_its_offset_is_the_first_or_the_last_that_is_stored_then_dead() -> None:
    segments = (record(1, 0, 100), record(2, 100, 200))
    assert [why(offset, *segments) for offset in (0, 199)] == ["", ""]
    assert "the only copy" in why(0, record(1, 1, 100))
    assert "the only copy" in why(0)
