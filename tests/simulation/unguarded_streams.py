"""Simulated managers that lack one guard of streams each (PIP-76), and the rule it enforces."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from itertools import count
from uuid import UUID

from rlm.broker.partition_results import PartitionResults
from rlm.facts.local_log import LogPosition
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.leftovers import unfenced_streams
from rlm.policy.plan import DeleteSegment, Plan
from rlm.policy.stream.permit import StreamPermit
from rlm.policy.view import PartitionView
from rlm.tasks.context.lanes import Job, Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.attempt_lanes import AttemptContext
from rlm.tasks.copying.stream_lane import StreamLanes
from rlm.tasks.copying.streamer import StreamedCopy, Streamer, StreamOrder
from rlm.tasks.cycle.partition_views import PartitionViews
from rlm.tasks.deleting.expirer import Expirer
from rlm.tasks.deleting.expiry_lane import ExpiryLanes
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.offload_segment import offload_segments
from rlmm.events.policy import TopicPolicy
from rlmm.state.offload_segments import DriverProperty
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange
from tests.fakes.process import FakeSystems, ProcessSettings
from tests.fakes.unguarded import ViewedMetadata
from tests.simulation.processes import LaggingMetadata, SimulatedProcess, StrictLanes

_FINISHED = SegmentState.COPY_SEGMENT_FINISHED


class _ManyPerKey(StrictLanes):
    """Runs any number of jobs of one key."""

    _numbers = count()

    def offer(self, key: Hashable, job: Job) -> bool:
        return super().offer((key, next(self._numbers)), job)


class _AtOnce(StreamLanes):
    """Opens a segment while an earlier one of the partition is open."""

    _open: frozenset[UUID] = frozenset()

    def is_busy(self, tip: TopicIdPartition) -> bool:
        del tip
        return False

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        del tip
        return self._open

    def stream(self, wanted: object, segment_id: UUID) -> StreamedCopy:
        self._open |= {segment_id}
        try:
            return super().stream(wanted, segment_id)  # type: ignore[arg-type]  # private there
        finally:
            self._open -= {segment_id}


class _UnlimitedStreamer(Streamer):
    """Uses again whatever an earlier stream has sent."""

    def stream(self, order: StreamOrder) -> StreamedCopy:
        if order.earlier is not None:
            order = replace(order, earlier=replace(order.earlier, end_offset=None))
        return super().stream(order)


class _UnlimitedReuse(StreamLanes):
    """Streams without a limit on what is used again."""

    def __init__(
        self,
        ports: Ports,
        context: AttemptContext,
        *,
        driver_metadata: tuple[DriverProperty, ...] = (),
    ) -> None:
        super().__init__(ports, context, driver_metadata=driver_metadata)
        self._streamer = _UnlimitedStreamer(
            ports, context.throttle, custom_metadata_max_bytes=context.custom_metadata_max_bytes
        )


class _AnyHistory(StreamLanes):
    """Continues after the last stored segment, even if an election cut it off."""

    def offer(
        self, task: PartitionTask, permit: StreamPermit, begin: LogPosition, waited_ms: int
    ) -> bool:
        tip = task.topic_id_partition
        stored = self._metadata.list_remote_log_segments(tip, states=(_FINISHED,))
        end_offset = max((record.metadata.offsets.end_offset for record in stored), default=0)
        if end_offset > begin.offset:
            begin = LogPosition(offset=end_offset)
        return super().offer(task, permit, begin, waited_ms)


class _OpenCounts(ViewedMetadata, LaggingMetadata):
    """Counts the parts that an open segment has sent."""

    sent_to: Callable[[TopicIdPartition], int | None] | None = None

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        tip, start_offset = metadata.topic_id_partition, metadata.offsets.start_offset
        end_offset = None if self.sent_to is None else self.sent_to(tip)
        if not metadata.is_open or end_offset is None or end_offset <= start_offset:
            return metadata
        offsets = OffsetRange(start_offset=start_offset, end_offset=end_offset)
        epochs = self.partition_state(tip).lineage.within(offsets)
        return replace(
            metadata,
            state=_FINISHED,
            offsets=offsets,
            segment_leader_epochs=epochs,
            is_open=False,
        )


class _FirstLedger(ExpiryLanes):
    """Deletes an object of several ledgers when the first of these are deleted."""

    def offer(self, task: PartitionTask, view: PartitionView, plan: Plan) -> None:
        log_start_offset = view.state.log_start_offset or 0
        positions = {
            each.id: (each.begin, each.end)
            for each in offload_segments(self._metadata, view.topic_id_partition)
        }
        early = []
        for record in view.segments:
            begin, end = positions.get(record.metadata.segment_id.id, (None, None))
            if begin is None or end is None or record.metadata.state is not _FINISHED:
                continue
            if begin.ledger_id < end.ledger_id <= log_start_offset < end.offset:
                early.append(DeleteSegment(record=record, reason="its first ledgers are deleted"))
        super().offer(task, view, replace(plan, deletions=(*plan.deletions, *early)))


class _EarlyParts(ExpiryLanes):
    """Deletes the parts of a merge that is not finished."""

    def offer(self, task: PartitionTask, view: PartitionView, plan: Plan) -> None:
        started = [
            record.metadata.offsets
            for record in view.segments
            if record.metadata.state is SegmentState.COPY_SEGMENT_STARTED
            and not record.metadata.is_open
        ]
        early = [
            DeleteSegment(record=record, reason="a merge has begun")
            for record in view.segments
            if record.metadata.state is _FINISHED
            and any(_has(merged, record.metadata.offsets) for merged in started)
        ]
        super().offer(task, view, replace(plan, deletions=(*plan.deletions, *early)))


def _has(merged: OffsetRange, offsets: OffsetRange) -> bool:
    is_within = merged.start_offset <= offsets.start_offset <= offsets.end_offset
    return is_within and offsets.end_offset <= merged.end_offset and merged != offsets


class _NoGateways(PartitionViews):
    """Decides as if there were no gateways."""

    def of(
        self,
        task: PartitionTask,
        policy: TopicPolicy,
        offsets: PartitionResults[PartitionOffsets],
    ) -> PartitionView:
        return replace(super().of(task, policy, offsets), gateways=())


class _AnyCopies(PartitionViews):
    """Treats streams of other processes as copies, which may finish until their deadline."""

    def of(
        self,
        task: PartitionTask,
        policy: TopicPolicy,
        offsets: PartitionResults[PartitionOffsets],
    ) -> PartitionView:
        view = super().of(task, policy, offsets)
        copies = {
            each: replace(each, metadata=replace(each.metadata, is_open=False))
            for each in unfenced_streams(view)
        }
        return replace(view, segments=tuple(copies.get(each, each) for each in view.segments))


class _AtOnceExpirer(Expirer):
    """Deletes objects without checking the gateways."""

    def _may_be_served(self, action: DeleteSegment) -> bool:
        del action
        return False


class WithPartsDeletedEarly(SimulatedProcess):
    """Merged first: the parts of a merge are deleted after the merged segment is finished."""

    expiries_type = _EarlyParts


class WithoutGateways(SimulatedProcess):
    """Objects stay until live gateways have applied the end of their segment's life."""

    views_type = _NoGateways

    def make_expirer(self) -> Expirer:
        return _AtOnceExpirer(
            self.ports,
            metrics=self.metrics,
            max_attempts=self.settings.max_delete_attempts,
            first_pause_ms=self.settings.first_pause_ms,
        )


class WithStreamsAtOnce(SimulatedProcess):
    """Finish first: a segment of a partition starts only after the earlier one is closed."""

    streams_type = _AtOnce

    def make_lanes(self, name: str) -> Lanes:
        return _ManyPerKey(self.jobs, name) if name == "stream" else super().make_lanes(name)


class WithoutFences(SimulatedProcess):
    """Finish first: an earlier leader's stream is fenced before the next one begins."""

    views_type = _AnyCopies


class WithStreamsAfterAnyHistory(SimulatedProcess):
    """Seal at lineage: a new leader continues after the stored segments of its log's lineage."""

    streams_type = _AnyHistory


class WithUnlimitedReuse(SimulatedProcess):
    """Seal at lineage: an unfinished stream is used again only as far as both logs agree."""

    streams_type = _UnlimitedReuse


class WithOpenStreamsCounting(SimulatedProcess):
    """Stored means stored: the parts of an open upload do not count."""

    metadata_type = _OpenCounts

    def __init__(
        self, external: FakeSystems, settings: ProcessSettings, witness: Callable[..., None]
    ) -> None:
        super().__init__(external, settings, witness)
        assert isinstance(self.ports.metadata, _OpenCounts)
        self.ports.metadata.sent_to = self._sent_to

    def _sent_to(self, tip: TopicIdPartition) -> int | None:
        for task in self.leadership.tasks():
            opened = task.streaming.open_stream
            if task.topic_id_partition == tip and opened is not None:
                return opened.end_offset
        return None


class WithFirstLedgerDeleting(SimulatedProcess):
    """Scenario 125: an object is deleted with the last of its ledgers."""

    expiries_type = _FirstLedger
