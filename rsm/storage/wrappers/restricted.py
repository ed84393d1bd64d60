"""Chunk storages with fewer features than their inner store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rsm.segment.errors import UnsupportedError
from rsm.segment.local_segment import ContentSource
from rsm.storage.chunk_storage import Capabilities, Concat, DeleteOutcome
from rsm.storage.names import check_name
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper


class ReadOnlyChunkStorage(ChunkStorageWrapper):
    """A store for reads only; each change fails with UnsupportedError and changes nothing."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(
            self._inner.capabilities,
            can_append=False,
            can_truncate=False,
            concat=Concat.NONE,
            is_read_only=True,
        )

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        raise _read_only(name)

    def create(self, name: str) -> None:
        raise _read_only(name)

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        raise _read_only(name)

    def truncate(self, name: str, length_bytes: int) -> None:
        raise _read_only(name)

    def concat(self, target: str, sources: Sequence[str]) -> None:
        raise _read_only(target)

    def delete(self, name: str) -> None:
        raise _read_only(name)

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        return tuple(DeleteOutcome(name=name, error=_read_only(name)) for name in names)

    def discard_uploads(self, name: str) -> None:
        raise _read_only(name)


class NoAppendChunkStorage(ChunkStorageWrapper):
    """A store whose chunks can be created, joined and deleted, but not changed in place."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(self._inner.capabilities, can_append=False, can_truncate=False)

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        raise _unchangeable(name)

    def truncate(self, name: str, length_bytes: int) -> None:
        raise _unchangeable(name)


def _read_only(name: str) -> UnsupportedError:
    check_name(name)
    return UnsupportedError("the store is configured to be read only", name=name)


def _unchangeable(name: str) -> UnsupportedError:
    check_name(name)
    return UnsupportedError("chunks of this store cannot be changed in place", name=name)
