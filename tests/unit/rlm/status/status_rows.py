"""Rows of a status that are healthy, except for what a test changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from rlm.status.cluster_status import PartitionStatus
from rlm.status.document import PartitionReport
from rsm.segment.ids import TopicIdPartition

MIB = 1 << 20


def tip_of(topic: str = "orders", partition: int = 0) -> TopicIdPartition:
    number = sum(topic.encode())
    return TopicIdPartition(topic_id=UUID(int=number), topic=topic, partition=partition)


def report_of(tip: TopicIdPartition, **changes: object) -> PartitionReport:
    fields: dict[str, object] = {"lag_segments": 0, "lag_bytes": 0, "policy_state": "ACTIVE"}
    return PartitionReport(
        topic_id_partition=tip,
        role="leader",
        leader_epoch=5,
        is_claimed=True,
        **{**fields, **changes},  # type: ignore[arg-type]  # field names are the tests' own
    )


def row(topic: str = "orders", partition: int = 0, **reported: object) -> PartitionStatus:
    """Return the row of a partition that broker 1 leads, and whose manager reports this."""
    return reporting(reported, topic, partition)


def reporting(
    reported: Mapping[str, object], topic: str = "orders", partition: int = 0
) -> PartitionStatus:
    """Return the row that `row` returns, with the report's fields as one mapping."""
    tip = tip_of(topic, partition)
    return PartitionStatus(
        topic_id_partition=tip,
        policy_state="ACTIVE",
        role="leader",
        leader_id=1,
        leader_epoch=5,
        gaps=(),
        log_start_offset=0,
        local_start_offset=200,
        last_tiered_offset=399,
        pending_upload_offset=400,
        last_stable_offset=480,
        high_watermark=500,
        remote_bytes=400 * MIB,
        remote_overlap_bytes=0,
        remote_segments=4,
        report=report_of(tip, **reported),
    )


def unreported(found: PartitionStatus) -> PartitionStatus:
    """Return the row without its manager's report."""
    return replace(found, role=None, report=None)
