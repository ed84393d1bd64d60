"""Builds the Fetch messages that a client and a broker send in a session."""

from __future__ import annotations

from uuid import UUID

from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.fetch.remote_result import RemoteSlice
from rlm.remote_read.segment_parts import SegmentPart
from rlm.wire.api.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rlm.wire.api.metadata import METADATA, MetadataResponse, MetadataResponseTopic
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import read_response
from rsm.cache.chunk_lease import ChunkLease
from rsm.segment.ids import RemoteLogSegmentId
from tests.unit.rlm.gateway.session_world import TIERED, TOPIC_ID, SessionWorld, request, response

TRIMMED = RemoteLogBounds(first_stored_offset=0, trimmed_offset=100)


def fetch_of(version: int, *offsets: int, topic_id: UUID = TOPIC_ID) -> FetchRequest:
    name = "orders" if topic_id == TOPIC_ID else "other"
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=(
            FetchTopic(
                **({"topic_id": topic_id} if version >= 13 else {"topic": name}),
                partitions=tuple(
                    FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=1 << 19)
                    for p, o in enumerate(offsets)
                ),
            ),
        ),
    )


def answer_of(version: int, *rows: PartitionData, topic_id: UUID = TOPIC_ID) -> FetchResponse:
    name = "orders" if topic_id == TOPIC_ID else "other"
    topic = {"topic_id": topic_id} if version >= 13 else {"topic": name}
    return FetchResponse(responses=(FetchableTopicResponse(**topic, partitions=rows),))


def local_row(
    partition: int, records: bytes = b"records", start: int = 100, version: int = 12
) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        high_watermark=500,
        last_stable_offset=490,
        log_start_offset=start if version >= 5 else -1,
        records=records,
    )


def out_of_range_row(partition: int) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=ErrorCode.OFFSET_OUT_OF_RANGE,
        high_watermark=-1,
        records=b"",
    )


def ends_of(
    offset: int, correlation_id: int = -1, *, error_code: int = 0, partitions: int = 1
) -> bytes:
    rows = tuple(
        ListOffsetsPartitionResponse(partition_index=number, offset=offset, error_code=error_code)
        for number in range(partitions)
    )
    topic = ListOffsetsTopicResponse(name="orders", partitions=rows)
    return response(LIST_OFFSETS, 4, ListOffsetsResponse(topics=(topic,)), correlation_id)


ALL_ENDS = ends_of(100) + ends_of(490) + ends_of(500)


def ids_of(topic_id: UUID | None = TOPIC_ID, correlation_id: int = -1) -> bytes:
    """Return the broker's Metadata response with the topic's present id."""
    topic = MetadataResponseTopic(name="orders", topic_id=topic_id or UUID(int=0))
    return response(METADATA, 10, MetadataResponse(topics=(topic,)), correlation_id)


def bytes_of(row: PartitionData) -> bytes:
    assert not isinstance(row.records, tuple)
    return bytes(row.records or b"")


def answered(world: SessionWorld, version: int) -> tuple[PartitionData, ...]:
    (frame,) = world.at_client()
    _, answer = read_response(FETCH, version, frame)
    assert answer.session_id == 0
    return answer.responses[0].partitions


def asked_for_remote(offset: int = 50) -> SessionWorld:
    """Return a world whose session waits for the store, for one partition from `offset` on."""
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, 13, fetch_of(13, offset)))
    world.broker_sends(ALL_ENDS + response(FETCH, 13, answer_of(13, out_of_range_row(0))))
    assert len(world.reads) == 1
    return world


def slice_of(base_offset: int, next_offset: int) -> RemoteSlice:
    """Return stored batches with recognizable content; none if the range is empty."""
    records = f"{base_offset}-{next_offset}".encode()
    return RemoteSlice(
        segment_id=RemoteLogSegmentId(topic_id_partition=TIERED, id=UUID(int=1)),
        base_offset=base_offset,
        next_offset=next_offset,
        buffers=(memoryview(records),) if base_offset < next_offset else (),
        aborted_transactions=(),
        lease=ChunkLease[SegmentPart]((), (), released=_nothing, abandoned=_nothing),
    )


def _nothing(_keys: object) -> None:
    """Do nothing: no memory is accounted for."""
