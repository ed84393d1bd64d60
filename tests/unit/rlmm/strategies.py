"""Random metadata of segments, and their events, for property-based tests."""

from __future__ import annotations

from hypothesis import strategies as st

from rlmm.events.segment import SegmentEvent
from rsm.segment.epochs import EpochEntry, Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import (
    RemoteLogSegmentMetadata,
    SegmentState,
    StoredObject,
    Writer,
    chunk_key,
)
from rsm.segment.ranges import OffsetRange

INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**62)
TEXT = st.text(max_size=20)
WRITERS = st.builds(Writer, broker_id=INT32, leader_epoch=INT32, incarnation=st.uuids())
PARTITIONS = st.builds(TopicIdPartition, topic_id=st.uuids(), topic=TEXT, partition=INT32)


@st.composite
def lineages(draw: st.DrawFn, low: int = 0, high: int = 2**40, min_size: int = 0) -> Lineage:
    count = draw(st.integers(min_size, 4))
    epochs = sorted(draw(st.sets(INT32, min_size=count, max_size=count)))
    starts = sorted(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))
    pairs = zip(epochs, starts, strict=True)
    return Lineage(entries=tuple(EpochEntry(epoch=e, start_offset=s) for e, s in pairs))


_CHECKSUMS = st.integers(0, 2**32 - 1)


@st.composite
def stored_objects(draw: st.DrawFn) -> tuple[StoredObject, ...]:
    """Draw chunks, then other objects: each with its length, its checksum, both or neither."""
    sizes = st.tuples(st.none() | INT64, st.none() | _CHECKSUMS)
    chunks = [
        StoredObject(key=chunk_key("a.log.", number), length_bytes=length, crc32c=crc32c)
        for number, (length, crc32c) in enumerate(draw(st.lists(sizes, max_size=4)))
    ]
    others = st.builds(
        StoredObject, key=TEXT, length_bytes=st.none() | INT64, crc32c=st.none() | _CHECKSUMS
    )
    return (*chunks, *draw(st.lists(others, max_size=3)))


@st.composite
def segment_metadatas(draw: st.DrawFn) -> RemoteLogSegmentMetadata:
    start = draw(st.integers(0, 2**40))
    state = draw(st.sampled_from(SegmentState))
    is_open = state is not SegmentState.COPY_SEGMENT_FINISHED and draw(st.booleans())
    end = start + 1 if is_open else draw(st.integers(start + 1, start + 2**20))
    return RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(topic_id_partition=draw(PARTITIONS), id=draw(st.uuids())),
        offsets=OffsetRange(start_offset=start, end_offset=end),
        max_timestamp_ms=draw(INT64),
        segment_size_bytes=0 if is_open else draw(INT64),
        segment_leader_epochs=draw(lineages(start, end - 1, min_size=1)),
        state=state,
        writer=draw(WRITERS),
        event_timestamp_ms=draw(INT64),
        layout=draw(TEXT),
        objects=draw(stored_objects()),
        has_transaction_index=draw(st.booleans()),
        custom_metadata=draw(st.binary(max_size=10)),
        is_open=is_open,
    )


SEGMENT_EVENTS = st.builds(
    SegmentEvent,
    event_id=st.uuids(),
    metadata=segment_metadatas(),
    expected_state=st.none() | st.sampled_from(SegmentState),
    copy_timeout_ms=INT64,
    copy_deadline_ms=INT64,
)
