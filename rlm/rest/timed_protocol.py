"""Limits how long a client may take to send an HTTP request and to receive the response.

uvicorn limits only the idle time after a response. A client that sends nothing, or half of a
request, would occupy one of the server's connections without limit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Represents limits in seconds: for the arrival of a request, and for its whole response."""

    request_s: float = 5
    response_s: float = 60


class TimedConfig(uvicorn.Config):
    """Represents a server's configuration with the limits of its connections."""

    limits = ConnectionLimits()


class TimedProtocol(H11Protocol):
    """Represents one connection, which is aborted at its time limit. Not thread-safe."""

    _timer: asyncio.TimerHandle | None = None
    _is_timing_response = False

    def connection_made(  # type: ignore[override]  # the base class does the same
        self, transport: asyncio.Transport
    ) -> None:
        """Start to wait for a request."""
        super().connection_made(transport)
        self._follow_phase()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        super().data_received(data)
        self._follow_phase()

    def on_response_complete(self) -> None:
        """Start to wait for the next request; a part of it may be buffered."""
        super().on_response_complete()
        self._follow_phase()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _follow_phase(self) -> None:
        """Restart the timer if the phase changed; parts of a request do not extend its time."""
        is_responding = (
            bool(self.cycle) and not self.cycle.more_body and not self.cycle.response_complete
        )
        if self._timer is not None and is_responding is self._is_timing_response:
            return
        self._stop_timer()
        if self.transport.is_closing():
            return
        limits = self.config.limits if isinstance(self.config, TimedConfig) else ConnectionLimits()
        self._is_timing_response = is_responding
        self._timer = self.loop.call_later(
            limits.response_s if is_responding else limits.request_s, self.transport.abort
        )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
