from __future__ import annotations

from uuid import UUID

import pytest

from rlm.broker.cluster import ClusterView, PartitionReplicas, TopicView
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_partition, find_topic
from rsm.segment.errors import NotFoundError

TOPIC = TopicView(
    topic="orders",
    topic_id=UUID(int=1),
    is_internal=False,
    partitions=(
        PartitionReplicas(partition=0, leader_id=1, leader_epoch=0, replicas=(1,), isr=(1,)),
    ),
)
VIEW = ClusterView(
    cluster_id="c", controller_id=1, brokers={}, topics={"orders": TOPIC}, refused={"gone": 3}
)


@pytest.mark.parametrize("name", ["gone", "never-asked"])
def test_find_topic_when_there_is_none_then_names_it(name: str) -> None:
    with pytest.raises(
        NotFoundError,
        match=rf"^cannot find the topic: .* no topic of this name \(topic={name}\)\. Check",
    ):
        find_topic(VIEW, name)


@pytest.mark.parametrize("partition", [None, 0])
def test_find_partition_when_it_is_there_then_is_its_topic(partition: int | None) -> None:
    assert find_partition(VIEW, PartitionName(topic="orders", partition=partition)) == TOPIC


def test_find_partition_when_there_is_none_then_names_it() -> None:
    with pytest.raises(
        NotFoundError, match=r"no such partition \(topic=orders, partition=1, partitions=1\)"
    ):
        find_partition(VIEW, PartitionName(topic="orders", partition=1))
