"""The managers that the metadata knows of, and what each one says of its partitions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from rlm.policy.candidates import Lag
from rlm.rest.manager_client import ManagerClient
from rlm.tasks.offload import RolledWord
from rlm.tasks.report import LEADER
from rlmm.events import TopicPolicy
from rlmm.processes import ProcessRegistered, ProcessRole
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
        for tip, row in _leaders_rows(self._metadata, self._client, policy):
            segments, size = row.get("lag_segments"), row.get("lag_bytes")
            if isinstance(segments, int) and isinstance(size, int):
                found[tip] = Lag(segments=segments, bytes=size)
        return found


class ManagerRolled:
    """What leading managers say of what is rolled and stored. See RolledWords."""

    def __init__(self, metadata: RemoteLogMetadataManager, client: ManagerClient) -> None:
        self._metadata = metadata
        self._client = client

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, RolledWord]:
        """As of the last cycle; left out where no manager tells."""
        found: dict[TopicIdPartition, RolledWord] = {}
        for tip, row in _leaders_rows(self._metadata, self._client, policy):
            rolled, stored, requested = (
                row.get(f"{name}_offset") for name in ("rolled_end", "stored_end", "offload")
            )
            held = row.get("copy_held")
            if isinstance(rolled, int) and isinstance(stored, int) and isinstance(requested, int):
                found[tip] = RolledWord(
                    rolled_end_offset=rolled,
                    stored_end_offset=stored,
                    requested_offset=requested,
                    held=str(held.get("reason", "")) if isinstance(held, dict) else "",
                )
        return found


def _leaders_rows(
    metadata: RemoteLogMetadataManager, client: ManagerClient, policy: TopicPolicy
) -> Iterator[tuple[TopicIdPartition, Mapping[str, object]]]:
    """The rows of leaders that saw this state of the policy; the silent are left out."""
    for manager in live_managers(metadata):
        try:
            rows = client.partitions(manager, topic=policy.topic)
        except TieredStorageError as error:
            logger.info("manager not heard broker_id=%d error=%s", manager.broker_id, error)
            continue
        for row in rows:
            partition = row.get("partition")
            speaks = (
                row.get("role") == LEADER
                and row.get("claimed") is True
                and row.get("topic_id") == id_to_text(policy.topic_id)
                and row.get("policy_state") == policy.state.name
            )
            if speaks and isinstance(partition, int):
                yield (
                    TopicIdPartition(
                        topic_id=policy.topic_id, topic=policy.topic, partition=partition
                    ),
                    row,
                )
