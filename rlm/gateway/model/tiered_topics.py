"""Which topics are tiered, by name and by id: requests of older versions know names only.

A topic that was deleted and created again has its name, another id, and none of the old one's
data. So the cluster's own word on a name's id comes first; the policies decide alone only where it
hasn't been heard. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from uuid import UUID

from rlmm.events.values import PolicyState, TopicPolicy
from rsm.segment.ids import TopicIdPartition

# So many partitions a topic may have got since its count was heard, and still all are known.
_UNHEARD_COUNT = 1_000
_NO_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredTopics:
    """All topics that have a policy, whatever its state: what was stored stays readable.

    `managed` are the names of those whose own retention is kept off: all but the disabled.
    `unconfirmed`: names of which the broker did not say which topics they are.
    `partition_counts`: how many partitions the cluster said that a topic has, where it was heard; a
    partition far beyond is nobody's, so that clients cannot have any number looked up.
    """

    id_by_name: Mapping[str, UUID] = field(default_factory=dict)
    name_by_id: Mapping[UUID, str] = field(default_factory=dict)
    managed: frozenset[str] = frozenset()
    unconfirmed: frozenset[str] = frozenset()
    partition_counts: Mapping[UUID, int] = field(default_factory=dict)

    def partition(self, topic: str, partition: int) -> TopicIdPartition | None:
        """The partition of a topic by name, None if the topic is not tiered or has no such."""
        topic_id = self.id_by_name.get(topic)
        return None if topic_id is None else self._partition(topic_id, topic, partition)

    def confirmed(self, names: Iterable[str], topic_ids: Mapping[str, UUID]) -> TieredTopics:
        """As the broker has just told the ids of `names`; where it told none, unconfirmed."""
        id_by_name = dict(self.id_by_name)
        for name in names:
            topic_id = topic_ids.get(name)
            if topic_id is not None:
                id_by_name.pop(name, None)
                if self.name_by_id.get(topic_id) == name:
                    id_by_name[name] = topic_id
        unconfirmed = frozenset(names) - topic_ids.keys()
        return replace(self, id_by_name=id_by_name, unconfirmed=unconfirmed)

    def partition_by_id(self, topic_id: UUID, partition: int) -> TopicIdPartition | None:
        """The partition of a topic by id, None if the topic is not tiered or has no such."""
        topic = self.name_by_id.get(topic_id)
        return None if topic is None else self._partition(topic_id, topic, partition)

    def _partition(self, topic_id: UUID, topic: str, partition: int) -> TopicIdPartition | None:
        limit = self.partition_counts.get(topic_id, _NO_LIMIT) + _UNHEARD_COUNT
        if not 0 <= partition < limit:
            return None
        return _named(topic_id, topic, partition)


@lru_cache(maxsize=10_000)
def _named(topic_id: UUID, topic: str, partition: int) -> TopicIdPartition:
    """The same object for the same partition: clients ask for the same over and over."""
    return TopicIdPartition(topic_id=topic_id, topic=topic, partition=partition)


def tiered_topics(
    policies: Iterable[TopicPolicy],
    topic_ids: Mapping[str, UUID],
    partition_counts: Mapping[UUID, int] | None = None,
) -> TieredTopics:
    """Put together what the policies say, and what the cluster said last of ids and partitions."""
    policy_by_id = {policy.topic_id: policy for policy in policies}
    name_by_id = {topic_id: policy.topic for topic_id, policy in policy_by_id.items()}
    ids_of: dict[str, list[UUID]] = {}
    for topic_id, topic in name_by_id.items():
        ids_of.setdefault(topic, []).append(topic_id)
    id_by_name = {}
    for topic, found in ids_of.items():
        confirmed = topic_ids.get(topic)
        if confirmed in found:
            id_by_name[topic] = confirmed
        elif confirmed is None and len(found) == 1:
            id_by_name[topic] = found[0]
    managed = frozenset(
        topic
        for topic, topic_id in id_by_name.items()
        if policy_by_id[topic_id].state is not PolicyState.DISABLED
    )
    return TieredTopics(
        id_by_name=id_by_name,
        name_by_id=name_by_id,
        managed=managed,
        partition_counts=partition_counts or {},
    )
