"""SharedEnds: one question for the topic's ends answers all who ask the same at the same time.

An answer tells what was written before the question was put, so it is of use only to those who
asked before that. Who comes while a question is under way waits for the next one, with all others
that come meanwhile: however many ask for the same partitions, one question is under way and one
waits. Others don't wait behind it: the leader of one partition may be away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Lock

from rsm.segment.errors import RetriableError

_THREADS = 16
_CLOSED = "nothing is asked any more"
_Ends = Mapping[int, int]


class SharedEnds:
    """Thread-safe. Threads of its own, as many as needed, from the first question until `close`."""

    def __init__(self, ask: Callable[[Sequence[int]], _Ends]) -> None:
        """`ask` gives the next offset of each partition of the topic, or raises RetriableError."""
        self._ask = ask
        self._askers = ThreadPoolExecutor(_THREADS, "rlmm-ends")
        self._lock = Lock()
        self._waiting: dict[frozenset[int], Future[_Ends]] = {}
        self._under_way: set[frozenset[int]] = set()

    def of(self, partitions: Iterable[int], timeout_ms: int) -> _Ends:
        """Where they end, of now or later. RetriableError."""
        asked = frozenset(partitions)
        with self._lock:
            ends = self._waiting.get(asked)
            if ends is None:
                if asked not in self._under_way:
                    self._submit(asked)
                ends = self._waiting[asked] = Future()
        try:
            return ends.result(timeout_ms / 1000)
        except TimeoutError as error:
            raise RetriableError("the topic's ends were not told in time") from error
        except CancelledError as error:
            raise RetriableError(_CLOSED) from error

    def close(self) -> None:
        """Ask nothing more; who waits for a question that was not put is told so. Idempotent."""
        self._askers.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for ends in waiting.values():
            ends.cancel()

    def _submit(self, asked: frozenset[int]) -> None:
        """With the lock held."""
        try:
            self._askers.submit(self._put, asked)
        except RuntimeError as error:  # how an executor says that it was shut down
            raise RetriableError(_CLOSED) from error
        self._under_way.add(asked)

    def _put(self, asked: frozenset[int]) -> None:
        with self._lock:
            ends = self._waiting.pop(asked, None)
        if ends is None:
            return
        try:
            ends.set_result(self._ask(sorted(asked)))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            ends.set_exception(error)
        with self._lock:
            self._under_way.discard(asked)
            if asked not in self._waiting:
                return
            try:
                self._submit(asked)
            except RetriableError:
                self._waiting.pop(asked).cancel()
