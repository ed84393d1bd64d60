"""ConnectionWatch: which connections are held up by clients that don't send, or don't take.

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
    what the client sends, so whatever is missing is the client's to send. `sent_count`: how much
    it has taken of what waits for it, None if nothing does. `active_s`: when the last byte was
    received from either side.
    """

    request_count: int
    is_partial: bool
    is_read: bool
    sent_count: int | None
    active_s: float


@dataclass(frozen=True, slots=True)
class _Seen:
    """Where a connection stands since when, and what it is ended for if it stays there."""

    reason: CloseReason
    count: int
    since_s: float


class ConnectionWatch:
    """Memory: an entry for each connection whose client has something to send or to take."""

    def __init__(self, *, progress_s: float, pressed_progress_s: float, idle_s: float) -> None:
        """A request must come whole within `progress_s`, the first one counted from the start.

        Within that, something must be taken of what waits for the client: within the shorter
        `pressed_progress_s` while others wait for the memory that it holds.
        """
        self._progress_s = progress_s
        self._pressed_progress_s = min(progress_s, pressed_progress_s)
        self._idle_s = idle_s
        self._seen: dict[int, _Seen] = {}

    def overdue(
        self, arrivals: Mapping[int, Arrival], now_s: float, *, is_pressed: bool = False
    ) -> dict[int, CloseReason]:
        """Those to be ended, of all connections by number; `is_pressed`: others wait for memory."""
        untaken_s = self._pressed_progress_s if is_pressed else self._progress_s
        overdue: dict[int, CloseReason] = {}
        seen: dict[int, _Seen] = {}
        for number, arrival in arrivals.items():
            if now_s - arrival.active_s > self._idle_s:
                overdue[number] = CloseReason.IDLE
            elif (stands := _standing(arrival, now_s)) is not None:
                before = self._seen.get(number, stands)
                if (before.reason, before.count) == (stands.reason, stands.count):
                    stands = before
                seen[number] = stands
                is_untaken = stands.reason is CloseReason.ANSWER_NOT_TAKEN
                if now_s - stands.since_s >= (untaken_s if is_untaken else self._progress_s):
                    overdue[number] = stands.reason
        self._seen = seen
        return overdue


def _standing(arrival: Arrival, now_s: float) -> _Seen | None:
    if arrival.sent_count is not None:
        return _Seen(CloseReason.ANSWER_NOT_TAKEN, arrival.sent_count, now_s)
    if not arrival.is_read:
        return None
    if arrival.is_partial:
        return _Seen(CloseReason.SLOW_REQUEST, arrival.request_count, now_s)
    if not arrival.request_count:
        return _Seen(CloseReason.NO_REQUEST, 0, now_s)
    return None
