"""Deletes the objects of segments in bulk, each segment's companion last.

The companion describes the other objects, so it must exist as long as any of them does. A killed
writer, or a fenced writer that still runs, may have left an upload in progress. The deletion of an
object without a recorded length first discards such uploads, so that none can create the object
again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rsm.segment.errors import TieredStorageError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.storage.chunk_storage import ChunkStorage

Failures = Mapping[str, TieredStorageError]
"""Maps the key of each object that may still exist to the error of its deletion."""


def delete_segments(
    storage: ChunkStorage, segments: Sequence[RemoteLogSegmentMetadata]
) -> list[Failures]:
    """Delete the objects of segments; return the failures of each segment, in order.

    An absent object counts as deleted. If the deletion of another object fails, the segment's
    companion stays, and is not among the failures. An object without a recorded length may be
    incomplete, so its uploads are discarded. Raises no TieredStorageError.
    """
    keys = [segment.object_keys for segment in segments]
    unfinished = {
        stored.key
        for segment in segments
        for stored in segment.objects
        if stored.length_bytes is None
    }
    failures = dict(_delete(storage, [key for each in keys for key in each[:-1]], unfinished))
    companions = [each[-1] for each in keys if each and failures.keys().isdisjoint(each)]
    failures |= _delete(storage, companions, unfinished)
    return [{key: failures[key] for key in each if key in failures} for each in keys]


def delete_unfinished(storage: ChunkStorage, keys: Sequence[str]) -> Failures:
    """Delete objects whose creation may be in progress; return the failures.

    Raises no TieredStorageError.
    """
    return _delete(storage, keys, keys)


def _delete(storage: ChunkStorage, keys: Sequence[str], unfinished: Collection[str]) -> Failures:
    failures: dict[str, TieredStorageError] = {}
    for key in keys:
        if key in unfinished:
            try:
                storage.discard_uploads(key)
            except TieredStorageError as error:
                failures[key] = error
    return failures | dict(delete_objects(storage, [key for key in keys if key not in failures]))


def delete_objects(storage: ChunkStorage, keys: Sequence[str]) -> Failures:
    """Delete objects in no particular order; return the failures.

    Raises no TieredStorageError.
    """
    if not keys:
        return {}
    try:
        outcomes = storage.delete_many(keys)
    except TieredStorageError as error:
        return dict.fromkeys(keys, error)
    return {each.name: each.error for each in outcomes if each.error is not None}
