"""Writes to the metadata topic without an answer: some are written, now or late, and some never.

The request of a record that was not written may still arrive, even after its process has ended. It
arrives before the host stops sending the data of a closed connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rlmm.known_writes import barrier_key
from rlmm.positions import TopicRecord
from rlmm.topic.event_topic import PublishedPosition, UnknownResultError
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.clock import Clock
from tests.fakes.effects import Effects
from tests.fakes.seams import SeamTopic

LATE_MS = 120_000


class RepeatedWriteError(BaseException):
    """A process wrote although it did not know the result of an earlier write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A record that may still be written until `deadline_ms`."""

    key: bytes
    value: bytes | None
    deadline_ms: int


@dataclass(kw_only=True)
class Requests:
    """Requests of one process that are sent but not written; they outlive the process."""

    on_the_way: list[Request] = field(default_factory=list)


class UnansweredTopic(SeamTopic):
    """One process's topic of one metadata partition; checks that no write is repeated blindly.

    Raises RepeatedWriteError if anything but a barrier is written while a result is unknown. The
    result is known when the process has read back a barrier that was written later.
    """

    def __init__(self, log: MemoryLog, effects: Effects, clock: Clock, requests: Requests) -> None:
        super().__init__(MemoryTopic(log), effects, clock)
        self._log = log
        self._now = clock
        self._requests = requests
        self._has_unknown = False
        self._read_to = -1
        self._barrier_offset: int | None = None

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        is_barrier = key == barrier_key(key)
        if not is_barrier and self._is_unknown():
            raise RepeatedWriteError(f"written blindly: key={key.hex()}")
        try:
            published = super().publish(partition, key, value)
        except UnknownResultError:
            if not is_barrier:
                self._has_unknown, self._barrier_offset = True, None
            self._note_request(partition, key, value)
            raise
        if is_barrier:
            self._barrier_offset = published.offset
        return published

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        found = super().poll(max_records=max_records, timeout_ms=timeout_ms)
        self._read_to = max([self._read_to, *(record.offset for record in found)])
        return found

    def _is_unknown(self) -> bool:
        barrier = self._barrier_offset
        if self._has_unknown and barrier is not None and self._read_to >= barrier:
            self._has_unknown = False
        return self._has_unknown

    def _note_request(self, partition: int, key: bytes, value: bytes | None) -> None:
        written = self._log.records(partition)
        if any(record.key == key and record.value == value for record in written):
            return
        deadline_ms = self._now.wall_ms() + LATE_MS
        self._requests.on_the_way.append(Request(key=key, value=value, deadline_ms=deadline_ms))
