"""Recognizes the store of the earlier segments by an object that must be in it.

**Data loss:** segments that are copied to the wrong store are missing once the right store is back.
An unmounted directory or another bucket looks like an empty store. Segments that the wrong store
lacks are not lost: the right store contains them.

    each cycle looks for an object → starts copies, trims and deletions
    objects of a copy are written and verified → the copy looks for an earlier object, then again
    for its own → COPY_SEGMENT_FINISHED

So no copy finishes if another store replaced the right one while the copy ran. Any object of a
finished segment proves that the store is the right one. If the metadata lists only one finished
segment, a missing object proves nothing: it may be lost, and the manager then repairs it.
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
"""One missing object proves nothing: it may be lost, and the manager then repairs it."""


class WrongStoreError(RetriableError):
    """Represents an answer of the wrong store: it lacks objects that must be in the right one."""


class StoreWitness:
    """Recognizes one store by an object that must be in it.

    One thread calls `require`; `require_with` is thread-safe.
    """

    def __init__(self, storage: ChunkStorage, metadata: RemoteLogMetadataManager) -> None:
        self._storage = storage
        self._metadata = metadata
        self._partitions: tuple[TopicIdPartition, ...] = ()
        self._key: str | None = None
        """The key of an object that was found. Other threads replace it: read it once per call."""

    def require(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Look for objects of finished segments of these partitions.

        Raises WrongStoreError if the store contains none of them. Raises RetriableError if the
        store does not answer, or if the metadata cannot show what the store must contain.
        """
        self._partitions = tuple(partitions)
        self._require()

    def require_with(self, own_keys: Iterable[str]) -> None:
        """Repeat the last `require`, then look for objects that were just written.

        Raises the errors of `require`. This order also detects that a wrong store received the
        objects before the right store came back.
        """
        self._require()
        for key in own_keys:
            if not self._storage.exists(key):
                raise WrongStoreError(
                    "cannot finish the copy: its verified object is missing, so another store "
                    "answered",
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
                "cannot use the store: it contains none of the recorded objects. It is another "
                "store, or it is not mounted",
                looked_for=len(keys),
                example=keys[0],
            )
        if found is None and known is not None and not is_complete:
            raise RetriableError(
                "cannot recognize the store: the object that was found before is gone, and the "
                "metadata is not read to its end",
                object=known,
            )
        self._key = found

    def _keys(self, partitions: Iterable[TopicIdPartition]) -> tuple[list[str], bool]:
        """Return at most 16 keys, and whether the metadata of the checked partitions is complete.

        For each partition, the keys of the newest segments come before those of the oldest ones,
        because the newest segments expire last.
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
