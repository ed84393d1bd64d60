"""Caches the broker's OFFSET_OUT_OF_RANGE responses and reuses them for other offsets. Pure.

A reader of the remote log fetches one offset after another below the broker's local log. The broker
answers each with OFFSET_OUT_OF_RANGE. For a short time the gateway reuses such a response for
other offsets below the local start offset. It does so only for the same client id, rack and leader
epoch. Meanwhile the broker does not check whether the client may still read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from rlm.gateway.fetch.log_ends import KnownLogEnds
from rlm.gateway.fetch.plan import FIRST_VERSION_WITH_TOPIC_IDS, FetchKey, FetchPlan
from rlm.wire.api.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from rlm.wire.error_codes import ErrorCode
from rsm.segment.ids import TopicIdPartition

FIRST_VERSION = FIRST_VERSION_WITH_TOPIC_IDS
"""Requests of older versions name topics, and the gateway requests the topics' ids each time."""
_NOTHING_BUT_ROWS = FetchResponse()


class CachedResponse(NamedTuple):
    """Represents the broker's probable response.

    `asked_ms`: when the oldest of its rows was requested. `ends_ms`: until when it may be used.
    """

    response: FetchResponse
    asked_ms: int
    ends_ms: int


class _CachedRow(NamedTuple):
    asked_ms: int
    offset: int
    leader_epoch: int
    row: PartitionData


class OutOfRangeCache:
    """Represents the cache of one connection. Memory: the rows fetched within `max_age_ms`."""

    def __init__(self, known_ends: KnownLogEnds, *, max_age_ms: Callable[[], int]) -> None:
        """`max_age_ms` returns how long a response is valid; 0 disables the cache."""
        self._known_ends = known_ends
        self._max_age_ms = max_age_ms
        self._asker = ("", "")
        self._rows: dict[FetchKey, _CachedRow] = {}

    def record(
        self, plan: FetchPlan, client_id: str, response: FetchResponse, asked_ms: int
    ) -> None:
        """Cache the response to a request of FIRST_VERSION or later, sent at `asked_ms`.

        Removes the rows of the same partitions and of other clients, and rows above the age limit.
        Does not cache a response that also contains something else, such as a throttle time.
        """
        asker = _asker(plan.asked, client_id)
        oldest_ms = asked_ms - self._max_age_ms()
        self._rows = {
            key: cached
            for key, cached in self._rows.items()
            if cached.asked_ms >= oldest_ms and asker == self._asker and key not in plan.tiered
        }
        self._asker = asker
        if replace(response, responses=()) != _NOTHING_BUT_ROWS:
            return
        for topic in response.responses:
            for row in topic.partitions:
                key = topic.topic_id, row.partition_index
                tiered = plan.tiered.get(key)
                if tiered is not None and row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    epoch = tiered.asked.current_leader_epoch
                    self._rows[key] = _CachedRow(asked_ms, tiered.sent_offset, epoch, row)

    def lookup(self, plan: FetchPlan, client_id: str, now_ms: int) -> CachedResponse | None:
        """Return the cached response to a Fetch; None unless each partition has a valid row."""
        max_age_ms = self._max_age_ms()
        if not (max_age_ms and plan.remote) or _asker(plan.asked, client_id) != self._asker:
            return None
        oldest_ms = now_ms - max_age_ms
        asked_ms, topics = now_ms, []
        for topic in plan.asked.topics:
            rows = []
            for asked in topic.partitions:
                key = topic.topic_id, asked.partition
                cached, tiered = self._rows.get(key), plan.tiered.get(key)
                if cached is None or tiered is None or not tiered.is_remote:
                    return None
                if cached.asked_ms < oldest_ms or cached.leader_epoch != asked.current_leader_epoch:
                    return None
                offset = max(cached.offset, tiered.sent_offset)
                if offset >= self._local_start(tiered.topic_id_partition, now_ms):
                    return None
                asked_ms = min(asked_ms, cached.asked_ms)
                rows.append(cached.row)
            topics.append(FetchableTopicResponse(topic_id=topic.topic_id, partitions=tuple(rows)))
        response = FetchResponse(responses=tuple(topics))
        return CachedResponse(response, asked_ms, ends_ms=asked_ms + max_age_ms)

    def _local_start(self, partition: TopicIdPartition, now_ms: int) -> int:
        """Return the local start offset from recent log ends; 0 if unknown."""
        ends = self._known_ends.get(partition, now_ms)
        return 0 if ends is None else ends.start_offset


def _asker(request: FetchRequest, client_id: str) -> tuple[str, str]:
    return client_id, request.rack_id
