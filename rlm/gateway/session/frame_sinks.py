"""Defines sinks that forward a frame, buffer it until it is complete, or change it in transit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from rlm.gateway.model.actions import Action, ToBroker, ToClient
from rlm.gateway.model.disconnect_cause import ConnectionRefusedByGatewayError, DisconnectCause
from rlm.gateway.model.rewrite import ResponseScanner
from rlm.wire.frames import SIZE_BYTES
from rlm.wire.scanning.fetch_scanner import FetchResponseScanner

_MAX_FRAME_BYTES = 0x7FFF_FFFF

ScannerT = TypeVar("ScannerT", FetchResponseScanner, ResponseScanner)


class ForwardingSink:
    """Forwards a frame as its bytes arrive."""

    passing_bytes = _MAX_FRAME_BYTES

    def __init__(
        self,
        actions: Callable[[], list[Action]],
        to: type[ToBroker | ToClient],
        ended: Callable[[], None],
    ) -> None:
        self._actions = actions
        self._to = to
        self._ended = ended

    def take(self, data: memoryview) -> None:
        self._actions().append(self._to(data))

    def skip(self, count: int) -> None:
        """Do nothing: the sink does not inspect the frame."""

    def end(self) -> None:
        self._ended()


class GatheringSink:
    """Buffers a frame and passes it whole to `handle`, without its size field."""

    passing_bytes = 0

    def __init__(
        self,
        frame_bytes: int,
        handle: Callable[[memoryview], None],
        *,
        limit_bytes: int,
        too_large: DisconnectCause,
    ) -> None:
        """Raise ConnectionRefusedByGatewayError if the frame is larger than the limit."""
        if frame_bytes > limit_bytes:
            raise ConnectionRefusedByGatewayError(too_large, f"size_bytes={frame_bytes}")
        self._content = bytearray()
        self._handle = handle

    def take(self, data: memoryview) -> None:
        self._content += data

    def skip(self, count: int) -> None:
        raise AssertionError("cannot skip bytes: the sink buffers the whole frame")

    def end(self) -> None:
        self._handle(memoryview(self._content)[SIZE_BYTES:])


class _PassThroughSink(Generic[ScannerT]):
    """Runs a scanner over a response while it passes to the client."""

    def __init__(
        self, actions: Callable[[], list[Action]], scanner: ScannerT, ended: Callable[[], None]
    ) -> None:
        self._actions = actions
        self._scanner: ScannerT = scanner
        self._ended = ended
        self._size_left_bytes = SIZE_BYTES

    def skip(self, count: int) -> None:
        self._scanner.skip(count)

    def end(self) -> None:
        self._ended()


class ScanningSink(_PassThroughSink[FetchResponseScanner]):
    """Changes a Fetch response in place while it passes."""

    @property
    def passing_bytes(self) -> int:
        return self._scanner.passing_bytes

    def take(self, data: memoryview) -> None:
        size_part_bytes = min(self._size_left_bytes, len(data))
        parts = self._scanner.feed(data[size_part_bytes:])
        if size_part_bytes:
            self._size_left_bytes -= size_part_bytes
            # The scanner buffers nothing yet, so the size and the first part are adjacent bytes.
            following_bytes = len(parts.pop(0)) if parts else 0
            parts.insert(0, data[: size_part_bytes + following_bytes])
        self._actions().extend(map(ToClient, parts))


class ResizingSink(_PassThroughSink[ResponseScanner]):
    """Changes a response and its size while it passes."""

    _is_started = False

    @property
    def passing_bytes(self) -> int:
        return self._scanner.passing_bytes if self._is_started else 0

    def take(self, data: memoryview) -> None:
        size_part_bytes = min(self._size_left_bytes, len(data))
        self._size_left_bytes -= size_part_bytes
        parts = self._scanner.feed(data[size_part_bytes:])
        frame_bytes = self._scanner.frame_bytes
        if parts and not self._is_started and frame_bytes is not None:
            self._is_started = True
            self._actions().append(ToClient(frame_bytes.to_bytes(SIZE_BYTES, "big")))
        self._actions().extend(map(ToClient, parts))
