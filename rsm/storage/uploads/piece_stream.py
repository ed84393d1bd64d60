"""PieceStream: content that one thread appends while another thread reads it as a source.

A store pulls an object's content, and a writer pushes it. The stream runs the store's request in a
thread of its own and passes it each piece as it comes. It buffers nothing: `append` returns when
the reader has taken the piece and wants the next one. So a slow store delays its writer, and the
caller may reuse the piece's buffer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class PieceStream(Generic[T]):
    """A ContentSource for one pass, whose length only its end shows.

    `start` begins the request. `append`, `finish` and `abort` belong to one caller at a time. The
    request's errors pass to it unchanged, from the first call after the failure on.
    """

    length_bytes = None

    def __init__(self) -> None:
        self._pieces = SimpleQueue[memoryview | None]()  # at most one piece; None: the end
        self._taken = SimpleQueue[None]()  # one for each piece taken, and one for the request's end
        self._is_ended = False
        self._reason: BaseException | None = None
        self._result: Future[T] = Future()
        self._thread: threading.Thread | None = None

    def chunks(self) -> Iterator[memoryview]:
        """Yield each piece as it is appended; raise the reason of `abort`."""
        while (piece := self._pieces.get()) is not None:
            yield piece
            self._taken.put(None)
        self._pieces.put(None)  # a reader that looks once more finds the end again
        if self._reason is not None:
            raise self._reason

    def start(self, request: Callable[[], T], *, name: str) -> None:
        """Run `request`, which reads this source, in a thread of this name."""
        self._thread = threading.Thread(target=self._run, args=(request,), name=name, daemon=True)
        self._thread.start()

    def append(self, piece: memoryview) -> None:
        """Pass a piece to the reader. Raises the request's error."""
        if not self._result.done():
            self._pieces.put(piece)
            self._taken.get()
        if self._result.done():
            self._result.result()

    def finish(self) -> T:
        """End the content; return the request's result, or raise its error."""
        self._end(None)
        return self._result.result()

    def abort(self, reason: BaseException) -> None:
        """Fail the reader with `reason`, and return when the request has ended. Idempotent."""
        self._end(reason)

    def _end(self, reason: BaseException | None) -> None:
        if not self._is_ended:
            self._is_ended, self._reason = True, reason
            self._pieces.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self, request: Callable[[], T]) -> None:
        try:
            self._result.set_result(request())
        except BaseException as error:  # noqa: BLE001 - passes to the caller
            self._result.set_exception(error)
        self._taken.put(None)
