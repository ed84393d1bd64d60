"""Deletes the objects of many segments in bulk, each segment's companion last.

As long as anything of a segment is there, its companion is, which tells what the rest is.
"""

from __future__ import annotations

from collections.abc import Sequence

from rsm.segment.errors import TieredStorageError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.storage.chunk_storage import ChunkStorage

DeletionResult = str
"""Empty if nothing of the segment is there any more; else why not, with the first object left."""


def delete_segments(
    storage: ChunkStorage, segments: Sequence[RemoteLogSegmentMetadata]
) -> list[DeletionResult]:
    """One result per segment, in order; what is absent already counts as deleted. Never raises."""
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
    """What could not be deleted, and why."""
    if not keys:
        return {}
    try:
        outcomes = storage.delete_many(keys)
    except TieredStorageError as error:
        return {key: str(error) for key in keys}
    return {each.name: str(each.error) for each in outcomes if each.error is not None}


def _first_failure(keys: Sequence[str], failures: dict[str, str]) -> DeletionResult:
    return next((f"{key}: {failures[key]}" for key in keys if key in failures), "")
