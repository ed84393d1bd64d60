"""What a caller can do about an error of Google's store or of its SDK.

Rights, credentials and buckets are repaired outside, and a retry then succeeds: such errors are
retriable, and say what to mend.
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
    OSError,  # a connection's, or that of a file of credentials
)
"""All that the SDK raises, of its own and of what is below it."""

_ANSWERED: Mapping[int | None, str] = MappingProxyType(
    {
        HTTPStatus.UNAUTHORIZED: CREDENTIALS,
        HTTPStatus.FORBIDDEN: PERMISSION,
        HTTPStatus.NOT_FOUND: NO_BUCKET,
        HTTPStatus.TOO_MANY_REQUESTS: TOO_MANY,
    }
)


def cause_of(error: Exception) -> Exception:
    """What was wrong the last time, of a request that was repeated."""
    if isinstance(error, RetryError) and isinstance(error.cause, Exception):
        return error.cause
    return error


def is_taken(error: Exception) -> bool:
    """Whether the object was not made because one is there."""
    return isinstance(cause_of(error), PreconditionFailed)


def is_about_credentials(error: Exception) -> bool:
    """Whether new credentials may heal it."""
    cause = cause_of(error)
    if isinstance(cause, GoogleAPICallError):
        return cause.code == HTTPStatus.UNAUTHORIZED
    return isinstance(cause, GoogleAuthError) and not isinstance(cause, TransportError)


def store_error(error: Exception, **context: object) -> TieredStorageError:
    """Our error for one of SDK_ERRORS; the caller chains it. `context` says what it happened to.

    That an object is not there is for the caller to tell: the same status says it of the bucket.
    """
    cause = cause_of(error)
    reason = " ".join(str(cause).split())
    if isinstance(cause, PreconditionFailed):
        return AlreadyExistsError("the chunk is there already", **context)
    if isinstance(cause, GoogleAPICallError):
        message = _ANSWERED.get(cause.code, "the store failed")
    elif is_about_credentials(cause):
        message = "no credentials that the store takes were found"
    elif isinstance(cause, DataCorruption):
        message = "bytes changed on their way"
    else:
        message = "the store was not reached"
    return RetriableError(message, reason=reason, **context)
