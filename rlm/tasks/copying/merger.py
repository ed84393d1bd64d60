"""Merges stored segments of a partition into one, in a fixed order of effects.

    lead confirmed, all parts still finished → companions of all parts read
    → COPY_SEGMENT_STARTED accepted
    → not merged by this claim before → log read from the store, written and verified
    → still the same store → lead confirmed again, all parts still finished
    → COPY_SEGMENT_FINISHED accepted
    → (later) the parts are deleted (rlm/policy/stream/merging.py)

A merge is a copy whose source is the store. It writes the same records as a copy, and a failed
attempt or a crash is handled in the same way. Until COPY_SEGMENT_FINISHED, the parts contain the
only valid data, and the merger deletes none of them.

Every attempt with an unreadable part would fail. So the merger reports a missing or corrupt part as
damaged, and the lanes remember a part with an unknown layout. The next merge leaves the part out.
The merger reads the companions first; otherwise it would find a lost companion only after it has
copied all data.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from uuid import UUID

from rlm.policy.stream.merging import SegmentMerge
from rlm.tasks.context.attempt import BoundedAttempt
from rlm.tasks.context.fault_report import report_fault
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_records import CopyRecords, with_copied
from rlm.tasks.copying.copy_throttle import CopyThrottle, ThrottledContent
from rlm.tasks.copying.stored_parts import StoredParts, UnreadablePart, UnreadablePartsError
from rlm.tasks.leadership.partition_lead import PartitionLead, confirm_lead
from rsm.read.unreadable_segment import object_fault
from rsm.segment.epochs import Lineage
from rsm.segment.errors import (
    CorruptError,
    FencedError,
    NotFoundError,
    RetriableError,
    StoppedError,
    TieredStorageError,
)
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.spi import CopiedSegment, CopyAttempt, PlannedObjects

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOrder:
    """Represents one merge, with its lead, its lineage and its time limit.

    `segment_id` is new for each attempt. The attempt ends once the process is `stopping` or no
    longer `leads`.
    """

    lead: PartitionLead
    segment_id: UUID
    merge: SegmentMerge
    lineage: Lineage
    timeout_ms: int
    stopping: Callable[[], bool]
    leads: Callable[[], bool]


class Merger:
    """Merges segments of one store. Thread-safe: one call per partition at a time.

    Memory: that of `StoredParts`, and the buffers of the store's upload.
    """

    def __init__(
        self,
        ports: Ports,
        executor: Executor,
        throttle: CopyThrottle | None = None,
        *,
        custom_metadata_max_bytes: int,
    ) -> None:
        """Read the store in `executor`; merge without a rate limit if `throttle` is None."""
        self._records = CopyRecords(ports, custom_metadata_max_bytes=custom_metadata_max_bytes)
        self._executor = executor
        self._throttle = throttle
        self._broker = ports.broker
        self._storage = ports.storage
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._new_id = ports.new_id

    def merge(self, order: MergeOrder) -> RemoteLogSegmentMetadata:
        """Merge segments and return the finished metadata.

        Raises FencedError if the lead is lost or a part is no longer finished. Raises
        UnreadablePartsError for parts that are missing, corrupt or of an unknown layout. Also
        raises the other errors of `Copier.copy`.
        """
        deadline_ms = self._clock.monotonic_ms() + order.timeout_ms
        attempt = BoundedAttempt(self._clock, deadline_ms, order.stopping, leads=order.leads)
        confirm_lead(self._broker, order.lead)
        self._require_finished(order.merge)
        parts = StoredParts(self._storage, self._executor, order.merge, attempt)
        try:
            parts.read_companions()
            return self._merge(order, parts, attempt)
        except (FencedError, StoppedError):
            raise
        except TieredStorageError as error:
            if not parts.unreadable:
                raise
            self._require_finished(order.merge)  # A deleted part is not damaged.
            self._report(parts.unreadable)
            raise UnreadablePartsError(parts.unreadable) from error

    def _merge(
        self, order: MergeOrder, parts: StoredParts, attempt: CopyAttempt
    ) -> RemoteLogSegmentMetadata:
        started = self._describe(order)
        append_time_ms = self._records.publish(started, copy_timeout_ms=order.timeout_ms)
        replaced = frozenset(part.metadata.segment_id.id for part in order.merge.parts)
        self._records.require_not_stored(started, started.offsets, 0, replaced)
        copied = self._store(order, started, parts, attempt)
        stored = with_copied(started, copied)
        with self._records.discarding(stored, TieredStorageError):
            self._records.require_as_planned(started, copied)
            self._records.require_same_store(stored)
            confirm_lead(self._broker, order.lead)
            self._require_finished(order.merge)
            attempt.check()
        finished = self._records.finish(stored, copy_deadline_ms=append_time_ms + order.timeout_ms)
        _log.info(
            LogLine(
                "merged segments",
                topic_partition=order.lead.topic_id_partition,
                base_offset=finished.offsets.start_offset,
                end_offset=finished.offsets.end_offset,
                bytes=finished.segment_size_bytes,
                segments=len(order.merge.parts),
                segment_id=finished.segment_id,
            )
        )
        return finished

    def _store(
        self,
        order: MergeOrder,
        started: RemoteLogSegmentMetadata,
        parts: StoredParts,
        attempt: CopyAttempt,
    ) -> CopiedSegment:
        writer = self._storage.open_segment_writer(
            started.segment_id,
            PlannedObjects(layout=started.layout, objects=started.objects),
            attempt,
        )
        try:
            writer.write(self._throttled(parts, attempt))
            return writer.seal(started, parts.companions(order.lineage))
        except BaseException as error:
            writer.abort(error)
            raise

    def _throttled(
        self, parts: StoredParts, attempt: CopyAttempt
    ) -> StoredParts | ThrottledContent:
        if self._throttle is None:
            return parts
        return ThrottledContent(source=parts, throttle=self._throttle, attempt=attempt)

    def _report(self, parts: Iterable[UnreadablePart]) -> None:
        """Record missing and corrupt parts as damaged; after an error, the next attempt retries."""
        for part in parts:
            if not isinstance(part.error, NotFoundError | CorruptError):
                continue
            segment_id = part.metadata.segment_id
            fault = object_fault(part.metadata, part.error)
            try:
                report_fault(self._metadata, segment_id, fault, self._clock, self._new_id)
            except RetriableError as error:
                _log.info(
                    LogLine("cannot record a damaged object", segment_id=segment_id, error=error)
                )

    def _require_finished(self, merge: SegmentMerge) -> None:
        """Raise FencedError if a part is no longer finished: a merge would restore its data."""
        for part in merge.parts:
            record = self._metadata.segment(part.metadata.segment_id)
            if record is None or record.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
                raise FencedError(
                    "cannot merge: a part of the merge is deleted or being deleted",
                    segment_id=part.metadata.segment_id,
                )

    def _describe(self, order: MergeOrder) -> RemoteLogSegmentMetadata:
        merge = order.merge
        return self._records.started(
            order.lead,
            order.segment_id,
            merge.offsets,
            order.lineage,
            size_bytes=merge.size_bytes,
            max_timestamp_ms=merge.max_timestamp_ms,
            has_transaction_index=any(part.metadata.has_transaction_index for part in merge.parts),
        )
