"""Letters carried out over a store that may refuse, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rlmm.codec import decode as decode_event
from rlmm.dead_letter import DeadLetter, decode, encode
from rlmm.events import SegmentEvent
from rlmm.record_keys import segment_subject
from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject
from rsm.storage.bindings import FilesystemSettings
from rsm.storage.chunk_storage import ChunkStorage, DeleteOutcome
from rsm.storage.filesystem import FilesystemChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.wrapper import ChunkStorageWrapper
from spark_tools.connection import StoreConnection
from spark_tools.repair.deletion import delete_segments
from spark_tools.repair.letter_rows import (
    OUTCOMES,
    LetterPlace,
    RepairTerms,
    carry_out,
    read_letters,
)
from spark_tools.repair.proof import Judgement, Verdict
from tests.metadata_builder import DELETE_STARTED, segment_metadata
from tests.twins.clock import FakeClock

NOW_MS = 1_900_000_000_000


def segment(number: int) -> RemoteLogSegmentMetadata:
    objects = tuple(StoredObject(key=f"segments/{number}{end}") for end in (".log", ".meta"))
    return replace(segment_metadata(number, state=DELETE_STARTED), objects=objects)


def letter(number: int, *, attempts: int = 5) -> DeadLetter:
    return DeadLetter(
        metadata=segment(number),
        reason="refused",
        attempts=attempts,
        first_attempt_ms=1,
        last_attempt_ms=2,
    )


class RefusingStorage(ChunkStorageWrapper):
    """Refuses to delete some keys, and remembers the order of what it was asked."""

    def __init__(self, inner: ChunkStorage, *refused: str) -> None:
        super().__init__(inner)
        self._refused = refused
        self.asked: list[Sequence[str]] = []

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        self.asked.append(names)
        return tuple(
            DeleteOutcome(name=name, error=RetriableError("refused"))
            if name in self._refused
            else super(RefusingStorage, self).delete_many([name])[0]
            for name in names
        )


def stored(*segments: RemoteLogSegmentMetadata) -> MemoryChunkStorage:
    storage = MemoryChunkStorage(wall_ms=lambda: NOW_MS)
    for each in segments:
        for one in each.objects:
            storage.create_with_content(one.key, BytesSource(content=b"x"))
    return storage


def test_delete_when_many_then_companions_last_and_only_of_what_is_gone() -> None:
    """A segment's companion tells what the rest is, as long as there is any."""
    segments = [segment(1), segment(2), segment(3)]
    storage = RefusingStorage(stored(segments[0], segments[1]), "segments/2.log")

    results = delete_segments(storage, segments)

    assert [bool(result) for result in results] == [False, True, False]
    assert "segments/2.log" in results[1]
    assert storage.asked == [
        ["segments/1.log", "segments/2.log", "segments/3.log"],
        ["segments/1.meta", "segments/3.meta"],
    ]
    assert {chunk.name for chunk in storage.list("")} == {"segments/2.log", "segments/2.meta"}


@dataclass
class World:
    store: Path
    terms: RepairTerms

    def put(self, *segments: RemoteLogSegmentMetadata) -> None:
        storage = FilesystemChunkStorage(self.store)
        for each in segments:
            for one in each.objects:
                storage.create_with_content(one.key, BytesSource(content=b"x"))
        storage.close()

    def names(self) -> set[str]:
        storage = FilesystemChunkStorage(self.store)
        found = {chunk.name for chunk in storage.list("")}
        storage.close()
        return found

    def outcomes(
        self, values: Sequence[bytes | None], judgements: dict[LetterPlace, Judgement]
    ) -> list[dict[str, Any]]:
        clock = FakeClock()
        done = carry_out([received(values)], self.terms, judgements, clock)
        batches = list(done)
        assert all(batch.schema.equals(OUTCOMES) for batch in batches)
        return [row for batch in batches for row in batch.to_pylist()]


def received(values: Sequence[bytes | None]) -> pa.RecordBatch:
    rows = [
        {"partition": 0, "offset": offset, "key": b"key", "value": value}
        for offset, value in enumerate(values)
    ]
    return pa.RecordBatch.from_pylist(rows)


@pytest.fixture
def world(tmp_path: Path) -> World:
    terms = RepairTerms(
        store=StoreConnection(settings=FilesystemSettings(root=tmp_path), key_prefix=""),
        metadata_topic="metadata",
        metadata_partition_count=7,
        letter_topic="letters",
        parking_topic="parked",
        max_attempts=7,
    )
    return World(store=tmp_path, terms=terms)


def test_carry_out_when_proved_then_objects_go_and_the_end_is_published(world: World) -> None:
    """Scenario 74: what is absent already counts as done."""
    world.put(segment(1))
    values = [encode(letter(number)).value for number in (1, 2)]
    delete = Judgement(verdict=Verdict.DELETE)

    rows = world.outcomes(values, {(0, 0): delete, (0, 1): delete})

    assert world.names() == set()
    assert [row["outcome"] for row in rows] == ["repaired", "repaired"]
    for row in rows:
        event = decode_event(row["key"], row["value"])
        assert isinstance(event, SegmentEvent)
        assert event.metadata.state is SegmentState.DELETE_SEGMENT_FINISHED
        assert row["topic"] == "metadata"
        assert 0 <= row["partition"] < 7


def test_carry_out_when_there_are_several_parts_then_each_letter_once_and_in_order(
    world: World,
) -> None:
    """Parts are under way at once; what is not there any more counts as deleted."""
    numbers = range(1, 2_502)
    world.put(segment(1), segment(1_000), segment(1_001), segment(2_501))
    values = [encode(letter(number)).value for number in numbers]
    delete = Judgement(verdict=Verdict.DELETE)

    rows = world.outcomes(values, {(0, offset): delete for offset in range(len(values))})

    assert world.names() == set()
    assert {row["outcome"] for row in rows} == {"repaired"}
    assert [row["segment"] for row in rows] == [str(segment(each).segment_id) for each in numbers]


def test_carry_out_when_swept_then_nothing_is_published(world: World) -> None:
    world.put(segment(1))

    (row,) = world.outcomes([encode(letter(1)).value], {(0, 0): Judgement(verdict=Verdict.SWEEP)})

    assert (row["outcome"], row["topic"]) == ("repaired", None)
    assert world.names() == set()


@pytest.mark.parametrize("judgement", [Judgement(verdict=Verdict.REFUSE, reason="no proof"), None])
def test_carry_out_when_not_proved_then_kept_and_parked_with_the_reason(
    world: World, judgement: Judgement | None
) -> None:
    """R22."""
    world.put(segment(1))
    value = encode(letter(1)).value

    (row,) = world.outcomes([value], {} if judgement is None else {(0, 0): judgement})

    assert world.names() == {"segments/1.log", "segments/1.meta"}
    assert (row["outcome"], row["topic"], row["value"]) == ("refused", "parked", value)
    headers = {each["key"]: each["value"] for each in row["headers"]}
    assert headers["from"] == b"letters-0@0"
    assert headers["reason"] == row["reason"].encode()


def test_carry_out_when_unreadable_or_superseded_then_nothing_is_deleted(world: World) -> None:
    """Scenario 79."""
    world.put(segment(1))
    values = [b"\xff\xff no letter", None, encode(letter(1)).value]

    rows = world.outcomes(values, {(0, 2): Judgement(verdict=Verdict.SUPERSEDED)})

    assert [(row["outcome"], row["topic"]) for row in rows] == [
        ("unreadable", "parked"),
        ("superseded", None),
    ]
    assert rows[0]["value"] == values[0]
    assert len(world.names()) == 2


def test_carry_out_when_the_store_refuses_then_back_with_an_attempt_more_until_given_up(
    world: World,
) -> None:
    keys = [StoredObject(key=key) for key in ("segments/../x.log", "segments/x.meta")]
    bad = replace(segment(1), objects=tuple(keys))  # a name that the store refuses
    values = [
        encode(replace(letter(1, attempts=attempts), metadata=bad)).value for attempts in (5, 6)
    ]
    delete = Judgement(verdict=Verdict.DELETE)

    again, given_up = world.outcomes(values, {(0, 0): delete, (0, 1): delete})

    assert (again["outcome"], again["topic"]) == ("failed", "letters")
    assert again["key"] == segment_subject(bad.segment_id)
    assert decode(again["value"]).attempts == 6
    assert (given_up["outcome"], given_up["topic"]) == ("given_up", "parked")
    assert "failed 7 times" in given_up["reason"]


def test_read_letters_when_some_are_unreadable_then_counted() -> None:
    sent = letter(1)

    found = read_letters([received([encode(sent).value, b"\xff", None]), received([b"\xff"])])

    assert found == ({(0, 0): sent}, 2)
