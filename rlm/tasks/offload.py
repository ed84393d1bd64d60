"""Having what is rolled stored now (PIP-17's manual trigger): requested, awaited, told.

The leaders' managers copy; this only asks them to, past any copy lag, and watches what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from rlmm.events import OffloadRequested, PausableTask, TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import FencedError, InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange

_POLL_INTERVAL_MS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledWord:
    """What a leader's manager says: up to where is rolled and stored, and what holds the rest.

    `requested_offset` is the request that it has seen, -1 for none.
    """

    rolled_end_offset: int
    stored_end_offset: int
    requested_offset: int
    held: str = ""


class RolledWords(Protocol):
    """Where these words come from."""

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, RolledWord]:
        """As of the last look at each partition; left out where none tells."""

    def silence(self, tip: TopicIdPartition) -> str:
        """Why `rolled` left a partition out the last time, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloaded:
    """A partition of which all is stored below `end_offset`; `segments` are those stored for it."""

    partition: TopicIdPartition
    end_offset: int
    segments: tuple[RemoteLogSegmentMetadata, ...]


class Offload:
    """Asks for partitions to be stored. One thread's."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        words: RolledWords,
        clock: Clock,
        *,
        new_id: Callable[[], UUID],
        progress: Callable[[str], None],
    ) -> None:
        self._metadata = metadata
        self._words = words
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
    ) -> tuple[Offloaded, ...]:
        """Return when all rolled segments that begin below `to_offset` are stored; None: all.

        Raises InvalidConfigError if copying is paused, RetriableError
        naming the first that is not stored when the time is over.
        """
        if PausableTask.COPY in self._metadata.paused_tasks(policy.topic_id):
            raise InvalidConfigError("copying is paused: resume it first", topic=policy.topic)
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        waiting = dict.fromkeys(partitions)
        self._progress(f"{policy.topic}: asking the leaders' managers (partitions={len(waiting)})")
        begun = self._await_words(policy, waiting, deadline_ms)
        targets = {tip: _target(word, to_offset) for tip, word in begun.items()}
        for tip, target in targets.items():
            if begun[tip].stored_end_offset < target:
                self._request(tip, target)
        self._await_stored(policy, targets, deadline_ms)
        return tuple(
            Offloaded(
                partition=tip,
                end_offset=target,
                segments=self._segments(tip, begun[tip].stored_end_offset, target),
            )
            for tip, target in targets.items()
        )

    def _await_words(
        self,
        policy: TopicPolicy,
        partitions: Iterable[TopicIdPartition],
        deadline_ms: int,
    ) -> Mapping[TopicIdPartition, RolledWord]:
        shown: dict[TopicIdPartition, str] = {}
        while True:
            said = self._words.rolled(policy)
            silent = {tip: self._silence(tip) for tip in partitions if tip not in said}
            if not silent:
                return {tip: said[tip] for tip in partitions}
            self._show(silent, shown)
            self._pause(deadline_ms, *next(iter(silent.items())))

    def _request(self, tip: TopicIdPartition, offset: int) -> None:
        current = self._metadata.partition_state(tip).offload_requested_offset
        if current is not None and current >= offset:
            return
        event = OffloadRequested(event_id=self._new_id(), topic_id_partition=tip, offset=offset)
        result = self._metadata.publish(event)
        if not result.accepted:
            raise FencedError("request refused", partition=tip, reason=result.refusal)

    def _await_stored(
        self, policy: TopicPolicy, targets: Mapping[TopicIdPartition, int], deadline_ms: int
    ) -> None:
        shown: dict[TopicIdPartition, str] = {}
        while True:
            said = self._words.rolled(policy)
            left = {
                tip: self._wait_for(tip, said.get(tip), target)
                for tip, target in targets.items()
                if tip not in said or said[tip].stored_end_offset < target
            }
            if not left:
                return
            self._show(left, shown)
            self._pause(deadline_ms, *next(iter(left.items())))

    def _show(
        self, states: Mapping[TopicIdPartition, str], shown: dict[TopicIdPartition, str]
    ) -> None:
        """Report what is not as it was shown."""
        for tip, state in states.items():
            if shown.get(tip) != state:
                shown[tip] = state
                self._progress(f"{tip.topic}:{tip.partition} {state}")

    def _silence(self, tip: TopicIdPartition) -> str:
        return f"waits for its leader's manager: {self._words.silence(tip)}"

    def _wait_for(self, tip: TopicIdPartition, word: RolledWord | None, target: int) -> str:
        if word is None:
            return self._silence(tip)
        held = f", held: {word.held}" if word.held and word.requested_offset >= target else ""
        return f"stored to {word.stored_end_offset} of {target}{held}"

    def _segments(
        self, tip: TopicIdPartition, start_offset: int, end_offset: int
    ) -> tuple[RemoteLogSegmentMetadata, ...]:
        wanted = OffsetRange(start_offset=start_offset, end_offset=max(start_offset, end_offset))
        records = self._metadata.list_remote_log_segments(
            tip, states=(SegmentState.COPY_SEGMENT_FINISHED,), from_offset=start_offset
        )
        return tuple(r.metadata for r in records if r.metadata.offsets.overlaps(wanted))

    def _pause(self, deadline_ms: int, tip: TopicIdPartition, words: str) -> None:
        if self._clock.monotonic_ms() >= deadline_ms:
            raise RetriableError("not stored in time", partition=tip, state=words)
        self._clock.sleep_ms(_POLL_INTERVAL_MS)


def _target(word: RolledWord, to_offset: int | None) -> int:
    if to_offset is None:
        return word.rolled_end_offset
    return min(to_offset, word.rolled_end_offset)
