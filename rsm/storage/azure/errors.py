"""What a caller can do about an error of Azure's store or of its SDK.

Rights, credentials and containers are repaired outside, and a retry then succeeds: such errors are
retriable, and say what to mend.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from azure.core.exceptions import AzureError, HttpResponseError

from rsm.segment.errors import (
    AlreadyExistsError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.storage.refusals import CHANGED, CREDENTIALS, PERMISSION, TOO_MANY

_RETRIABLE: Mapping[str, str] = MappingProxyType(
    {
        "ContainerNotFound": "no such container",
        "ContainerBeingDeleted": "no such container",
        "AuthenticationFailed": CREDENTIALS,
        "InvalidAuthenticationInfo": CREDENTIALS,
        "NoAuthenticationInformation": CREDENTIALS,
        "AuthorizationFailure": PERMISSION,
        "AuthorizationPermissionMismatch": PERMISSION,
        "AuthorizationResourceTypeMismatch": PERMISSION,
        "AuthorizationServiceMismatch": PERMISSION,
        "ServerBusy": TOO_MANY,
        "Md5Mismatch": CHANGED,
    }
)
_TAKEN = frozenset({"BlobAlreadyExists", "ConditionNotMet"})


def code_of(error: AzureError) -> str:
    """Azure's word for what went wrong; empty where it was not reached."""
    code = getattr(error, "error_code", None)
    return "" if code is None else str(getattr(code, "value", code))


def is_past_the_end(error: HttpResponseError) -> bool:
    """Whether a range was asked for that begins behind the object's end."""
    return error.status_code == 416


def is_taken(error: HttpResponseError) -> bool:
    """Whether the object was not made because one is there."""
    return code_of(error) in _TAKEN


def store_error(error: AzureError, **context: object) -> TieredStorageError:
    """Our error for the SDK's; the caller chains it. `context` says what it happened to."""
    code = code_of(error)
    if code == "BlobNotFound":
        return NotFoundError("no such chunk", **context)
    if code in _TAKEN:
        return AlreadyExistsError("the chunk is there already", **context)
    reason = str(error).partition("\n")[0]
    if not isinstance(error, HttpResponseError):
        return RetriableError("the store was not reached", reason=reason, **context)
    return RetriableError(
        _RETRIABLE.get(code, "the store failed"), error=code, reason=reason, **context
    )
