"""Defines the state that a fold reads and changes, and the reasons for refusals. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from rlmm.positions import TopicRecord
from rlmm.record_keys import RecordKey
from rlmm.state.partition_state import PartitionState, RemotePartitionDeleteState
from rlmm.state.segment_entry import SegmentEntry


class Refusal(Enum):
    """Represents the reason for a refused record; the value is its name in metrics and logs."""

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
    """Represents the known state, which a fold changes. rlmm/record_keys.py defines subjects."""

    def segment_entry(self, subject: bytes) -> SegmentEntry | None:
        """Return a segment's entry; None if no record of the segment is known."""

    def put_segment(self, subject: bytes, entry: SegmentEntry | None) -> None:
        """Replace a segment's entry; None removes it."""

    def partition_state(self, subject: bytes) -> PartitionState:
        """Return a partition's state; it is empty if nothing is known."""

    def put_partition(self, subject: bytes, state: PartitionState) -> None:
        """Replace a partition's state, except for its deletion."""

    def partition_deletion(self, subject: bytes) -> RemotePartitionDeleteState | None:
        """Return the state of a partition's deletion; None if no deletion is marked."""

    def put_partition_deletion(self, subject: bytes, deletion: RemotePartitionDeleteState) -> None:
        """Replace the state of a partition's deletion."""

    def put_record_key(self, key: RecordKey, offset: int | None, content: bytes = b"") -> None:
        """Set the offset of a partition's record with this key; None removes the key.

        `content` is stored with the offset, for records that the partition's state does not
        contain.
        """

    def put_cluster_row(self, key: bytes, row: bytes | None) -> None:
        """Replace the row of a topic id, a process or the cluster; None removes it."""

    def put_unread_record(self, record: TopicRecord, needs_fold_version: int) -> None:
        """Note a record that this version cannot fold.

        `needs_fold_version` is the newer version that the record names, or 0 if it names none.
        """

    def remove_unread_record(self, key: bytes) -> None:
        """Remove the note of a record that was removed or replaced."""
