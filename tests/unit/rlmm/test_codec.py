from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.codec import FOLD_VERSION, decode, encode
from rlmm.events.anomaly import AnomalyReported
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.event import Event
from rlmm.events.gaps import GapsRecorded
from rlmm.events.local_trim import LocalLogTrimmed
from rlmm.events.log_start import LogStartAdvanced, LogStartRequested
from rlmm.events.loss import LossAccepted
from rlmm.events.offload import OffloadRequested
from rlmm.events.offload_segment import OffloadSegmentChanged
from rlmm.events.parsed_segment import ParsedSegment
from rlmm.events.partition_delete import RemotePartitionDeleteMetadata
from rlmm.events.pause import PausableTask, TopicPaused
from rlmm.events.policy import (
    CopyLagSince,
    OriginalConfig,
    OutagePolicy,
    PolicySetting,
    PolicyState,
    TopicPolicy,
    TopicPolicyChanged,
)
from rlmm.events.policy_level import PolicyLevel, PolicyLevelSet
from rlmm.events.read_lease import READ_LEASE_MAX_MS, ReadLeaseTaken
from rlmm.events.registration import (
    NO_BROKER,
    UNREADY_REASONS_MAX_COUNT,
    AppliedPosition,
    FileDefault,
    ProcessReadiness,
    ProcessRegistered,
    ProcessRole,
)
from rlmm.events.segment import SegmentDeadLettered, SegmentEvent
from rlmm.fold import Tombstone, parse_record
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind, parse_record_key
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.offload_segments import OffloadSegmentStatus
from rlmm.state.partition_state import RemotePartitionDeleteState
from rlmm.state.segment_entry import SegmentEntry
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, TieredStorageError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.offload_settings import OffloadMode
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import (
    FINISHED,
    STARTED,
    claim,
    cluster_secret,
    dead_lettered,
    log_start,
    offload_segment,
    policy,
    registration,
    segment_metadata,
    step,
    trim,
)
from tests.unit.rlmm.strategies import (
    INT32,
    INT64,
    PARTITIONS,
    SEGMENT_EVENTS,
    TEXT,
    WRITERS,
    lineages,
)

POLICIES = st.builds(
    TopicPolicy,
    topic=TEXT,
    topic_id=st.uuids(),
    state=st.sampled_from(PolicyState),
    retention_ms=st.integers(-1, 2**40),
    retention_bytes=st.integers(-1, 2**40),
    local_retention_ms=st.integers(-2, 2**40),
    local_retention_bytes=st.integers(-2, 2**40),
    originals=st.lists(
        st.builds(OriginalConfig, name=TEXT, value=st.none() | TEXT), max_size=2
    ).map(tuple),
    delete_remote=st.booleans(),
    copy_lag_ms=st.integers(-1, 2**40),
    copy_lag_bytes=st.integers(-1, 2**40),
    outage_policy=st.sampled_from(OutagePolicy),
    offload_mode=st.none() | st.sampled_from(OffloadMode),
    offload_segment_max_bytes=st.integers(-1, 2**63 - 1),
    offload_segment_rollover_ms=st.integers(-1, 2**63 - 1),
    copy_lag_since=st.sampled_from(CopyLagSince),
    local_deletion_lag_ms=st.integers(-1, 2**40),
    inherited=st.frozensets(st.sampled_from(PolicySetting)),
    untiered_retention_ms=st.none() | st.integers(-1, 2**40),
    untiered_retention_bytes=st.none() | st.integers(-1, 2**40),
    layout=st.none() | TEXT,
)
LEVELS = st.builds(
    PolicyLevel,
    pattern=TEXT,
    retention_ms=st.none() | st.integers(-1, 2**40),
    retention_bytes=st.none() | st.integers(-1, 2**40),
    local_retention_ms=st.none() | st.integers(-2, 2**40),
    local_retention_bytes=st.none() | st.integers(-2, 2**40),
    copy_lag_ms=st.none() | st.integers(-1, 2**40),
    copy_lag_bytes=st.none() | st.integers(-1, 2**40),
    copy_lag_since=st.none() | st.sampled_from(CopyLagSince),
    outage_policy=st.none() | st.sampled_from(OutagePolicy),
    local_deletion_lag_ms=st.none() | st.integers(0, 2**40),
    offload_mode=st.none() | st.sampled_from(OffloadMode),
    offload_segment_max_bytes=st.none() | st.integers(0, 2**63 - 1),
    offload_segment_rollover_ms=st.none() | st.integers(0, 2**63 - 1),
    layout=st.none() | TEXT,
)


@st.composite
def gap_tuples(draw: st.DrawFn) -> tuple[RecordedGap, ...]:
    bounds = sorted(draw(st.sets(st.integers(0, 2**40), max_size=8)))
    step = draw(st.sampled_from([1, 2]))  # touching, or apart
    return tuple(
        RecordedGap(
            offsets=OffsetRange(start_offset=start, end_offset=end),
            reason=draw(st.sampled_from(GapReason)),
            recorded_ms=draw(INT64),
        )
        for start, end in zip(bounds[::step], bounds[1::step], strict=False)
    )


EVENTS: st.SearchStrategy[Event] = st.one_of(
    SEGMENT_EVENTS,
    st.builds(
        GapsRecorded,
        event_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        writer=WRITERS,
        gaps=gap_tuples(),
    ),
    st.builds(
        LossAccepted,
        event_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        leader_epoch=st.integers(-1, 2**31 - 1),
        local_start_offset=INT64,
    ),
    st.builds(
        AnomalyReported,
        event_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        anomaly=st.builds(
            Anomaly,
            segment=st.uuids(),
            object_key=st.text(min_size=1, max_size=20),
            kind=st.sampled_from(AnomalyKind),
            first_ms=st.integers(0, 2**40),
            last_ms=st.integers(2**40, 2**41),
            attempts=st.integers(1, 2**40),
        ),
    ),
    st.builds(OffloadRequested, event_id=st.uuids(), topic_id_partition=PARTITIONS, offset=INT64),
    st.builds(
        TopicPaused,
        event_id=st.uuids(),
        topic=TEXT,
        topic_id=st.uuids(),
        tasks=st.frozensets(st.sampled_from(PausableTask)),
    ),
    st.builds(
        RemotePartitionDeleteMetadata,
        event_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        state=st.sampled_from(RemotePartitionDeleteState),
        event_timestamp_ms=INT64,
        broker_id=INT32,
    ),
    st.builds(
        ReadLeaseTaken,
        event_id=st.uuids(),
        lease_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        offsets=st.builds(
            lambda start, length: OffsetRange(start_offset=start, end_offset=start + length),
            INT32,
            st.integers(1, 2**31),
        ),
        duration_ms=st.integers(1, READ_LEASE_MAX_MS),
        holder=TEXT,
    ),
    st.builds(
        SegmentDeadLettered,
        event_id=st.uuids(),
        segment_id=st.builds(RemoteLogSegmentId, topic_id_partition=PARTITIONS, id=st.uuids()),
        attempts=INT32,
    ),
    st.builds(
        LeadershipClaimed,
        event_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        writer=WRITERS,
        lineage=lineages(),
    ),
    st.builds(
        LocalLogTrimmed,
        event_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        writer=WRITERS,
        offset=INT64,
        lineage=lineages(),
    ),
    st.builds(
        LogStartAdvanced,
        event_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        writer=WRITERS,
        offset=INT64,
        reason=TEXT,
    ),
    st.builds(
        LogStartRequested,
        event_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        offset=INT64,
        leader_epoch=st.just(-1) | INT32,
    ),
    st.builds(
        OffloadSegmentChanged,
        event_id=st.uuids(),
        topic_id_partition=PARTITIONS,
        segment=st.builds(
            offload_segment, INT32, st.sampled_from(OffloadSegmentStatus), by=WRITERS
        ),
    ),
    st.builds(TopicPolicyChanged, event_id=st.uuids(), policy=POLICIES),
    st.builds(PolicyLevelSet, event_id=st.uuids(), level=LEVELS),
    st.builds(
        ProcessRegistered,
        event_id=st.uuids(),
        process_id=st.uuids(),
        role=st.sampled_from(ProcessRole),
        broker_id=st.just(NO_BROKER) | INT32,
        http_address=TEXT,
        heartbeat_interval_ms=INT64,
        version=TEXT,
        gateway_address=TEXT,
        applied=st.lists(st.builds(AppliedPosition, partition=INT32, offset=INT64), max_size=3).map(
            tuple
        ),
        boot_id=TEXT,
        network_namespace=TEXT,
        broker_address=TEXT,
        readiness=st.sampled_from(ProcessReadiness),
        unready_reasons=st.lists(TEXT, max_size=UNREADY_REASONS_MAX_COUNT).map(tuple),
        file_defaults=st.lists(
            st.builds(FileDefault, key=TEXT, value=st.none() | TEXT), max_size=3
        ).map(tuple),
    ),
)


@given(EVENTS)
def test_event_when_encoded_and_decoded_then_is_the_same(event: Event) -> None:
    record = encode(event)

    assert decode(record.key, record.value) == event


@given(SEGMENT_EVENTS)
def test_segment_step_when_read_then_says_what_the_event_says(event: SegmentEvent) -> None:
    record = encode(event)

    found = parse_record(record.key, record.value)

    assert isinstance(found, ParsedSegment)
    metadata = event.metadata
    entry = SegmentEntry(records=b"", end_offset=found.end_offset, epochs=found.epochs)
    whole = metadata.segment_leader_epochs
    assert found.state is metadata.state
    assert found.expected_state is event.expected_state
    assert (found.base_offset, found.end_offset) == (
        metadata.offsets.start_offset,
        metadata.offsets.end_offset,
    )
    assert Lineage.of(*((e, s) for e, s, _ in entry.epoch_ranges())) == whole.within(
        OffsetRange(
            start_offset=whole.entries[0].start_offset, end_offset=metadata.offsets.end_offset
        )
    )


@given(SEGMENT_EVENTS, st.data())
def test_segment_step_when_message_is_bent_then_is_refused_as_the_codec_refuses(
    event: SegmentEvent, data: st.DataObject
) -> None:
    record = encode(event)
    message = pb.MetadataEvent.FromString(record.value)
    data.draw(st.sampled_from(BENDS))(message)
    value = message.SerializeToString()

    by_step = _error_of(lambda: parse_record(record.key, value))

    assert by_step is _error_of(lambda: decode(record.key, value))


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_record_when_bytes_are_arbitrary_then_only_errors_of_rlm_come(
    key: bytes, value: bytes | None
) -> None:
    """Broken bytes are distinguished from records of a newer version; neither is fatal."""
    assert _error_of(lambda: parse_record(key, value)) in {CorruptError, UnsupportedError, None}


def test_record_when_of_a_newer_fold_then_is_unsupported() -> None:
    """Scenario 102, R14: an unknown newer record is skipped, and does not count as corrupt."""
    record = encode(claim())
    message = pb.MetadataEvent.FromString(record.value)
    message.min_fold_version = FOLD_VERSION + 1

    with pytest.raises(UnsupportedError):
        parse_record(record.key, message.SerializeToString())


def test_record_when_its_event_is_unknown_then_is_unsupported() -> None:
    """Scenario 102: an event that a later version added to the envelope."""
    record = encode(claim())
    later = pb.MetadataEvent(min_fold_version=1, event_id=b"e" * 16).SerializeToString()

    with pytest.raises(UnsupportedError):
        parse_record(record.key, later + b"\xa2\x06\x00")


def test_record_when_its_key_is_another_segments_then_is_corrupt() -> None:
    key = encode(step(segment_metadata(1), STARTED)).key
    value = encode(step(segment_metadata(2), STARTED)).value

    with pytest.raises(CorruptError):
        parse_record(key, value)


@pytest.mark.parametrize(
    "event",
    [
        step(segment_metadata(), FINISHED),
        dead_lettered(segment_metadata()),
        claim(),
        trim(5),
        log_start(5),
        policy(),
        registration(),
        cluster_secret(),
        cluster_secret(2, previous=1),
    ],
    ids=lambda event: type(event).__name__,
)
def test_tombstone_when_read_then_its_key_names_the_subject(event: Event) -> None:
    key = encode(event).key

    assert parse_record(key, None) == Tombstone(key=parse_record_key(key))


def test_key_when_order_matters_then_differs_for_each_event() -> None:
    """R11: no record replaces another when the topic is compacted."""
    metadata = segment_metadata()
    events = [
        maker() for maker in (lambda: step(metadata, STARTED), claim, lambda: trim(1)) for _ in "12"
    ]

    assert len({encode(event).key for event in events}) == len(events)


def test_key_when_the_last_writer_wins_then_is_one_per_subject() -> None:
    keys = {encode(policy()).key for _ in "12"} | {encode(registration()).key for _ in "12"}

    assert {parse_record_key(key).kind for key in keys} == {
        RecordKind.POLICY,
        RecordKind.REGISTRATION,
    }
    assert len(keys) == 2


def _set(path: str, value: object) -> Callable[[pb.MetadataEvent], None]:
    def bend(message: pb.MetadataEvent) -> None:
        *parents, name = path.split(".")
        target: object = message
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, name, value)

    return bend


def _drop_epochs(message: pb.MetadataEvent) -> None:
    del message.segment.metadata.segment_leader_epochs[:]


def _double_epochs(message: pb.MetadataEvent) -> None:
    epochs = message.segment.metadata.segment_leader_epochs
    epochs.append(epochs[-1])


def _raise_epoch_start(message: pb.MetadataEvent) -> None:
    metadata = message.segment.metadata
    metadata.segment_leader_epochs[-1].start_offset = metadata.end_offset


def _nothing(message: pb.MetadataEvent) -> None:
    """Change nothing."""


BENDS = [
    _nothing,
    _drop_epochs,
    _double_epochs,
    _raise_epoch_start,
    _set("event_id", b"short"),
    _set("event_id", UUID(int=5).bytes),
    _set("min_fold_version", FOLD_VERSION + 1),
    _set("segment.copy_timeout_ms", -1),
    _set("segment.copy_deadline_ms", -1),
    _set("segment.expected_state", 77),
    _set("segment.metadata.state", 0),
    _set("segment.metadata.state", 77),
    _set("segment.metadata.id", b"short"),
    _set("segment.metadata.start_offset", -1),
    _set("segment.metadata.end_offset", 0),
    _set("segment.metadata.segment_size_bytes", -1),
    _set("segment.metadata.topic_id_partition.topic_id", b""),
    _set("segment.metadata.topic_id_partition.partition", -1),
    _set("segment.metadata.writer.incarnation", b""),
]


def _error_of(call: Callable[[], object]) -> type[TieredStorageError] | None:
    try:
        call()
    except TieredStorageError as error:
        return type(error)
    return None
