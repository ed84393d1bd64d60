"""Checks a plug-in's results, because Python does not check annotations.

A function returns the result, or raises TypeError or ValueError. PluginCalls maps both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from rsm.segment.metadata import StoredObject
from rsm.storage.chunk_storage import ChunkInfo

T = TypeVar("T")

_CRC32C_MAX = (1 << 32) - 1


def require_type(found: T, expected: type[object]) -> T:
    """Return a result of type `expected`."""
    if not isinstance(found, expected):
        raise TypeError(f"{type(found).__name__} instead of {expected.__name__}")
    return found


def require_types(found: tuple[T, ...], expected: type[object]) -> tuple[T, ...]:
    """Return a result that is a tuple of `expected`."""
    for each in require_type(found, tuple):
        require_type(each, expected)
    return found


def require_names(found: Iterable[str]) -> frozenset[str]:
    """Return a result that is a collection of texts."""
    names = frozenset(found)
    for each in names:
        require_type(each, str)
    return names


def require_info(found: ChunkInfo) -> ChunkInfo:
    """Return a description of a chunk. A wrong length or CRC32C would look like damage."""
    require_type(found, ChunkInfo)
    require_type(found.name, str)
    _require_count(found.length_bytes)
    require_type(found.last_modified_ms, int)
    _require_crc32c(found.crc32c)
    require_type(found.attributes, Mapping)
    return found


def require_described(found: StoredObject) -> StoredObject:
    """Return an object of a segment, whose length and CRC32C may be None."""
    require_type(found.key, str)
    if found.length_bytes is not None:
        _require_count(found.length_bytes)
    _require_crc32c(found.crc32c)
    return found


def _require_crc32c(found: int | None) -> None:
    if found is not None and _require_count(found) > _CRC32C_MAX:
        raise ValueError(f"the CRC32C has more than 32 bits: {found}")


def _require_count(found: int) -> int:
    if isinstance(found, bool) or require_type(found, int) < 0:
        raise ValueError(f"the result is no count: {found!r}")
    return found
