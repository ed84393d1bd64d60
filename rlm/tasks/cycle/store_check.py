"""Checks that the store is reachable and the right one, and once whether its rules delete objects.

A directory that is not mounted, or another bucket, looks like an empty store. **Data loss:**
segments copied there are missing when the right store is back. Segments missing there are not lost.
So an object that must be in the store proves that it is the right one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.storage.chunk_storage import ChunkStorage

_log = logging.getLogger(__name__)

_LOOKED_FOR_MAX = 16
_AT_EACH_END = 2
_MISSING_MIN = 2
"""The manager repairs a single lost object, so one is no proof."""


class StoreCheck:
    """Checks access to one store and, once, its rules. Not thread-safe."""

    def __init__(self, storage: ChunkStorage, *, key_prefix: str) -> None:
        """Check rules for keys that begin with `key_prefix`, the common prefix of all objects."""
        self._storage = storage
        self._key_prefix = key_prefix
        self._has_read_rules = False
        self._problem = ""

    def step(self) -> None:
        """Check access, and raise as `ChunkStorage.check_access`. Only logs what the rules say."""
        self._storage.check_access()
        if not self._has_read_rules:
            self._read_rules()

    def _read_rules(self) -> None:
        """Log the rules once. Repeat after an error, and log the same error only once."""
        try:
            rules = self._storage.lifecycle_rules()
        except TieredStorageError as error:
            if str(error) != self._problem:
                _log.info(LogLine("cannot read the bucket's lifecycle rules", error=error))
            self._problem = str(error)
            return
        self._has_read_rules = True
        for rule in rules:
            if rule.can_affect(self._key_prefix):
                _log.warning(
                    LogLine(
                        "the bucket deletes or archives stored segments by itself: remove its rule",
                        rule=rule,
                    )
                )


class WrongStoreError(RetriableError):
    """The store has none of the objects that were looked for, although some must be there."""


class StoreWitness:
    """Recognizes one store by an object that must be in it. Not thread-safe."""

    def __init__(self, storage: ChunkStorage, metadata: RemoteLogMetadataManager) -> None:
        self._storage = storage
        self._metadata = metadata
        self._key: str | None = None

    def require(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Look for objects of finished segments of these partitions.

        Raises WrongStoreError, or RetriableError if the store does not answer.
        """
        if self._key is not None and self._storage.exists(self._key):
            return
        self._key = None
        keys = tuple(islice(self._keys(partitions), _LOOKED_FOR_MAX))
        self._key = next((key for key in keys if self._storage.exists(key)), None)
        if self._key is None and len(keys) >= _MISSING_MIN:
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
