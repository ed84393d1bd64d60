"""A broker in memory that answers for its replicas as `rlm.broker.own_broker` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rlm.broker.errors import PartitionGoneError
from rlm.broker.partition_results import PartitionResults
from rlm.broker.spi import Broker, RecordDeletion
from rlm.facts.partition_offsets import PartitionOffsets
from rsm.segment.errors import (
    FencedError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.ids import TopicIdPartition
from tests.fakes.replica import Replica


class MemoryBroker(Broker):
    """One broker over its replicas, which a test may change at any moment.

    While `reachable` is false, every call raises RetriableError. `undeletable` are partitions whose
    cleanup policy does not delete. `gone` are partitions that the broker has deleted, whose files
    are still on its disk. `deletions` are the DeleteRecords that were carried out. `before_cut` is
    called right before each of them.
    """

    def __init__(self, node_id: int, replicas: Mapping[TopicIdPartition, Replica]) -> None:
        self._node_id = node_id
        self._replicas = replicas
        self.reachable = True
        self.gone: set[TopicIdPartition] = set()
        self.undeletable: set[TopicIdPartition] = set()
        self.deletions: list[tuple[TopicIdPartition, int]] = []
        self.before_cut: Callable[[TopicIdPartition, RecordDeletion], None] | None = None

    @property
    def node_id(self) -> int:
        return self._node_id

    def leadership(self, topics: Iterable[str] | None = None) -> Mapping[TopicIdPartition, int]:
        self._require_reachable()
        asked = None if topics is None else frozenset(topics)
        return {
            tip: replica.leader_epoch
            for tip, replica in self._replicas.items()
            if replica.leader_epoch is not None and (asked is None or tip.topic in asked)
        }

    def offsets(
        self, leader_epochs: Mapping[TopicIdPartition, int]
    ) -> PartitionResults[PartitionOffsets]:
        self._require_reachable()
        succeeded: dict[TopicIdPartition, PartitionOffsets] = {}
        failed: dict[TopicIdPartition, TieredStorageError] = {}
        for tip, epoch in leader_epochs.items():
            error = self._refusal(tip, epoch)
            if error is not None:
                failed[tip] = error
            else:
                succeeded[tip] = _offsets_of(self._replicas[tip])
        return PartitionResults(succeeded=succeeded, failed=failed)

    def first_offsets_since(
        self, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
    ) -> PartitionResults[int | None]:
        """Return offsets with the precision of files."""
        found = self.offsets(leader_epochs)
        firsts = {
            tip: next(
                (
                    file.base_offset
                    for file in self._replicas[tip].files
                    if file.size_bytes and file.max_timestamp_ms >= since_ms
                ),
                None,
            )
            for tip in found.succeeded
        }
        return PartitionResults(succeeded=firsts, failed=found.failed)

    def delete_records(
        self, deletions: Mapping[TopicIdPartition, RecordDeletion]
    ) -> PartitionResults[int]:
        self._require_reachable()
        succeeded: dict[TopicIdPartition, int] = {}
        failed: dict[TopicIdPartition, TieredStorageError] = {}
        for tip, deletion in deletions.items():
            error = self._refusal(tip, deletion.leader_epoch) or self._undeletable(tip, deletion)
            if error is not None:
                failed[tip] = error
                continue
            replica = self._replicas[tip]
            if self.before_cut is not None:
                self.before_cut(tip, deletion)
            self.deletions.append((tip, deletion.before_offset))
            replica.move_start(deletion.before_offset)
            succeeded[tip] = replica.log_start_offset
        return PartitionResults(succeeded=succeeded, failed=failed)

    def disk_bytes(self) -> int:
        """Return the size of all replicas' files."""
        files = (file for replica in self._replicas.values() for file in replica.on_disk)
        return sum(file.size_bytes for file in files)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _require_reachable(self) -> None:
        if not self.reachable:
            raise RetriableError("broker cannot be reached", node_id=self._node_id)

    def _refusal(self, tip: TopicIdPartition, epoch: int) -> TieredStorageError | None:
        replica = self._replicas.get(tip)
        if replica is None or tip in self.gone:
            return PartitionGoneError("the broker has no such topic or partition", partition=tip)
        if replica.leader_epoch != epoch:
            return FencedError("not the leader in this epoch", partition=tip, epoch=epoch)
        return None

    def _undeletable(
        self, tip: TopicIdPartition, deletion: RecordDeletion
    ) -> TieredStorageError | None:
        if tip in self.undeletable:
            return UnsupportedError("cleanup policy does not delete", partition=tip)
        if deletion.before_offset > self._replicas[tip].high_watermark:
            return RetriableError("offset above the high watermark", partition=tip)
        return None


def _offsets_of(replica: Replica) -> PartitionOffsets:
    return PartitionOffsets(
        log_start_offset=replica.log_start_offset,
        last_stable_offset=replica.last_stable_offset,
        high_watermark=replica.high_watermark,
    )
