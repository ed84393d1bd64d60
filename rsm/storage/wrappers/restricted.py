"""Wraps chunk storages to disable some of their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rsm.segment.errors import UnsupportedError
from rsm.segment.local_segment import ContentSource
from rsm.storage.chunk_storage import Capabilities, Concat, DeleteOutcome
from rsm.storage.names import check_name
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper


class ReadOnlyChunkStorage(ChunkStorageWrapper):
    """Represents a read-only store: each change fails with UnsupportedError and has no effect."""

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
    """Represents a store that creates, joins and deletes chunks but cannot change them in place."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(self._inner.capabilities, can_append=False, can_truncate=False)

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        raise _unchangeable(name)

    def truncate(self, name: str, length_bytes: int) -> None:
        raise _unchangeable(name)


def _read_only(name: str) -> UnsupportedError:
    check_name(name)
    return UnsupportedError("cannot change the store: it is configured as read-only", name=name)


def _unchangeable(name: str) -> UnsupportedError:
    check_name(name)
    return UnsupportedError(
        "cannot change the chunk in place: the store does not support it", name=name
    )
