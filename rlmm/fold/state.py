"""What a fold reads and writes, and why it may refuse. Pure."""

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
    """Why a record was refused; the value is its name in metrics and logs."""

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
    """What is known so far, and takes what a record changes. Subjects as in rlmm/record_keys.py."""

    def segment_entry(self, subject: bytes) -> SegmentEntry | None:
        """One segment, None if no record of it is known."""

    def put_segment(self, subject: bytes, entry: SegmentEntry | None) -> None:
        """A segment is now this; None: nothing is left of it."""

    def partition_state(self, subject: bytes) -> PartitionState:
        """One partition, empty if nothing is known."""

    def put_partition(self, subject: bytes, state: PartitionState) -> None:
        """A partition is now this; but for its deletion."""

    def partition_deletion(self, subject: bytes) -> RemotePartitionDeleteState | None:
        """How far deleting a partition has come, None if it is not to be deleted."""

    def put_partition_deletion(self, subject: bytes, deletion: RemotePartitionDeleteState) -> None:
        """Deleting a partition has come so far."""

    def put_record_key(self, key: RecordKey, offset: int | None) -> None:
        """A claim, trim, log start, request, lease or gaps stand at `offset`; None: no longer."""

    def put_unread_record(self, key: bytes, record: NewerRecord | None) -> None:
        """The record with this key cannot be folded here; None: it can, or there is none."""

    def put_policy(self, topic_id: bytes, event: TopicPolicyChanged | None, offset: int) -> None:
        """A topic id's policy is now this, by the record at `offset`; None: removed."""

    def put_pause(self, topic_id: bytes, event: TopicPaused | None) -> None:
        """This is paused of a topic id now; None: removed."""

    def put_cluster_secret(self, secret: ClusterSecret | None) -> None:
        """The cluster's secret is now this; None: removed."""

    def put_registration(self, process_id: bytes, registration: Registration | None) -> None:
        """A process is now registered like this; None: removed."""
