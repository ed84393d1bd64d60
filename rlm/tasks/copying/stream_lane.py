"""Streams partitions in a separate lane, with one open segment per slot (PIP-76)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from rlm.facts.local_log import LogPosition
from rlm.policy.stream.ending import EndReason, StreamProgress, end_because, gives_way
from rlm.policy.stream.permit import StreamPermit
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.attempt_lanes import AttemptContext, AttemptKind, AttemptLanes, AttemptRunner
from rlm.tasks.copying.earlier_streams import earlier_streams
from rlm.tasks.copying.offload_account import OffloadAccount
from rlm.tasks.copying.streamer import StreamedCopy, Streamer, StreamOrder
from rlm.tasks.leadership.partition_task import PartitionTask
from rlm.tasks.leadership.stream_state import OpenStream
from rlmm.state.offload_segments import DriverProperty
from rsm.segment.epochs import Lineage, stitch
from rsm.segment.errors import FencedError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.offload_settings import OffloadSettings


@dataclass(slots=True, kw_only=True)
class _Stream:
    """Represents the next segment of a partition's stream."""

    lanes: StreamLanes
    task: PartitionTask
    permit: StreamPermit
    begin: LogPosition
    waited_ms: int
    streamed: StreamedCopy | None = field(default=None, init=False)

    @property
    def base_offset(self) -> int:
        return self.begin.offset

    @property
    def facts(self) -> Mapping[str, object]:
        return {"base_offset": self.base_offset}

    @property
    def timeout_ms(self) -> int:
        """Return the rollover time plus the time limit of copying a segment of the largest size."""
        limits = self.permit.limits
        return limits.segment_rollover_ms + self.lanes.context.timeout_ms(limits.segment_max_bytes)

    def copy(self, segment_id: UUID) -> RemoteLogSegmentMetadata:
        state = self.task.streaming
        if not state.permits_from(self.base_offset):
            raise FencedError(
                "cannot start the stream: while it waited, its permit ended or its position moved",
                partition=self.task.topic_id_partition,
                offset=self.base_offset,
            )
        try:
            self.streamed = self.lanes.stream(self, segment_id)
        finally:
            state.open_stream = None
        state.continue_after(self.streamed.following)
        return self.streamed.metadata

    def give_up(self) -> None:
        self.task.streaming.withdraw_permit()

    def following(self) -> _Stream | None:
        """Return the next segment if committed records wait and a permit remains; None if not."""
        permit = self.task.streaming.permit
        if self.streamed is None or self.streamed.is_caught_up or permit is None:
            return None
        return replace(self, permit=permit, begin=self.streamed.following, waited_ms=0)


class StreamLanes(AttemptLanes):
    """Streams all led partitions that are due, one open segment per partition. Thread-safe.

    A stream occupies its slot while its segment is open. It buffers about one part of an upload in
    memory, so the number of slots limits the memory of all streams.
    """

    def __init__(
        self,
        ports: Ports,
        context: AttemptContext,
        *,
        driver_metadata: tuple[DriverProperty, ...] = (),
    ) -> None:
        self._attempts = AttemptRunner(ports, context, kind=AttemptKind.STREAM)
        self._streamer = Streamer(
            ports,
            context.throttle,
            custom_metadata_max_bytes=context.custom_metadata_max_bytes,
        )
        self._ports = ports
        self._driver_metadata = driver_metadata
        self.context = context
        self._metadata = ports.metadata
        self._source = ports.source
        self._clock = ports.clock

    def open_count(self) -> int:
        """Return how many segments are open."""
        return len(self.context.lanes.running())

    def is_any_free(self) -> bool:
        """Return whether another segment can be opened now."""
        return not self.context.lanes.is_full()

    def complete_account(self, task: PartitionTask, lineage: Lineage) -> None:
        """Complete the accounts of offload segments whose end was not recorded.

        Raises the errors of `OffloadAccount.complete`.
        """
        tip = task.topic_id_partition
        self._account(task).complete(lineage, lambda: self.in_flight(tip))

    def offer(
        self, task: PartitionTask, permit: StreamPermit, begin: LogPosition, waited_ms: int
    ) -> bool:
        """Queue the next segment, unless this partition is busy or its history forbids it."""
        return self._attempts.offer(
            _Stream(lanes=self, task=task, permit=permit, begin=begin, waited_ms=waited_ms)
        )

    def stream(self, wanted: _Stream, segment_id: UUID) -> StreamedCopy:
        """Stream one segment. Raises the errors of `Streamer.stream`."""
        task = wanted.task
        tip = task.topic_id_partition
        opened_at_ms = self._clock.monotonic_ms()

        def limits() -> OffloadSettings:
            """Return the limits at the segment's start; the present ones where they are lower.

            A raised limit does not apply, because the recorded deadline does not cover it.
            """
            permit, at_start = task.streaming.permit, wanted.permit.limits
            return at_start if permit is None else at_start.lowered_to(permit.limits)

        def ending(progress: StreamProgress) -> EndReason | None:
            permit = task.streaming.permit if self._attempts.is_wanted(tip) else None
            return end_because(
                progress,
                limits(),
                permit,
                others_wait=self._gives_way(opened_at_ms),
                history_end_offset=task.streaming.history_end_offset,
                history_longest_ms=wanted.timeout_ms // 2,
            )

        def progressed(progress: StreamProgress) -> None:
            task.streaming.open_stream = OpenStream(
                begin_offset=progress.offsets.start_offset,
                end_offset=progress.offsets.end_offset,
                size_bytes=progress.size_bytes,
                opened_at_ms=opened_at_ms,
                is_caught_up=progress.is_caught_up,
            )

        lineage = self._lineage(tip)
        reused_bytes = self.context.metrics.stream_reused_bytes.labels(tip.topic)
        begin_offset = wanted.begin.offset
        return self._streamer.stream(
            StreamOrder(
                lead=task.lead,
                account=self._account(task),
                segment_id=segment_id,
                begin=wanted.begin,
                lineage=lineage,
                earlier=earlier_streams(self._ports, task, begin_offset, lineage, reused_bytes.inc),
                limits=limits,
                waited_ms=wanted.waited_ms,
                stored_from_offset=wanted.permit.stored_from_offset,
                timeout_ms=wanted.timeout_ms,
                stopping=self.context.stopping.is_set,
                leads=lambda: task.leads,
                ending=ending,
                progressed=progressed,
            )
        )

    def _lineage(self, tip: TopicIdPartition) -> Lineage:
        """Return the stored lineage, continued by the lineage of the log.

        Raises RetriableError if they contradict each other.
        """
        stored = self._metadata.partition_state(tip).lineage
        joined = stitch(stored, self._source.local_log(tip).checkpoint)
        if joined.conflict_offset is not None:
            raise RetriableError(
                "cannot stream: the stored lineage and the log contradict each other",
                partition=tip,
                conflict_offset=joined.conflict_offset,
                advice="See 'Leader epochs contradict each other' in docs/operations.md",
            )
        return joined.lineage

    def _account(self, task: PartitionTask) -> OffloadAccount:
        return OffloadAccount(self._ports, task.lead, task.streaming, self._driver_metadata)

    def _gives_way(self, opened_at_ms: int) -> bool:
        opened = (task.streaming.open_stream for task in self._attempts.running_tasks())
        return gives_way(
            opened_at_ms,
            [each.opened_at_ms for each in opened if each is not None and each.is_caught_up],
            self.context.lanes.waiting_count(),
        )
