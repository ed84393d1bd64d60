"""Knows the right store by an object that must be in it.

A directory that is not mounted, or another bucket, answers as an empty store does. What is copied
there is lost when the right one is back, and what is missing there was never lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.storage.chunk_storage import ChunkStorage

_LOOKED_FOR_MAX = 16
_OF_A_PARTITION_MAX = 4
_MISSING_MIN = 2
"""One object alone may be lost; the manager repairs it."""


class StoreWitness:
    """One thread's."""

    def __init__(
        self,
        storage: ChunkStorage,
        metadata: RemoteLogMetadataManager,
        led: Callable[[], Iterable[TopicIdPartition]],
    ) -> None:
        """`led`: the partitions whose finished segments are looked for."""
        self._storage = storage
        self._metadata = metadata
        self._led = led
        self._key: str | None = None

    def require(self) -> None:
        """RetriableError if objects must be in the store, and none that is looked for is."""
        if self._key is not None and self._storage.exists(self._key):
            return
        self._key = None
        keys = tuple(islice(self._keys(), _LOOKED_FOR_MAX))
        self._key = next((key for key in keys if self._storage.exists(key)), None)
        if self._key is None and len(keys) >= _MISSING_MIN:
            raise RetriableError(
                "none of the stored objects is in the store: is it the right one, and mounted?",
                looked_for=len(keys),
                example=keys[0],
            )

    def _keys(self) -> Iterator[str]:
        finished = (SegmentState.COPY_SEGMENT_FINISHED,)
        for tip in self._led():
            records = self._metadata.list_remote_log_segments(tip, states=finished)
            for record in islice(records, _OF_A_PARTITION_MAX):
                yield from (stored.key for stored in record.metadata.objects[:1])
