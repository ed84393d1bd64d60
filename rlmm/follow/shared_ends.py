"""Shares requests for the topic's end offsets among concurrent callers.

A response covers only records that were written before its request. So a caller cannot use a
request sent before its call: it waits for the next request, which all such callers share.
Thus each set of partitions has at most one running and one waiting request. Requests for different
sets run in parallel, because the leader of one partition may be unavailable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Lock

from rsm.segment.errors import RetriableError

_THREADS = 16
_CLOSED = "cannot read the metadata topic's end offsets: the client is closed"
_Ends = Mapping[int, int]


class SharedEnds:
    """Shares requests for end offsets. Thread-safe. Starts up to 16 threads as needed."""

    def __init__(self, ask: Callable[[Sequence[int]], _Ends]) -> None:
        """`ask` returns the next offset of each partition, or raises RetriableError."""
        self._ask = ask
        self._askers = ThreadPoolExecutor(_THREADS, "rlmm-ends")
        self._lock = Lock()
        self._waiting: dict[frozenset[int], Future[_Ends]] = {}
        self._under_way: set[frozenset[int]] = set()

    def of(self, partitions: Iterable[int], timeout_ms: int) -> _Ends:
        """Return the end offsets as of this call or later.

        Raises RetriableError after `close`, or if the brokers do not return them in time.
        """
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
            raise RetriableError(
                "cannot read the metadata topic's end offsets: the brokers did not respond in time",
                timeout_ms=timeout_ms,
            ) from error
        except CancelledError as error:
            raise RetriableError(_CLOSED) from error

    def close(self) -> None:
        """Send no more requests, and cancel the waiting ones. Idempotent."""
        self._askers.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for ends in waiting.values():
            ends.cancel()

    def _submit(self, asked: frozenset[int]) -> None:
        """Start a request; the caller must have acquired the lock."""
        try:
            self._askers.submit(self._request, asked)
        except RuntimeError as error:  # The executor was shut down.
            raise RetriableError(_CLOSED) from error
        self._under_way.add(asked)

    def _request(self, asked: frozenset[int]) -> None:
        with self._lock:
            ends = self._waiting.pop(asked, None)
        if ends is None:
            return
        try:
            ends.set_result(self._ask(sorted(asked)))
        except BaseException as error:  # noqa: BLE001 - raised in the waiting callers
            ends.set_exception(error)
        with self._lock:
            self._under_way.discard(asked)
            if asked not in self._waiting:
                return
            try:
                self._submit(asked)
            except RetriableError:
                self._waiting.pop(asked).cancel()
