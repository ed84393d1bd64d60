"""Plans a client's Fetch: the request to the broker, and the partitions that need the store. Pure.

The gateway always requests all partitions from the broker, so that the broker authorizes each one
and checks leader epochs. The gateway uses no fetch session (KIP-227), because it changes the
responses on which the broker would base the session.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds, RemoteLogBoundsView
from rlm.gateway.model.tiered_topics import TieredTopics
from rlm.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from rsm.segment.ids import TopicIdPartition

FIRST_VERSION_WITH_TOPIC_IDS = 13
NO_SESSION_ID = 0
NO_SESSION_EPOCH = -1
_FIRST_SESSION_EPOCH = 0
_NO_EPOCH = -1
_MAX_LOCAL_SHARE_BYTES = 1 << 20

# The topic's name or id, depending on the Fetch version, and the partition number.
FetchKey = tuple[str | UUID, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredFetch:
    """Represents one tiered partition of a Fetch.

    `is_remote`: the broker probably lacks the offset, or the gateway must check the broker's
    response first. `sent_offset` is the offset that the gateway requests from the broker. It is
    above the client's offset only if neither tier has a batch in between. For a Fetch by name, the
    gateway then uses the response only after it has confirmed the topic id.
    """

    topic_id_partition: TopicIdPartition
    asked: FetchPartition
    facts: RemoteLogBounds
    is_remote: bool
    sent_offset: int

    @property
    def is_moved(self) -> bool:
        """Return whether the gateway requests another offset than the client."""
        return self.sent_offset != self.asked.fetch_offset

    @property
    def is_below_log_start(self) -> bool:
        """Return whether the offset is below the recorded start, so that no tier may serve it."""
        return self.asked.fetch_offset < (self.facts.recorded_start_offset or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPlan:
    """Represents how to serve one Fetch.

    `tiered` contains the partitions whose responses the gateway may change, in the request's order.
    If `remote` is empty, the gateway streams the broker's response; otherwise it buffers it.
    """

    asked: FetchRequest
    version: int
    tiered: Mapping[FetchKey, TieredFetch]
    remote: tuple[FetchKey, ...]

    def sent(self) -> FetchRequest:
        """Return the request for the broker."""
        return replace(
            self.asked,
            session_id=NO_SESSION_ID,
            session_epoch=NO_SESSION_EPOCH,
            forgotten_topics_data=(),
            topics=_sent_topics(self.asked, self.version, self.tiered),
            max_bytes=_local_share_bytes(self.asked, self.version, frozenset(self.remote)),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each tiered partition's topic."""
        return tuple(each.topic_id_partition.topic for each in self.tiered.values())

    def without(self, keys: Collection[FetchKey]) -> FetchPlan:
        """Return this plan as if these partitions were not tiered."""
        tiered = {key: each for key, each in self.tiered.items() if key not in keys}
        return replace(self, tiered=tiered, remote=tuple(k for k in self.remote if k in tiered))


def plan_fetch(
    request: FetchRequest,
    version: int,
    *,
    topics: TieredTopics,
    view: RemoteLogBoundsView,
    local_starts: LocalStarts,
) -> FetchPlan:
    """Plan one request; the gateway must support its version."""
    tiered: dict[FetchKey, TieredFetch] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            partition = _tiered_partition(topic, asked, version, topics)
            if partition is not None:
                key = (topic_key(topic, version), asked.partition)
                by_name = version < FIRST_VERSION_WITH_TOPIC_IDS
                tiered[key] = _tiered_fetch(partition, asked, view, local_starts, by_name=by_name)
    remote = tuple(key for key, each in tiered.items() if each.is_remote)
    return FetchPlan(asked=request, version=version, tiered=tiered, remote=remote)


def is_incremental_fetch(request: FetchRequest) -> bool:
    """Return whether the request contains only changes to a fetch session (KIP-227).

    Only the epoch matters: initial and sessionless requests are full, whatever their session id.
    """
    return request.session_epoch not in (_FIRST_SESSION_EPOCH, NO_SESSION_EPOCH)


def topic_key(topic: FetchTopic, version: int) -> str | UUID:
    """Return the id or name that identifies the topic in responses of this version."""
    return topic.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else topic.topic


def _tiered_partition(
    topic: FetchTopic, asked: FetchPartition, version: int, topics: TieredTopics
) -> TopicIdPartition | None:
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        return topics.partition_by_id(topic.topic_id, asked.partition)
    return topics.partition(topic.topic, asked.partition)


def _tiered_fetch(
    partition: TopicIdPartition,
    asked: FetchPartition,
    view: RemoteLogBoundsView,
    local_starts: LocalStarts,
    *,
    by_name: bool,
) -> TieredFetch:
    facts = view.facts(partition)
    local_start = max(
        facts.trimmed_offset, local_starts.at_least(partition), facts.recorded_start_offset or 0
    )
    after_gap = local_starts.after_gap(partition, asked.fetch_offset)
    is_gone = after_gap < local_start or local_starts.is_doubted(partition, after_gap)
    sent_offset = asked.fetch_offset if is_gone else after_gap
    return TieredFetch(
        topic_id_partition=partition,
        asked=asked,
        facts=facts,
        is_remote=is_gone or (by_name and sent_offset != asked.fetch_offset),
        sent_offset=sent_offset,
    )


def _sent_topics(
    request: FetchRequest, version: int, tiered: Mapping[FetchKey, TieredFetch]
) -> tuple[FetchTopic, ...]:
    changed = {key: sent for key, each in tiered.items() if (sent := _sent(each)) is not each.asked}
    if not changed:
        return request.topics
    return tuple(
        replace(
            topic,
            partitions=tuple(
                changed.get((topic_key(topic, version), each.partition), each)
                for each in topic.partitions
            ),
        )
        for topic in request.topics
    )


def _sent(tiered: TieredFetch) -> FetchPartition:
    """Return the partition as the gateway requests it from the broker.

    The broker's lineage starts at its local log start. For a remote offset, the gateway itself
    therefore compares the last fetched epoch.
    """
    asked = tiered.asked
    if tiered.is_moved:
        return replace(asked, fetch_offset=tiered.sent_offset)
    if tiered.is_remote and asked.last_fetched_epoch != _NO_EPOCH:
        return replace(asked, last_fetched_epoch=_NO_EPOCH)
    return asked


def _local_share_bytes(request: FetchRequest, version: int, remote: frozenset[FetchKey]) -> int:
    """Return the broker's byte budget: what remote partitions leave, but at least an even share.

    If there are remote partitions, the budget is at most 1 MiB, because the gateway buffers the
    broker's response.
    """
    if not remote:
        return request.max_bytes
    remote_bytes = count = 0
    for topic in request.topics:
        for each in topic.partitions:
            count += 1
            if (topic_key(topic, version), each.partition) in remote:
                remote_bytes += max(each.partition_max_bytes, 0)
    even_bytes = request.max_bytes * (count - len(remote)) // count
    share_bytes = max(request.max_bytes - remote_bytes, even_bytes, 1)
    return min(request.max_bytes, share_bytes, _MAX_LOCAL_SHARE_BYTES)
