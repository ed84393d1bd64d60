"""TieredTopics: finds the topics that have a policy, by name and by id. Pure.

Requests of older versions contain only names. A topic that was deleted and created again has its
old name, another id, and none of the old data. The cluster's id for a name therefore takes
precedence. The policy's id is used only while the cluster's id is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from uuid import UUID

from rlmm.events.policy import PolicyState, TopicPolicy
from rsm.segment.ids import TopicIdPartition

# A topic may have gained up to this number of partitions since its partition count was read.
_NEW_PARTITIONS_MAX = 1_000
_NO_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredTopics:
    """Represents all topics with a policy in any state, because stored data stays readable.

    `managed` contains the names of topics whose policy is not disabled; for these topics, the
    broker's retention must stay off. `unconfirmed` contains names for which the broker reported no
    topic id. `partition_counts` are the counts that the cluster last reported. Lookups reject a
    partition number far above the count, so that clients cannot cause unlimited lookups.
    """

    id_by_name: Mapping[str, UUID] = field(default_factory=dict)
    name_by_id: Mapping[UUID, str] = field(default_factory=dict)
    managed: frozenset[str] = frozenset()
    unconfirmed: frozenset[str] = frozenset()
    partition_counts: Mapping[UUID, int] = field(default_factory=dict)

    def partition(self, topic: str, partition: int) -> TopicIdPartition | None:
        """Return a partition by topic name; None if it has no policy or the number is rejected."""
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
        """Return a partition by topic id; None if it has no policy or the number is rejected."""
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
