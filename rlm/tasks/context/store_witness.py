"""Recognizes the store of the earlier segments by an object that must be in it.

A directory that is not mounted, or another bucket, looks like an empty store. **Data loss:**
segments copied there are missing when the right store is back. Segments missing there are not lost.

    each cycle looks for an object → starts copies, trims and deletions
    objects of a copy are written and verified → the copy looks for an object
    → COPY_SEGMENT_FINISHED

So a store that is replaced while copies run gets no finished segment. Every finished segment is
then in one store, and any of its objects proves that store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
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
    """The store has none of the objects that were looked for, although some must be there."""


class StoreWitness:
    """Recognizes one store by an object that must be in it.

    One thread calls `require`; `require_again` is thread-safe.
    """

    def __init__(self, storage: ChunkStorage, metadata: RemoteLogMetadataManager) -> None:
        self._storage = storage
        self._metadata = metadata
        self._partitions: tuple[TopicIdPartition, ...] = ()
        self._key: str | None = None
        """An object that was found; other threads replace it, so each call reads it once."""

    def require(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Look for objects of finished segments of these partitions.

        Raises WrongStoreError, or RetriableError if the store does not answer.
        """
        self._partitions = tuple(partitions)
        self.require_again()

    def require_again(self) -> None:
        """Look again for objects of the partitions of the last `require`, and raise as it does."""
        key = self._key
        if key is not None and self._storage.exists(key):
            return
        keys = tuple(islice(self._keys(self._partitions), _LOOKED_FOR_MAX))
        self._key = found = next((key for key in keys if self._storage.exists(key)), None)
        if found is None and len(keys) >= _MISSING_MIN:
            raise WrongStoreError(
                "none of the stored objects is in the store: it is another store, or not mounted",
                looked_for=len(keys),
                example=keys[0],
            )

    def _keys(self, partitions: Iterable[TopicIdPartition]) -> Iterator[str]:
        """Yield keys of each partition's newest segments, which expire last, then of its oldest."""
        for tip in partitions:
            with suppress(RetriableError):  # the follower has not read its metadata to the end
                for metadata in self._at_both_ends(tip):
                    yield from metadata.object_keys[:1]

    def _at_both_ends(self, tip: TopicIdPartition) -> Iterable[RemoteLogSegmentMetadata]:
        finished = (SegmentState.COPY_SEGMENT_FINISHED,)
        records = self._metadata.list_remote_log_segments(tip, states=finished)
        oldest = [record.metadata for record in islice(records, _AT_EACH_END)]
        newest = deque((record.metadata for record in records), maxlen=_AT_EACH_END)
        return (*reversed(newest), *oldest)
