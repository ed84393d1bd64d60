"""Tracks how far the topic is applied, and the outcomes of events that callers wait for.

A caller registers an event's id before it writes the event, so the outcome cannot be missed.
Thread-safe. Memory: one entry for each running call of `publish`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Condition

from rlmm.positions import ReadPosition
from rlmm.spi import PublishResult


class Progress:
    """Represents applied positions and awaited outcomes.

    The follower's thread writes them; any thread may read them.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._results: dict[bytes, PublishResult | None] = {}
        self._positions: Mapping[int, ReadPosition] = {}
        self._broker_time_ms = 0

    @property
    def positions(self) -> Mapping[int, ReadPosition]:
        """Return each metadata partition's applied position; the mapping never changes in place."""
        return self._positions

    @property
    def broker_time_ms(self) -> int:
        """Return the largest LogAppendTime of the applied records; 0 if there are none."""
        return self._broker_time_ms

    def restart(self, positions: Mapping[int, ReadPosition], broker_time_ms: int) -> None:
        """Replace the positions, for example by those of a checkpoint."""
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
        """Set the newly applied positions, and the outcomes of the awaited events below them."""
        with self._changed:
            self._positions = {**self._positions, **positions}
            self._broker_time_ms = max(self._broker_time_ms, broker_time_ms)
            for event_id, result in results.items():
                if event_id in self._results:
                    self._results[event_id] = result
            self._changed.notify_all()

    def notify(self) -> None:
        """Wake all waiting callers after a change that is not an advance."""
        with self._changed:
            self._changed.notify_all()

    def expect(self, event_id: bytes) -> None:
        """Begin to await an event; call `forget` afterwards."""
        with self._changed:
            self._results[event_id] = None

    def forget(self, event_id: bytes) -> None:
        """Stop awaiting an event."""
        with self._changed:
            self._results.pop(event_id, None)

    def awaited(self) -> frozenset[bytes]:
        """Return the ids of the awaited events."""
        with self._changed:
            return frozenset(self._results)

    def result(self, event_id: bytes) -> PublishResult | None:
        """Return the outcome of an awaited event; None until it is applied."""
        return self._results.get(event_id)

    def has_reached(self, end_offsets: Mapping[int, int]) -> bool:
        """Return whether everything below these offsets is applied."""
        return self.behind_count(end_offsets) == 0

    def behind_count(self, end_offsets: Mapping[int, int]) -> int:
        """Return the number of unapplied offsets below these."""
        positions = self._positions
        start = ReadPosition(offset=0)
        return sum(
            max(0, end_offset - positions.get(partition, start).offset)
            for partition, end_offset in end_offsets.items()
        )

    def wait(self, predicate: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until the predicate is true, checking it after each change; False on timeout."""
        with self._changed:
            return self._changed.wait_for(predicate, timeout_ms / 1000)
