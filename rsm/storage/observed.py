"""A chunk storage that tells somebody of every request and how it ended. Changes nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rsm.storage.chunk_storage import ChunkStorage, DeleteOutcome
from rsm.storage.wrapper import ChunkStorageWrapper

OK = "ok"


class ObservedChunkStorage(ChunkStorageWrapper):
    """Hands every request on; `observe(operation, result)` is called when it has ended.

    The result is `ok` or the error's class. `delete_many` is one request with a result per name; a
    listing is one request that ends with its iterator. `observe` must be thread-safe.
    """

    def __init__(self, inner: ChunkStorage, observe: Callable[[str, str], None]) -> None:
        super().__init__(inner)
        self._observe = observe

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        outcomes = self._inner.delete_many(names)
        for outcome in outcomes:
            self._observe("delete_many", _result_of(outcome.error))
        return outcomes

    @contextmanager
    def _request(self, operation: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._observe(operation, _result_of(error))
            raise
        self._observe(operation, OK)


def _result_of(error: Exception | None) -> str:
    return OK if error is None else type(error).__name__
