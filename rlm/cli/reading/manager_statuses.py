"""Requests partitions' statuses from all managers of the cluster at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor

from rlm.cli.invocation.managers import live_managers
from rlm.rest.manager_client import ManagerClient
from rlm.status.cluster_status import FOLLOWER, LEADER, ManagerStatus
from rlmm.events.processes import ProcessRegistered
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition, id_to_text

Rows = list[Mapping[str, object]]


def ask_managers(
    metadata: RemoteLogMetadataManager,
    leaders: Mapping[TopicIdPartition, int | None],
    executor: Executor,
    *,
    client: ManagerClient,
    clock: Clock,
    required: Iterable[int],
    complain: Callable[[str], None],
) -> Mapping[TopicIdPartition, Mapping[int, ManagerStatus]]:
    """Return, for each partition, the status from each manager that hosts it, by broker id.

    `complain` receives a line for each broker of `required` whose manager does not respond or is
    not live. Other managers are asked too, but their responses are optional.
    """
    if not leaders:
        return {}
    managers = live_managers(metadata, clock)
    answers = list(executor.map(lambda manager: _ask(client, manager), managers))
    needed = set(required)
    rows_of: dict[int, Rows] = {}
    for manager, answer in zip(managers, answers, strict=True):
        if not isinstance(answer, TieredStorageError):
            rows_of[manager.broker_id] = answer
        elif manager.broker_id in needed:
            complain(f"the manager of broker {manager.broker_id} does not answer: {answer}")
    registered = {manager.broker_id for manager in managers}
    for broker_id in sorted(needed - registered):
        complain(
            f"no live manager is registered for broker {broker_id}, which leads partitions: "
            "start `rlm run` on its host"
        )
    return {tip: _manager_statuses(tip, rows_of) for tip in leaders}


def _ask(client: ManagerClient, manager: ProcessRegistered) -> Rows | TieredStorageError:
    try:
        return list(client.partitions(manager))
    except TieredStorageError as error:
        return error


def _manager_statuses(
    tip: TopicIdPartition, rows_of: Mapping[int, Rows]
) -> Mapping[int, ManagerStatus]:
    topic_id = id_to_text(tip.topic_id)
    return {
        broker_id: _manager_status(row)
        for broker_id, rows in rows_of.items()
        for row in rows
        if row.get("topic_id") == topic_id and row.get("partition") == tip.partition
    }


def _manager_status(row: Mapping[str, object]) -> ManagerStatus:
    if row.get("role") != LEADER:
        return ManagerStatus(role=FOLLOWER)
    names = ("lag_bytes", "lag_segments", "copy_blocked", "trim_blocked", "future_timestamps")
    lag_bytes, lag_segments, waits, blocked, future = (row.get(name) for name in names)
    return ManagerStatus(
        role=LEADER,
        lag_bytes=lag_bytes if isinstance(lag_bytes, int) else None,
        lag_segments=lag_segments if isinstance(lag_segments, int) else None,
        copy_blocked=waits if isinstance(waits, dict) else None,
        trim_blocked=blocked if isinstance(blocked, dict) else None,
        diverged=bool(row.get("diverged")),
        external_start=bool(row.get("external_start")),
        future_timestamps=future if isinstance(future, dict) else None,
        problem=str(row.get("problem") or "") or None,
    )
