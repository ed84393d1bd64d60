"""Deletes the objects of many segments in bulk, each segment's companion last.

The companion describes the other objects, so it exists as long as any of them does.
"""

from __future__ import annotations

from collections.abc import Sequence

from rsm.segment.errors import TieredStorageError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.storage.chunk_storage import ChunkStorage

DeletionResult = str
"""Empty if no object of the segment exists any more; else the first failure, with its object."""


def delete_segments(
    storage: ChunkStorage, segments: Sequence[RemoteLogSegmentMetadata]
) -> list[DeletionResult]:
    """Return a result per segment, in order; an absent object counts as deleted. Never raises."""
    keys = [[stored.key for stored in segment.objects] for segment in segments]
    failures = _delete(storage, [key for each in keys for key in each[:-1]])
    results = [_first_failure(each[:-1], failures) for each in keys]
    companions = [
        each[-1] for each, result in zip(keys, results, strict=True) if each and not result
    ]
    failures |= _delete(storage, companions)
    return [
        result or _first_failure(each, failures) for each, result in zip(keys, results, strict=True)
    ]


def _delete(storage: ChunkStorage, keys: Sequence[str]) -> dict[str, str]:
    """Return the objects that could not be deleted, with the reasons."""
    if not keys:
        return {}
    try:
        outcomes = storage.delete_many(keys)
    except TieredStorageError as error:
        return {key: str(error) for key in keys}
    return {each.name: str(each.error) for each in outcomes if each.error is not None}


def _first_failure(keys: Sequence[str], failures: dict[str, str]) -> DeletionResult:
    return next((f"{key}: {failures[key]}" for key in keys if key in failures), "")
