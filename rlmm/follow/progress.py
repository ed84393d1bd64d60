"""Progress: how far the topic was applied, and what became of the events that someone awaits.

An event is registered by its id before it is written, so it cannot be applied unnoticed in between.
Thread-safe. Memory: one entry per call of `publish` under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Condition

from rlmm.positions import ReadPosition
from rlmm.spi import PublishResult


class Progress:
    """Written by whoever applies, read and awaited by everyone."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._results: dict[bytes, PublishResult | None] = {}
        self._positions: Mapping[int, ReadPosition] = {}
        self._broker_time_ms = 0

    @property
    def positions(self) -> Mapping[int, ReadPosition]:
        """Up to where each metadata partition was applied; never changed in place."""
        return self._positions

    @property
    def broker_time_ms(self) -> int:
        """The newest LogAppendTime applied."""
        return self._broker_time_ms

    def restart(self, positions: Mapping[int, ReadPosition], broker_time_ms: int) -> None:
        """Begin from a checkpoint, or from nothing."""
        with self._changed:
            self._positions = dict(positions)
            self._broker_time_ms = max(self._broker_time_ms, broker_time_ms)
            self._changed.notify_all()

    def advance(
        self,
        positions: Mapping[int, ReadPosition],
        broker_time_ms: int,
        results: Mapping[bytes, PublishResult],
    ) -> None:
        """Tell that all up to these positions was applied, and what came of awaited events."""
        with self._changed:
            self._positions = {**self._positions, **positions}
            self._broker_time_ms = max(self._broker_time_ms, broker_time_ms)
            for event_id, result in results.items():
                if event_id in self._results:
                    self._results[event_id] = result
            self._changed.notify_all()

    def notify(self) -> None:
        """Wake those who wait for something else than an advance."""
        with self._changed:
            self._changed.notify_all()

    def expect(self, event_id: bytes) -> None:
        """Await an event; `forget` ends it."""
        with self._changed:
            self._results[event_id] = None

    def forget(self, event_id: bytes) -> None:
        """Await an event no longer."""
        with self._changed:
            self._results.pop(event_id, None)

    def awaited(self) -> frozenset[bytes]:
        """Ids of the events that are awaited."""
        with self._changed:
            return frozenset(self._results)

    def result(self, event_id: bytes) -> PublishResult | None:
        """What became of an awaited event; None while it was not applied."""
        return self._results.get(event_id)

    def reached(self, end_offsets: Mapping[int, int]) -> bool:
        """Whether all was applied up to these offsets."""
        return self.behind_count(end_offsets) == 0

    def behind_count(self, end_offsets: Mapping[int, int]) -> int:
        """How many offsets are missing up to these."""
        positions = self._positions
        start = ReadPosition(offset=0)
        return sum(
            max(0, end_offset - positions.get(partition, start).offset)
            for partition, end_offset in end_offsets.items()
        )

    def wait(self, predicate: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until the predicate, asked after each change, holds; False if not in time."""
        with self._changed:
            return self._changed.wait_for(predicate, timeout_ms / 1000)
