"""A metadata topic in memory that loses responses, like a cluster that is cut off."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum

from rlmm.topic.event_topic import PublishedPosition, UnknownResultError
from rlmm.topic.memory import MemoryLog, MemoryTopic


class Fate(Enum):
    """The outcome of a write without a response."""

    WRITTEN = 1
    LOST = 2
    LATE = 3


class LossyTopic(MemoryTopic):
    """A topic that withholds the response of one write for each of `fates`.

    A fate decides what becomes of its write. Later writes get a response. The topic calls
    `before_write` before each write. `deliver_late` delivers the writes that are LATE.
    """

    def __init__(self, log: MemoryLog) -> None:
        super().__init__(log)
        self.fates: deque[Fate] = deque()
        self.before_write: Callable[[], None] = lambda: None
        self._late: list[tuple[int, bytes, bytes | None]] = []

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        self.before_write()
        if not self.fates:
            return super().publish(partition, key, value)
        fate = self.fates.popleft()
        if fate is Fate.WRITTEN:
            super().publish(partition, key, value)
        elif fate is Fate.LATE:
            self._late.append((partition, key, value))
        raise UnknownResultError("no answer")

    def deliver_late(self) -> None:
        """Deliver the records that the network has delayed."""
        while self._late:
            super().publish(*self._late.pop(0))
