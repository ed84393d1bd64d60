"""What to send on for a client's Fetch, and which of its partitions the broker no longer has.

The broker is always asked for all partitions: it authorizes each, and checks leader epochs. It is
asked without a fetch session, which would remember what its answers looked like before they were
changed. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.gateway.local_starts import LocalStarts
from rlm.gateway.tier_facts import TierFacts, TierView
from rlm.gateway.tiered_topics import TieredTopics
from rlm.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from rsm.segment.ids import TopicIdPartition

FIRST_VERSION_WITH_TOPIC_IDS = 13
NO_SESSION_ID = 0
NO_SESSION_EPOCH = -1
_NO_EPOCH = -1

# A topic as this version of Fetch spells it, and a partition's number.
FetchKey = tuple[str | UUID, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredFetch:
    """A tiered partition of a fetch.

    `is_remote`: the broker is not expected to have the offset, or may not be believed if it has.
    """

    topic_id_partition: TopicIdPartition
    asked: FetchPartition
    facts: TierFacts
    is_remote: bool

    @property
    def is_below_log_start(self) -> bool:
        """Whether nothing may be served here, even if the broker has it."""
        return self.asked.fetch_offset < (self.facts.recorded_start_offset or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPlan:
    """`sent` goes to the broker; `tiered` are the partitions whose answers may be changed.

    Their order is that of the request. If any is remote, the response is gathered, else streamed.
    """

    asked: FetchRequest
    sent: FetchRequest
    tiered: Mapping[FetchKey, TieredFetch]
    remote: tuple[FetchKey, ...]


def plan_fetch(
    request: FetchRequest,
    version: int,
    *,
    topics: TieredTopics,
    view: TierView,
    local_starts: LocalStarts,
) -> FetchPlan:
    """Plan one request, in a version that the table has."""
    tiered: dict[FetchKey, TieredFetch] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            partition = _tiered_partition(topic, asked, version, topics)
            if partition is not None:
                key = (topic_key(topic, version), asked.partition)
                tiered[key] = _tiered_fetch(partition, asked, view, local_starts)
    remote = tuple(key for key, each in tiered.items() if each.is_remote)
    sent = replace(
        request,
        session_id=NO_SESSION_ID,
        session_epoch=NO_SESSION_EPOCH,
        forgotten_topics_data=(),
    )
    if remote:
        sent = _without_remote_share(sent, version, frozenset(remote))
    return FetchPlan(asked=request, sent=sent, tiered=tiered, remote=remote)


def topic_key(topic: FetchTopic, version: int) -> str | UUID:
    """A topic as its partitions are found by in answers."""
    return topic.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else topic.topic


def _tiered_partition(
    topic: FetchTopic, asked: FetchPartition, version: int, topics: TieredTopics
) -> TopicIdPartition | None:
    if asked.partition < 0:
        return None
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        return topics.partition_by_id(topic.topic_id, asked.partition)
    return topics.partition(topic.topic, asked.partition)


def _tiered_fetch(
    partition: TopicIdPartition, asked: FetchPartition, view: TierView, local_starts: LocalStarts
) -> TieredFetch:
    facts = view.facts(partition)
    local_start = max(
        facts.trimmed_offset, local_starts.at_least(partition), facts.recorded_start_offset or 0
    )
    return TieredFetch(
        topic_id_partition=partition,
        asked=asked,
        facts=facts,
        is_remote=asked.fetch_offset < local_start,
    )


def _without_remote_share(
    request: FetchRequest, version: int, remote: frozenset[FetchKey]
) -> FetchRequest:
    """Leave of the byte budget what the remote partitions don't take, and at least an even share.

    The lineage that `last_fetched_epoch` is compared with is cut where the broker's log starts, so
    what is remote is compared by us.
    """
    topics = []
    remote_bytes, count = 0, 0
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            count += 1
            sent = each
            if (topic_key(topic, version), each.partition) in remote:
                remote_bytes += max(each.partition_max_bytes, 0)
                sent = replace(each, last_fetched_epoch=_NO_EPOCH)
            partitions.append(sent)
        topics.append(replace(topic, partitions=tuple(partitions)))
    local_count = count - len(remote)
    even_bytes = request.max_bytes * local_count // count
    left_bytes = max(request.max_bytes - remote_bytes, even_bytes, 1)
    return replace(request, topics=tuple(topics), max_bytes=min(request.max_bytes, left_bytes))
