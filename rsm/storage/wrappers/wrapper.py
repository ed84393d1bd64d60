"""Defines the base of all wrappers, with a hook around each request for subclasses.

A wrapper behaves like its inner store, except where its docstring says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import Capabilities, ChunkInfo, ChunkStorage, DeleteOutcome
from rsm.storage.lifecycle_rules import LifecycleRule


class ChunkStorageWrapper(ChunkStorage):
    """Passes all requests, including `close`, to `inner`.

    A wrapper that overrides `read_range` must also override `read_range_into`.
    """

    def __init__(self, inner: ChunkStorage) -> None:
        self._inner = inner

    def _request(self, operation: str, name: str) -> AbstractContextManager[None]:
        """Return the context of each request; a listing's lasts until its iterator ends.

        `name` is a chunk or a listing's prefix; empty for `delete_many` and for other requests.
        """
        return nullcontext()

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
        with self._request("create_with_content", name):
            return self._inner.create_with_content(name, source, attributes=attributes)

    def create(self, name: str) -> None:
        with self._request("create", name):
            self._inner.create(name)

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        with self._request("append", name):
            self._inner.append(name, offset_bytes, data)

    def truncate(self, name: str, length_bytes: int) -> None:
        with self._request("truncate", name):
            self._inner.truncate(name, length_bytes)

    def concat(self, target: str, sources: Sequence[str]) -> None:
        with self._request("concat", target):
            self._inner.concat(target, sources)

    def exists(self, name: str) -> bool:
        with self._request("exists", name):
            return self._inner.exists(name)

    def info(self, name: str) -> ChunkInfo:
        with self._request("info", name):
            return self._inner.info(name)

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        with self._request("read_range", name):
            return self._inner.read_range(name, positions)

    def read_range_into(self, name: str, positions: ByteRange, target: memoryview) -> int:
        with self._request("read_range", name):
            return self._inner.read_range_into(name, positions, target)

    def delete(self, name: str) -> None:
        with self._request("delete", name):
            self._inner.delete(name)

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        with self._request("delete_many", ""):
            return self._inner.delete_many(names)

    def discard_uploads(self, name: str) -> None:
        with self._request("discard_uploads", name):
            self._inner.discard_uploads(name)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        with self._request("list", prefix):
            yield from self._inner.list(prefix, after=after)

    def lifecycle_rules(self) -> tuple[LifecycleRule, ...]:
        with self._request("lifecycle_rules", ""):
            return self._inner.lifecycle_rules()

    def check_access(self) -> None:
        with self._request("check_access", ""):
            self._inner.check_access()

    def kept(self) -> Collection[str]:
        return self._inner.kept()

    def forget(self, name: str) -> None:
        self._inner.forget(name)

    def close(self) -> None:
        self._inner.close()
