"""HTTP connections that get a limited time to send a request, and to take its answer.

uvicorn limits only how long a connection rests after an answer. One that sends nothing, or half of
a request, would keep its place among those that a server admits.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """`request_s`: until a whole request came; `answer_s`: from there until its answer is sent."""

    request_s: float = 5
    answer_s: float = 60


class TimedConfig(uvicorn.Config):
    """A server's configuration with the limits of its connections."""

    limits = ConnectionLimits()


class TimedProtocol(H11Protocol):
    """One connection: aborted when its time is over. The event loop's thread only."""

    _timer: asyncio.TimerHandle | None = None
    _is_timing_answer = False

    def connection_made(  # type: ignore[override]  # as the base class has it
        self, transport: asyncio.Transport
    ) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._follow_phase()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._follow_phase()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, which may have come in part."""
        super().on_response_complete()
        self._follow_phase()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def _follow_phase(self) -> None:
        """Parts of a request do not prolong its time."""
        is_answering = (
            bool(self.cycle) and not self.cycle.more_body and not self.cycle.response_complete
        )
        if self._timer is not None and is_answering is self._is_timing_answer:
            return
        self._stop_timer()
        if self.transport.is_closing():
            return
        limits = self.config.limits if isinstance(self.config, TimedConfig) else ConnectionLimits()
        self._is_timing_answer = is_answering
        self._timer = self.loop.call_later(
            limits.answer_s if is_answering else limits.request_s, self.transport.abort
        )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
