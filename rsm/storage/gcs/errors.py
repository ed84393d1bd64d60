"""Converts errors of Google's store and of its SDK to rlm's errors.

Errors of permissions, credentials and buckets are retriable: a retry succeeds after an operator has
corrected the cause. Their messages name the cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

from google.api_core.exceptions import GoogleAPICallError, PreconditionFailed, RetryError
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud.storage.exceptions import DataCorruption
from requests import RequestException
from urllib3.exceptions import HTTPError

from rsm.segment.errors import AlreadyExistsError, RetriableError, TieredStorageError
from rsm.storage.refusals import CREDENTIALS, NO_BUCKET, PERMISSION, TOO_MANY

SDK_ERRORS = (
    GoogleAPICallError,
    RetryError,
    GoogleAuthError,
    DataCorruption,
    RequestException,
    HTTPError,
    OSError,  # Connections and reads of a credentials file raise it.
)
"""All errors that the SDK raises, including those of its dependencies."""

_BY_STATUS: Mapping[int | None, str] = MappingProxyType(
    {
        HTTPStatus.UNAUTHORIZED: CREDENTIALS,
        HTTPStatus.FORBIDDEN: PERMISSION,
        HTTPStatus.NOT_FOUND: NO_BUCKET,
        HTTPStatus.TOO_MANY_REQUESTS: TOO_MANY,
    }
)


def cause_of(error: Exception) -> Exception:
    """Return the last error of a repeated request."""
    if isinstance(error, RetryError) and isinstance(error.cause, Exception):
        return error.cause
    return error


def is_taken(error: Exception) -> bool:
    """Return whether the creation failed because an object of this name exists."""
    return isinstance(cause_of(error), PreconditionFailed)


def is_about_credentials(error: Exception) -> bool:
    """Return whether new credentials may help."""
    cause = cause_of(error)
    if isinstance(cause, GoogleAPICallError):
        return cause.code == HTTPStatus.UNAUTHORIZED
    return isinstance(cause, GoogleAuthError) and not isinstance(cause, TransportError)


def store_error(error: Exception, **context: object) -> TieredStorageError:
    """Convert one of SDK_ERRORS; the caller chains it. `context` names the object.

    The caller must detect a missing object: a missing bucket has the same status.
    """
    cause = cause_of(error)
    reason = " ".join(str(cause).split())
    if isinstance(cause, PreconditionFailed):
        return AlreadyExistsError("the chunk already exists", **context)
    if isinstance(cause, GoogleAPICallError):
        message = _BY_STATUS.get(cause.code, "the store failed")
    elif is_about_credentials(cause):
        message = "cannot find credentials that the store accepts"
    elif isinstance(cause, DataCorruption):
        message = "the bytes changed in transit"
    else:
        message = "the request to the store failed"
    return RetriableError(message, reason=reason, **context)
