"""Knows the right store by an object that must be in it.

A directory that is not mounted, or another bucket, answers as an empty store does. What is copied
there is lost when the right one is back, and what is missing there was never lost.
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
"""One object alone may be lost; the manager repairs it."""


class WrongStoreError(RetriableError):
    """Objects must be in the store, and none that is looked for is."""


class StoreWitness:
    """One thread's."""

    def __init__(self, storage: ChunkStorage, metadata: RemoteLogMetadataManager) -> None:
        self._storage = storage
        self._metadata = metadata
        self._key: str | None = None

    def require(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Look for finished segments of these partitions.

        Raises WrongStoreError, or RetriableError if the store does not answer.
        """
        if self._key is not None and self._storage.exists(self._key):
            return
        self._key = None
        keys = tuple(islice(self._keys(partitions), _LOOKED_FOR_MAX))
        self._key = next((key for key in keys if self._storage.exists(key)), None)
        if self._key is None and len(keys) >= _MISSING_MIN:
            raise WrongStoreError(
                "none of the stored objects is in the store: it is another one, or not mounted",
                looked_for=len(keys),
                example=keys[0],
            )

    def _keys(self, partitions: Iterable[TopicIdPartition]) -> Iterator[str]:
        """Of the newest segments, which stay longest, and of the oldest of each partition."""
        for tip in partitions:
            with suppress(RetriableError):  # its metadata is not read to the end yet
                for metadata in self._at_both_ends(tip):
                    yield from (stored.key for stored in metadata.objects[:1])

    def _at_both_ends(self, tip: TopicIdPartition) -> Iterable[RemoteLogSegmentMetadata]:
        finished = (SegmentState.COPY_SEGMENT_FINISHED,)
        records = self._metadata.list_remote_log_segments(tip, states=finished)
        oldest = [record.metadata for record in islice(records, _AT_EACH_END)]
        newest = deque((record.metadata for record in records), maxlen=_AT_EACH_END)
        return (*reversed(newest), *oldest)
