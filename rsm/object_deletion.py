"""Deletes the objects of segments in bulk, each segment's companion last.

The companion describes the other objects, so it must exist as long as any of them. A writer that
was killed, or does not know yet that it is fenced, may have an upload in progress: it is discarded
first, so that no object can appear after its deletion.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.storage.chunk_storage import ChunkStorage

_log = logging.getLogger(__name__)

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
    _discard_uploads(storage, segments)
    failures = dict(delete_objects(storage, [key for each in keys for key in each[:-1]]))
    companions = [each[-1] for each in keys if each and failures.keys().isdisjoint(each)]
    failures |= delete_objects(storage, companions)
    return [{key: failures[key] for key in each if key in failures} for each in keys]


def _discard_uploads(storage: ChunkStorage, segments: Sequence[RemoteLogSegmentMetadata]) -> None:
    """Discard the uploads of objects without a recorded length: they may never have been complete.

    A failure, as of a missing permission, delays no deletion: the parts only cost storage.
    """
    unfinished = [
        stored.key
        for segment in segments
        for stored in segment.objects
        if stored.length_bytes is None
    ]
    if not unfinished:
        return
    try:
        storage.discard_uploads(unfinished)
    except TieredStorageError as error:
        _log.warning(
            LogLine(
                "cannot discard the unfinished uploads of a failed copy, their parts stay until a "
                "rule of the store removes them",
                first_key=unfinished[0],
                error=error,
            )
        )


def delete_objects(storage: ChunkStorage, keys: Sequence[str]) -> Failures:
    """Delete objects in no particular order; return the failures. Never raises."""
    if not keys:
        return {}
    try:
        outcomes = storage.delete_many(keys)
    except TieredStorageError as error:
        return dict.fromkeys(keys, error)
    return {each.name: each.error for each in outcomes if each.error is not None}
