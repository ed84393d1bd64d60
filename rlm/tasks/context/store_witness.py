"""Recognizes the store of the earlier segments by an object that must be in it.

A directory that is not mounted, or another bucket, looks like an empty store. **Data loss:**
segments copied to the wrong store are missing once the right one is back. Segments that the wrong
store lacks are not lost: the right one has them.

    each cycle looks for an object → starts copies, trims and deletions
    objects of a copy are written and verified → the copy looks for an earlier object, then again
    for its own → COPY_SEGMENT_FINISHED

So no copy finishes in a store that replaced the right one while the copy ran, and any object of a
finished segment proves the store. If only one segment is stored, its absence proves nothing: the
object may be lost, and the manager then repairs it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.storage.chunk_storage import ChunkStorage

_LOOKED_FOR_MAX = 16
_AT_EACH_END = 2
_MISSING_MIN = 2
"""The manager repairs a single lost object, so one is no proof."""


class WrongStoreError(RetriableError):
    """Reports that another store answers: objects that must be in it are missing."""


class StoreWitness:
    """Recognizes one store by an object that must be in it.

    One thread calls `require`; `require_with` is thread-safe.
    """

    def __init__(self, storage: ChunkStorage, metadata: RemoteLogMetadataManager) -> None:
        self._storage = storage
        self._metadata = metadata
        self._partitions: tuple[TopicIdPartition, ...] = ()
        self._key: str | None = None
        """An object that was found; other threads replace it, so each call reads it once."""

    def require(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Look for objects of finished segments of these partitions.

        Raises WrongStoreError, or RetriableError if the store does not answer or if the metadata
        cannot show what must be in it.
        """
        self._partitions = tuple(partitions)
        self._require()

    def require_with(self, own_keys: Iterable[str]) -> None:
        """Look again, as in the last `require`, and then for objects that were just written.

        Raises the errors of `require`. This order also detects that a wrong store got the objects
        before the right store came back.
        """
        self._require()
        for key in own_keys:
            if not self._storage.exists(key):
                raise WrongStoreError(
                    "cannot finish the copy: its verified object is missing, so another store "
                    "answers",
                    object=key,
                )

    def _require(self) -> None:
        known = self._key
        if known is not None and self._storage.exists(known):
            return
        keys, is_complete = self._keys(self._partitions)
        found = next((key for key in keys if self._storage.exists(key)), None)
        if found is None and len(keys) >= _MISSING_MIN:
            raise WrongStoreError(
                "the store has none of the recorded objects: it is another store, or not mounted",
                looked_for=len(keys),
                example=keys[0],
            )
        if found is None and known is not None and not is_complete:
            raise RetriableError(
                "cannot recognize the store: the object found before is gone, and the metadata is "
                "not read to its end",
                object=known,
            )
        self._key = found

    def _keys(self, partitions: Iterable[TopicIdPartition]) -> tuple[list[str], bool]:
        """Return at most 16 keys: of a partition's newest segments, then of its oldest, and so on.

        The newest segments expire last. Also returns whether the metadata of all checked partitions
        was read to its end.
        """
        keys: list[str] = []
        is_complete = True
        for tip in partitions:
            try:
                found = self._at_both_ends(tip)
            except RetriableError:
                is_complete = False
                continue
            keys += [key for metadata in found for key in metadata.object_keys[:1]]
            if len(keys) >= _LOOKED_FOR_MAX:
                break
        return keys[:_LOOKED_FOR_MAX], is_complete

    def _at_both_ends(self, tip: TopicIdPartition) -> Iterable[RemoteLogSegmentMetadata]:
        finished = (SegmentState.COPY_SEGMENT_FINISHED,)
        records = self._metadata.list_remote_log_segments(tip, states=finished)
        oldest = [record.metadata for record in islice(records, _AT_EACH_END)]
        newest = deque((record.metadata for record in records), maxlen=_AT_EACH_END)
        return (*reversed(newest), *oldest)
