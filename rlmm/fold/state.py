"""The state that a fold reads and writes, and the reasons for refusals. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from rlmm.events.secrets import ClusterSecret
from rlmm.events.values import RemotePartitionDeleteState, TopicPaused, TopicPolicyChanged
from rlmm.fold.segment_entry import SegmentEntry
from rlmm.partition_state import PartitionState
from rlmm.record_keys import RecordKey
from rlmm.spi import (
    NewerRecord,
    Registration,
)


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

    def put_record_key(self, key: RecordKey, offset: int | None) -> None:
        """Set the offset of a claim, trim, log start, request, lease or gaps; None removes it."""

    def put_unread_record(self, key: bytes, record: NewerRecord | None) -> None:
        """Note that the record with this key cannot be folded; None removes the note."""

    def put_policy(self, topic_id: bytes, event: TopicPolicyChanged | None, offset: int) -> None:
        """Replace a topic id's policy by the record at `offset`; None removes it."""

    def put_pause(self, topic_id: bytes, event: TopicPaused | None) -> None:
        """Replace a topic id's pauses; None removes them."""

    def put_cluster_secret(self, secret: ClusterSecret | None) -> None:
        """Replace the cluster's secret; None removes it."""

    def put_registration(self, process_id: bytes, registration: Registration | None) -> None:
        """Replace a process's registration; None removes it."""
