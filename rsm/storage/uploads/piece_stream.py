"""Represents content that one thread appends while another thread reads it as a source.

A store pulls an object's content, but a writer pushes it. So the store's request runs in a separate
thread and reads each piece when the piece arrives.

    PieceStream    buffers nothing: `append` waits for the reader, so a slow store delays the writer
    PieceBuffer    keeps each piece until the store has accepted it: `add` never waits
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import PartBounds

T = TypeVar("T")


class PushedContent(Generic[T]):
    """Represents a ContentSource of unknown length, which can be read once.

    `start` begins the request. Only one thread at a time may call `finish`, `abort` or a method
    that adds pieces. If the request fails, `finish` and the methods that add pieces raise its
    error. If a part fails, the store calls `interrupt` to end the request.
    """

    length_bytes = None

    def __init__(self) -> None:
        self._pieces = SimpleQueue[memoryview | None]()  # None marks the end
        self._ending = threading.Lock()
        self._is_ended = False
        self._reason: BaseException | None = None
        self._result: Future[T] = Future()
        self._thread: threading.Thread | None = None

    def chunks(self) -> Iterator[memoryview]:
        """Yield each piece as it is added. Raises the error of `abort` or `interrupt`."""
        while (piece := self._pieces.get()) is not None:
            yield piece
            self._note_taken()
        self._pieces.put(None)  # This entry also ends another pass.
        if self._reason is not None:
            raise self._reason

    def start(self, request: Callable[[], T], *, name: str) -> None:
        """Run `request`, which reads this source, in a thread with this name.

        If the thread cannot start, raises RetriableError, which is then the request's error, too.
        """
        thread = threading.Thread(target=self._run, args=(request,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # No thread can be started.
            failure = RetriableError("cannot start the upload", reason=error)
            self._result.set_exception(failure)
            raise failure from error
        self._thread = thread

    def end(self) -> None:
        """End the content; the request may still run. Idempotent."""
        self._end(None)

    def finish(self) -> T:
        """End the content; return the request's result, or raise its error."""
        self.end()
        self._join()
        return self._result.result()

    def abort(self, reason: BaseException) -> None:
        """Fail the reader with `reason`, and wait until the request has ended. Idempotent."""
        self._end(reason)
        self._join()

    def interrupt(self, error: BaseException) -> None:
        """Fail the reader with `error` after the earlier pieces. Thread-safe (PushedSource)."""
        self._end(error)

    def _note_taken(self) -> None:
        """React when the reader wants the next piece, and when the request has ended."""

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
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            self._result.set_exception(error)
        self._note_taken()


class PieceStream(PushedContent[T]):
    """Represents pushed content without a buffer.

    `append` returns when the reader wants the next piece or the request has ended. The caller may
    then reuse the piece's memory.
    """

    def __init__(self) -> None:
        super().__init__()
        # This queue gets an entry for each piece taken, and one for the end.
        self._taken = SimpleQueue[None]()

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
    """Represents pushed content in memory; each piece is a part (PartBounds.EACH_CHUNK).

    The caller must limit `buffered_bytes`. Any thread may call `buffered_bytes`, `check`,
    `wait_until` and `result`.
    """

    parts = PartBounds.EACH_CHUNK

    def __init__(self) -> None:
        super().__init__()
        self._buffered_bytes = 0
        self._changed = threading.Condition()

    @property
    def buffered_bytes(self) -> int:
        """Return the number of bytes that the store has not accepted yet."""
        return self._buffered_bytes

    def add(self, piece: bytearray) -> None:
        """Add a piece; the caller must not change it afterwards. Raises the request's error."""
        self.check()
        with self._changed:
            self._buffered_bytes += len(piece)
        self._pieces.put(memoryview(piece))

    def check(self) -> None:
        """Raise the request's error if it has failed."""
        if self._result.done():
            self._result.result()

    def acknowledge(self, length_bytes: int) -> None:
        """Record that the store accepted `length_bytes` more bytes (AcknowledgedSource)."""
        with self._changed:
            self._buffered_bytes -= length_bytes
            self._changed.notify_all()

    def wait_until(self, most_bytes: int, timeout_s: float | None) -> None:
        """Wait until at most `most_bytes` are buffered, the request ends, or `timeout_s` elapse."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._result.done() or self._buffered_bytes <= most_bytes, timeout_s
            )

    def result(self, timeout_s: float | None) -> T:
        """Wait for the request's result. Raises its error, or TimeoutError after `timeout_s`."""
        return self._result.result(timeout_s)

    def fail(self, error: BaseException) -> None:
        """Set the error of a request that could not be started."""
        self._result.set_exception(error)

    def _note_taken(self) -> None:
        with self._changed:
            self._changed.notify_all()
