"""Requests an offload and waits for it (PIP-17's and PIP-76's manual trigger).

The leaders' managers copy rolled segments, or complete the open segment of a stream. A request
overrides any copy lag. This module writes requests and follows the managers' reports. It also
requests cycles, because managers read requests and report progress only in their cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from rlmm.events.offload import OffloadRequested
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.events.policy import TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import FencedError, InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange

_POLL_INTERVAL_MS = 500
_WAKE_INTERVAL_MS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProgress:
    """Represents a manager's report of a partition's rolled end, stored end, and blocked copies.

    For a stream, `rolled_end_offset` is where the committed records end. `requested_offset` is the
    newest request that the manager has read, -1 if there is none. `requested_end_offset` is the end
    of the last rolled segment wholly before that offset. Older managers do not report it: they also
    store the segment that contains the requested offset. `lag_segments` and `lag_bytes` cover all
    rolled segments that are not stored; None if unknown.
    """

    rolled_end_offset: int
    stored_end_offset: int
    requested_offset: int
    requested_end_offset: int | None
    blocked: str = ""
    lag_segments: int | None = None
    lag_bytes: int | None = None


class CopyProgressSource(Protocol):
    """Reads the copy progress from the leaders' managers."""

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, CopyProgress]:
        """Return the partitions' progress at the last cycles; omit those of silent managers."""

    def silence(self, tip: TopicIdPartition) -> str:
        """Return why the last `rolled` omitted a partition, and what to do."""

    def wake(self) -> None:
        """Request a cycle now from the managers of the last `rolled`; ignore failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadedPartition:
    """Represents a partition that is stored below `end_offset`, and the offloaded segments."""

    partition: TopicIdPartition
    end_offset: int
    segments: tuple[RemoteLogSegmentMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRequest:
    """Represents the request for a partition's rolled segments wholly before `offset`.

    If all of them were already stored or requested, no new request was written.
    """

    partition: TopicIdPartition
    offset: int
    stored_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _OffloadTarget:
    """Represents the stored end before the offload, and the end to reach."""

    stored_end_offset: int
    target_offset: int


class Offload:
    """Requests offloads and waits for them. Not thread-safe."""

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
        self._woken_ms: int | None = None

    def offload(
        self,
        policy: TopicPolicy,
        partitions: Iterable[TopicIdPartition],
        *,
        to_offset: int | None,
        timeout_ms: int,
    ) -> tuple[OffloadedPartition, ...]:
        """Request the segments wholly before `to_offset`, and wait until they are stored.

        If `to_offset` is None, requests all rolled segments. For a stream, the records that are
        committed at that time count as rolled. Requests the offload of each partition as soon as
        its leader's manager answers.

        Raises InvalidConfigError if copying is paused, FencedError if the metadata refuses a
        request, and RetriableError with the first partition that is not stored in time.
        """
        self._require_copying(policy)
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        wanted = tuple(dict.fromkeys(partitions))
        self._progress(f"{policy.topic}: asking the leaders' managers (partitions={len(wanted)})")
        waiting, started = list(wanted), dict[TopicIdPartition, _OffloadTarget]()
        done: dict[TopicIdPartition, OffloadedPartition] = {}
        shown: dict[TopicIdPartition, str] = {}
        while True:
            reports = self._source.rolled(policy)
            for tip in waiting:
                if tip in reports and tip not in started:
                    started[tip] = self._begin(tip, reports[tip], to_offset)
            for tip in waiting:
                if _is_stored(reports.get(tip), started.get(tip)):
                    done[tip] = self._offloaded(tip, started[tip], reports[tip])
            waiting = [tip for tip in waiting if tip not in done]
            if not waiting:
                return tuple(done[tip] for tip in wanted)
            self._wake_at_intervals()
            left = {tip: self._wait_for(tip, reports.get(tip), started.get(tip)) for tip in waiting}
            self._show(left, shown)
            self._pause(deadline_ms, *next(iter(left.items())))

    def request(
        self,
        policy: TopicPolicy,
        partitions: Iterable[TopicIdPartition],
        *,
        to_offset: int | None,
    ) -> tuple[OffloadRequest, ...]:
        """Request an offload as `offload` does, but return without waiting for the copies.

        Raises InvalidConfigError and FencedError as `offload` does. Raises RetriableError, with
        nothing requested, if the manager of a partition's leader does not answer: only that manager
        knows the rolled end.
        """
        self._require_copying(policy)
        wanted = tuple(dict.fromkeys(partitions))
        reports = self._source.rolled(policy)
        for tip in wanted:
            if tip not in reports:
                raise RetriableError(
                    "cannot request an offload: the rolled end is unknown; nothing was requested",
                    partition=tip,
                    reason=self._source.silence(tip),
                    advice="Run the command again when the manager answers",
                )
        started = {tip: self._begin(tip, reports[tip], to_offset) for tip in wanted}
        self._source.wake()
        return tuple(
            OffloadRequest(
                partition=tip,
                offset=target.target_offset,
                stored_end_offset=target.stored_end_offset,
            )
            for tip, target in started.items()
        )

    def _wake_at_intervals(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._woken_ms is None or now_ms - self._woken_ms >= _WAKE_INTERVAL_MS:
            self._woken_ms = now_ms
            self._source.wake()

    def _require_copying(self, policy: TopicPolicy) -> None:
        if PausableTask.COPY in paused_tasks(self._metadata, policy.topic_id):
            raise InvalidConfigError(
                "cannot offload: copying is paused",
                topic=policy.topic,
                advice="First resume copying with `rlm resume`",
            )

    def _begin(
        self, tip: TopicIdPartition, reported: CopyProgress, to_offset: int | None
    ) -> _OffloadTarget:
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
            raise FencedError(
                "cannot request an offload: the metadata refuses it",
                partition=tip,
                reason=result.refusal,
            )

    def _show(
        self, states: Mapping[TopicIdPartition, str], shown: dict[TopicIdPartition, str]
    ) -> None:
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
            raise RetriableError(
                "cannot wait longer: the offload is not complete in time",
                partition=tip,
                state=state,
                advice="The request stays: `rlm offload-status` shows its progress",
            )
        self._clock.sleep_ms(_POLL_INTERVAL_MS)


def _is_stored(reported: CopyProgress | None, started: _OffloadTarget | None) -> bool:
    if reported is None or started is None:
        return False
    return reported.stored_end_offset >= _target(reported, started)


def _target(reported: CopyProgress, started: _OffloadTarget) -> int:
    """Return the end of the last segment to store; the requested offset if the end is unknown."""
    if reported.requested_end_offset is None or reported.requested_offset < started.target_offset:
        return started.target_offset
    return min(started.target_offset, reported.requested_end_offset)
