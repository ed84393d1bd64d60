"""SharedEnds: one question for the topic's ends answers all who ask at the same time.

An answer tells what was written before the question was put, so it is of use only to those who
asked before that. Who comes while a question is under way waits for the next one, with all others
that come meanwhile: however many ask, one question is under way and one waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from rsm.segment.errors import RetriableError


@dataclass(slots=True, kw_only=True)
class _Question:
    """Open until it is put: then `partitions` is final."""

    partitions: set[int] = field(default_factory=set)
    ends: Future[Mapping[int, int]] = field(default_factory=Future)


class SharedEnds:
    """Thread-safe. One thread of its own, from the first question on until `close`."""

    def __init__(self, ask: Callable[[Sequence[int]], Mapping[int, int]]) -> None:
        """`ask` gives the next offset of each partition of the topic, or raises RetriableError."""
        self._ask = ask
        self._asker = ThreadPoolExecutor(1, "rlmm-ends")
        self._lock = Lock()
        self._open: _Question | None = None

    def of(self, partitions: Iterable[int], timeout_ms: int) -> Mapping[int, int]:
        """Where they end, of now or later; maybe those of others too. RetriableError."""
        with self._lock:
            question = self._open or self._begin()
            question.partitions.update(partitions)
        try:
            return question.ends.result(timeout_ms / 1000)
        except TimeoutError as error:
            raise RetriableError("the topic's ends were not told in time") from error
        except CancelledError as error:
            raise RetriableError("nothing is asked any more") from error

    def close(self) -> None:
        """Ask nothing more; who waits for a question that was not put is told so. Idempotent."""
        with self._lock:
            question, self._open = self._open, None
        if question is not None:
            question.ends.cancel()
        self._asker.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> _Question:
        try:
            self._asker.submit(self._put)
        except RuntimeError as error:  # how an executor says that it was shut down
            raise RetriableError("nothing is asked any more") from error
        self._open = _Question()
        return self._open

    def _put(self) -> None:
        with self._lock:
            question, self._open = self._open, None
        if question is None:
            return
        try:
            question.ends.set_result(self._ask(sorted(question.partitions)))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            question.ends.set_exception(error)
