"""Implements ChunkStorage in this process's memory, with append, truncate and concat.

Tests compare other bindings with this store, and simulations use it. A configuration cannot select
it, because its chunks are lost when the process ends.

Memory: all chunks, and during a change at most twice the new content of the changed chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crc32c import crc32c

from rsm.segment.errors import AlreadyExistsError, CorruptError, NotFoundError
from rsm.segment.local_segment import ContentSource, acknowledge
from rsm.segment.ranges import ByteRange
from rsm.storage.changes import require_as_long, require_at_end, require_distinct
from rsm.storage.chunk_storage import Capabilities, ChunkInfo, ChunkStorage, Concat
from rsm.storage.names import check_name, sort_key

_CAPABILITIES = Capabilities(
    can_append=True,
    can_truncate=True,
    concat=Concat.NATIVE,
    has_inline_attributes=True,
    has_stored_checksum=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    content: bytes
    crc32c: int
    last_modified_ms: int
    attributes: Mapping[str, str] = field(default_factory=dict)


class MemoryChunkStorage(ChunkStorage):
    """Stores chunks in a dictionary. Thread-safe; reads sources without the lock."""

    def __init__(self, *, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._chunks: dict[str, _Chunk] = {}
        self._lock = threading.Lock()

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        check_name(name)
        content = bytearray()
        for view in source.chunks():
            content += view
            acknowledge(source, len(view))
        if source.length_bytes not in (None, len(content)):
            raise CorruptError(
                "the source's length differs from the announced length",
                name=name,
                announced_bytes=source.length_bytes,
                yielded_bytes=len(content),
            )
        chunk = self._chunk(bytes(content), attributes or {})
        self._add(name, chunk)
        return chunk.crc32c

    def create(self, name: str) -> None:
        check_name(name)
        self._add(name, self._chunk(b"", {}))

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        with self._lock:
            chunk = self._get(name)
            length_bytes = len(chunk.content)
            require_at_end(name, offset_bytes=offset_bytes, length_bytes=length_bytes)
            self._replace(name, chunk.content + bytes(data))

    def truncate(self, name: str, length_bytes: int) -> None:
        with self._lock:
            chunk = self._get(name)
            current_bytes = len(chunk.content)
            require_as_long(name, wanted_bytes=length_bytes, length_bytes=current_bytes)
            self._replace(name, chunk.content[:length_bytes])

    def concat(self, target: str, sources: Sequence[str]) -> None:
        require_distinct(target, sources)
        with self._lock:
            joined = [self._get(name).content for name in (target, *sources)]
            self._replace(target, b"".join(joined))
            for name in sources:
                del self._chunks[name]

    def exists(self, name: str) -> bool:
        check_name(name)
        with self._lock:
            return name in self._chunks

    def info(self, name: str) -> ChunkInfo:
        with self._lock:
            return _info(name, self._get(name))

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        with self._lock:
            content = self._get(name).content
        return content[positions.start_position : positions.end_position]

    def delete(self, name: str) -> None:
        with self._lock:
            self._get(name)
            del self._chunks[name]

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        with self._lock:
            found = [
                _info(name, chunk)
                for name, chunk in self._chunks.items()
                if name.startswith(prefix) and sort_key(name) > sort_key(after)
            ]
        yield from sorted(found, key=lambda info: sort_key(info.name))

    def check_access(self) -> None:
        return None

    def close(self) -> None:
        return None

    def _chunk(self, content: bytes, attributes: Mapping[str, str]) -> _Chunk:
        return _Chunk(
            content=content,
            crc32c=crc32c(content),
            last_modified_ms=self._wall_ms(),
            attributes=dict(attributes),
        )

    def _add(self, name: str, chunk: _Chunk) -> None:
        with self._lock:
            if name in self._chunks:
                raise AlreadyExistsError("the chunk already exists", name=name)
            self._chunks[name] = chunk

    def _get(self, name: str) -> _Chunk:
        check_name(name)
        try:
            return self._chunks[name]
        except KeyError:
            raise NotFoundError("the object is not in the store", name=name) from None

    def _replace(self, name: str, content: bytes) -> None:
        self._chunks[name] = replace(
            self._chunks[name],
            content=content,
            crc32c=crc32c(content),
            last_modified_ms=self._wall_ms(),
        )


def _info(name: str, chunk: _Chunk) -> ChunkInfo:
    return ChunkInfo(
        name=name,
        length_bytes=len(chunk.content),
        last_modified_ms=chunk.last_modified_ms,
        crc32c=chunk.crc32c,
        attributes=dict(chunk.attributes),
    )
