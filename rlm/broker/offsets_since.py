"""The first record since a time, as the leader's time index tells it (KIP-79)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from rlm.broker.errors import error_of
from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode
from rsm.segment.ids import TopicIdPartition

_FIRST_VERSION_WITH_LEADER_EPOCH = 4
_CONSUMER = -1


def fetch_offsets_since(
    leader: Requester, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
) -> Mapping[TopicIdPartition, int | None]:
    """The offset of the first record with a timestamp of at least `since_ms`; None if none has.

    Raises FencedError if the broker does not lead a partition in the epoch given, RetriableError if
    it can't tell now, and as `Requester.request`.
    """
    topics = tuple(
        ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                ListOffsetsPartition(
                    partition_index=each.partition,
                    current_leader_epoch=leader_epochs[each],
                    timestamp=since_ms,
                )
                for each in members
            ),
        )
        for topic, members in groupby(sorted(leader_epochs), key=lambda each: each.topic)
    )
    response = leader.request(
        LIST_OFFSETS,
        ListOffsetsRequest(replica_id=_CONSUMER, topics=topics),
        at_least=_FIRST_VERSION_WITH_LEADER_EPOCH,
    )
    rows = {(t.name, row.partition_index): row for t in response.topics for row in t.partitions}
    found: dict[TopicIdPartition, int | None] = {}
    for each in leader_epochs:
        row = rows.get((each.topic, each.partition))
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if row is None else row.error_code
        if row is None or code != ErrorCode.NONE:
            raise error_of(code, partition=each, leader_epoch=leader_epochs[each])
        found[each] = row.offset if row.offset >= 0 else None
    return found
