"""Finds idle connections, and connections whose client is too slow. Pure.

At an interval, the watch compares the progress of all connections with its previous look. Relayed
bytes cost no extra work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlm.gateway.model.disconnect_cause import DisconnectCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Represents the progress of one connection.

    `request_count`: requests received whole. `is_partial`: a part of a further request has arrived.
    `is_read`: the gateway reads from the client, so only the client can delay the missing bytes.
    `sent_count` grows whenever waiting data is sent; None if no data waits. `taken_count`:
    responses sent whole. `active_s`: when the last bytes arrived from either side, or the client
    last received waiting data.
    """

    request_count: int
    is_partial: bool
    is_read: bool
    sent_count: int | None
    taken_count: int
    active_s: float


@dataclass(frozen=True, slots=True)
class _Count:
    """Represents a count, and the time of its last change."""

    value: int
    since_s: float

    def after(self, before: _Count) -> _Count:
        """Return `before` if it has the same value, else this count."""
        return before if before.value == self.value else self


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standstill:
    """Represents the progress that a connection must make, and the disconnect cause otherwise.

    `moved` is the count that must change. `whole` counts the responses sent whole.
    """

    reason: DisconnectCause
    moved: _Count
    whole: _Count

    def after(self, before: _Standstill | None) -> _Standstill:
        """Return this look; unchanged counts keep the times of `before`, the previous look."""
        if before is None or before.reason is not self.reason:
            return self
        return _Standstill(
            reason=self.reason,
            moved=self.moved.after(before.moved),
            whole=self.whole.after(before.whole),
        )


class ConnectionWatch:
    """Watches all connections of a server. Not thread-safe.

    Memory: an entry for each connection whose client must send or receive something.
    """

    def __init__(self, *, progress_s: float, pressure_progress_s: float, idle_s: float) -> None:
        """Set the limits.

        The first request, and each partly received request, must arrive whole within `progress_s`.
        In the same time, a client must receive part of a waiting response. Under memory pressure,
        the client must do so within `pressure_progress_s`, and receive a whole response within
        `progress_s`. Each time counts from the last look that found progress, or from the first
        look.
        """
        self._progress_s = progress_s
        self._pressure_progress_s = min(progress_s, pressure_progress_s)
        self._idle_s = idle_s
        self._seen: dict[int, _Standstill] = {}

    def find_overdue(
        self,
        arrivals: Mapping[int, Arrival],
        now_s: float,
        *,
        is_under_memory_pressure: bool = False,
    ) -> dict[int, DisconnectCause]:
        """Return the connections to close, by number, with their causes."""
        overdue: dict[int, DisconnectCause] = {}
        seen: dict[int, _Standstill] = {}
        for number, arrival in arrivals.items():
            standstill = _standstill(arrival, now_s)
            if standstill is not None:
                standstill = seen[number] = standstill.after(self._seen.get(number))
                if self._is_overdue(
                    standstill, now_s, is_under_memory_pressure=is_under_memory_pressure
                ):
                    overdue[number] = standstill.reason
            # A connection with waiting data is not idle; the progress limit applies to it.
            if arrival.sent_count is None and now_s - arrival.active_s > self._idle_s:
                overdue[number] = DisconnectCause.IDLE
        self._seen = seen
        return overdue

    def _is_overdue(
        self, standstill: _Standstill, now_s: float, *, is_under_memory_pressure: bool
    ) -> bool:
        moved_s, whole_s = now_s - standstill.moved.since_s, now_s - standstill.whole.since_s
        if is_under_memory_pressure and standstill.reason is DisconnectCause.ANSWER_NOT_TAKEN:
            return moved_s >= self._pressure_progress_s or whole_s >= self._progress_s
        return moved_s >= self._progress_s


def _standstill(arrival: Arrival, now_s: float) -> _Standstill | None:
    if arrival.sent_count is not None:
        reason, count = DisconnectCause.ANSWER_NOT_TAKEN, arrival.sent_count
    elif not arrival.is_read:
        return None
    elif arrival.is_partial:
        reason, count = DisconnectCause.SLOW_REQUEST, arrival.request_count
    elif not arrival.request_count:
        reason, count = DisconnectCause.NO_REQUEST, 0
    else:
        return None
    return _Standstill(
        reason=reason, moved=_Count(count, now_s), whole=_Count(arrival.taken_count, now_s)
    )
