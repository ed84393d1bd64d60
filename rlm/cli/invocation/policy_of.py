"""Finds the policy of a topic that the user named, by the topic's current id."""

from __future__ import annotations

from rlm.broker.cluster import ClusterView
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_partition
from rlm.cli.invocation.options import reaching_cluster
from rlm.cli.invocation.session import CommandSession
from rlmm.events.policy import TopicPolicy
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition


def find_tiered(
    session: CommandSession, name: PartitionName
) -> tuple[TopicPolicy, tuple[TopicIdPartition, ...]]:
    """Return the policy, and the named partition or all partitions of the topic.

    NotFoundError if the topic or partition does not exist, InvalidConfigError if it is not tiered.
    """
    with reaching_cluster(session.config):
        view: ClusterView = session.bootstrap.view((name.topic,))
    topic = find_partition(view, name)
    policy = session.metadata.topic_policy(topic.topic_id)
    if policy is None:
        raise InvalidConfigError("topic is not tiered", topic=name.topic)
    numbers = (
        [name.partition]
        if name.partition is not None
        else sorted(each.partition for each in topic.partitions)
    )
    return policy, tuple(
        TopicIdPartition(topic_id=topic.topic_id, topic=name.topic, partition=number)
        for number in numbers
    )
