"""Requests partitions' reports from all live managers of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rlm.cli.invocation.managers import ask_each, live_managers
from rlm.rest.manager_client import ManagerClient
from rlm.status.document import PartitionReport
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerReports:
    """Represents the reports of each partition by broker id, and why required ones are missing.

    `silent` has a reason for each required broker whose manager does not respond or is not live.
    """

    reports: Mapping[TopicIdPartition, Mapping[int, PartitionReport]]
    silent: Mapping[int, str]


def ask_managers(
    metadata: RemoteLogMetadataManager,
    partitions: Collection[TopicIdPartition],
    *,
    client: ManagerClient,
    clock: Clock,
    required: Iterable[int],
) -> ManagerReports:
    """Return each partition's reports, from the live managers that report the partition.

    `required` are the brokers whose managers must respond. Asks the other managers, too, but
    ignores their errors.
    """
    if not partitions:
        return ManagerReports(reports={}, silent={})
    managers = live_managers(metadata, clock)
    needed = set(required)
    reports: dict[TopicIdPartition, dict[int, PartitionReport]] = {tip: {} for tip in partitions}
    silent: dict[int, str] = {}
    for manager, answer in ask_each(managers, client.partitions):
        if not isinstance(answer, TieredStorageError):
            for report in answer:
                if report.topic_id_partition in reports:
                    reports[report.topic_id_partition][manager.broker_id] = report
        elif manager.broker_id in needed:
            silent[manager.broker_id] = str(answer)
    registered = {manager.broker_id for manager in managers}
    for broker_id in sorted(needed - registered):
        silent[broker_id] = (
            f"no live manager is registered for broker {broker_id}, which leads partitions: "
            "start `rlm run` on its host"
        )
    return ManagerReports(reports=reports, silent=silent)
