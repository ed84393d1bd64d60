"""Wraps a plug-in's chunk storage: maps its errors, limits its time, and checks its results.

If a result violates the SPI, `create_with_content` raises CorruptError, and other methods raise
RetriableError. Neither means that a chunk is absent or deleted. `rlm` computes the length and the
CRC32C of a new chunk itself, from the bytes that the plug-in takes, and compares them with `info`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from rsm.plugins.calls import CallWatch, PluginCalls
from rsm.plugins.given import CountedSource
from rsm.plugins.results import require_info, require_names, require_type, require_types
from rsm.segment.copy_into import copy_into
from rsm.segment.errors import CorruptError, TieredStorageError
from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import Capabilities, ChunkInfo, ChunkStorage, DeleteOutcome
from rsm.storage.lifecycle_rules import LifecycleRule
from rsm.storage.names import sort_key

T = TypeVar("T")


class PluginChunkStorage(ChunkStorage):
    """Passes all requests, including `close`, on to `inner`. Thread-safe if `inner` is."""

    def __init__(self, inner: ChunkStorage, calls: PluginCalls) -> None:
        """Raise RetriableError if the plug-in returns no valid capabilities."""
        self._inner = inner
        self._calls = calls
        found = self._run("capabilities", lambda: inner.capabilities, Capabilities)
        self._capabilities = replace(found, has_confirmed_creation=False)

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        watch = CallWatch()
        counted = CountedSource(source=source, watch=watch)
        found = self._calls.run(
            "create_with_content",
            lambda: self._inner.create_with_content(name, counted, attributes=attributes),
            watch,
        )
        read = counted.read
        is_whole = read.length_bytes is not None and source.length_bytes in {
            None,
            read.length_bytes,
        }
        if not is_whole or found != read.crc32c:
            raise CorruptError(
                "cannot create the chunk: the plug-in did not store the bytes of the source",
                name=name,
                length_bytes=source.length_bytes,
                read_bytes=read.length_bytes,
                crc32c=read.crc32c,
                reported_crc32c=found,
            )
        return read.crc32c

    def create(self, name: str) -> None:
        self._calls.run("create", lambda: self._inner.create(name))

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        content = bytes(data)  # An abandoned call must not see later changes of a buffer.
        self._calls.run("append", lambda: self._inner.append(name, offset_bytes, content))

    def truncate(self, name: str, length_bytes: int) -> None:
        self._calls.run("truncate", lambda: self._inner.truncate(name, length_bytes))

    def concat(self, target: str, sources: Sequence[str]) -> None:
        self._calls.run("concat", lambda: self._inner.concat(target, sources))

    def exists(self, name: str) -> bool:
        return self._run("exists", lambda: self._inner.exists(name), bool)

    def info(self, name: str) -> ChunkInfo:
        return self._calls.run("info", lambda: _named(self._inner.info(name), name))

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        def read() -> bytes:
            found = self._inner.read_range(name, positions)
            if len(found) > len(positions):
                raise ValueError(f"the result has {len(found)} bytes, expected <= {len(positions)}")
            return found

        return self._run("read_range", read, bytes)

    def read_range_into(self, name: str, positions: ByteRange, target: memoryview) -> int:
        """Copy the result of `read_range`: an abandoned call must not write into a buffer."""
        return copy_into(target, self.read_range(name, positions))

    def delete(self, name: str) -> None:
        self._calls.run("delete", lambda: self._inner.delete(name))

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        def delete() -> tuple[DeleteOutcome, ...]:
            outcomes = require_types(self._inner.delete_many(names), DeleteOutcome)
            if [outcome.name for outcome in outcomes] != list(names):
                raise ValueError("the outcomes do not name the given chunks in the given order")
            for each in outcomes:
                error = each.error
                if error is None:
                    continue
                if not self._calls.hide_secrets(require_type(error, TieredStorageError)):
                    raise ValueError("the error of an outcome cannot be shown")
            return outcomes

        return self._calls.run("delete_many", delete)

    def discard_uploads(self, name: str) -> None:
        self._calls.run("discard_uploads", lambda: self._inner.discard_uploads(name))

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        infos = self._calls.items("list", lambda: self._inner.list(prefix, after=after))
        last = after
        for info in infos:
            with self._calls.mapped("list"):
                last = _next_name(require_info(info), prefix, last)
            yield info

    def lifecycle_rules(self) -> tuple[LifecycleRule, ...]:
        return self._calls.run(
            "lifecycle_rules", lambda: require_types(self._inner.lifecycle_rules(), LifecycleRule)
        )

    def check_access(self) -> None:
        self._calls.run("check_access", self._inner.check_access)

    def kept(self) -> Collection[str]:
        return self._calls.run("kept", lambda: require_names(self._inner.kept()))

    def forget(self, name: str) -> None:
        self._calls.run("forget", lambda: self._inner.forget(name))

    def close(self) -> None:
        self._calls.run("close", self._inner.close)

    def _run(self, method: str, call: Callable[[], T], expected: type[object]) -> T:
        return self._calls.run(method, lambda: require_type(call(), expected))


def _next_name(info: ChunkInfo, prefix: str, last: str) -> str:
    """Return the name of a listed chunk. Raises ValueError unless it is the next of the prefix."""
    name = info.name
    if not name.startswith(prefix):
        raise ValueError(f"the listing of {prefix!r} contains another name: {name!r}")
    if sort_key(name) <= sort_key(last):
        raise ValueError(f"the listing is not sorted: {name!r} follows {last!r}")
    return name


def _named(found: ChunkInfo, name: str) -> ChunkInfo:
    if require_info(found).name != name:
        raise ValueError(f"the result describes another chunk: {found.name!r}")
    return found
