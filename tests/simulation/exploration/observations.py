"""The observations of a manager, as a digest: equal observations mean an equal state.

A manager is deterministic: its memory is a function of the answers that it got, in their order, and
of nothing else. So this module records everything that a manager can ask: through its effects, its
metadata, the clock, and the log dirs. Each manager has its own source of ids, so ids need no
record. Metadata is recorded only when it is asked for, because every question first reads the topic
to its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TypeVar

from rlm.facts.local_log import LocalLog, LocalSegment, LogFileSize, LogPosition
from rlm.source.log_source import LogSource, OpenPart, OpenSegment
from rlmm.events.event import Event
from rlmm.events.gaps import GapsRecorded
from rlmm.events.local_trim import LocalLogTrimmed
from rlmm.events.log_start import LogStartAdvanced
from rlmm.events.pause import PAUSES
from rlmm.events.policy import POLICIES
from rlmm.events.rows import ClusterRows
from rlmm.record_keys import RecordKind
from rlmm.spi import PublishResult, SegmentRecord
from rlmm.state.partition_state import PartitionState
from rlmm.topic.event_topic import PublishedPosition
from rsm.segment.clock import Clock
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.metadata import SegmentState
from tests.fakes.effects import Act
from tests.fakes.metadata import FreshMetadata
from tests.fakes.replica import Replica
from tests.simulation.exploration.world_state import replica_state

_AnswerT = TypeVar("_AnswerT")
_TOPIC_QUESTIONS = frozenset({"ensure", "poll", "end_offsets"})
_SUPERSEDABLE = (
    *(RecordKind.TRIM, RecordKind.LOG_START),
    *(RecordKind.LOG_START_REQUEST, RecordKind.GAPS),
)


class Observations:
    """The observations of one manager, whose actors share its memory; `actor` runs now."""

    def __init__(self) -> None:
        self.actor = ""
        self._digest = blake2b(digest_size=16)

    def note(self, what: object) -> None:
        """Add an answer whose `repr` shows all of it."""
        self._digest.update(f"{self.actor}:{what!r};".encode())

    def note_act(self, act: Act) -> None:
        """Add an act; earlier observations decide its subject.

        The position of a written record, and the records read from the topic, are no answers by
        themselves.
        """
        if act.error is not None:
            self.note((act.name, type(act.error).__name__, str(act.error)))
        elif act.name.startswith("publish "):
            self.note(act.name)
        elif act.name not in _TOPIC_QUESTIONS:
            self.note((act.name, act.answer))

    def digest(self) -> bytes:
        return self._digest.digest()


class ObservedClock(Clock):
    """Records every reading of a clock."""

    def __init__(self, inner: Clock, observations: Observations) -> None:
        self._inner = inner
        self.observations = observations

    def wall_ms(self) -> int:
        now_ms = self._inner.wall_ms()
        self.observations.note(now_ms)
        return now_ms

    def monotonic_ms(self) -> int:
        now_ms = self._inner.monotonic_ms()
        self.observations.note(now_ms)
        return now_ms

    def sleep_ms(self, duration_ms: int) -> None:
        self._inner.sleep_ms(duration_ms)


class ObservedMetadata(FreshMetadata):
    """Records every answer, without the offsets of records in the topic."""

    def publish(self, event: Event) -> PublishResult:
        return self._noted(super().publish(event))

    def partition_state(self, topic_id_partition: TopicIdPartition) -> PartitionState:
        return self._noted(super().partition_state(topic_id_partition))

    def segment(self, segment_id: RemoteLogSegmentId) -> SegmentRecord | None:
        found = super().segment(segment_id)
        self._noted(found and replace(found, changed_at=None))
        return found

    def list_remote_log_segments(
        self,
        topic_id_partition: TopicIdPartition,
        *,
        states: Sequence[SegmentState] | None = None,
        from_offset: int = 0,
        leader_epoch: int | None = None,
    ) -> Iterator[SegmentRecord]:
        found = tuple(
            super().list_remote_log_segments(
                topic_id_partition,
                states=states,
                from_offset=from_offset,
                leader_epoch=leader_epoch,
            )
        )
        self._noted([replace(record, changed_at=None) for record in found])
        return iter(found)

    def cluster_values(self, rows: ClusterRows[_AnswerT]) -> tuple[_AnswerT, ...]:
        found = super().cluster_values(rows)
        return self._noted(found) if _is_noted(rows) else found

    def cluster_value(self, rows: ClusterRows[_AnswerT], subject: bytes) -> _AnswerT | None:
        found = super().cluster_value(rows, subject)
        return self._noted(found) if _is_noted(rows) else found

    def broker_time_ms(self) -> int:
        return self._noted(super().broker_time_ms())

    def cluster_time_ms(self) -> int:
        return self._noted(super().cluster_time_ms())

    def _remove_superseded(self, event: Event, written: PublishedPosition) -> None:
        if isinstance(event, LocalLogTrimmed | LogStartAdvanced | GapsRecorded):
            tip = event.topic_id_partition
            for kind in _SUPERSEDABLE:
                self._noted(list(self._cache.superseded_keys(tip, kind, written.offset)))
        super()._remove_superseded(event, written)

    def _noted(self, answer: _AnswerT) -> _AnswerT:
        assert isinstance(self._clock, ObservedClock)
        self._clock.observations.note(answer)
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _ObservedSegment:
    data: LogSegmentData
    max_timestamp_ms: int
    opened: OpenSegment
    observations: Observations

    def verify_unchanged(self) -> None:
        try:
            self.opened.verify_unchanged()
        except BaseException as error:
            self.observations.note(str(error))
            raise


class ObservedSource(LogSource):
    """Records all that log dirs show; for an open segment, the whole replica."""

    def __init__(
        self,
        inner: LogSource,
        replicas: dict[TopicIdPartition, Replica],
        observations: Observations,
    ) -> None:
        self._inner = inner
        self._replicas = replicas
        self._observations = observations

    def partitions(self) -> tuple[TopicIdPartition, ...]:
        found = self._inner.partitions()
        self._observations.note(found)
        return found

    def local_log(self, topic_id_partition: TopicIdPartition) -> LocalLog:
        found = self._inner.local_log(topic_id_partition)
        self._observations.note(found)
        return found

    def file_sizes(
        self, topic_id_partition: TopicIdPartition, from_offset: int
    ) -> tuple[LogFileSize, ...]:
        found = self._inner.file_sizes(topic_id_partition, from_offset)
        self._observations.note(found)
        return found

    def open_segment(
        self,
        topic_id_partition: TopicIdPartition,
        segment: LocalSegment,
        lineage: Lineage,
        last_stable_offset: int,
    ) -> AbstractContextManager[OpenSegment]:
        self._observations.note(replica_state(self._replicas[topic_id_partition]))
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
        self._observations.note(replica_state(self._replicas[topic_id_partition]))
        return self._inner.open_part(
            topic_id_partition, begin, end_offset, lineage, max_bytes=max_bytes
        )

    @contextmanager
    def _open(self, opening: AbstractContextManager[OpenSegment]) -> Iterator[OpenSegment]:
        with opening as opened:
            yield _ObservedSegment(
                data=opened.data,
                max_timestamp_ms=opened.max_timestamp_ms,
                opened=opened,
                observations=self._observations,
            )


def _is_noted(rows: object) -> bool:
    return rows is POLICIES or rows is PAUSES
