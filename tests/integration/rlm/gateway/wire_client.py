"""A client that sends any version of any request, and returns the response unchanged."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self, TypeVar

from rlm.wire.frames import FrameBuffer, read_response, request_frame
from rlm.wire.schema import Api, Message

_DEADLINE_S = 30.0
_MAX_FRAME_BYTES = 64 << 20
_RECEIVE_BYTES = 1 << 16

ResponseT = TypeVar("ResponseT", bound=Message)


class WireClient:
    """One connection; answers come in the order of the requests. Not thread-safe.

    Raises OSError for a connection that fails or ends.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._stream = socket.create_connection((host, int(port)), _DEADLINE_S)
        self._received = FrameBuffer(max_frame_bytes=_MAX_FRAME_BYTES)
        self._correlation_id = 0
        self._answered_id = 0

    def ask(self, api: Api[Any, ResponseT], version: int, message: Message) -> ResponseT:
        """Send one request and return its answer."""
        self.send(api, version, message)
        return self.answer(api, version)

    def send(self, api: Api[Any, Any], version: int, message: Message) -> None:
        """Send one request."""
        self._correlation_id += 1
        self._stream.sendall(
            request_frame(
                api, version, message, correlation_id=self._correlation_id, client_id="test"
            )
        )

    def answer(self, api: Api[Any, ResponseT], version: int) -> ResponseT:
        """Return the next response, which must be for a request of this kind."""
        while (frame := self._received.next_frame()) is None:
            received = self._stream.recv(_RECEIVE_BYTES)
            if not received:
                raise ConnectionResetError("the gateway closed the connection")
            self._received.add(received)
        header, message = read_response(api, version, frame)
        assert self._answered_id < header.correlation_id <= self._correlation_id
        self._answered_id = header.correlation_id
        return message

    def fileno(self) -> int:
        """Return the socket's descriptor, for selectors."""
        return self._stream.fileno()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.close()
