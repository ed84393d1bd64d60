"""Copies one segment in a fixed order of effects.

    lead confirmed, still in the log → segment opened → COPY_SEGMENT_STARTED accepted
    → not stored by this claim before → objects written and verified → still the same store
    → file unchanged, lead confirmed again → COPY_SEGMENT_FINISHED accepted

The started event names every object before its first byte is written. So every object that a crash
leaves has a record (PIP-17). Only followers truncate. If the broker leads the partition in the same
leader epoch before and after the read, the file cannot have changed in between. The copier
publishes nothing after it notices that the lead is lost. If an attempt cannot finish, its objects
are deleted; if that fails, a later cycle of the leader's manager deletes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.facts.local_log import LocalSegment
from rlm.source.log_source import OpenSegment
from rlm.tasks.context.attempt import BoundedAttempt
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_pace import CopyPace, PacedContent
from rlm.tasks.copying.copy_records import (
    DEFAULT_CUSTOM_METADATA_MAX_BYTES,
    CopyRecords,
    known_epochs,
    with_copied,
)
from rlm.tasks.copying.copy_throttle import CopyThrottle, ThrottledContent
from rlm.tasks.leadership.partition_lead import PartitionLead, confirm_lead
from rsm.segment.epochs import Lineage
from rsm.segment.errors import FencedError, RetriableError, TieredStorageError
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.spi import CopiedSegment, CopyAttempt

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOrder:
    """Represents one segment to copy, with its lead, its lineage and its time limit.

    `segment_id` is new for each attempt. The attempt ends once the process is `stopping` or no
    longer `leads`. `replaces` are the finished segments that the plan found at these offsets; some
    of them may be damaged or unwanted.
    """

    lead: PartitionLead
    segment_id: UUID
    segment: LocalSegment
    lineage: Lineage
    timeout_ms: int
    stopping: Callable[[], bool]
    leads: Callable[[], bool]
    replaces: frozenset[UUID] = frozenset()


class Copier:
    """Copies segments of one broker to one store. Thread-safe: one call per partition at a time."""

    def __init__(
        self,
        ports: Ports,
        throttle: CopyThrottle | None = None,
        *,
        pace: CopyPace | None = None,
        custom_metadata_max_bytes: int = DEFAULT_CUSTOM_METADATA_MAX_BYTES,
    ) -> None:
        """Copy without a rate limit if `throttle` is None. Report the copied bytes to `pace`."""
        self._records = CopyRecords(ports, custom_metadata_max_bytes=custom_metadata_max_bytes)
        self._throttle = throttle
        self._pace = pace
        self._broker = ports.broker
        self._source = ports.source
        self._storage = ports.storage
        self._clock = ports.clock

    def copy(self, order: CopyOrder) -> RemoteLogSegmentMetadata:
        """Copy one segment and return its finished metadata.

        Raises FencedError if the lead is lost, or if the segment was deleted or stored in the
        meantime. Raises StoppedError if the process stops. Raises NotFoundError if the file is
        gone, CorruptError for bad bytes in the log or the store, UnsupportedError if every attempt
        would fail, and RetriableError otherwise. After an error, the metadata still lists the
        attempt if its start was recorded.
        """
        deadline_ms = self._clock.monotonic_ms() + order.timeout_ms
        attempt = BoundedAttempt(self._clock, deadline_ms, order.stopping, leads=order.leads)
        tip = order.lead.topic_id_partition
        offsets = confirm_lead(self._broker, order.lead)
        end_offset = order.segment.offsets.end_offset
        if end_offset > offsets.committed_end_offset:
            raise RetriableError(
                "cannot copy the segment: not all of its records are committed", end=end_offset
            )
        if end_offset <= offsets.log_start_offset:
            raise FencedError(
                "cannot copy the segment: it was deleted from the broker's log",
                log_start=offsets.log_start_offset,
            )
        lineage = known_epochs(
            order.lineage,
            order.segment.offsets,
            offsets.log_start_offset,
            is_whole_file=order.segment.is_whole_file,
        )
        with self._source.open_segment(
            tip, order.segment, lineage, offsets.last_stable_offset
        ) as opened:
            started = self._describe(order, opened, lineage)
            append_time_ms = self._records.publish(started, copy_timeout_ms=order.timeout_ms)
            self._records.require_not_stored(
                started, started.offsets, offsets.log_start_offset, order.replaces
            )
            data = self._paced(opened.data, attempt)
            copied = self._store(started, data, attempt)
            stored = with_copied(started, copied)
            with self._records.discarding(stored, TieredStorageError):
                self._records.require_as_planned(started, copied)
                self._records.require_same_store(stored)
                opened.verify_unchanged()
                confirm_lead(self._broker, order.lead)
                attempt.check()
        finished = self._records.finish(stored, copy_deadline_ms=append_time_ms + order.timeout_ms)
        _log.info(
            LogLine(
                "copied segment",
                topic_partition=tip,
                base_offset=finished.offsets.start_offset,
                end_offset=finished.offsets.end_offset,
                bytes=finished.segment_size_bytes,
                segment_id=finished.segment_id,
            )
        )
        return finished

    def _paced(self, data: LogSegmentData, attempt: CopyAttempt) -> LogSegmentData:
        log = data.log
        if self._throttle is not None:
            log = ThrottledContent(source=log, throttle=self._throttle, attempt=attempt)
        if self._pace is not None:
            log = PacedContent(source=log, pace=self._pace)
        return replace(data, log=log)

    def _store(
        self, started: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> CopiedSegment:
        try:
            return self._storage.copy_log_segment_data(started, data, attempt)
        except RetriableError:
            if self._pace is not None:
                self._pace.record_refusal()
            raise

    def _describe(
        self, order: CopyOrder, opened: OpenSegment, lineage: Lineage
    ) -> RemoteLogSegmentMetadata:
        return self._records.started(
            order.lead,
            order.segment_id,
            opened.data.offsets,
            lineage,
            size_bytes=opened.data.log.length_bytes,
            max_timestamp_ms=opened.max_timestamp_ms,
            has_transaction_index=opened.data.companions.transaction_index is not None,
        )
