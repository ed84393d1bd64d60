"""Converts refusals of HDFS to rlm's errors.

Refusals because of permissions, quotas, space or safe mode are retriable: a retry succeeds after an
operator has corrected the cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rsm.segment.errors import (
    AlreadyExistsError,
    InvalidConfigError,
    RetriableError,
    TieredStorageError,
)
from rsm.storage.hdfs.webhdfs import RemoteError

ABSENT = frozenset({"FileNotFoundException", "ParentNotDirectoryException"})

_RETRIABLE: Mapping[str, str] = MappingProxyType(
    {
        "AccessControlException": "HDFS denies this: a permission is missing",
        "SafeModeException": "HDFS is in safe mode",
        "DSQuotaExceededException": "the space quota of HDFS is exceeded",
        "NSQuotaExceededException": "the name quota of HDFS is exceeded",
        "StandbyException": "no NameNode is active",
    }
)
_HOPELESS = frozenset(
    {
        "FSLimitException.PathComponentTooLongException",
        "IllegalArgumentException",
        "InvalidPathException",
        "ParentNotDirectoryException",
        "PathComponentTooLongException",
    }
)


def store_error(error: RemoteError, name: str) -> TieredStorageError:
    """Convert a refusal; the caller chains it, and detects absent files itself."""
    if error.name == "FileAlreadyExistsException":
        return AlreadyExistsError("the chunk already exists", name=name)
    if error.name in _HOPELESS:
        return InvalidConfigError(
            "HDFS does not support this name or operation",
            name=name,
            error=error.name,
            reason=error.message,
        )
    message = _RETRIABLE.get(error.name, "HDFS failed")
    return RetriableError(message, name=name, error=error.name, reason=error.message)
