"""Finds the topic or partition that the user named, and its policy, in the cluster."""

from __future__ import annotations

from rlm.broker.cluster import ClusterView, TopicView
from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.options import reaching_cluster
from rlm.cli.invocation.session import CommandSession
from rlmm.events.policy import TopicPolicy, topic_policies, topic_policy
from rsm.segment.clock import Clock
from rsm.segment.errors import InvalidConfigError, NotFoundError
from rsm.segment.ids import TopicIdPartition

# A new topic does not reach all brokers at once.
_SPREAD_MS = 5_000
_PAUSE_MS = 200


def find_topic(view: ClusterView, name: str) -> TopicView:
    """Return the topic. Raises the errors of `ClusterView.topic`; NotFoundError has advice."""
    try:
        return view.topic(name)
    except NotFoundError as error:
        raise NotFoundError(
            "cannot find the topic: the cluster has no topic of this name",
            topic=name,
            advice="Check the name: `rlm topic list` shows the tiered topics",
        ) from error


def find_partition(view: ClusterView, name: PartitionName) -> TopicView:
    """Return the topic. Raises NotFoundError if the topic or the named partition does not exist."""
    topic = find_topic(view, name.topic)
    known = {each.partition for each in topic.partitions}
    if name.partition is not None and name.partition not in known:
        raise NotFoundError(
            "cannot find the partition: the topic has no such partition",
            topic=name.topic,
            partition=name.partition,
            partitions=len(known),
            advice=f"Use a partition number from 0 to {len(known) - 1}",
        )
    return topic


def find_tiered(
    session: CommandSession, name: PartitionName
) -> tuple[TopicPolicy, tuple[TopicIdPartition, ...]]:
    """Return the policy, and the named partition or all partitions of the topic.

    Raises NotFoundError if the topic or partition does not exist, and InvalidConfigError if the
    topic is not tiered or the cluster cannot be reached.
    """
    with reaching_cluster(session.config):
        view: ClusterView = session.bootstrap.view((name.topic,))
    topic = find_partition(view, name)
    policy = topic_policy(session.metadata, topic.topic_id)
    if policy is None:
        raise InvalidConfigError(
            "the topic is not tiered", topic=name.topic, advice="Tier it with `rlm topic enable`"
        )
    numbers = (
        [name.partition]
        if name.partition is not None
        else sorted(each.partition for each in topic.partitions)
    )
    return policy, tuple(
        TopicIdPartition(topic_id=topic.topic_id, topic=name.topic, partition=number)
        for number in numbers
    )


def find_policies(session: CommandSession, name: str) -> tuple[TopicPolicy, ...]:
    """Return the policies of this name, also of deleted topics with stored data.

    A deleted topic and a recreated one can have the same name. Raises the errors of `find_tiered`
    if there is no policy.
    """
    named = tuple(each for each in topic_policies(session.metadata) if each.topic == name)
    return named or (find_tiered(session, PartitionName(topic=name))[0],)


def await_topic(topics: TopicAdmin, clock: Clock, name: str, *, timeout_ms: int) -> None:
    """Wait up to 5 s until a broker knows the topic, because the topic may be new.

    Raises the errors of `TopicAdmin.view` and `find_topic`.
    """
    deadline_ms = clock.monotonic_ms() + min(timeout_ms, _SPREAD_MS)
    while True:
        try:
            find_topic(topics.view((name,)), name)
            return
        except NotFoundError:
            if clock.monotonic_ms() >= deadline_ms:
                raise
        clock.sleep_ms(_PAUSE_MS)
