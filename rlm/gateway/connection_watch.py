"""ConnectionWatch: which connections are held open by clients that send nothing, or too slowly.

Looks now and then at all of them, and finds which stand where they stood: so watching costs a
connection nothing while bytes pass. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlm.gateway.close_reason import CloseReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How far a client's requests have come.

    `request_count` have come whole. `is_partial`: a part of one more is there. `is_read`: we take
    what the client sends, so whatever is missing is the client's to send. `active_s`: when the last
    byte passed in either direction.
    """

    request_count: int
    is_partial: bool
    is_read: bool
    active_s: float


@dataclass(frozen=True, slots=True)
class _Seen:
    request_count: int
    since_s: float


class ConnectionWatch:
    """Memory: an entry for each connection on which a request is missing or partly there."""

    def __init__(self, *, request_s: float, idle_s: float) -> None:
        """A request must come whole within `request_s`, the first one counted from the start."""
        self._request_s = request_s
        self._idle_s = idle_s
        self._seen: dict[int, _Seen] = {}

    def overdue(self, arrivals: Mapping[int, Arrival], now_s: float) -> dict[int, CloseReason]:
        """Those to be ended, of all connections by number."""
        overdue: dict[int, CloseReason] = {}
        seen: dict[int, _Seen] = {}
        for number, arrival in arrivals.items():
            if now_s - arrival.active_s > self._idle_s:
                overdue[number] = CloseReason.IDLE
            elif arrival.is_read and (arrival.is_partial or not arrival.request_count):
                before = self._seen.get(number)
                if before is None or before.request_count != arrival.request_count:
                    before = _Seen(arrival.request_count, now_s)
                seen[number] = before
                if now_s - before.since_s >= self._request_s:
                    overdue[number] = _reason(arrival)
        self._seen = seen
        return overdue


def _reason(arrival: Arrival) -> CloseReason:
    return CloseReason.SLOW_REQUEST if arrival.is_partial else CloseReason.NO_REQUEST
