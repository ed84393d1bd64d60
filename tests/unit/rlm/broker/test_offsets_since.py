from __future__ import annotations

import pytest

from rlm.broker.offsets_since import fetch_offsets_since
from rlm.wire.api.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import FencedError, NotFoundError
from tests.unit.rlm.broker.scripted_broker import ScriptedBroker, partition


def leader(*rows: ListOffsetsPartitionResponse) -> ScriptedBroker:
    def answer(request: ListOffsetsRequest) -> ListOffsetsResponse:
        asked = [row for topic in request.topics for row in topic.partitions]
        assert {(row.timestamp, row.current_leader_epoch) for row in asked} == {(1000, 4)}
        topic = ListOffsetsTopicResponse(name="orders", partitions=rows)
        return ListOffsetsResponse(topics=(topic,))

    return ScriptedBroker({"ListOffsets": answer})


def test_offsets_since_when_a_record_is_that_young_then_its_offset_else_none() -> None:
    found = fetch_offsets_since(
        leader(
            ListOffsetsPartitionResponse(partition_index=0, offset=17),
            ListOffsetsPartitionResponse(partition_index=1, offset=-1),
        ),
        {partition(0): 4, partition(1): 4},
        1000,
    )

    assert found == {partition(0): 17, partition(1): None}


def test_offsets_since_when_leadership_has_moved_then_fenced() -> None:
    moved = ListOffsetsPartitionResponse(
        partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
    )

    with pytest.raises(FencedError):
        fetch_offsets_since(leader(moved), {partition(0): 4}, 1000)


def test_offsets_since_when_a_partition_is_not_answered_then_not_found() -> None:
    with pytest.raises(NotFoundError):
        fetch_offsets_since(leader(), {partition(0): 4}, 1000)
