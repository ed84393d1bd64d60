"""ConnectionWatch: which connections are held up by clients that don't send, or don't take.

Looks now and then at all of them, and finds which stand where they stood: so watching costs a
connection nothing while bytes pass. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlm.gateway.model.disconnect_cause import DisconnectCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How far a client's requests have come.

    `request_count` have come whole. `is_partial`: a part of one more is there. `is_read`: we take
    what the client sends, so whatever is missing is the client's to send. `sent_count`: how much
    it has taken of what waits for it, None if nothing does; `taken_count`: how many answers whole.
    `active_s`: when the last byte was received from either side, or the last of what waited taken.
    """

    request_count: int
    is_partial: bool
    is_read: bool
    sent_count: int | None
    taken_count: int
    active_s: float


@dataclass(frozen=True, slots=True)
class _Count:
    """A count, and since when it has stood there."""

    value: int
    since_s: float

    def after(self, before: _Count) -> _Count:
        """The same, where it stood at `before` at the last look."""
        return before if before.value == self.value else self


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standstill:
    """Where a connection stands, and what it is ended for if it stays there.

    `moved`: of what it is about; `whole`: of the answers that were taken whole.
    """

    reason: DisconnectCause
    moved: _Count
    whole: _Count

    def after(self, before: _Standstill | None) -> _Standstill:
        """The same, of a connection that stood `before` at the last look."""
        if before is None or before.reason is not self.reason:
            return self
        return _Standstill(
            reason=self.reason,
            moved=self.moved.after(before.moved),
            whole=self.whole.after(before.whole),
        )


class ConnectionWatch:
    """Memory: an entry for each connection whose client has something to send or to take."""

    def __init__(self, *, progress_s: float, pressure_progress_s: float, idle_s: float) -> None:
        """A request must come whole within `progress_s`, the first one counted from the start.

        Within that, something must be taken of what waits for the client. While others wait for
        the memory that it holds, something within the shorter `pressure_progress_s`, and the answer
        whole within `progress_s`.
        """
        self._progress_s = progress_s
        self._pressure_progress_s = min(progress_s, pressure_progress_s)
        self._idle_s = idle_s
        self._seen: dict[int, _Standstill] = {}

    def overdue(
        self,
        arrivals: Mapping[int, Arrival],
        now_s: float,
        *,
        is_under_memory_pressure: bool = False,
    ) -> dict[int, DisconnectCause]:
        """Connections to close, by number. `is_under_memory_pressure`: others wait for memory."""
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
            # What a client takes keeps its connection from being idle, as what it sends does.
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
