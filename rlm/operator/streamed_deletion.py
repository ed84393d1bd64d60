"""Requests the deletion of a topic's streamed segments, and waits for it (PIP-76's rollback).

The leaders' managers copy the offsets that only the broker and the stream have, and then delete the
streamed segments. This module shows what a deletion would give up, repeats the requests, and
follows the segments' records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol
from uuid import UUID

from rlm.policy.stream.deletion import StreamedSegment, streamed_segments
from rlm.status.document import PartitionReport
from rlmm.events.offload_segment import offload_segments
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.events.policy import TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.coverage import stored_ranges
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.segment.offload_settings import OffloadMode

_POLL_INTERVAL_MS = 500
_REQUEST_INTERVAL_MS = 5_000


class DeletionState(Enum):
    """Represents the state of a streamed segment's deletion.

    ONLY_COPY: some of its records are nowhere else, so it is not deleted. DEAD_LETTERED: see
    `rlm dlq list`.
    """

    ONLY_COPY = "only_copy"
    TO_DELETE = "to_delete"
    DELETED = "deleted"
    DEAD_LETTERED = "dead_lettered"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDeletion:
    """Represents a streamed segment, and the state of its deletion."""

    segment: StreamedSegment
    state: DeletionState

    @property
    def partition(self) -> TopicIdPartition:
        return self.segment.metadata.topic_id_partition


class DeletionManagers(Protocol):
    """Represents the managers of the brokers that lead a topic's partitions."""

    def reports(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, PartitionReport]:
        """Return the leaders' reports; omit a partition whose manager does not answer."""

    def silence(self, tip: TopicIdPartition) -> str:
        """Return why the last `reports` omitted a partition, and what to do."""

    def delete_streamed(self, tip: TopicIdPartition) -> None:
        """Request the deletion from the manager whose report the last `reports` returned.

        Raises RetriableError if the manager does not answer or refuses.
        """


LocalStarts = Callable[[Collection[TopicIdPartition]], Mapping[TopicIdPartition, int]]
"""Returns where the leaders' local logs begin. Raises RetriableError."""


class StreamedDeletions:
    """Deletes streamed segments for one command. Not thread-safe."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        managers: DeletionManagers,
        local_starts: LocalStarts,
        clock: Clock,
        *,
        progress: Callable[[str], None],
    ) -> None:
        self._metadata = metadata
        self._managers = managers
        self._local_starts = local_starts
        self._clock = clock
        self._progress = progress

    def examine(
        self, policy: TopicPolicy, partitions: Iterable[TopicIdPartition], *, timeout_ms: int
    ) -> tuple[SegmentDeletion, ...]:
        """Return the streamed segments of these partitions, and which are the only copy of records.

        Waits until the managers have completed the last segment of the stream. Raises
        RetriableError if that takes too long, or if a leader or its manager does not answer. Raises
        InvalidConfigError if a partition is still streamed, or if its last segment is open while
        deletions are paused.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        streamed = [tip for tip in partitions if offload_segments(self._metadata, tip)]
        self._require_not_streamed(policy, streamed)
        for tip in streamed:
            self._await_end(policy, tip, deadline_ms)
        return tuple(
            SegmentDeletion(
                segment=each,
                state=DeletionState.ONLY_COPY if each.only_here else DeletionState.TO_DELETE,
            )
            for each in self._segments(streamed)
        )

    def delete(
        self, policy: TopicPolicy, found: Iterable[SegmentDeletion], *, timeout_ms: int
    ) -> tuple[SegmentDeletion, ...]:
        """Request the deletions; return the segments once each is deleted or dead-lettered.

        Raises InvalidConfigError if deletions or needed copies are paused, or if a segment has
        become the only copy of some records. Raises RetriableError at the time limit; the managers
        then continue by themselves.
        """
        wanted = tuple(each for each in found if each.state is DeletionState.TO_DELETE)
        if not wanted:
            return ()
        self._require_not_paused(policy, wanted)
        now_ms = self._clock.monotonic_ms()
        deadline_ms, request_at_ms = now_ms + timeout_ms, now_ms
        shown = ""
        while True:
            rows = tuple(map(self._seen, wanted))
            left = [each for each in rows if each.state is DeletionState.TO_DELETE]
            if not left:
                return rows
            if self._clock.monotonic_ms() >= request_at_ms:
                text = f"segments left: {len(left)} of {len(rows)}{self._request(policy, left)}"
                if text != shown:
                    self._progress(f"{policy.topic}: {text}")
                shown = text
                request_at_ms = self._clock.monotonic_ms() + _REQUEST_INTERVAL_MS
            if self._clock.monotonic_ms() >= deadline_ms:
                raise RetriableError(
                    "cannot wait longer: the deletions continue, but have not ended in time",
                    topic=policy.topic,
                    segments_left=len(left),
                    advice="Run the command again, with a longer --wait, to see their end",
                )
            self._clock.sleep_ms(_POLL_INTERVAL_MS)

    def _request(self, policy: TopicPolicy, left: Iterable[SegmentDeletion]) -> str:
        """Repeat the requests; return the known reasons that block the deletions."""
        partitions = tuple(dict.fromkeys(each.partition for each in left))
        reports = self._managers.reports(policy)
        problems = []
        try:
            self._require_not_only_copies(partitions, left)
            for tip in partitions:
                if tip not in reports:
                    problems.append(f"partition {tip.partition}: {self._managers.silence(tip)}")
                    continue
                self._managers.delete_streamed(tip)
                problems += _blocked(reports[tip])
        except RetriableError as error:
            problems.append(str(error))
        return "".join(f", {each}" for each in dict.fromkeys(problems))

    def _require_not_only_copies(
        self, partitions: Collection[TopicIdPartition], left: Iterable[SegmentDeletion]
    ) -> None:
        """Raise InvalidConfigError if a segment has become the only copy of some records."""
        wanted = {each.segment.metadata.segment_id for each in left}
        for each in self._segments(partitions):
            if each.only_here and each.metadata.segment_id in wanted:
                raise InvalidConfigError(
                    "cannot delete a streamed segment: it has become the only copy of some records",
                    segment=each.metadata.segment_id,
                    only_copy=",".join(map(str, each.only_here)),
                    advice="Run the command again, with --keep-only-copies",
                )

    def _segments(self, partitions: Collection[TopicIdPartition]) -> Iterator[StreamedSegment]:
        starts = self._local_starts(partitions) if partitions else {}
        for tip in partitions:
            state = self._metadata.partition_state(tip)
            segments = (each.metadata for each in self._metadata.list_remote_log_segments(tip))
            yield from streamed_segments(
                self._streamed(tip),
                stored_ranges(state.lineage, segments),
                {anomaly.segment for anomaly in state.anomalies},
                log_start_offset=state.log_start_offset or 0,
                local_start_offset=starts[tip],
            )

    def _streamed(self, tip: TopicIdPartition) -> frozenset[UUID]:
        accounts = offload_segments(self._metadata, tip)
        return frozenset(segment for each in accounts for segment in each.segment_ids)

    def _seen(self, before: SegmentDeletion) -> SegmentDeletion:
        record = self._metadata.segment(before.segment.metadata.segment_id)
        if record is None or record.metadata.state is SegmentState.DELETE_SEGMENT_FINISHED:
            return replace(before, state=DeletionState.DELETED)
        if record.is_dead_lettered:
            return replace(before, state=DeletionState.DEAD_LETTERED)
        return before

    def _require_not_streamed(
        self, policy: TopicPolicy, partitions: Collection[TopicIdPartition]
    ) -> None:
        if not partitions:
            return
        is_streamed = policy.offload_mode is OffloadMode.STREAM
        reports = self._managers.reports(policy)
        for tip in partitions:
            if tip not in reports:
                raise RetriableError(
                    "cannot delete streamed segments: the partition's manager does not answer",
                    partition=tip,
                    reason=self._managers.silence(tip),
                    advice="Run the command again when the manager answers",
                )
            # If the topic's policy sets no mode, the managers' mode applies.
            is_streamed |= policy.offload_mode is None and reports[tip].stream is not None
        if is_streamed:
            raise InvalidConfigError(
                "cannot delete streamed segments: the topic is still streamed",
                topic=policy.topic,
                advice="First run `rlm topic set` with --offload-mode segment",
            )

    def _await_end(self, policy: TopicPolicy, tip: TopicIdPartition, deadline_ms: int) -> None:
        while (segment_id := self._open_segment(tip)) is not None:
            # Do not wait for the time limit: while deletions are paused, the segment may stay open.
            self._require_running(policy, {PausableTask.DELETE})
            if self._clock.monotonic_ms() >= deadline_ms:
                raise RetriableError(
                    "cannot examine the stream: its last segment is not completed yet",
                    segment=segment_id,
                    advice="Run the command again",
                )
            self._clock.sleep_ms(_POLL_INTERVAL_MS)

    def _open_segment(self, tip: TopicIdPartition) -> RemoteLogSegmentId | None:
        started = self._metadata.list_remote_log_segments(
            tip, states=(SegmentState.COPY_SEGMENT_STARTED,)
        )
        return next((r.metadata.segment_id for r in started if r.metadata.is_open), None)

    def _require_not_paused(self, policy: TopicPolicy, wanted: Iterable[SegmentDeletion]) -> None:
        needed = {PausableTask.DELETE}
        if any(each.segment.to_copy for each in wanted):
            needed.add(PausableTask.COPY)
        self._require_running(policy, needed)

    def _require_running(self, policy: TopicPolicy, needed: Collection[PausableTask]) -> None:
        paused = set(needed) & paused_tasks(self._metadata, policy.topic_id)
        if paused:
            raise InvalidConfigError(
                "cannot delete streamed segments: copies or deletions of the topic are paused",
                topic=policy.topic,
                paused=",".join(sorted(task.name.lower() for task in paused)),
                advice="Resume them first with `rlm resume`",
            )


def _blocked(report: PartitionReport) -> Iterator[str]:
    label = f"partition {report.topic_id_partition.partition}"
    if report.repair_failure is not None:
        yield f"{label}: copies fail: {report.repair_failure.error}"
    if report.expiry_blocked is not None:
        yield f"{label}: blocked: {report.expiry_blocked.reason}"
