"""TieredTopics: which topics are tiered, by name and by id. Pure.

Requests of older versions have only names. A topic that was deleted and created again has its old
name, another id, and none of the old data. The cluster's own id for a name therefore comes first.
Policies alone decide only while that id is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from uuid import UUID

from rlmm.events.policy import PolicyState, TopicPolicy
from rsm.segment.ids import TopicIdPartition

# How many partitions a topic may have gained since its partition count was read.
_NEW_PARTITIONS_MAX = 1_000
_NO_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredTopics:
    """All topics with a policy in any state, because stored data stays readable.

    `managed` are the names of topics whose policy is not disabled; for them, the broker's retention
    must stay off. `unconfirmed` are names whose topic ids the broker did not report.
    `partition_counts` are the counts that the cluster last reported. A partition number far above
    the count is rejected, so that clients cannot cause unlimited lookups.
    """

    id_by_name: Mapping[str, UUID] = field(default_factory=dict)
    name_by_id: Mapping[UUID, str] = field(default_factory=dict)
    managed: frozenset[str] = frozenset()
    unconfirmed: frozenset[str] = frozenset()
    partition_counts: Mapping[UUID, int] = field(default_factory=dict)

    def partition(self, topic: str, partition: int) -> TopicIdPartition | None:
        """Return a topic's partition by name; None without a policy or for a rejected number."""
        topic_id = self.id_by_name.get(topic)
        return None if topic_id is None else self._partition(topic_id, topic, partition)

    def confirmed(self, names: Iterable[str], topic_ids: Mapping[str, UUID]) -> TieredTopics:
        """Return these topics with the reported ids of `names`.

        A name without a reported id is unconfirmed.
        """
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
        """Return a topic's partition by id; None without a policy or for a rejected number."""
        topic = self.name_by_id.get(topic_id)
        return None if topic is None else self._partition(topic_id, topic, partition)

    def _partition(self, topic_id: UUID, topic: str, partition: int) -> TopicIdPartition | None:
        limit = self.partition_counts.get(topic_id, _NO_LIMIT) + _NEW_PARTITIONS_MAX
        if not 0 <= partition < limit:
            return None
        return _named(topic_id, topic, partition)


@lru_cache(maxsize=10_000)
def _named(topic_id: UUID, topic: str, partition: int) -> TopicIdPartition:
    """Return the same object for equal arguments, because clients often repeat requests."""
    return TopicIdPartition(topic_id=topic_id, topic=topic, partition=partition)


def tiered_topics(
    policies: Iterable[TopicPolicy],
    topic_ids: Mapping[str, UUID],
    partition_counts: Mapping[UUID, int] | None = None,
) -> TieredTopics:
    """Combine the policies with the ids and partition counts that the cluster last reported."""
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
