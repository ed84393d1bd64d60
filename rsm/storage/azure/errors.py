"""Converts errors of Azure's store and of its SDK to rlm's errors.

Errors of permissions, credentials and containers are retriable: a retry succeeds after an operator
has corrected the cause. Their messages name the cause.
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
        "ContainerNotFound": "the container does not exist",
        "ContainerBeingDeleted": "the container is being deleted",
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
    """Return Azure's error code; empty if the error has none."""
    code = getattr(error, "error_code", None)
    return "" if code is None else str(getattr(code, "value", code))


def is_past_the_end(error: HttpResponseError) -> bool:
    """Return whether the requested range begins at or after the object's end."""
    return error.status_code == 416


def is_taken(error: HttpResponseError) -> bool:
    """Return whether the creation failed because an object of this name exists."""
    return code_of(error) in _TAKEN


def store_error(error: AzureError, **context: object) -> TieredStorageError:
    """Convert an error of the SDK; the caller chains it. `context` names the object."""
    code = code_of(error)
    if code == "BlobNotFound":
        return NotFoundError("the object is not in the store", **context)
    if code in _TAKEN:
        return AlreadyExistsError("the chunk already exists", **context)
    reason = str(error).partition("\n")[0]
    if not isinstance(error, HttpResponseError):
        return RetriableError("the request to the store failed", reason=reason, **context)
    return RetriableError(
        _RETRIABLE.get(code, "the store failed"), error=code, reason=reason, **context
    )
