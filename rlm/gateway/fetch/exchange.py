"""One Fetch of which the broker lacks a part: from its answer to that of the client. Pure.

    sent -> [ends asked] -> answered -> [ends asked again] -> [store read] -> merged

The ends of the logs are asked for before the Fetch where it is foreseen that they will be needed.
They are asked for again, behind the answer, where they are too old to tell whether an offset lies
below the broker's log or above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.log_ends import KnownLogEnds, LogEnds, LogEndsQuestion, ends_at_follower
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
from rlm.gateway.fetch.remote_outcome import GapBelow, RemoteOutcome
from rlm.gateway.fetch.remote_slice import RemoteSlice
from rlm.gateway.model.actions import PartitionFetch, PrefetchHint, RemoteFetch
from rlm.wire.api.fetch import FetchRequest, FetchResponse, PartitionData
from rlm.wire.error_codes import ErrorCode
from rsm.segment.ids import TopicIdPartition

_WITH_LOCAL_WAIT_MS = 100
_NOT_THERE = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)


class FetchExchange:
    """Not thread-safe; used once."""

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
        """What was asked for, and of whom."""
        return self._plan

    @property
    def client_id(self) -> str:
        """What the client calls itself."""
        return self._client_id

    @property
    def is_all_left(self) -> bool:
        """Whether the broker has answered, and has nothing of what was asked."""
        return 0 < len(self._left) == len(self._rows) == len(self._plan.remote)

    def following(self, outcomes: Sequence[RemoteOutcome]) -> FetchRequest | None:
        """What the client asks for next if it reads on; None unless the store gives all of this.

        `outcomes`: of each of the reads, or of those that were foreseen.
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

    def foreseen_question(self, now_ms: int) -> LogEndsQuestion | None:
        """What to ask before the Fetch is sent."""
        expected = [self._plan.tiered[key].topic_id_partition for key in self._plan.remote]
        return self._question(self._known_ends.unknown(expected, now_ms))

    def foreseen_reads(self, now_ms: int) -> PrefetchHint | None:
        """What `reads` will say if the broker has nothing but what is expected of it."""
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

    def answered(self, response: FetchResponse, now_ms: int) -> LogEndsQuestion | None:
        """Take the broker's answer; what to ask now."""
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
        return self._question(unknown)

    def ends_answered(self, ends: Mapping[TopicIdPartition, LogEnds], now_ms: int) -> None:
        """Take what was asked, before the Fetch or behind its answer."""
        self._known_ends.learned(ends, now_ms)
        if self._left:
            self._ends.update(ends)
            self._ends.update(self._ends_at_followers())

    def names_answered(self, topic_ids: Mapping[str, UUID]) -> None:
        """Take which topics the names stood for, where the Fetch has names.

        For another topic than was thought the broker's own answer stands, unless it was asked for
        another offset; that it has not got an offset proves nothing there, of what is known of that
        topic here.
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

    def reads(self) -> RemoteFetch | None:
        """What to read of the store, once all questions were answered."""
        for partition, ends in self._ends.items():
            if ends.error_code == ErrorCode.NONE:
                self._local_starts.learned(partition, ends.start_offset)
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

    def merged(self, outcomes: Sequence[RemoteOutcome]) -> FetchResponse:
        """The answer, given an outcome for each of the reads; its records are the slices'."""
        found = dict(zip(self._reads, outcomes, strict=True))
        for key, outcome in found.items():
            if isinstance(outcome, GapBelow):
                read = self._reads[key]
                self._local_starts.gap(read.topic_id_partition, read.offset, outcome.next_offset)
        return merge(self._plan, self._version, self._response, found, self._ends)

    @property
    def _is_read_committed(self) -> bool:
        return self._plan.asked.isolation_level == READ_COMMITTED

    def _ends_at_followers(self) -> dict[TopicIdPartition, LogEnds]:
        """Of what was trimmed and is asked of a follower (KIP-392), which has no ends to tell.

        Sending the client back to the leader is no way: not all clients go.
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
        """How long an answer may wait for nothing but a turn to read the store.

        What the broker had to say is not held up for it; and what it may have to say soon, which
        only the next fetch will ask for, not for long.
        """
        left = set(self._left)
        others = [row for key, row in self._rows.items() if key not in left]
        if any(row.error_code != ErrorCode.NONE or size_of(row.records) for row in others):
            return 0
        return _WITH_LOCAL_WAIT_MS if others else self._remote_wait_ms

    def _question(self, unknown: Sequence[TopicIdPartition]) -> LogEndsQuestion | None:
        if not unknown:
            return None
        wanted = set(unknown)
        return LogEndsQuestion(
            {
                each.topic_id_partition: each.asked.current_leader_epoch
                for each in self._plan.tiered.values()
                if each.topic_id_partition in wanted
            }
        )

    def _learn_local_starts(self) -> None:
        """What was expected to be remote and is not shows where the broker's log starts."""
        for key in self._plan.remote:
            row, tiered = self._rows.get(key), self._plan.tiered[key]
            if row and row.error_code == ErrorCode.NONE and row.log_start_offset >= 0:
                self._local_starts.learned(tiered.topic_id_partition, row.log_start_offset)
                self._local_starts.found(tiered.topic_id_partition, tiered.sent_offset)
