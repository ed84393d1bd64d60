from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.keys import LedgerPart, ObjectKey, ObjectKeys, StreamedKey
from rsm.segment.metadata import StoredObject
from rsm.storage.chunk_storage import ChunkInfo
from spark_tools.audit.findings import Finding
from spark_tools.audit.key_ranges import (
    ExpectedObject,
    expected_batch,
    expected_objects,
    expected_rows,
    key_ranges,
)
from spark_tools.audit.objects import Age, compare, confirmed
from spark_tools.quarantine import quarantined_name
from tests.metadata_builder import DELETE_STARTED, FINISHED, STARTED, segment_id, segment_metadata

AGE = Age(cut_off_ms=1_000)
KEYS = ObjectKeys(prefix="cold")
OURS = KEYS.build(ObjectKey(segment_id=segment_id(9), base_offset=17, suffix="log"))


def expected(key: str, *, must_exist: bool = True) -> ExpectedObject:
    return ExpectedObject(
        key=key,
        length_bytes=10,
        crc32c=0xABC,
        must_exist=must_exist,
        topic="orders",
        partition=0,
        segment_id="s",
        start_offset=100,
        end_offset=200,
    )


def found(
    name: str, *, length_bytes: int = 10, age_ms: int = 0, crc: int | None = None
) -> ChunkInfo:
    return ChunkInfo(name=name, length_bytes=length_bytes, last_modified_ms=age_ms, crc32c=crc)


def kinds(*listed: ChunkInfo, awaits: tuple[ExpectedObject, ...] = ()) -> list[tuple[str, str]]:
    return [(each.kind, each.object_key) for each in compare(listed, awaits, KEYS, AGE)]


def test_compare_when_all_is_as_recorded_then_nothing() -> None:
    assert kinds(found("a"), found("b", crc=0xABC), awaits=(expected("a"), expected("b"))) == []


def test_compare_when_an_object_differs_or_is_absent_then_found() -> None:
    """Scenario 85."""
    listed = (found("a", length_bytes=9), found("b", crc=0xABD))

    assert kinds(*listed, awaits=(expected("a"), expected("b"), expected("c"))) == [
        ("size", "a"),
        ("checksum", "b"),
        ("missing", "c"),
    ]


def test_compare_when_a_segment_is_not_finished_then_its_objects_may_be_as_they_are() -> None:
    listed = (found("a", length_bytes=3),)
    awaits = (expected("a", must_exist=False), expected("b", must_exist=False))

    assert kinds(*listed, awaits=awaits) == []


def test_compare_when_nothing_names_an_object_then_an_orphan_only_once_it_is_old() -> None:
    """R22, scenarios 84 and 96: younger ones may still get a record."""
    assert kinds(found(OURS, age_ms=999), found("cold/readme", age_ms=999)) == [
        ("orphan", OURS),
        ("foreign", "cold/readme"),
    ]
    assert kinds(found(OURS, age_ms=1_000), found("cold/readme", age_ms=1_000)) == []


def test_compare_when_an_orphans_name_has_no_offset_then_found_without_it() -> None:
    """R22: an object of a stream."""
    streamed = KEYS.build(StreamedKey(segment_id=segment_id(9), part=LedgerPart.DATA))

    findings = [
        finding
        for name in sorted((OURS, streamed))
        for finding in compare([found(name, age_ms=999)], (), KEYS, AGE)
    ]

    assert [each.kind for each in findings] == ["orphan", "orphan"]
    assert {each.object_key: each.start_offset for each in findings} == {OURS: 17, streamed: -1}


def test_compare_when_in_quarantine_then_found_by_the_age_it_has_there() -> None:
    """Scenario 84."""
    there = quarantined_name(KEYS, OURS)

    assert kinds(found(there, age_ms=999)) == [("quarantined", there)]
    assert kinds(found(there, age_ms=1_000)) == []
    assert kinds(found("cold/quarantine/readme", age_ms=999)) == [
        ("foreign", "cold/quarantine/readme")
    ]


@pytest.mark.parametrize("kind", ["orphan", "quarantined", "foreign"])
def test_confirmed_when_an_orphan_was_recorded_or_is_gone_then_none(kind: str) -> None:
    """Scenario 108, R22: two sightings, and metadata that was read after them."""
    suspicion = Finding(kind=kind, object_key=OURS)

    assert confirmed(suspicion, found(OURS), None, AGE) == suspicion
    assert confirmed(suspicion, found(OURS), expected(OURS, must_exist=False), AGE) is None
    assert confirmed(suspicion, None, None, AGE) is None
    assert confirmed(suspicion, found(OURS, age_ms=5_000), None, AGE) is None


def test_confirmed_when_something_was_missing_then_only_if_it_still_should_be_there() -> None:
    """Scenario 96: a listing that lags behind proves nothing."""
    suspicion = Finding(kind="missing", object_key="a")

    again = confirmed(suspicion, None, expected("a"), AGE)
    assert again is not None
    assert (again.kind, again.start_offset, again.end_offset) == ("missing", 100, 200)
    assert confirmed(suspicion, found("a"), expected("a"), AGE) is None
    assert confirmed(suspicion, None, expected("a", must_exist=False), AGE) is None
    assert confirmed(suspicion, None, None, AGE) is None
    shorter = confirmed(suspicion, found("a", length_bytes=1), expected("a"), AGE)
    assert shorter is not None
    assert (shorter.kind, shorter.start_offset, shorter.end_offset) == ("size", 100, 200)


def test_expected_when_of_segments_then_only_finished_ones_must_exist() -> None:
    objects = (StoredObject(key="a", length_bytes=5, crc32c=7), StoredObject(key="b"))
    states = (STARTED, FINISHED, DELETE_STARTED)
    segments = [replace(segment_metadata(state=state), objects=objects) for state in states]

    found_objects = list(expected_objects(segments))

    assert [each.must_exist for each in found_objects] == [False, False, True, True, False, False]
    assert [(each.length_bytes, each.crc32c) for each in found_objects[:2]] == [(5, 7), (-1, -1)]


@given(
    names=st.sets(st.text(min_size=1, max_size=4), max_size=12),
    others=st.lists(st.text(min_size=1, max_size=4), max_size=12),
    size=st.integers(1, 5),
)
def test_ranges_when_cut_anyhow_then_each_name_is_in_one(
    names: set[str], others: list[str], size: int
) -> None:
    segments = [
        replace(segment_metadata(state=FINISHED), objects=(StoredObject(key=name, crc32c=7),))
        for name in names
    ]

    ranges = list(key_ranges(sorted(expected_rows(segments)), objects_per_range=size))

    assert sum(each.expected.num_rows for each in ranges) == len(names)
    for name in (*names, *others):
        holding = [
            each for each in ranges if each.after.encode() < name.encode() and each.contains(name)
        ]
        assert len(holding) == 1
        assert (name in names) == (name in holding[0].expected["key"].to_pylist())


def test_expected_when_as_rows_then_as_one_by_one() -> None:
    objects = (StoredObject(key="b", length_bytes=5, crc32c=7), StoredObject(key="a"))
    segments = [replace(segment_metadata(state=FINISHED), objects=objects)]

    rows = expected_batch(list(expected_rows(segments))).to_pylist()

    assert [ExpectedObject(**row) for row in rows] == [
        replace(each, topic="", partition=-1, segment_id="", start_offset=-1, end_offset=-1)
        for each in expected_objects(segments)
    ]
