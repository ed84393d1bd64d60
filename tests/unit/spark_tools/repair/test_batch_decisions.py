"""The decision about one dead letter, by the metadata that the driver sent."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment
from rlmm.partitioner import metadata_partition
from rlmm.positions import MetadataPosition
from rlmm.record_keys import partition_subject, segment_subject
from rlmm.state.partition_state import ReadLease
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject
from rsm.segment.ranges import OffsetRange
from spark_tools.repair.batch_decisions import BatchDecisions
from spark_tools.repair.proof import Decision, MetadataSource, RepairAction
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    segment_metadata,
)

KEYS = ObjectKeys(prefix="cold")
PLACE = (3, 17)
TOPIC_ID = "a-topic-id"
READ_TO = MetadataPosition(partition=metadata_partition(ORDERS, 1), offset=41)


def name_of(segment: RemoteLogSegmentMetadata, suffix: str) -> str:
    key = ObjectKey(segment_id=segment.segment_id, base_offset=100, suffix=suffix)
    return KEYS.build(key)


def segment_of(number: int) -> RemoteLogSegmentMetadata:
    """Return the metadata of a segment of [100, 200), of two objects."""
    segment = segment_metadata(number, 100, 200, state=DELETE_STARTED)
    objects = tuple(StoredObject(key=name_of(segment, suffix)) for suffix in ("log", "meta"))
    return replace(segment, objects=objects)


SEGMENT, OTHER = segment_of(1), segment_of(2)
SUBJECT = segment_subject(SEGMENT.segment_id)


def dead_letter(*objects: str) -> DeadLetter:
    """Return a dead letter of the segment; by default it names the segment's own objects."""
    named = tuple(StoredObject(key=key) for key in objects) or SEGMENT.objects
    return DeadLetter(
        metadata=replace(SEGMENT, objects=named),
        reason="refused",
        attempts=5,
        first_attempt_ms=1,
        last_attempt_ms=2,
        delete_started=READ_TO,
        metadata_topic_id=TOPIC_ID,
    )


ORPHAN = OrphanDeadLetter(
    object_key=name_of(SEGMENT, "log"),
    length_bytes=1,
    last_modified_ms=1,
    first_seen_ms=1,
    last_seen_ms=2,
    treatment=OrphanTreatment.DELETE,
    read_to=READ_TO,
    metadata_topic_id=TOPIC_ID,
)


def decisions(state: SegmentState | None = DELETE_STARTED) -> BatchDecisions:
    source = MetadataSource(
        topic_id=TOPIC_ID, partition_count=1, positions={READ_TO.partition: 42}, unread={}
    )
    return BatchDecisions(
        keys=KEYS,
        source=source,
        states={SUBJECT: state},
        newer={},
        leases={},
        listed={},
        objects_count={SUBJECT: 2},
        decided={},
    )


def lease(start_offset: int, end_offset: int) -> ReadLease:
    offsets = OffsetRange(start_offset=start_offset, end_offset=end_offset)
    return ReadLease(lease_id=UUID(int=1), offsets=offsets, expires_ms=9, holder="a Spark job")


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (DELETE_STARTED, RepairAction.DELETE),
        (DELETE_FINISHED, RepairAction.DELETE_OBJECTS),
        (FINISHED, RepairAction.REFUSE),
        pytest.param(None, RepairAction.DELETE_OBJECTS, id="removed, and that is proven"),
    ],
)
def test_dead_letter_when_its_segment_has_a_state_then_that_decides(
    state: SegmentState | None, action: RepairAction
) -> None:
    """R22."""
    assert decisions(state).decision(PLACE, dead_letter()).action is action


@pytest.mark.parametrize(
    "changes",
    [{"delete_started": None}, {"metadata_topic_id": ""}, {"metadata_topic_id": "another"}],
)
def test_dead_letter_when_its_segment_is_unknown_without_proof_then_refused(
    changes: dict[str, object],
) -> None:
    unproven = replace(dead_letter(), **changes)  # type: ignore[arg-type]  # field names are the test's own

    assert decisions(None).decision(PLACE, unproven).action is RepairAction.REFUSE


def test_dead_letter_when_the_metadata_cannot_be_read_whole_then_waits_whatever_it_names() -> None:
    """A newer version can read the metadata, and then refuses another segment's object."""
    unread = replace(decisions(None).source, unread={"newer_version": 1})
    forged = dead_letter(SEGMENT.objects[0].key, OTHER.objects[0].key)

    decision = replace(decisions(None), source=unread).decision(PLACE, forged)

    assert decision.action is RepairAction.WAIT


def test_dead_letter_when_the_driver_judged_it_then_that_holds_at_its_place_only() -> None:
    superseded = Decision(action=RepairAction.SUPERSEDED)
    found = replace(decisions(), decided={PLACE: superseded})

    assert found.decision(PLACE, dead_letter()) is superseded
    assert found.decision(PLACE, ORPHAN) is superseded
    assert found.decision((3, 18), dead_letter()).action is RepairAction.DELETE


def test_dead_letter_when_the_driver_has_not_seen_it_then_refused() -> None:
    """A letter whose key is another segment's, and an orphan's below a segment's key."""
    other = replace(dead_letter(), metadata=OTHER)

    found = [decisions().decision(PLACE, each) for each in (other, ORPHAN)]

    assert [each.action for each in found] == [RepairAction.REFUSE] * 2
    assert all(each.reason.startswith("not decided") for each in found)


@pytest.mark.parametrize("state", [DELETE_STARTED, DELETE_FINISHED])
@pytest.mark.parametrize(
    ("named", "reason"),
    [
        pytest.param(
            (SEGMENT.objects[0].key, OTHER.objects[0].key), "of another segment", id="another's"
        ),
        pytest.param((SEGMENT.objects[0].key, "warm/7.log"), "an unknown segment", id="anybody's"),
        pytest.param((SEGMENT.objects[0].key,), "does not name all objects", id="not all"),
        pytest.param(
            (SEGMENT.objects[0].key,) * 2, "does not name all objects", id="one of them twice"
        ),
    ],
)
def test_dead_letter_when_it_names_other_objects_than_its_segments_then_refused(
    state: SegmentState, named: tuple[str, ...], reason: str
) -> None:
    """R22: nothing is deleted, not even the segment's own objects."""
    decision = decisions(state).decision(PLACE, dead_letter(*named))

    assert decision.action is RepairAction.REFUSE
    assert reason in decision.reason


def test_dead_letter_when_the_metadata_lists_a_name_that_says_nothing_then_it_may_go() -> None:
    named = (SEGMENT.objects[0].key, "warm/7.log")
    found = replace(decisions(), listed={SUBJECT: frozenset({"warm/7.log"})})

    assert found.decision(PLACE, dead_letter(*named)).action is RepairAction.DELETE
    elsewhere = replace(decisions(), listed={b"another": frozenset({"warm/7.log"})})
    assert elsewhere.decision(PLACE, dead_letter(*named)).action is RepairAction.REFUSE


def test_dead_letter_when_the_segment_is_removed_then_must_name_an_object() -> None:
    """The number of objects is unknown, but each segment has at least one."""
    unknown = replace(decisions(None), objects_count={})
    empty = replace(dead_letter(), metadata=replace(SEGMENT, objects=()))

    assert (
        unknown.decision(PLACE, dead_letter(SEGMENT.objects[0].key)).action
        is RepairAction.DELETE_OBJECTS
    )
    assert unknown.decision(PLACE, empty).action is RepairAction.REFUSE


@pytest.mark.parametrize(
    ("held", "action"),
    [
        ([lease(0, 100), lease(200, 300)], RepairAction.DELETE),
        ([lease(0, 50), lease(0, 101)], RepairAction.WAIT),
        ([lease(199, 300)], RepairAction.WAIT),
    ],
)
def test_dead_letter_when_somebody_reads_its_offsets_then_waits(
    held: list[ReadLease], action: RepairAction
) -> None:
    """R13."""
    found = replace(decisions(), leases={partition_subject(ORDERS): tuple(held)})

    decision = found.decision(PLACE, dead_letter())

    assert decision.action is action
    assert ("a Spark job" in decision.reason) is (action is RepairAction.WAIT)


def test_dead_letter_when_its_segment_is_deleted_already_then_no_lease_keeps_what_is_left() -> None:
    leases = {partition_subject(ORDERS): (lease(0, 300),)}

    swept = replace(decisions(DELETE_FINISHED), leases=leases)
    refused = replace(decisions(FINISHED), leases=leases)

    assert swept.decision(PLACE, dead_letter()).action is RepairAction.DELETE_OBJECTS
    assert refused.decision(PLACE, dead_letter()).action is RepairAction.REFUSE


@pytest.mark.parametrize("state", [DELETE_STARTED, DELETE_FINISHED, FINISHED, None])
def test_dead_letter_when_a_record_needs_newer_rules_then_waits(state: SegmentState | None) -> None:
    """R14."""
    found = replace(decisions(state), newer={partition_subject(ORDERS): 99})

    decision = found.decision(PLACE, dead_letter())

    assert decision.action is RepairAction.WAIT
    assert "version 99" in decision.reason
    other = replace(decisions(), newer={b"another": 99})
    assert other.decision(PLACE, dead_letter()).action is RepairAction.DELETE
