"""Which topics the names in a request stood for, asked of the broker that has answered it. Pure.

A topic that was deleted and created again keeps its name and gets another id, and none of the old
one's data may be shown for it. What this process knows of names may be some seconds old, so where
an answer by name depends on it the broker is asked for the ids, right behind the request, on the
client's own connection: an id that it still gives after its answer was the topic's before, for ids
do not come back. (Source: KIP-516.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from rlm.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

# The first with topic ids; every broker since 2.8 speaks it.
METADATA_VERSION = 10
_NO_ID = UUID(int=0)


def ask_topic_ids(names: Iterable[str]) -> MetadataRequest:
    """The question."""
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in sorted(set(names))),
        allow_auto_topic_creation=False,
    )


def leader_epochs(response: MetadataResponse) -> Mapping[tuple[str, int], int]:
    """The leader epochs by name and partition, of those partitions that have a leader."""
    return {
        (topic.name, partition.partition_index): partition.leader_epoch
        for topic in response.topics
        for partition in topic.partitions
        if topic.name is not None and partition.leader_id >= 0
    }


def topic_ids(response: MetadataResponse) -> Mapping[str, UUID]:
    """The ids by name; a topic of which the broker tells none is left out."""
    return {
        topic.name: topic.topic_id
        for topic in response.topics
        if topic.name is not None and topic.topic_id != _NO_ID
    }
