"""The state that a fold reads and writes, and the reasons for refusals. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from rlmm.positions import TopicRecord
from rlmm.record_keys import RecordKey
from rlmm.state.partition_state import PartitionState, RemotePartitionDeleteState
from rlmm.state.segment_entry import SegmentEntry


class Refusal(Enum):
    """Why a record was refused; the value is the reason's name in metrics and logs."""

    STALE_EPOCH = "stale_epoch"
    NOT_OWNER = "not_owner"
    UNKNOWN_SEGMENT = "unknown_segment"
    STEP_BACK = "step_back"
    SKIPPED_STATE = "skipped_state"
    UNEXPECTED_STATE = "unexpected_state"
    TOO_LATE = "too_late"
    BELOW_CURRENT = "below_current"
    CLAIM_REMOVED = "claim_removed"
    PARTITION_DELETED = "partition_deleted"
    TOO_MANY = "too_many"
    PARTITION_DELETE_REMOVED = "partition_delete_removed"


class FoldState(Protocol):
    """The known state, to which a fold writes its changes. rlmm/record_keys.py defines subjects."""

    def segment_entry(self, subject: bytes) -> SegmentEntry | None:
        """Return one segment, None if no record of it is known."""

    def put_segment(self, subject: bytes, entry: SegmentEntry | None) -> None:
        """Replace a segment's entry; None removes it."""

    def partition_state(self, subject: bytes) -> PartitionState:
        """Return one partition's state, empty if nothing is known."""

    def put_partition(self, subject: bytes, state: PartitionState) -> None:
        """Replace a partition's state, except for its deletion."""

    def partition_deletion(self, subject: bytes) -> RemotePartitionDeleteState | None:
        """Return the state of deleting a partition, None if no deletion is marked."""

    def put_partition_deletion(self, subject: bytes, deletion: RemotePartitionDeleteState) -> None:
        """Replace the state of deleting a partition."""

    def put_record_key(self, key: RecordKey, offset: int | None, content: bytes = b"") -> None:
        """Set the offset of a record that changes a partition's state; None removes it.

        `content` is kept with it, for records that the state of the partition does not contain.
        """

    def put_cluster_row(self, key: bytes, row: bytes | None) -> None:
        """Replace what is kept of a topic id, a process or the cluster; None removes it."""

    def put_unread_record(self, record: TopicRecord, needs_fold_version: int) -> None:
        """Note a record that only newer rules can fold; `needs_fold_version` 0: no rules can."""

    def remove_unread_record(self, key: bytes) -> None:
        """Remove the note of a record that has been removed or replaced."""
