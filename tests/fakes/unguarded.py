"""Managers without one guard each, which a test or a simulation must detect.

Each differs from `rlm`'s manager by one subclass that is passed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.facts.local_log import LocalLog, LocalSegment, LogFileSize, LogPosition
from rlm.source.log_source import LogSource, OpenPart, OpenSegment
from rlm.tasks.context.ports import Ports
from rlm.tasks.deleting.trimmer import Trimmer, TrimPlan
from rlmm.events.event import Event
from rlmm.events.segment import SegmentEvent
from rlmm.spi import PublishResult, SegmentRecord
from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange
from tests.fakes.metadata import FreshMetadata
from tests.fakes.process import FakeSystems, Process
from tests.fakes.share_groups import MemoryShareGroups

STARTED = SegmentState.COPY_SEGMENT_STARTED
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
DELETE_STARTED = SegmentState.DELETE_SEGMENT_STARTED


class ViewedMetadata(FreshMetadata):
    """Shows segments differently from the metadata."""

    def list_remote_log_segments(
        self,
        topic_id_partition: TopicIdPartition,
        *,
        states: Sequence[SegmentState] | None = None,
        from_offset: int = 0,
        leader_epoch: int | None = None,
    ) -> Iterator[SegmentRecord]:
        found = super().list_remote_log_segments(
            topic_id_partition,
            states=tuple(SegmentState),
            from_offset=from_offset,
            leader_epoch=leader_epoch,
        )
        wanted = states or tuple(set(SegmentState) - {SegmentState.DELETE_SEGMENT_FINISHED})
        shown = [replace(r, metadata=self.shown(r.metadata)) for r in found]
        return iter([r for r in shown if r.metadata.state in wanted])

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        return metadata


class UnfinishedCounts(ViewedMetadata):
    """Metadata without the rule that only a finished copy counts as stored."""

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        return replace(metadata, state=FINISHED) if metadata.state is STARTED else metadata


class HolesCount(ViewedMetadata):
    """Metadata without the rule that the stored range has no hole: the furthest end counts."""

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        return replace(
            metadata,
            offsets=OffsetRange(start_offset=0, end_offset=metadata.offsets.end_offset),
            segment_leader_epochs=Lineage.of((0, 0)),
        )


class ExpectsAnything(FreshMetadata):
    """Metadata without the rule that a deletion names the segment's state when it was decided."""

    def publish(self, event: Event) -> PublishResult:
        result = super().publish(event)
        if result.accepted or not isinstance(event, SegmentEvent):
            return result
        current = self.segment(event.metadata.segment_id)
        if event.metadata.state is not DELETE_STARTED or current is None:
            return result
        fresh_id = UUID(int=event.event_id.int + (1 << 64))
        return super().publish(
            replace(event, event_id=fresh_id, expected_state=current.metadata.state)
        )


class UnconfirmedTrimmer(Trimmer):
    """A trimmer that does not check the leader and the newest claim a moment before the cut."""

    def _confirm(
        self, plans: Mapping[TopicIdPartition, TrimPlan]
    ) -> Mapping[TopicIdPartition, TrimPlan]:
        self._broker.offsets({tip: plan.writer.leader_epoch for tip, plan in plans.items()})
        return plans


class UnrecordedTrimmer(Trimmer):
    """A trimmer that writes no record of the trim before the cut."""

    def _record(self, tip: TopicIdPartition, plan: TrimPlan) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class UnverifiedSegment:
    data: LogSegmentData
    max_timestamp_ms: int

    def verify_unchanged(self) -> None:
        """Check nothing."""


class UnverifiedSource(LogSource):
    """A log source that does not check the file after its last byte."""

    def __init__(self, inner: LogSource) -> None:
        self._inner = inner

    def partitions(self) -> tuple[TopicIdPartition, ...]:
        return self._inner.partitions()

    def local_log(self, topic_id_partition: TopicIdPartition) -> LocalLog:
        return self._inner.local_log(topic_id_partition)

    def file_sizes(
        self, topic_id_partition: TopicIdPartition, from_offset: int
    ) -> tuple[LogFileSize, ...]:
        return self._inner.file_sizes(topic_id_partition, from_offset)

    def open_segment(
        self,
        topic_id_partition: TopicIdPartition,
        segment: LocalSegment,
        lineage: Lineage,
        last_stable_offset: int,
    ) -> AbstractContextManager[OpenSegment]:
        return self._open(
            self._inner.open_segment(topic_id_partition, segment, lineage, last_stable_offset)
        )

    def open_part(
        self,
        topic_id_partition: TopicIdPartition,
        begin: LogPosition,
        end_offset: int,
        lineage: Lineage,
        *,
        max_bytes: int,
    ) -> AbstractContextManager[OpenPart]:
        return self._inner.open_part(
            topic_id_partition, begin, end_offset, lineage, max_bytes=max_bytes
        )

    @contextmanager
    def _open(self, opening: AbstractContextManager[OpenSegment]) -> Iterator[OpenSegment]:
        with opening as opened:
            yield UnverifiedSegment(data=opened.data, max_timestamp_ms=opened.max_timestamp_ms)


class WithUnfinishedCounting(Process):
    metadata_type = UnfinishedCounts


class WithHolesCounting(Process):
    metadata_type = HolesCount


class WithoutExpectedState(Process):
    metadata_type = ExpectsAnything


class WithoutConfirmation(Process):
    def make_trimmer(self) -> Trimmer:
        return UnconfirmedTrimmer(self.ports, plan_max_age_ms=self.settings.plan_max_age_ms)


class WithoutTrimOnRecord(Process):
    def make_trimmer(self) -> Trimmer:
        return UnrecordedTrimmer(self.ports, plan_max_age_ms=self.settings.plan_max_age_ms)


class WithoutVerification(Process):
    def make_source(self, external: FakeSystems) -> LogSource:
        return UnverifiedSource(external.source)


class WithoutShareGroups(Process):
    """A manager that does not check where share groups start."""

    def _make_ports(self, external: FakeSystems) -> Ports:
        return super()._make_ports(replace(external, share_groups=MemoryShareGroups()))
