"""The managers that the metadata knows of, and what each one says of its partitions."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from rlm.policy.candidates import Lag
from rlm.rest.manager_client import ManagerClient
from rlm.tasks.report import LEADER
from rlmm.events import ProcessRegistered, ProcessRole, TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition, id_to_text

logger = logging.getLogger(__name__)

_HEARTBEATS_MISSED = 3


def live_managers(metadata: RemoteLogMetadataManager) -> tuple[ProcessRegistered, ...]:
    """Managers whose last heartbeat is young by the brokers' clock, by broker id."""
    now_ms = metadata.broker_time_ms()
    live = (
        each.process
        for each in metadata.registrations()
        if each.process.role is ProcessRole.MANAGER
        and each.process.http_address
        and now_ms <= each.heartbeat_ms + _HEARTBEATS_MISSED * each.process.heartbeat_interval_ms
    )
    return tuple(sorted(live, key=lambda process: process.broker_id))


class ManagerLags:
    """What leading managers say of rolled segments that are not stored. See RolledLags."""

    def __init__(self, metadata: RemoteLogMetadataManager, client: ManagerClient) -> None:
        self._metadata = metadata
        self._client = client

    def lags(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, Lag]:
        """As of a cycle that saw this state of the policy; left out where no manager tells."""
        found: dict[TopicIdPartition, Lag] = {}
        for manager in live_managers(self._metadata):
            try:
                rows = self._client.partitions(manager.http_address, topic=policy.topic)
                found.update(filter(None, (_lag_of(row, policy) for row in rows)))
            except TieredStorageError as error:
                logger.info("manager not heard broker_id=%d error=%s", manager.broker_id, error)
        return found


def _lag_of(row: Mapping[str, object], policy: TopicPolicy) -> tuple[TopicIdPartition, Lag] | None:
    partition, segments, size = (
        row.get(name) for name in ("partition", "lag_segments", "lag_bytes")
    )
    speaks = (
        row.get("role") == LEADER
        and row.get("claimed") is True
        and row.get("topic_id") == id_to_text(policy.topic_id)
        and row.get("policy_state") == policy.state.name
    )
    if not (
        speaks
        and isinstance(partition, int)
        and isinstance(segments, int)
        and isinstance(size, int)
    ):
        return None
    tip = TopicIdPartition(topic_id=policy.topic_id, topic=policy.topic, partition=partition)
    return tip, Lag(segments=segments, bytes=size)
