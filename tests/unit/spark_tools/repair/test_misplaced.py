from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from rlmm.dead_letters.dead_letter import DeadLetter, encode
from rlmm.record_keys import segment_subject
from rsm.layout.keys import ObjectKeys
from spark_tools.repair.batch_decisions import BatchDecisions
from spark_tools.repair.misplaced import LOCATIONS, find_misplaced
from spark_tools.repair.proof import MetadataSource
from tests.metadata_builder import DELETE_STARTED, segment_metadata


def dead_letter(number: int) -> DeadLetter:
    return DeadLetter(
        metadata=segment_metadata(number, state=DELETE_STARTED),
        reason="refused",
        attempts=5,
        first_attempt_ms=1,
        last_attempt_ms=2,
    )


def subject(number: int) -> bytes:
    return segment_subject(dead_letter(number).metadata.segment_id)


def decisions() -> BatchDecisions:
    """Return decisions of metadata with segments 1 and 2 in deletion, with two objects each."""
    subjects = [subject(number) for number in (1, 2)]
    return BatchDecisions(
        keys=ObjectKeys(),
        source=MetadataSource(topic_id="t", partition_count=1, positions={}, unread={}),
        states=dict.fromkeys(subjects, DELETE_STARTED),
        newer={},
        leases={},
        listed=dict.fromkeys(subjects, frozenset(dead_letter(1).object_keys)),
        objects_count=dict.fromkeys(subjects, len(dead_letter(1).object_keys)),
        decided={},
    )


def test_find_when_a_record_is_no_letter_of_its_key_or_refused_then_its_place() -> None:
    """Scenario 79: the record says nothing of other keys."""
    short = replace(dead_letter(1), metadata=replace(dead_letter(1).metadata, objects=()))
    records = [
        (subject(1), encode(dead_letter(1)).value),
        (subject(1), b"\xff no letter"),
        (subject(1), encode(dead_letter(2)).value),
        (subject(2), b"\xff no letter"),
        (None, encode(dead_letter(1)).value),
        (subject(1), encode(short).value),
    ]
    rows = [
        {"partition": 3, "offset": offset, "key": key, "value": value}
        for offset, (key, value) in enumerate(records)
    ]
    batches = [pa.RecordBatch.from_pylist(rows), pa.RecordBatch.from_pylist(rows[:1])]

    found = list(find_misplaced(batches, decisions(), {subject(1)}))

    assert all(each.schema.equals(LOCATIONS) for each in found)
    locations = [(row["partition"], row["offset"]) for each in found for row in each.to_pylist()]
    assert locations == [(3, 1), (3, 2), (3, 5)]
