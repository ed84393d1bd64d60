"""Represents the right to act for a partition in one leader epoch and one run of this process."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.broker.spi import Broker
from rlm.facts.partition_offsets import PartitionOffsets
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLead:
    """Represents a partition that `writer` leads by its claim."""

    topic_id_partition: TopicIdPartition
    writer: Writer


def confirm_lead(broker: Broker, lead: PartitionLead) -> PartitionOffsets:
    """Return the partition's offsets if the broker still leads it in the epoch of `lead`.

    Raises FencedError if the broker does not lead it, RetriableError if the broker cannot answer.
    """
    tip = lead.topic_id_partition
    results = broker.offsets({tip: lead.writer.leader_epoch})
    if tip in results.failed:
        raise results.failed[tip]
    return results.succeeded[tip]
