"""What to send on for a client's Fetch, and which of its partitions the broker no longer has.

The broker is always asked for all partitions: it authorizes each, and checks leader epochs. It is
asked without a fetch session, which would remember what its answers looked like before they were
changed. Pure.
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

# A topic as this version of Fetch spells it, and a partition's number.
FetchKey = tuple[str | UUID, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredFetch:
    """A tiered partition of a fetch.

    `is_remote`: the broker is not expected to have the offset, or may not be believed if it has.
    `sent_offset`: what the broker is asked for, above `asked` only where a gap is known to lie
    between what is stored and what it has. Where that was asked by name the answer stands once the
    topic is known to be the gap's.
    """

    topic_id_partition: TopicIdPartition
    asked: FetchPartition
    facts: RemoteLogBounds
    is_remote: bool
    sent_offset: int

    @property
    def is_moved(self) -> bool:
        """Whether the broker is asked for another offset than we are."""
        return self.sent_offset != self.asked.fetch_offset

    @property
    def is_below_log_start(self) -> bool:
        """Whether nothing may be served here, even if the broker has it."""
        return self.asked.fetch_offset < (self.facts.recorded_start_offset or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPlan:
    """`tiered` are the partitions whose answers may be changed.

    Their order is that of the request. If any is remote, the response is gathered, else streamed.
    """

    asked: FetchRequest
    version: int
    tiered: Mapping[FetchKey, TieredFetch]
    remote: tuple[FetchKey, ...]

    def sent(self) -> FetchRequest:
        """What goes to the broker."""
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
        """The tiered topics' names."""
        return tuple(each.topic_id_partition.topic for each in self.tiered.values())

    def without(self, keys: Collection[FetchKey]) -> FetchPlan:
        """As if these were not tiered."""
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
    """Plan one request, in a version that the table has."""
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


def goes_on_with_session(request: FetchRequest) -> bool:
    """Whether it names only what differs from the request before it, of a session (KIP-227).

    By the epoch alone, whatever the id: the first one and none are those of a full request.
    """
    return request.session_epoch not in (_FIRST_SESSION_EPOCH, NO_SESSION_EPOCH)


def topic_key(topic: FetchTopic, version: int) -> str | UUID:
    """A topic as its partitions are found by in answers."""
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
    """As the broker is asked for it.

    Its lineage is cut where its log starts: an epoch that was fetched last is compared by us where
    the offset is remote.
    """
    asked = tiered.asked
    if tiered.is_moved:
        return replace(asked, fetch_offset=tiered.sent_offset)
    if tiered.is_remote and asked.last_fetched_epoch != _NO_EPOCH:
        return replace(asked, last_fetched_epoch=_NO_EPOCH)
    return asked


def _local_share_bytes(request: FetchRequest, version: int, remote: frozenset[FetchKey]) -> int:
    """Of the byte budget what the remote partitions don't take, and at least an even share.

    But little: the broker's part of such an answer is held whole.
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
