"""The topic or partition that the user named, as the cluster has it."""

from __future__ import annotations

from rlm.broker.cluster import ClusterView, TopicView
from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.cli.invocation.log_bounds import PartitionName
from rsm.segment.clock import Clock
from rsm.segment.errors import NotFoundError

# A topic created a moment ago reaches the brokers one after the other.
_SPREAD_MS = 5_000
_PAUSE_MS = 200


def find_topic(view: ClusterView, name: str) -> TopicView:
    """The topic; raises NotFoundError naming it, or why it is hidden (ClusterView.topic)."""
    try:
        return view.topic(name)
    except NotFoundError as error:
        raise NotFoundError("no topic of this name", topic=name) from error


def find_partition(view: ClusterView, name: PartitionName) -> TopicView:
    """The topic, which has the partition if one is named; raises as `find_topic`."""
    topic = find_topic(view, name.topic)
    known = {each.partition for each in topic.partitions}
    if name.partition is not None and name.partition not in known:
        raise NotFoundError(
            "the topic has no such partition", topic=name.topic, partition=name.partition
        )
    return topic


def await_topic(topics: TopicAdmin, clock: Clock, name: str, *, timeout_ms: int) -> None:
    """Return when a broker knows the topic; one that was just created is waited for, not for long.

    Raises NotFoundError naming it, else as `TopicAdmin.view` and `ClusterView.topic`.
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
