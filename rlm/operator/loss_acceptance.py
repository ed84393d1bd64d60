"""Accepts the loss of one damaged segment for an operator (rlm topic resolve --lost-segment).

**Data loss:** the leader's manager then records the gap and deletes the segment. It first checks
the objects itself, and does not delete the segment while a repair is possible. This module only
records the damage and the acceptance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from rlm.policy.request.lost_segment import segment_loss
from rlm.tasks.context.fault_report import report_fault
from rlmm.events.anomaly import AnomalyReported
from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.anomalies import LOST_RANGES_MAX_COUNT, Anomaly, AnomalyKind
from rsm.segment.clock import Clock
from rsm.segment.errors import InvalidConfigError, NotFoundError, RetriableError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange
from rsm.spi import CopyAttempt, ObjectFault, RemoteStorageManager


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptableLoss:
    """Represents a damaged segment that cannot be repaired: its lost offsets and damaged objects.

    `lost` contains the ranges that one acceptance gives up. `later_count` counts further lost
    ranges. An operator can give them up after the gap of `lost` is recorded.
    """

    segment_id: RemoteLogSegmentId
    lost: tuple[OffsetRange, ...]
    later_count: int
    faults: Mapping[str, ObjectFault]


class LossAcceptance:
    """Accepts losses for one command. Not thread-safe."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        storage: RemoteStorageManager | None,
        clock: Clock,
        new_id: Callable[[], UUID],
    ) -> None:
        """`storage` is None if this host cannot read the store: recorded anomalies then decide."""
        self._metadata = metadata
        self._storage = storage
        self._clock = clock
        self._new_id = new_id

    def examine(
        self, segment_id: RemoteLogSegmentId, local_start_offset: int, attempt: CopyAttempt
    ) -> AcceptableLoss:
        """Return what would be lost with a segment. `local_start_offset` is the leader's.

        Raises NotFoundError if the segment is not stored, and RetriableError if the store does not
        answer. Raises InvalidConfigError if there is nothing to accept: the segment's objects are
        whole, the broker still has the records, or other segments have the readable offsets.
        """
        tip = segment_id.topic_id_partition
        record = self._metadata.segment(segment_id)
        if record is None or record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            raise NotFoundError(
                "cannot accept the loss: the partition has no such finished segment",
                segment_id=segment_id,
                state="none" if record is None else record.metadata.state.name,
                advice="`rlm segments list` shows the segments",
            )
        faults = self._faults(record.metadata, attempt)
        if not faults:
            raise InvalidConfigError(
                "cannot accept the loss: the segment's objects are as recorded",
                segment_id=segment_id,
                advice="No action is needed: readers get the records",
            )
        segments = [each.metadata for each in self._metadata.list_remote_log_segments(tip)]
        state = self._metadata.partition_state(tip)
        loss = segment_loss(segment_id.id, state, segments, local_start_offset)
        if loss.on_broker:
            raise InvalidConfigError(
                "cannot accept the loss: the broker still has the records, and the leader's "
                "manager tries at least once an hour to copy them again",
                segment_id=segment_id,
                on_broker=_text(loss.on_broker),
                advice="Look for the failure in the log of that manager",
            )
        if not loss.lost:
            raise InvalidConfigError(
                "cannot accept the loss: other segments have all readable offsets of this segment",
                segment_id=segment_id,
                readable_in=",".join(str(each) for each in loss.readable_in) or "none is readable",
                advice="No action is needed",
            )
        lost = loss.lost[:LOST_RANGES_MAX_COUNT]
        return AcceptableLoss(
            segment_id=segment_id,
            lost=lost,
            later_count=len(loss.lost) - len(lost),
            faults=faults,
        )

    def accept(self, loss: AcceptableLoss) -> None:
        """Record the lost offsets for each damaged object.

        Gives up no other offsets, even if more are lost before the leader's manager acts. Raises
        RetriableError if the metadata refuses a record.
        """
        tip = loss.segment_id.topic_id_partition
        now_ms = self._clock.wall_ms()
        for fault in loss.faults.values():
            report_fault(self._metadata, loss.segment_id, fault, self._clock, self._new_id)
            accepted = Anomaly(
                segment=loss.segment_id.id,
                object_key=fault.object_key,
                kind=AnomalyKind.LOSS_ACCEPTED,
                first_ms=now_ms,
                last_ms=now_ms,
                attempts=1,
                lost=loss.lost,
            )
            event = AnomalyReported(
                event_id=self._new_id(), topic_id_partition=tip, anomaly=accepted
            )
            result = self._metadata.publish(event)
            if not result.accepted:
                raise RetriableError(
                    "cannot accept the loss: the metadata refused the record",
                    segment_id=loss.segment_id,
                    reason=result.refusal,
                    advice="Run the command again",
                )

    def _faults(
        self, metadata: RemoteLogSegmentMetadata, attempt: CopyAttempt
    ) -> Mapping[str, ObjectFault]:
        """Return the damaged objects by key, from the store or else from the recorded anomalies."""
        anomalies = [
            each
            for each in self._metadata.partition_state(metadata.topic_id_partition).anomalies
            if each.segment == metadata.segment_id.id
        ]
        if self._storage is not None:
            is_corrupt = any(each.kind is AnomalyKind.CORRUPT for each in anomalies)
            found = self._storage.check_objects(metadata, read=is_corrupt, attempt=attempt)
            return {each.object_key: each for each in found}
        return {
            each.object_key: ObjectFault(
                object_key=each.object_key,
                is_missing=each.kind is AnomalyKind.MISSING,
                reason="on record",
            )
            for each in anomalies
            if each.kind is not AnomalyKind.LOSS_ACCEPTED
        }


def _text(offsets: tuple[OffsetRange, ...]) -> str:
    return ",".join(str(each) for each in offsets)
