"""Content that one thread appends while another thread reads it as a source.

A store pulls an object's content, and a writer pushes it. A stream runs the store's request in a
thread of its own and passes each piece to the request as the piece arrives.

    PieceStream    buffers nothing: `append` waits for the reader, so a slow store delays its writer
    PieceBuffer    never waits: keeps each piece until the store has accepted it, and counts bytes
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

from rsm.segment.local_segment import PartBounds

T = TypeVar("T")


class PushedContent(Generic[T]):
    """A ContentSource for one pass, of a length that is unknown before its end.

    `start` begins the request. `finish`, `abort` and the methods that add pieces belong to one
    caller at a time. After a failure of the request, `finish` and the methods that add pieces raise
    its error. A store whose part fails ends the request by `interrupt`.
    """

    length_bytes = None

    def __init__(self) -> None:
        self._pieces = SimpleQueue[memoryview | None]()  # None: the end
        self._ending = threading.Lock()
        self._is_ended = False
        self._reason: BaseException | None = None
        self._result: Future[T] = Future()
        self._thread: threading.Thread | None = None

    def chunks(self) -> Iterator[memoryview]:
        """Yield each piece as it is added; raise the error that ended them, if any."""
        while (piece := self._pieces.get()) is not None:
            yield piece
            self._note_taken()
        self._pieces.put(None)  # another pass finds the end again
        if self._reason is not None:
            raise self._reason

    def start(self, request: Callable[[], T], *, name: str) -> None:
        """Run `request`, which reads this source, in a thread of this name."""
        self._thread = threading.Thread(target=self._run, args=(request,), name=name, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the content; the request may still run. Idempotent."""
        self._end(None)

    def finish(self) -> T:
        """End the content; return the request's result, or raise its error."""
        self.end()
        self._join()
        return self._result.result()

    def abort(self, reason: BaseException) -> None:
        """Fail the reader with `reason`, and return when the request has ended. Idempotent."""
        self._end(reason)
        self._join()

    def interrupt(self, error: BaseException) -> None:
        """Fail the reader with `error` after the pieces so far. Thread-safe (PushedSource)."""
        self._end(error)

    def _note_taken(self) -> None:
        """React to a reader that wants the next piece, or to the request's end."""

    def _end(self, reason: BaseException | None) -> None:
        with self._ending:
            if not self._is_ended:
                self._is_ended, self._reason = True, reason
                self._pieces.put(None)

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _run(self, request: Callable[[], T]) -> None:
        try:
            self._result.set_result(request())
        except BaseException as error:  # noqa: BLE001 - passes to the caller
            self._result.set_exception(error)
        self._note_taken()


class PieceStream(PushedContent[T]):
    """Pushed content without a buffer.

    `append` returns when the reader has taken the piece and wants the next one. So the caller may
    reuse the piece's memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self._taken = SimpleQueue[None]()  # one for each piece taken, and one for the request's end

    def append(self, piece: memoryview) -> None:
        """Pass a piece to the reader. Raises the request's error."""
        if not self._result.done():
            self._pieces.put(piece)
            self._taken.get()
        if self._result.done():
            self._result.result()

    def _note_taken(self) -> None:
        self._taken.put(None)


class PieceBuffer(PushedContent[T]):
    """Pushed content in memory: each piece is a part of the upload (PartBounds.EACH_CHUNK).

    The caller must limit the memory, by `buffered_bytes`. Any thread may use `buffered_bytes`,
    `check` and the waits.
    """

    parts = PartBounds.EACH_CHUNK

    def __init__(self) -> None:
        super().__init__()
        self._buffered_bytes = 0
        self._changed = threading.Condition()

    @property
    def buffered_bytes(self) -> int:
        """The bytes that the store has not accepted yet."""
        return self._buffered_bytes

    def add(self, piece: bytearray) -> None:
        """Pass on a piece, which must not change any more. Raises the request's error."""
        self.check()
        with self._changed:
            self._buffered_bytes += len(piece)
        self._pieces.put(memoryview(piece))

    def check(self) -> None:
        """Raise the request's error if it has failed."""
        if self._result.done():
            self._result.result()

    def acknowledge(self, length_bytes: int) -> None:
        """Record that the store accepted `length_bytes` more (AcknowledgedSource)."""
        with self._changed:
            self._buffered_bytes -= length_bytes
            self._changed.notify_all()

    def wait_until(self, most_bytes: int, timeout_s: float | None) -> None:
        """Wait for at most `most_bytes` in the buffer, the request's end, or `timeout_s`."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._result.done() or self._buffered_bytes <= most_bytes, timeout_s
            )

    def result(self, timeout_s: float | None) -> T:
        """Wait for the request's result. Raises its error, and TimeoutError."""
        return self._result.result(timeout_s)

    def fail(self, error: BaseException) -> None:
        """Set the error of a request that was not started."""
        self._result.set_exception(error)

    def _note_taken(self) -> None:
        with self._changed:
            self._changed.notify_all()
