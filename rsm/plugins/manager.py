"""Calls a plug-in's remote storage manager: maps its errors, limits its time, checks its results.

**Data loss:** without remote.copy.verify=read, a copy counts even if the plug-in stored other bytes
than it read, and a trim can then remove the last good copy.

A copy counts, and can permit a trim, only if all of these are true:

- the objects are the planned ones, in order, each with a length and a CRC32C
- each key has the id of the segment, so that no deletion removes another segment's object
- the plug-in read the whole log
- with remote.copy.verify=read, its own `fetch_log_segment` returns the same bytes

The result of `check_objects` counts only if it names no objects outside of the segment's record. An
error, or a result that breaks these rules, permits no trim. It leads to no deletion, except that of
the failed copy's own objects.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from rsm.plugins.calls import CallWatch, PluginCalls
from rsm.plugins.given import BytesRead, CountedLog, WatchedAttempt
from rsm.plugins.results import require_described, require_names, require_type, require_types
from rsm.segment.copy_into import copy_into
from rsm.segment.errors import CorruptError, NotFoundError, TieredStorageError
from rsm.segment.ids import RemoteLogSegmentId, id_to_text
from rsm.segment.local_segment import AbortedTransaction, LogSegmentData
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange
from rsm.spi import (
    CopiedSegment,
    CopyAttempt,
    IndexType,
    ObjectFault,
    PlannedObjects,
    RemoteStorageManager,
)
from rsm.transfer import ReadBack, read_all

T = TypeVar("T")
_log = logging.getLogger(__name__)


class PluginStorageManager(RemoteStorageManager):
    """Passes calls on to `inner`, except those of streams and layouts. Thread-safe if `inner` is.

    `close` closes `inner`. With `read_back`, reads each log again in pieces after its copy.
    """

    def __init__(
        self, inner: RemoteStorageManager, calls: PluginCalls, read_back: ReadBack | None = None
    ) -> None:
        self._inner = inner
        self._calls = calls
        self._read_back = read_back

    def plan_objects(
        self, segment_id: RemoteLogSegmentId, base_offset: int, *, size_bytes: int
    ) -> PlannedObjects:
        def plan() -> PlannedObjects:
            planned = require_type(
                self._inner.plan_objects(segment_id, base_offset, size_bytes=size_bytes),
                PlannedObjects,
            )
            require_type(planned.layout, str)
            objects = require_types(planned.objects, StoredObject)
            keys = {require_described(each).key for each in objects}
            if not keys or len(keys) < len(planned.objects):
                raise ValueError("the plan names no object, or one object twice")
            ids = (id_to_text(segment_id.id), str(segment_id.id))
            if not all(any(each in key for each in ids) for key in keys):
                raise ValueError("a key lacks the segment's id, and could be another segment's")
            return planned

        return self._calls.run("plan_objects", plan)

    def copy_log_segment_data(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> CopiedSegment:
        watch = CallWatch()
        log = CountedLog(source=data.log, watch=watch)
        watched = WatchedAttempt(attempt, watch)

        def copy() -> CopiedSegment:
            copied = self._inner.copy_log_segment_data(metadata, replace(data, log=log), watched)
            return _require_described(require_type(copied, CopiedSegment), metadata)

        found = self._calls.run("copy_log_segment_data", copy, watch)
        stored = replace(metadata, objects=found.objects, custom_metadata=found.custom_metadata)
        try:
            self._require_stored(stored, data.log.length_bytes, log.read, attempt)
        except BaseException:
            self._discard(stored)
            raise
        return found

    def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, positions: ByteRange) -> bytes:
        def fetch() -> bytes:
            found = self._inner.fetch_log_segment(metadata, positions)
            if len(require_type(found, bytes)) > len(positions):
                raise ValueError(f"too many bytes: {len(found)} for a range of {len(positions)}")
            return found

        return self._calls.run("fetch_log_segment", fetch)

    def fetch_log_segment_into(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, target: memoryview
    ) -> int:
        """Copy the result of a fetch, so that no abandoned call can write into `target`."""
        return copy_into(target, self.fetch_log_segment(metadata, positions))

    def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        return self._run(
            "fetch_index", lambda: self._inner.fetch_index(metadata, index_type), bytes
        )

    def fetch_aborted_transactions(
        self, metadata: RemoteLogSegmentMetadata
    ) -> tuple[AbortedTransaction, ...]:
        return self._calls.run(
            "fetch_aborted_transactions",
            lambda: require_types(
                self._inner.fetch_aborted_transactions(metadata), AbortedTransaction
            ),
        )

    def check_objects(
        self, metadata: RemoteLogSegmentMetadata, *, read: bool, attempt: CopyAttempt
    ) -> tuple[ObjectFault, ...]:
        watch = CallWatch()
        watched = WatchedAttempt(attempt, watch)

        def check() -> tuple[ObjectFault, ...]:
            faults = self._inner.check_objects(metadata, read=read, attempt=watched)
            for each in require_types(faults, ObjectFault):
                require_type(each.is_missing, bool)
            others = {each.object_key for each in faults} - set(metadata.object_keys)
            if others:
                raise ValueError(f"the faults name objects that the record lacks: {sorted(others)}")
            return faults

        return self._calls.run("check_objects", check, watch)

    def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        self._calls.run(
            "delete_log_segment_data", lambda: self._inner.delete_log_segment_data(metadata)
        )

    def kept_objects(self) -> Collection[str]:
        return self._calls.run("kept_objects", lambda: require_names(self._inner.kept_objects()))

    def forget(self, keys: Iterable[str]) -> None:
        names = tuple(keys)
        self._calls.run("forget", lambda: self._inner.forget(names))

    def close(self) -> None:
        self._calls.run("close", self._inner.close)

    def _run(self, method: str, call: Callable[[], T], expected: type[object]) -> T:
        return self._calls.run(method, lambda: require_type(call(), expected))

    def _require_stored(
        self,
        metadata: RemoteLogSegmentMetadata,
        length_bytes: int,
        read: BytesRead,
        attempt: CopyAttempt,
    ) -> None:
        """Raise CorruptError unless the plug-in read the whole log and returns the same bytes.

        Checks the returned bytes only with read-back.
        """
        read.require_whole(metadata.segment_id, length_bytes)
        if self._read_back is None:
            return
        try:
            stored_bytes, checksum = read_all(
                partial(self.fetch_log_segment, metadata), attempt, self._read_back
            )
        except NotFoundError as error:
            raise CorruptError(
                "the plug-in does not find the log that it copied", segment_id=metadata.segment_id
            ) from error
        if (stored_bytes, checksum) != (length_bytes, read.crc32c):
            raise CorruptError(
                "the plug-in returns other bytes than it read for the copy",
                segment_id=metadata.segment_id,
                length_bytes=length_bytes,
                stored_bytes=stored_bytes,
                crc32c=read.crc32c,
                stored_crc32c=checksum,
            )

    def _discard(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Delete the objects of a failed copy. The leader's manager deletes those that remain."""
        try:
            self.delete_log_segment_data(metadata)
        except TieredStorageError as error:
            _log.warning(
                LogLine(
                    "cannot delete the objects of a failed attempt",
                    segment_id=metadata.segment_id,
                    error=error,
                )
            )


def _require_described(copied: CopiedSegment, metadata: RemoteLogSegmentMetadata) -> CopiedSegment:
    """Return the copy. Raises ValueError unless it has the planned objects, lengths and CRC32Cs."""
    require_type(copied.custom_metadata, bytes)
    objects = require_types(copied.objects, StoredObject)
    if [each.key for each in objects] != list(metadata.object_keys):
        raise ValueError("cannot accept the copy: its object keys differ from the planned keys")
    if any(
        each.length_bytes is None or each.crc32c is None for each in map(require_described, objects)
    ):
        raise ValueError("cannot accept the copy: an object lacks its length or CRC32C")
    return copied
