"""Lists the errors that each method of an SPI may raise besides RetriableError.

Any other error of a plug-in must not reach `rlm`: a caller would react to a FencedError as to a
lost lead, and to a NotFoundError of a listing as to missing data.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)

_Errors = tuple[type[TieredStorageError], ...]

_REFUSED: _Errors = (InvalidConfigError, UnsupportedError)
_UNREADABLE: _Errors = (NotFoundError, CorruptError, UnsupportedError)
_CHANGED: _Errors = (NotFoundError, CorruptError, *_REFUSED)
_UNENCODABLE: _Errors = (CorruptError, UnsupportedError)

_BY_METHOD: Mapping[str, _Errors] = MappingProxyType(
    {
        # ChunkStorage
        "create_with_content": (AlreadyExistsError, CorruptError, *_REFUSED),
        "create": (AlreadyExistsError, *_REFUSED),
        "append": _CHANGED,
        "truncate": _CHANGED,
        "concat": (NotFoundError, *_REFUSED),
        "exists": (InvalidConfigError,),
        "info": (NotFoundError, InvalidConfigError),
        "read_range": (NotFoundError, InvalidConfigError),
        "delete": (NotFoundError, *_REFUSED),
        "delete_many": _REFUSED,
        "discard_uploads": _REFUSED,
        "lifecycle_rules": _REFUSED,
        "check_access": (InvalidConfigError,),
        # RemoteStorageManager
        "plan_objects": _REFUSED,
        "copy_log_segment_data": (AlreadyExistsError, *_UNENCODABLE),
        "fetch_log_segment": _UNREADABLE,
        "fetch_index": _UNREADABLE,
        "fetch_aborted_transactions": _UNREADABLE,
        "check_objects": (UnsupportedError,),
        "delete_log_segment_data": (UnsupportedError,),
        # SegmentLayout
        "encoding": _UNENCODABLE,
        "closing": _UNENCODABLE,
        "chunks": _UNENCODABLE,
        "locate": _UNREADABLE,
        "join": (CorruptError,),
        "companion_object": (CorruptError,),
        "decode_companion": _UNENCODABLE,
    }
)


def is_of_spi(method: str, error: BaseException) -> bool:
    """Return whether the SPI permits `error` for `method`; only RetriableError if not listed."""
    return isinstance(error, (RetriableError, *_BY_METHOD.get(method, ())))
