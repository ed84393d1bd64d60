"""Builds the error for a stored segment that cannot be read, with its id and with advice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from rsm.segment.errors import CorruptError, NotFoundError, TieredStorageError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.spi import ObjectFault

_MESSAGE = "a stored segment cannot be read"
_E = TypeVar("_E", bound=TieredStorageError)


def unreadable_segment(error: _E, metadata: RemoteLogSegmentMetadata, **context: object) -> _E:
    """Return a read's error with the segment's id, and with advice if the segment is damaged.

    Replaces an error that this function returned before, and keeps only its reason.
    """
    reason = error.context["reason"] if error.message == _MESSAGE else error
    if isinstance(error, NotFoundError | CorruptError):
        context["advice"] = (
            "Restore the object, for example from a version that the store kept. If it is lost, "
            f"`rlm topic resolve {metadata.topic_id_partition.topic} --dry-run` shows how readers "
            "continue without its records"
        )
    return type(error)(_MESSAGE, segment_id=metadata.segment_id, **context, reason=reason)


@contextmanager
def naming_segment(metadata: RemoteLogSegmentMetadata, **context: object) -> Iterator[None]:
    """Name the segment in a NotFoundError or CorruptError that the block raises."""
    try:
        yield
    except (NotFoundError, CorruptError) as error:
        if error.message == _MESSAGE:
            raise
        raise unreadable_segment(error, metadata, offsets=metadata.offsets, **context) from error


def object_fault(
    metadata: RemoteLogSegmentMetadata, error: NotFoundError | CorruptError
) -> ObjectFault:
    """Return the damage that a failed read of a segment shows.

    The damaged object is the first that the error's chain names; if none, the log's first object.
    """
    return ObjectFault(
        object_key=_damaged_key(metadata, error),
        is_missing=isinstance(error, NotFoundError),
        reason=str(error),
    )


def _damaged_key(metadata: RemoteLogSegmentMetadata, error: BaseException) -> str:
    keys = set(metadata.object_keys)
    for each in _chain(error):
        if isinstance(each, TieredStorageError):
            named = next((v for v in each.context.values() if v in keys), None)
            if named is not None:
                return str(named)
    return metadata.objects[0].key


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(16):
        if error is None:
            return
        yield error
        error = error.__cause__
