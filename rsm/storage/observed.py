"""A chunk storage that tells somebody of every request and how it ended. Changes nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import Capabilities, ChunkInfo, ChunkStorage, DeleteOutcome

OK = "ok"


class ObservedChunkStorage(ChunkStorage):
    """Hands every request on; `observe(operation, result)` is called when it has ended.

    The result is `ok` or the error's class. `delete_many` is one request with a result per name; a
    listing is one request that ends with its iterator. `observe` must be thread-safe.
    """

    def __init__(self, inner: ChunkStorage, observe: Callable[[str, str], None]) -> None:
        self._inner = inner
        self._observe = observe

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        with self._observed("create_with_content"):
            return self._inner.create_with_content(name, source, attributes=attributes)

    def create(self, name: str) -> None:
        with self._observed("create"):
            self._inner.create(name)

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        with self._observed("append"):
            self._inner.append(name, offset_bytes, data)

    def truncate(self, name: str, length_bytes: int) -> None:
        with self._observed("truncate"):
            self._inner.truncate(name, length_bytes)

    def concat(self, target: str, sources: Sequence[str]) -> None:
        with self._observed("concat"):
            self._inner.concat(target, sources)

    def exists(self, name: str) -> bool:
        with self._observed("exists"):
            return self._inner.exists(name)

    def info(self, name: str) -> ChunkInfo:
        with self._observed("info"):
            return self._inner.info(name)

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        with self._observed("read_range"):
            return self._inner.read_range(name, positions)

    def delete(self, name: str) -> None:
        with self._observed("delete"):
            self._inner.delete(name)

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        outcomes = self._inner.delete_many(names)
        for outcome in outcomes:
            self._observe("delete_many", _result_of(outcome.error))
        return outcomes

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        with self._observed("list"):
            yield from self._inner.list(prefix, after=after)

    def check_access(self) -> None:
        with self._observed("check_access"):
            self._inner.check_access()

    def close(self) -> None:
        self._inner.close()

    @contextmanager
    def _observed(self, operation: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._observe(operation, _result_of(error))
            raise
        self._observe(operation, OK)


def _result_of(error: Exception | None) -> str:
    return OK if error is None else type(error).__name__
