"""Having what is rolled stored now (PIP-17's manual trigger): requested, awaited, told.

The leaders' managers copy; this only asks them to, past any copy lag, and watches what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from rlmm.events.values import OffloadRequested, PausableTask, TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import FencedError, InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange

_POLL_INTERVAL_MS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProgress:
    """What a leader's manager says: up to where is rolled and stored, and what holds the rest.

    `requested_offset` is the request that it has seen, -1 for none. `requested_end_offset` is the
    end of the last rolled segment wholly before it; None if the manager is of a version that stores
    the segment that holds the position, too.
    """

    rolled_end_offset: int
    stored_end_offset: int
    requested_offset: int
    requested_end_offset: int | None
    blocked: str = ""


class CopyProgressSource(Protocol):
    """Where these words come from."""

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, CopyProgress]:
        """As of the last look at each partition; left out where none tells."""

    def silence(self, tip: TopicIdPartition) -> str:
        """Why `rolled` left a partition out the last time, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadedPartition:
    """A partition of which all is stored below `end_offset`; `segments` are those stored for it."""

    partition: TopicIdPartition
    end_offset: int
    segments: tuple[RemoteLogSegmentMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _OffloadTarget:
    """Up to where a partition was stored at first, and is to be."""

    stored_end_offset: int
    target_offset: int


class Offload:
    """Asks for partitions to be stored. One thread's."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        source: CopyProgressSource,
        clock: Clock,
        *,
        new_id: Callable[[], UUID],
        progress: Callable[[str], None],
    ) -> None:
        self._metadata = metadata
        self._source = source
        self._clock = clock
        self._new_id = new_id
        self._progress = progress

    def offload(
        self,
        policy: TopicPolicy,
        partitions: Iterable[TopicIdPartition],
        *,
        to_offset: int | None,
        timeout_ms: int,
    ) -> tuple[OffloadedPartition, ...]:
        """Return when all rolled segments wholly before `to_offset` are stored; None: all.

        Each partition is requested as soon as its leader's manager has answered. Raises
        InvalidConfigError if copying is paused, RetriableError naming the first that is not stored
        when the time is over.
        """
        if PausableTask.COPY in self._metadata.paused_tasks(policy.topic_id):
            raise InvalidConfigError("copying is paused: resume it first", topic=policy.topic)
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        wanted = tuple(dict.fromkeys(partitions))
        self._progress(f"{policy.topic}: asking the leaders' managers (partitions={len(wanted)})")
        waiting, started = list(wanted), dict[TopicIdPartition, _OffloadTarget]()
        shown: dict[TopicIdPartition, str] = {}
        while True:
            reports = self._source.rolled(policy)
            for tip in waiting:
                if tip in reports and tip not in started:
                    started[tip] = self._begin(tip, reports[tip], to_offset)
            waiting = [tip for tip in waiting if not _is_stored(reports.get(tip), started.get(tip))]
            if not waiting:
                return tuple(self._offloaded(tip, started[tip], reports[tip]) for tip in wanted)
            left = {tip: self._wait_for(tip, reports.get(tip), started.get(tip)) for tip in waiting}
            self._show(left, shown)
            self._pause(deadline_ms, *next(iter(left.items())))

    def _begin(
        self, tip: TopicIdPartition, reported: CopyProgress, to_offset: int | None
    ) -> _OffloadTarget:
        """Request the partition, unless all is stored."""
        target = reported.rolled_end_offset
        if to_offset is not None:
            target = min(to_offset, target)
        if reported.stored_end_offset < target:
            self._request(tip, target)
        return _OffloadTarget(stored_end_offset=reported.stored_end_offset, target_offset=target)

    def _request(self, tip: TopicIdPartition, offset: int) -> None:
        current = self._metadata.partition_state(tip).offload_requested_offset
        if current is not None and current >= offset:
            return
        event = OffloadRequested(event_id=self._new_id(), topic_id_partition=tip, offset=offset)
        result = self._metadata.publish(event)
        if not result.accepted:
            raise FencedError("request refused", partition=tip, reason=result.refusal)

    def _show(
        self, states: Mapping[TopicIdPartition, str], shown: dict[TopicIdPartition, str]
    ) -> None:
        """Report what is not as it was shown."""
        for tip, state in states.items():
            if shown.get(tip) != state:
                shown[tip] = state
                self._progress(f"{tip.topic}:{tip.partition} {state}")

    def _wait_for(
        self, tip: TopicIdPartition, reported: CopyProgress | None, started: _OffloadTarget | None
    ) -> str:
        if reported is None or started is None:
            return f"waits for its leader's manager: {self._source.silence(tip)}"
        target = _target(reported, started)
        blocked = (
            f", blocked: {reported.blocked}"
            if reported.blocked and reported.requested_offset >= started.target_offset
            else ""
        )
        return f"stored to {reported.stored_end_offset} of {target}{blocked}"

    def _offloaded(
        self, tip: TopicIdPartition, started: _OffloadTarget, reported: CopyProgress
    ) -> OffloadedPartition:
        start_offset = started.stored_end_offset
        end_offset = min(started.target_offset, reported.stored_end_offset)
        wanted = OffsetRange(start_offset=start_offset, end_offset=max(start_offset, end_offset))
        records = self._metadata.list_remote_log_segments(
            tip, states=(SegmentState.COPY_SEGMENT_FINISHED,), from_offset=start_offset
        )
        segments = tuple(r.metadata for r in records if r.metadata.offsets.overlaps(wanted))
        return OffloadedPartition(partition=tip, end_offset=end_offset, segments=segments)

    def _pause(self, deadline_ms: int, tip: TopicIdPartition, state: str) -> None:
        if self._clock.monotonic_ms() >= deadline_ms:
            raise RetriableError("not stored in time", partition=tip, state=state)
        self._clock.sleep_ms(_POLL_INTERVAL_MS)


def _is_stored(reported: CopyProgress | None, started: _OffloadTarget | None) -> bool:
    if reported is None or started is None:
        return False
    return reported.stored_end_offset >= _target(reported, started)


def _target(reported: CopyProgress, started: _OffloadTarget) -> int:
    """Where the last segment wholly before the position ends, once the manager has seen it."""
    if reported.requested_end_offset is None or reported.requested_offset < started.target_offset:
        return started.target_offset
    return min(started.target_offset, reported.requested_end_offset)
