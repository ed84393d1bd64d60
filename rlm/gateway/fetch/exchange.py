"""Serves one Fetch that includes offsets the broker lacks, and builds the response. Pure.

    [ends requested] -> sent -> answered -> [ends requested again] -> [store read] -> merged

The session requests log ends before the Fetch if it expects to need them. After the broker's
response, it requests log ends that are missing or too old. It also does so if the offset is above
the known high watermark, because the log may have grown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.log_ends import KnownLogEnds, LogEnds, LogEndsRequests, ends_at_follower
from rlm.gateway.fetch.merge import (
    READ_COMMITTED,
    fits_whole,
    left_to_store,
    merge,
    refuse,
    remote_reads,
    rows_of,
    size_of,
)
from rlm.gateway.fetch.plan import FetchKey, FetchPlan, topic_key
from rlm.gateway.fetch.remote_result import GapBelow, RemoteOutcome, RemoteSlice
from rlm.gateway.model.actions import PartitionFetch, PrefetchHint, RemoteFetch
from rlm.wire.api.fetch import FetchRequest, FetchResponse, PartitionData
from rlm.wire.error_codes import ErrorCode
from rsm.segment.ids import TopicIdPartition

_WITH_LOCAL_WAIT_MS = 100
_NOT_THERE = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)


class FetchExchange:
    """Represents the state of one Fetch that both tiers serve. Not thread-safe; used once."""

    def __init__(
        self,
        plan: FetchPlan,
        version: int,
        *,
        known_ends: KnownLogEnds,
        local_starts: LocalStarts,
        remote_wait_ms: int,
        client_id: str = "",
    ) -> None:
        self._plan = plan
        self._version = version
        self._known_ends = known_ends
        self._local_starts = local_starts
        self._remote_wait_ms = remote_wait_ms
        self._client_id = client_id
        self._response = FetchResponse()
        self._rows: dict[FetchKey, PartitionData] = {}
        self._left: list[FetchKey] = []
        self._ends: dict[TopicIdPartition, LogEnds] = {}
        self._reads: dict[FetchKey, PartitionFetch] = {}
        self._foreseen_ends: Mapping[TopicIdPartition, LogEnds] | None = None

    @property
    def plan(self) -> FetchPlan:
        return self._plan

    @property
    def client_id(self) -> str:
        return self._client_id

    @property
    def is_all_left(self) -> bool:
        """Return whether the store must serve every partition of the response, as planned."""
        return 0 < len(self._left) == len(self._rows) == len(self._plan.remote)

    def following(self, outcomes: Sequence[RemoteOutcome]) -> FetchRequest | None:
        """Return the client's likely next request.

        Returns None if a partition gets no stored records, or if the response may omit some.
        `outcomes` contains one outcome for each read of `plan_reads` or `foresee_reads`.
        """
        given = dict(zip(self._reads, outcomes, strict=True))
        asked = self._plan.asked
        if not fits_whole(asked, outcomes):
            return None
        topics = []
        for topic in asked.topics:
            partitions = []
            for each in topic.partitions:
                found = given.get((topic_key(topic, self._version), each.partition))
                if not isinstance(found, RemoteSlice) or not found.buffers:
                    return None
                partitions.append(replace(each, fetch_offset=found.next_offset))
            topics.append(replace(topic, partitions=tuple(partitions)))
        return replace(asked, topics=tuple(topics))

    def foreseen_log_ends(self, now_ms: int) -> LogEndsRequests | None:
        """Return the requests for log ends to send before the Fetch; None if all are known."""
        expected = [self._plan.tiered[key].topic_id_partition for key in self._plan.remote]
        return self._log_ends_requests(self._known_ends.unknown(expected, now_ms))

    def foresee_reads(self, now_ms: int) -> PrefetchHint | None:
        """Return the likely next reads; None while any of their log ends is unknown."""
        ends = {}
        for key in self._plan.remote:
            partition = self._plan.tiered[key].topic_id_partition
            known = self._known_ends.get(partition, now_ms)
            if known is None:
                return None
            ends[partition] = known
        self._reads = remote_reads(self._plan, dict.fromkeys(self._plan.remote, _NOT_THERE), ends)
        self._foreseen_ends = ends
        return PrefetchHint(
            reads=tuple(self._reads.values()), read_committed=self._is_read_committed
        )

    def record_response(self, response: FetchResponse, now_ms: int) -> LogEndsRequests | None:
        """Record the broker's response; return the requests for log ends to send now, if any."""
        self._response = response
        self._rows = rows_of(response, self._version)
        self._left = left_to_store(self._plan, self._rows)
        self._learn_local_starts()
        unknown = []
        for key in self._left:
            tiered = self._plan.tiered[key]
            known = self._known_ends.get(tiered.topic_id_partition, now_ms)
            if known is None or tiered.asked.fetch_offset > known.high_watermark:
                unknown.append(tiered.topic_id_partition)
            else:
                self._ends[tiered.topic_id_partition] = known
        return self._log_ends_requests(unknown)

    def record_log_ends(self, ends: Mapping[TopicIdPartition, LogEnds], now_ms: int) -> None:
        """Record the requested log ends, before the Fetch or after its response."""
        self._known_ends.record(ends, now_ms)
        if self._left:
            self._ends.update(ends)
            self._ends.update(self._ends_at_followers())

    def record_topic_ids(self, topic_ids: Mapping[str, UUID]) -> None:
        """Record the topic ids that the broker reported for the names, if the Fetch has names.

        A name may now belong to another topic than the plan assumed. The client then gets the
        broker's own response for that topic, with two exceptions. A retriable error replaces
        OFFSET_OUT_OF_RANGE, because the plan's metadata belongs to another topic. A retriable error
        also replaces records if the gateway requested another offset than the client.
        """
        others = {
            key
            for key, each in self._plan.tiered.items()
            if topic_ids.get(each.topic_id_partition.topic) != each.topic_id_partition.topic_id
        }
        moved = {key for key in others if self._plan.tiered[key].is_moved}
        self._plan = self._plan.without(others)
        self._left = [key for key in self._left if key not in others]
        self._response = refuse(
            self._response, self._version, out_of_range=others, any_records=moved
        )
        self._rows = rows_of(self._response, self._version)

    def plan_reads(self) -> RemoteFetch | None:
        """Return the reads from the store, if any. Call this after all log ends have arrived."""
        for partition, ends in self._ends.items():
            if ends.error_code == ErrorCode.NONE:
                self._local_starts.record_start(partition, ends.start_offset)
        if not (self.is_all_left and self._ends == self._foreseen_ends):
            self._reads = remote_reads(self._plan, self._rows, self._ends)
        if not self._reads:
            return None
        asked = self._plan.asked
        max_wait_ms = max(0, min(asked.max_wait_ms, self._remote_wait_ms))
        return RemoteFetch(
            reads=tuple(self._reads.values()),
            read_committed=self._is_read_committed,
            max_wait_ms=max_wait_ms,
            permit_wait_ms=min(max_wait_ms, self._permit_wait_ms()),
            client_id=self._client_id,
        )

    def merge(self, outcomes: Sequence[RemoteOutcome]) -> FetchResponse:
        """Return the client's response, given an outcome for each read.

        The response refers to the buffers of the slices.
        """
        found = dict(zip(self._reads, outcomes, strict=True))
        for key, outcome in found.items():
            if isinstance(outcome, GapBelow):
                read = self._reads[key]
                self._local_starts.record_gap(
                    read.topic_id_partition, read.offset, outcome.next_offset
                )
        return merge(self._plan, self._version, self._response, found, self._ends)

    @property
    def _is_read_committed(self) -> bool:
        return self._plan.asked.isolation_level == READ_COMMITTED

    def _ends_at_followers(self) -> dict[TopicIdPartition, LogEnds]:
        """Return log ends for fetches of trimmed offsets from a follower, which reports none.

        An error that names the leader does not help, because some clients stay with the follower.
        """
        found = {}
        for key in self._left:
            tiered = self._plan.tiered[key]
            trimmed_offset = tiered.facts.trimmed_offset
            known = self._ends.get(tiered.topic_id_partition)
            is_at_follower = known and known.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            if is_at_follower and tiered.asked.fetch_offset < trimmed_offset:
                found[tiered.topic_id_partition] = ends_at_follower(trimmed_offset)
        return found

    def _permit_wait_ms(self) -> int:
        """Return how long the response may wait for a permit to read the store.

        Other partitions' records and errors must not wait. If the other partitions are empty, the
        wait is short, because only the next Fetch gets their new records.
        """
        left = set(self._left)
        others = [row for key, row in self._rows.items() if key not in left]
        if any(row.error_code != ErrorCode.NONE or size_of(row.records) for row in others):
            return 0
        return _WITH_LOCAL_WAIT_MS if others else self._remote_wait_ms

    def _log_ends_requests(self, unknown: Sequence[TopicIdPartition]) -> LogEndsRequests | None:
        if not unknown:
            return None
        wanted = set(unknown)
        return LogEndsRequests(
            {
                each.topic_id_partition: each.asked.current_leader_epoch
                for each in self._plan.tiered.values()
                if each.topic_id_partition in wanted
            }
        )

    def _learn_local_starts(self) -> None:
        """Record the local log start of each partition that the broker served unexpectedly."""
        for key in self._plan.remote:
            row, tiered = self._rows.get(key), self._plan.tiered[key]
            if row and row.error_code == ErrorCode.NONE and row.log_start_offset >= 0:
                self._local_starts.record_start(tiered.topic_id_partition, row.log_start_offset)
                self._local_starts.record_found(tiered.topic_id_partition, tiered.sent_offset)
