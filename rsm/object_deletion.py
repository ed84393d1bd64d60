"""Deletes the objects of segments in bulk, each segment's companion last.

The companion describes the other objects, so it must exist as long as any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rsm.segment.errors import TieredStorageError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.storage.chunk_storage import ChunkStorage

Failures = Mapping[str, TieredStorageError]
"""The keys of objects that may still exist, in the order of their deletion, with the errors."""


def delete_segments(
    storage: ChunkStorage, segments: Sequence[RemoteLogSegmentMetadata]
) -> list[Failures]:
    """Return the failures of each segment, in order; empty if it has no object any more.

    An absent object counts as deleted. The companion of a segment with failures stays, and is not
    one of them. Never raises.
    """
    keys = [[stored.key for stored in segment.objects] for segment in segments]
    failures = dict(delete_objects(storage, [key for each in keys for key in each[:-1]]))
    companions = [each[-1] for each in keys if each and failures.keys().isdisjoint(each)]
    failures |= delete_objects(storage, companions)
    return [{key: failures[key] for key in each if key in failures} for each in keys]


def delete_objects(storage: ChunkStorage, keys: Sequence[str]) -> Failures:
    """Delete objects in no particular order; return the failures. Never raises."""
    if not keys:
        return {}
    try:
        outcomes = storage.delete_many(keys)
    except TieredStorageError as error:
        return dict.fromkeys(keys, error)
    return {each.name: each.error for each in outcomes if each.error is not None}
