"""Managers with scripted answers, registered in a metadata topic."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from rlm.rest.credentials import MetadataCredentials
from rlm.rest.manager_client import ManagerClient
from rlm.status.document import PartitionReport
from rlm.status.explanation import OffsetExplanation
from rlm.status.retention_preview import RetentionPreview
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.registration import ProcessRegistered, ProcessRole
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.ids import TopicIdPartition
from tests.log_dir_builder import ManualClock

TOPIC_ID = UUID(int=7)
TIP = TopicIdPartition(topic_id=TOPIC_ID, topic="orders", partition=0)


class StatedView:
    """A manager with scripted answers."""

    def __init__(self) -> None:
        self.reports: tuple[PartitionReport, ...] = ()
        self.explained: OffsetExplanation | None = None
        self.cycle_count = 0
        self.requested: list[tuple[str, int]] = []

    def readiness(self) -> tuple[bool, Sequence[str]]:
        return True, ()

    def warnings(self) -> Sequence[str]:
        return ()

    def partition_reports(self) -> Sequence[PartitionReport]:
        return self.reports

    def explanation(self, topic: str, partition: int, offset: int) -> OffsetExplanation | None:
        return self.explained

    def retention(self, topic: str) -> Sequence[RetentionPreview]:
        return ()

    def run_cycle(self) -> None:
        self.cycle_count += 1

    def delete_streamed(self, topic: str, partition: int) -> bool:
        self.requested.append((topic, partition))
        return True


class Cluster:
    """Metadata in memory, with managers registered in it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.metadata = TopicBasedRemoteLogMetadataManager(
            MemoryTopic(MemoryLog(self.clock)), MetadataCache(MemoryStore()), self.clock
        )
        assert self.metadata.wait_ready(1000).is_ready

    def register(self, broker_id: int, address: str) -> None:
        assert self.metadata.publish(self.manager(broker_id, address)).accepted

    def manager(self, broker_id: int, address: str) -> ProcessRegistered:
        """Return a manager of version 0.1.0, which has no incarnation and signs nothing."""
        return ProcessRegistered(
            event_id=UUID(int=self.clock.now_ms + broker_id),
            process_id=UUID(int=broker_id),
            role=ProcessRole.MANAGER,
            broker_id=broker_id,
            http_address=address,
            heartbeat_interval_ms=1000,
            version="1",
        )

    def client(self) -> ManagerClient:
        return ManagerClient(MetadataCredentials(metadata=self.metadata, cluster_id="c"))


def report(**changes: object) -> PartitionReport:
    fields: dict[str, object] = {
        "topic_id_partition": TIP,
        "role": "leader",
        "leader_epoch": 3,
        "is_claimed": True,
        "policy_state": "DISABLING",
        "lag_segments": 2,
        "lag_bytes": 2048,
        **changes,
    }
    return PartitionReport(**fields)  # type: ignore[arg-type]  # field names are the tests' own
