"""Dead letters carried out over a store that may refuse, without Spark."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from rlmm.codec import decode as decode_event
from rlmm.dead_letters.dead_letter import DeadLetter, decode, encode
from rlmm.events.segment import SegmentEvent
from rlmm.positions import MetadataPosition
from rlmm.proto import dead_letter_pb2 as pb
from rlmm.record_keys import partition_subject, segment_subject
from rlmm.state.partition_state import ReadLease
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject
from rsm.segment.ranges import OffsetRange
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.settings import FilesystemSettings
from spark_tools.connection import StoreConnection
from spark_tools.record_writer import OutgoingRecord
from spark_tools.repair.batch_decisions import BatchDecisions, DeadLetterLocation
from spark_tools.repair.execution import OUTCOMES, RepairTerms, carry_out, rehearse
from spark_tools.repair.outcomes import OutcomeTopics
from spark_tools.repair.proof import Decision, MetadataSource, RepairAction
from tests.fakes.clock import FakeClock
from tests.metadata_builder import DELETE_FINISHED, DELETE_STARTED, FINISHED, segment_metadata


def segment(number: int) -> RemoteLogSegmentMetadata:
    plain = segment_metadata(number, state=DELETE_STARTED)
    return replace(plain, objects=tuple(named(plain, suffix) for suffix in ("log", "meta")))


def named(
    owner: RemoteLogSegmentMetadata, suffix: str = "log", base_offset: int = 0
) -> StoredObject:
    name = ObjectKey(segment_id=owner.segment_id, base_offset=base_offset, suffix=suffix)
    return StoredObject(key=ObjectKeys().build(name))


def dead_letter(number: int, *, attempts: int = 5, repair_attempts: int = 0) -> DeadLetter:
    return DeadLetter(
        metadata=segment(number),
        reason="refused",
        attempts=attempts,
        first_attempt_ms=1,
        last_attempt_ms=2,
        repair_attempts=repair_attempts,
    )


@dataclass
class World:
    store: Path
    terms: RepairTerms
    written: list[OutgoingRecord] = field(default_factory=list)

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
        self,
        values: Sequence[bytes | None],
        states: dict[RemoteLogSegmentMetadata, SegmentState | None],
        decided: dict[DeadLetterLocation, Decision] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the outcomes of dead letters at offsets from 0 on; `written` are the records."""
        given = decisions(states, decided)
        done = carry_out([received(values)], self.terms, given, FakeClock(), self.written.extend)
        batches = list(done)
        assert all(batch.schema.equals(OUTCOMES) for batch in batches)
        return [row for batch in batches for row in batch.to_pylist()]


def decisions(
    states: dict[RemoteLogSegmentMetadata, SegmentState | None],
    decided: dict[DeadLetterLocation, Decision] | None = None,
    newer: dict[bytes, int] | None = None,
    leases: tuple[ReadLease, ...] = (),
) -> BatchDecisions:
    """Return the decisions of a driver whose metadata has these segments."""
    return BatchDecisions(
        keys=ObjectKeys(),
        source=MetadataSource(topic_id="topic-a", partition_count=1, positions={0: 18}, unread={}),
        states={segment_subject(each.segment_id): state for each, state in states.items()},
        newer=newer or {},
        leases={partition_subject(segment(1).topic_id_partition): leases},
        listed={
            segment_subject(each.segment_id): odd_names(each)
            for each, state in states.items()
            if state is not None
        },
        objects_count={
            segment_subject(each.segment_id): len(each.objects)
            for each, state in states.items()
            if state is not None
        },
        decided=decided or {},
    )


def odd_names(of: RemoteLogSegmentMetadata) -> frozenset[str]:
    return frozenset(each.key for each in of.objects if ObjectKeys().parse(each.key) is None)


def received(values: Sequence[bytes | None]) -> pa.RecordBatch:
    rows = [
        {"partition": 0, "offset": offset, "key": b"key", "value": value}
        for offset, value in enumerate(values)
    ]
    return pa.RecordBatch.from_pylist(rows)


@pytest.fixture
def world(tmp_path: Path) -> World:
    topics = OutcomeTopics(
        metadata_topic="metadata",
        metadata_partition_count=7,
        dead_letter_topic="letters",
        parking_topic="parked",
        max_attempts=7,
    )
    store = StoreConnection(settings=FilesystemSettings(root=tmp_path))
    return World(store=tmp_path, terms=RepairTerms(store=store, topics=topics, is_itemized=True))


def test_carry_out_when_proved_then_objects_go_and_the_end_is_published(world: World) -> None:
    """Scenario 74: an absent object counts as deleted."""
    world.put(segment(1))
    values = [encode(dead_letter(number)).value for number in (1, 2)]

    rows = world.outcomes(values, dict.fromkeys((segment(1), segment(2)), DELETE_STARTED))

    assert world.names() == set()
    assert [row["outcome"] for row in rows] == ["repaired", "repaired"]
    for record in world.written:
        event = decode_event(record.key or b"", record.value)
        assert isinstance(event, SegmentEvent)
        assert event.metadata.state is DELETE_FINISHED
        assert record.topic == "metadata"
        assert 0 <= record.partition < 7


def test_carry_out_when_there_are_several_parts_then_each_letter_once_and_in_order(
    world: World,
) -> None:
    """Parts run concurrently; absent objects count as deleted."""
    numbers = range(1, 6_502)
    world.put(segment(1), segment(1_000), segment(1_001), segment(6_501))
    values = [encode(dead_letter(number)).value for number in numbers]

    rows = world.outcomes(values, {segment(each): DELETE_STARTED for each in numbers})

    assert world.names() == set()
    assert {row["outcome"] for row in rows} == {"repaired"}
    assert [row["segment"] for row in rows] == [str(segment(each).segment_id) for each in numbers]


def test_carry_out_when_not_itemized_then_counts_alone(world: World) -> None:
    world.terms = replace(world.terms, is_itemized=False)
    values = [encode(dead_letter(number)).value for number in (1, 2)] + [b"\xff"]

    rows = world.outcomes(values, dict.fromkeys((segment(1), segment(2)), DELETE_STARTED))

    assert [(row["outcome"], row["dead_letters"], row["segment"]) for row in rows] == [
        ("repaired", 2, None),
        ("unreadable", 1, None),
    ]


def test_carry_out_when_records_are_not_acknowledged_then_it_fails(world: World) -> None:
    """Scenario 74: nothing counts as done before its record is acknowledged."""

    def refuse(records: Iterable[OutgoingRecord]) -> None:
        assert len(list(records)) == 1
        raise RetriableError("the cluster did not answer in time")

    batches = [received([encode(dead_letter(1)).value])]
    given = decisions({segment(1): DELETE_STARTED})

    with pytest.raises(RetriableError):
        list(carry_out(batches, world.terms, given, FakeClock(), refuse))


def test_carry_out_when_a_task_that_failed_is_done_again_then_as_if_done_once(
    world: World,
) -> None:
    """Scenario 74: deleted objects are reported, and the others have one more attempt."""
    bad = replace(segment(2), objects=(StoredObject(key="segments/../x.log"),))
    world.put(segment(1))
    values = [encode(dead_letter(1)).value, encode(replace(dead_letter(2), metadata=bad)).value]
    states: dict[RemoteLogSegmentMetadata, SegmentState | None]
    states = {segment(1): DELETE_STARTED, bad: DELETE_STARTED}

    def fail(records: Iterable[OutgoingRecord]) -> None:
        world.written.extend(records)
        raise RetriableError("the cluster did not answer in time")

    with pytest.raises(RetriableError):
        list(carry_out([received(values)], world.terms, decisions(states), FakeClock(), fail))
    rows = world.outcomes(values, states)

    assert world.names() == set()
    assert [row["outcome"] for row in rows] == ["repaired", "failed"]
    assert [record.topic for record in world.written] == ["metadata", "letters"] * 2
    assert {decode(world.written[location].value).attempts for location in (1, 3)} == {6}


@pytest.mark.parametrize("is_acknowledged", [True, False])
def test_carry_out_when_it_ends_then_garbage_is_collected_as_before(
    world: World, *, is_acknowledged: bool
) -> None:
    """Spark reuses the process for other tasks."""

    def write(records: Iterable[OutgoingRecord]) -> None:
        assert gc.get_threshold()[0] > before[0]
        assert list(records)
        if not is_acknowledged:
            raise RetriableError("the cluster did not answer in time")

    before, frozen_count = gc.get_threshold(), gc.get_freeze_count()
    batches = [received([encode(dead_letter(1)).value])]
    given = decisions({segment(1): DELETE_STARTED})

    with suppress(RetriableError):
        list(carry_out(batches, world.terms, given, FakeClock(), write))

    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, frozen_count)


def test_carry_out_when_swept_then_nothing_is_published(world: World) -> None:
    world.put(segment(1))

    (row,) = world.outcomes([encode(dead_letter(1)).value], {segment(1): DELETE_FINISHED})

    assert (row["outcome"], world.written) == ("repaired", [])
    assert world.names() == set()


@pytest.mark.parametrize("state", [FINISHED, None, "not asked for"])
def test_carry_out_when_not_proved_then_kept_and_parked_with_the_reason(
    world: World, state: Any
) -> None:
    """R22: alive, unknown without proof, or of another segment than the driver knew."""
    world.put(segment(1))
    value = encode(dead_letter(1)).value

    (row,) = world.outcomes([value], {} if state == "not asked for" else {segment(1): state})

    (record,) = world.written
    assert world.names() == {each.key for each in segment(1).objects}
    assert (row["outcome"], record.topic, record.value) == ("refused", "parked", value)
    headers = dict(record.headers)
    assert headers["from"] == b"letters-0@0"
    assert headers["reason"] == row["reason"].encode()


@pytest.mark.parametrize(
    ("offsets", "state", "outcome"),
    [
        ((0, 1), DELETE_STARTED, "waiting"),
        ((99, 500), DELETE_STARTED, "waiting"),
        ((100, 500), DELETE_STARTED, "repaired"),
        ((0, 1), DELETE_FINISHED, "repaired"),
    ],
)
def test_carry_out_when_somebody_reads_it_then_kept_and_back_as_it_was(
    world: World, offsets: tuple[int, int], state: SegmentState, outcome: str
) -> None:
    """R13: no deletion removes leased segments."""
    world.put(segment(1))
    start_offset, end_offset = offsets
    lease = ReadLease(
        lease_id=UUID(int=1),
        offsets=OffsetRange(start_offset=start_offset, end_offset=end_offset),
        expires_ms=1,
        holder="a Spark job",
    )
    given = decisions({segment(1): state}, leases=(lease,))
    sent = encode(dead_letter(1))

    (batch,) = carry_out(
        [received([sent.value])], world.terms, given, FakeClock(), world.written.extend
    )

    assert batch.column("outcome").to_pylist() == [outcome]
    if outcome == "waiting":
        (back,) = world.written
        assert (back.topic, back.key, back.value) == ("letters", b"key", sent.value)
        assert batch.column("reason").to_pylist() == ["a Spark job has a read lease on the segment"]
        assert len(world.names()) == 2
    else:
        assert world.names() == set()


@pytest.mark.parametrize("state", [DELETE_STARTED, DELETE_FINISHED])
def test_carry_out_when_a_letter_names_another_segments_object_then_kept(
    world: World, state: SegmentState
) -> None:
    """R22: the proof for one segment is no proof for the objects of another one."""
    alive = replace(segment(2), objects=(named(segment(2)),))
    world.put(alive)
    forged = replace(segment(1), objects=(named(segment(1)), *alive.objects))
    value = encode(replace(dead_letter(1), metadata=forged)).value

    (row,) = world.outcomes([value], {segment(1): state})

    assert world.names() == {alive.objects[0].key}
    assert row["outcome"] == "refused"
    assert alive.objects[0].key in row["reason"]


@pytest.mark.parametrize("base_offset", [0, 7])
def test_carry_out_when_a_letter_names_its_own_objects_then_they_go(
    world: World, base_offset: int
) -> None:
    own = replace(segment(1), objects=(named(segment(1), "log", base_offset),))
    world.put(own)
    value = encode(replace(dead_letter(1), metadata=own)).value

    (row,) = world.outcomes([value], {own: DELETE_STARTED})

    assert (world.names(), row["outcome"]) == (set(), "repaired")


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("state", [DELETE_STARTED, DELETE_FINISHED])
def test_carry_out_when_a_letter_names_fewer_objects_than_the_metadata_then_kept(
    world: World, state: SegmentState, count: int
) -> None:
    """R22: DELETE_SEGMENT_FINISHED says that all of them are gone."""
    world.put(segment(1))
    short = replace(segment(1), objects=segment(1).objects[-1:] * 2 * count)
    value = encode(replace(dead_letter(1), metadata=short)).value

    (row,) = world.outcomes([value], {segment(1): state})

    assert (row["outcome"], len(world.names())) == ("refused", 2)
    assert row["reason"].endswith(f"of its segment (named={count}, expected=2 or more)")


@pytest.mark.parametrize("state", [DELETE_STARTED, DELETE_FINISHED])
def test_carry_out_when_a_name_says_nothing_then_deleted_only_if_the_metadata_lists_it(
    world: World, state: SegmentState
) -> None:
    """R22: a name below another prefix does not show whose object it is."""
    ours = replace(segment(1), objects=(StoredObject(key="elsewhere/ours"),))
    anybodys = replace(segment(2), objects=(StoredObject(key="elsewhere/anybodys"),))
    world.put(ours, anybodys)
    values = [encode(replace(dead_letter(1), metadata=each)).value for each in (ours, anybodys)]

    rows = world.outcomes(values, {ours: state, segment(2): state})

    assert world.names() == {"elsewhere/anybodys"}
    assert [row["outcome"] for row in rows] == ["repaired", "refused"]
    assert "of an unknown segment: elsewhere/anybodys" in rows[1]["reason"]


@pytest.mark.parametrize("objects", [(StoredObject(key="elsewhere/anybodys"),), ()])
def test_judgement_when_gone_and_its_names_say_nothing_then_refused(
    objects: tuple[StoredObject, ...],
) -> None:
    """R22: otherwise no record would name these objects."""
    proved = replace(
        dead_letter(1),
        metadata=replace(segment(1), objects=objects),
        delete_started=MetadataPosition(partition=0, offset=17),
        metadata_topic_id="topic-a",
    )

    decision = decisions({segment(1): None}).decision((0, 0), proved)

    assert decision.action is RepairAction.REFUSE


def test_carry_out_when_a_letter_is_of_a_newer_version_then_back_as_it_was(world: World) -> None:
    """R14: the job that can read it finds it unchanged."""
    message = pb.DeadLetter.FromString(encode(dead_letter(1)).value)
    message.min_fold_version = 9
    value = message.SerializeToString()

    (row,) = world.outcomes([value], {segment(1): DELETE_STARTED})

    (back,) = world.written
    assert (row["outcome"], "newer version" in row["reason"]) == ("waiting", True)
    assert (back.topic, back.key, back.value) == ("letters", b"key", value)
    (rehearsed,) = rehearse([received([value])], decisions({}))
    assert rehearsed.column("outcome").to_pylist() == ["waiting"]


def test_carry_out_when_a_letter_waits_then_what_is_not_known_here_stays_in_it(
    world: World,
) -> None:
    """R14: fields are added without a new version."""
    value = encode(dead_letter(1)).value + b"\xfa\x07\x01x"  # field 127
    newer = {partition_subject(segment(1).topic_id_partition): 9}
    given = decisions({segment(1): DELETE_STARTED}, newer=newer)

    list(carry_out([received([value])], world.terms, given, FakeClock(), world.written.extend))

    assert [(each.topic, each.value) for each in world.written] == [("letters", value)]


def test_judgement_when_the_metadata_needs_newer_rules_then_it_waits() -> None:
    """R14, R22 and scenario 79: what only newer rules can fold proves nothing yet."""
    one = segment(1)
    newer = {partition_subject(one.topic_id_partition): 9}

    decision = decisions({one: DELETE_STARTED}, newer=newer).decision((0, 0), dead_letter(1))

    assert (decision.action, "version 9" in decision.reason) == (RepairAction.WAIT, True)


def test_judgement_when_gone_after_its_own_deletion_then_swept() -> None:
    """R22: the metadata is of the dead letter's topic, read beyond the dead letter's position."""
    proved = replace(
        dead_letter(1),
        delete_started=MetadataPosition(partition=0, offset=17),
        metadata_topic_id="topic-a",
    )

    decision = decisions({segment(1): None}).decision((0, 0), proved)

    assert decision.action is RepairAction.DELETE_OBJECTS


def test_carry_out_when_unreadable_or_superseded_then_nothing_is_deleted(world: World) -> None:
    """Scenario 79."""
    world.put(segment(1))
    values = [b"\xff\xff no letter", None, encode(dead_letter(1)).value]
    superseded = {(0, 2): Decision(action=RepairAction.SUPERSEDED)}

    rows = world.outcomes(values, {segment(1): DELETE_STARTED}, superseded)

    assert [row["outcome"] for row in rows] == ["unreadable", "superseded"]
    assert [(each.topic, each.value) for each in world.written] == [("parked", values[0])]
    assert len(world.names()) == 2


def test_carry_out_when_the_store_refuses_then_back_with_an_attempt_more_until_given_up(
    world: World,
) -> None:
    keys = [StoredObject(key=key) for key in ("segments/../x.log", "segments/x.meta")]
    bad = replace(segment(1), objects=tuple(keys))  # a name that the store refuses
    values = [
        encode(replace(dead_letter(1, attempts=50, repair_attempts=count), metadata=bad)).value
        for count in (5, 6)
    ]

    again, given_up = world.outcomes(values, {bad: DELETE_STARTED})

    back, parked = world.written
    assert (again["outcome"], back.topic) == ("failed", "letters")
    assert back.key == segment_subject(bad.segment_id)
    assert (decode(back.value).attempts, decode(back.value).repair_attempts) == (51, 6)
    assert (given_up["outcome"], parked.topic) == ("given_up", "parked")
    assert "failed attempts: 7" in given_up["reason"]


def test_rehearse_when_asked_then_counts_outcomes_and_changes_nothing(world: World) -> None:
    """The documented names are those of real outcomes."""
    values = [encode(dead_letter(number)).value for number in (1, 2, 3, 1)] + [b"\xff", None]
    states: dict[RemoteLogSegmentMetadata, SegmentState | None]
    states = {segment(1): DELETE_STARTED, segment(2): DELETE_FINISHED, segment(3): FINISHED}
    world.put(*states)
    decided = {(0, 0): Decision(action=RepairAction.SUPERSEDED)}

    (batch,) = rehearse([received(values)], decisions(states, decided))

    assert len(world.names()) == 6
    found = dict(
        zip(*(batch.column(n).to_pylist() for n in ("outcome", "dead_letters")), strict=True)
    )
    assert found == {"repaired": 2, "refused": 1, "superseded": 1, "unreadable": 1}
    assert found == Counter(row["outcome"] for row in world.outcomes(values, states, decided))
