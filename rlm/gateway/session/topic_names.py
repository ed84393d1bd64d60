"""Finds the ids of the topics that a request names, by a request to the same broker. Pure.

A topic that is deleted and created again keeps its name and gets another id. The gateway must not
serve the old topic's records for it, but its own view may be some seconds old. So directly after a
request by name, it asks the broker for the ids on the client's own connection. Ids are never
reused, so the returned id was also valid when the broker answered the request. (Source: KIP-516.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from rlm.wire.api.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

# The first with topic ids; every broker since 2.8 speaks it.
METADATA_VERSION = 10
_NO_ID = UUID(int=0)


def ask_topic_ids(names: Iterable[str]) -> MetadataRequest:
    """Return the Metadata request."""
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in sorted(set(names))),
        allow_auto_topic_creation=False,
    )


def leader_epochs(response: MetadataResponse) -> Mapping[tuple[str, int], int]:
    """Return leader epochs by topic name and partition, for partitions with a leader."""
    return {
        (topic.name, partition.partition_index): partition.leader_epoch
        for topic in response.topics
        for partition in topic.partitions
        if topic.name is not None and partition.leader_id >= 0
    }


def topic_ids(response: MetadataResponse) -> Mapping[str, UUID]:
    """Return topic ids by name, without topics for which the broker returned none."""
    return {
        topic.name: topic.topic_id
        for topic in response.topics
        if topic.name is not None and topic.topic_id != _NO_ID
    }
