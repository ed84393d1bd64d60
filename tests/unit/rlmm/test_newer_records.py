"""Records that only a newer version can fold: what they concern, and for how long."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from rlmm.cache.memory import MemoryStore
from rlmm.codec import decode, encode
from rlmm.events.event import Event
from rlmm.events.pause import PausableTask
from rlmm.events.policy import OriginalConfig, topic_policy
from rlmm.events.policy_level import PolicyLevelSet, policy_levels
from rlmm.positions import MetadataPosition
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import (
    RecordKind,
    partition_key,
    segment_key,
)
from rlmm.spi import NewerRecord
from rlmm.state.gaps import GapReason
from rlmm.topic.memory import MemoryLog
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from tests.folding import append, fold_log, folded, log_of
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    anomaly_reported,
    claim,
    cluster_secret,
    event_id,
    gap,
    gaps,
    paused,
    policy,
    policy_key,
    policy_level,
    read_lease,
    registration,
    segment_metadata,
    step,
    writer,
)

SEGMENT = replace(
    segment_metadata(),
    objects=(
        StoredObject(key="a.log.00000", length_bytes=1, crc32c=2),
        StoredObject(key="a.meta", length_bytes=3, crc32c=4),
    ),
)


NEWER = pb.MetadataEvent(min_fold_version=7).SerializeToString()
OTHER = replace(ORDERS, partition=1)


@pytest.mark.parametrize(
    ("key", "concerns"),
    [
        (segment_key(SEGMENT.segment_id, UUID(int=1)), {ORDERS}),
        (partition_key(RecordKind.TRIM, OTHER, UUID(int=1)), {OTHER}),
        (policy_key(ORDERS.topic_id), {ORDERS, OTHER}),
        (policy_key(UUID(int=99)), set()),
        (encode(registration(1)).key, {ORDERS, OTHER}),
        (b"\x7fwhatever a newer version puts here", {ORDERS, OTHER}),
        (b"", {ORDERS, OTHER}),
    ],
)
def test_newer_record_when_read_then_concerns_what_its_key_names(
    key: bytes, concerns: set[object]
) -> None:
    """R14: the record blocks the partition or topic of its key, else everything."""
    log = log_of(registration(1))
    log.append(0, key, NEWER)

    cache = folded(log)

    expected = NewerRecord(needs_fold_version=7, position=MetadataPosition(partition=0, offset=1))
    assert {tip for tip in (ORDERS, OTHER) if cache.newer_record(tip) == expected} == concerns
    assert cache.newer_records_count() == 1


@pytest.mark.parametrize("ending", [None, encode(policy()).value])
def test_newer_record_when_removed_or_replaced_then_concerns_nothing(
    ending: bytes | None,
) -> None:
    """R14: a policy that is written again after a rollback ends the block."""
    log = log_of()
    log.append(0, policy_key(ORDERS.topic_id), NEWER)
    log.append(0, policy_key(ORDERS.topic_id), ending)

    assert folded(log).newer_record(ORDERS) is None


def test_unreadable_record_when_read_then_is_counted_and_holds_nothing() -> None:
    """R22: the cache records that it skipped records of the topic."""
    log = log_of(registration(1))
    log.append(0, policy_key(ORDERS.topic_id), b"garbage")
    log.append(0, b"\x7f", b"garbage, too")

    cache = folded(log)

    assert (cache.unreadable_records_count(), cache.newer_records_count()) == (2, 0)
    assert cache.newer_record(ORDERS) is None


def test_unreadable_record_when_of_an_unknown_kind_and_removed_then_is_not_counted() -> None:
    log = log_of()
    log.append(0, b"\x7f", b"garbage")
    log.append(0, b"\x7f", None)

    assert folded(log).unreadable_records_count() == 0


@pytest.mark.parametrize("ending", [None, encode(policy()).value, NEWER])
def test_unreadable_record_when_removed_or_replaced_then_is_not_counted(
    ending: bytes | None,
) -> None:
    """The record counts as long as the topic has it."""
    log = log_of()
    log.append(0, policy_key(ORDERS.topic_id), b"garbage")
    log.append(0, policy_key(ORDERS.topic_id), ending)

    cache = folded(log)

    assert cache.unreadable_records_count() == 0
    assert cache.newer_records_count() == (ending is NEWER)


def test_newer_record_when_read_then_the_rest_is_still_folded() -> None:
    """R14, scenario 102: skipped and counted; known records are served."""
    log = log_of(claim())
    log.append(0, segment_key(SEGMENT.segment_id, UUID(int=1)), NEWER)
    append(log, step(SEGMENT, FINISHED))

    (skipped,) = (c.skipped for c in fold_log(log, MemoryStore()))

    assert skipped == {"newer_version": 1}
    assert folded(log).finished_segment(ORDERS, 5, leader_epoch=0) is not None


# Field 900, which no version has: three bytes.
NEW_FIELD = b"\xa2\x38\x03new"
Place = tuple[str, ...]


def places_of(*path: str) -> list[Place]:
    """Return the message at `path` of an event, and all messages nested in it."""
    descriptor = pb.MetadataEvent.DESCRIPTOR
    for name in path:
        within = descriptor.fields_by_name[name].message_type
        assert within is not None, f"no message: {name}"
        descriptor = within
    nested = (f.name for f in descriptor.fields if f.message_type is not None)
    return [path, *(field_path for name in nested for field_path in places_of(*path, name))]


def with_newer_fields(event: Event, *partition_keys: Place) -> tuple[bytes, bytes]:
    """Return the event's record as a newer version would write it, with one more field everywhere.

    In a repeated field, the last element gets it.
    """
    record = encode(event)
    message = pb.MetadataEvent.FromString(record.value)
    for field_path in partition_keys:
        part: Message = message
        for name in field_path:
            found = getattr(part, name)
            part = found if isinstance(found, Message) else found[-1]
        part.MergeFromString(NEW_FIELD)
    return record.key, message.SerializeToString()


SEGMENT_PLACES = places_of("segment", "metadata")
POLICY_PLACES = places_of("topic_policy_changed")
ORIGINALS = (OriginalConfig(name="a", value=None), OriginalConfig(name="b", value="1"))
POLICY = replace(policy(), policy=replace(policy().policy, originals=ORIGINALS))


def read_segment(*partition_keys: Place) -> RemoteLogSegmentMetadata:
    """Return a finished segment as the cache has it, from a record of a newer version."""
    log = log_of(claim())
    log.append(0, *with_newer_fields(step(SEGMENT, FINISHED), *partition_keys))
    record = folded(log).segment(SEGMENT.segment_id)
    assert record is not None
    return record.metadata


def test_places_when_listed_then_are_all_messages_of_a_segment() -> None:
    assert {field_path[2:] for field_path in SEGMENT_PLACES} == {
        (),
        ("topic_id_partition",),
        ("segment_leader_epochs",),
        ("writer",),
        ("objects",),
        ("chunks",),
    }


@pytest.mark.parametrize("field_path", SEGMENT_PLACES, ids=".".join)
def test_segment_when_stepping_on_then_keeps_what_a_newer_version_wrote(field_path: Place) -> None:
    """R14: unknown fields survive a rewrite, each in its message."""
    metadata = read_segment(field_path)

    written = step(metadata, DELETE_STARTED, expected_state=FINISHED)

    plain = replace(written, metadata=replace(written.metadata, unknown_fields=b""))
    assert encode(written).value == with_newer_fields(plain, field_path)[1]


def test_segment_when_somebody_else_steps_on_then_nothing_of_the_old_writer_stays() -> None:
    metadata = read_segment(("segment", "metadata", "writer"))

    written = step(metadata, DELETE_STARTED, by=writer(1), expected_state=FINISHED)

    assert NEW_FIELD not in encode(written).value


@pytest.mark.parametrize("field_path", POLICY_PLACES, ids=".".join)
def test_policy_when_changed_then_keeps_what_a_newer_version_wrote(field_path: Place) -> None:
    """R14: also in the cache."""
    log = MemoryLog(ManualClock())
    log.append(0, *with_newer_fields(POLICY, field_path))
    found = topic_policy(folded(log), ORDERS.topic_id)
    assert found is not None

    written = replace(POLICY, policy=replace(found, retention_ms=5))

    plain = replace(written, policy=replace(written.policy, unknown_fields=b""))
    assert encode(written).value == with_newer_fields(plain, field_path)[1]


def test_gap_when_another_is_recorded_then_keeps_what_a_newer_version_wrote() -> None:
    """R14: all gaps of a partition are written whenever one is added."""
    field_path = ("gaps_recorded", "gaps")
    log = log_of(claim())
    log.append(0, *with_newer_fields(gaps(gap(0, 10)), field_path))
    (found,) = folded(log).partition_state(ORDERS).gaps

    written = encode(gaps(found, gap(20, 30))).value

    first, second = pb.MetadataEvent.FromString(written).gaps_recorded.gaps
    assert first.SerializeToString().endswith(NEW_FIELD)
    assert NEW_FIELD not in second.SerializeToString()


@given(
    event_and_places=st.sampled_from(
        [
            (step(SEGMENT, FINISHED), SEGMENT_PLACES),
            (POLICY, POLICY_PLACES),
            (paused(PausableTask.COPY), places_of("topic_paused")),
        ]
    ).flatmap(lambda case: st.tuples(st.just(case[0]), st.sets(st.sampled_from(case[1]))))
)
def test_record_when_read_and_written_then_is_the_same_wherever_a_newer_version_added(
    event_and_places: tuple[Event, set[Place]],
) -> None:
    """R14."""
    event, partition_keys = event_and_places
    key, value = with_newer_fields(event, *partition_keys)

    again = encode(decode(key, value))

    assert (again.key, again.value) == (key, value)


@pytest.mark.parametrize(
    "event", [policy(), paused(PausableTask.TRIM), registration(1), read_lease(1)]
)
def test_newer_record_when_one_with_its_key_can_be_read_then_is_forgotten(event: Event) -> None:
    """R14: the last one written with a key holds."""
    log = log_of()
    log.append(0, encode(event).key, NEWER)
    append(log, event)

    assert folded(log).newer_records_count() == 0


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(event, id=type(event).__name__)
        for event in (
            *(read_lease(), anomaly_reported(), policy()),
            *(paused(PausableTask.COPY), registration(1), cluster_secret()),
        )
    ],
)
def test_unreadable_record_when_a_readable_one_replaces_it_then_is_not_counted(
    event: Event,
) -> None:
    """The kind of the record does not matter."""
    record = encode(event)
    log = log_of()
    log.append(0, record.key, b"garbage")
    assert folded(log).unreadable_records_count() == 1

    log.append(0, record.key, record.value)

    assert folded(log).unreadable_records_count() == 0


@pytest.mark.parametrize(
    ("reason", "written"),
    [
        (GapReason.SHED, (pb.SHED, False)),
        (GapReason.EXTERNAL_START, (pb.EXTERNAL_START, False)),
        (GapReason.ACCEPTED_LOSS, (pb.EXTERNAL_START, True)),
    ],
)
def test_gap_when_written_then_version_0_1_0_knows_its_reason(
    reason: GapReason, written: tuple[int, bool]
) -> None:
    record = encode(gaps(gap(0, 10, reason=reason)))

    (found,) = pb.MetadataEvent.FromString(record.value).gaps_recorded.gaps
    assert (found.reason, found.accepted_loss) == written


def test_policy_level_when_changed_then_keeps_what_a_newer_version_wrote() -> None:
    """R14: also in the cache."""
    field_path = ("policy_level_set",)
    log = MemoryLog(ManualClock())
    log.append(0, *with_newer_fields(policy_level(), field_path))
    (found,) = policy_levels(folded(log))

    written = encode(PolicyLevelSet(event_id=event_id(), level=replace(found, retention_ms=5)))

    message = pb.MetadataEvent.FromString(written.value).policy_level_set
    assert message.retention_ms == 5
    assert message.SerializeToString().endswith(NEW_FIELD)
