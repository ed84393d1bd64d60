"""The errors of a read when the partition has no leader that can be asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from uuid import UUID

import pytest

from rlm.broker.cluster import ClusterView, PartitionReplicas, TopicView
from rlm.broker.partition_reader import PartitionReader, ReaderSettings
from rsm.segment.errors import NotFoundError, RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from rlm.broker.bootstrap import Bootstrap

TIP = TopicIdPartition(topic_id=UUID(int=7), topic="orders", partition=0)


def reader_of(*, leader_id: int | None, topic_id: UUID = TIP.topic_id) -> PartitionReader:
    """Return a reader in a cluster that has no live broker."""
    partition = PartitionReplicas(
        partition=0, leader_id=leader_id, leader_epoch=3, replicas=(1,), isr=(1,)
    )
    topic = TopicView(
        topic=TIP.topic, topic_id=topic_id, is_internal=False, partitions=(partition,)
    )
    view = ClusterView(
        cluster_id="c", controller_id=None, brokers={}, topics={TIP.topic: topic}, refused={}
    )
    return PartitionReader(
        TIP,
        cast("Bootstrap", SimpleNamespace(view=lambda _names: view)),
        FakeClock(),
        ReaderSettings(client={}, read_committed=False, stall_timeout_ms=1_000),
    )


@pytest.mark.parametrize(
    ("reader", "error"),
    [
        (reader_of(leader_id=None), RetriableError),
        (reader_of(leader_id=1), RetriableError),
        (reader_of(leader_id=1, topic_id=UUID(int=8)), NotFoundError),
    ],
)
def test_offsets_when_no_leader_can_be_asked_then_only_a_missing_topic_is_not_found(
    reader: PartitionReader, error: type[TieredStorageError]
) -> None:
    """A leader that is not live is back later: its records must not count as gone."""
    with pytest.raises(error):
        reader.offsets()
