"""What a task acts as: one partition, led in one epoch by one run of this process."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.broker.list_offsets import PartitionOffsets
from rlm.broker.spi import Broker
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLead:
    """A partition that `writer` leads, as its claim says."""

    topic_id_partition: TopicIdPartition
    writer: Writer


def confirm_lead(broker: Broker, lead: PartitionLead) -> PartitionOffsets:
    """Ask the broker, with our epoch, whether it still leads; its offsets if it does.

    Raises FencedError if not, RetriableError if it cannot be said now.
    """
    tip = lead.topic_id_partition
    results = broker.offsets({tip: lead.writer.leader_epoch})
    if tip in results.failed:
        raise results.failed[tip]
    return results.succeeded[tip]
