"""Requests partitions' reports from all managers of the cluster at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from rlm.cli.invocation.managers import ask_each, live_managers
from rlm.rest.manager_client import ManagerClient
from rlm.status.document import PartitionReport
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition


def ask_managers(
    metadata: RemoteLogMetadataManager,
    partitions: Collection[TopicIdPartition],
    *,
    client: ManagerClient,
    clock: Clock,
    required: Iterable[int],
    warn: Callable[[str], None],
) -> Mapping[TopicIdPartition, Mapping[int, PartitionReport]]:
    """Return, for each partition, the report of each manager that hosts it, by broker id.

    `warn` receives a line for each broker of `required` whose manager does not respond or is
    not live. Other managers are asked too, but their responses are optional.
    """
    if not partitions:
        return {}
    managers = live_managers(metadata, clock)
    needed = set(required)
    reports: dict[TopicIdPartition, dict[int, PartitionReport]] = {tip: {} for tip in partitions}
    for manager, answer in ask_each(managers, client.partitions):
        if not isinstance(answer, TieredStorageError):
            for report in answer:
                if report.topic_id_partition in reports:
                    reports[report.topic_id_partition][manager.broker_id] = report
        elif manager.broker_id in needed:
            warn(f"the manager of broker {manager.broker_id} does not answer: {answer}")
    registered = {manager.broker_id for manager in managers}
    for broker_id in sorted(needed - registered):
        warn(
            f"no live manager is registered for broker {broker_id}, which leads partitions: "
            "start `rlm run` on its host"
        )
    return reports
