"""Converts errors of S3 and of its SDK to rlm's errors.

Errors of permissions, credentials, clocks and missing buckets are retriable: a retry succeeds after
an operator has corrected the cause. Their messages name the cause. Errors that no retry fixes
become InvalidConfigError.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
)

from rsm.segment.errors import (
    AlreadyExistsError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.storage.refusals import CHANGED, CREDENTIALS, NO_BUCKET, PERMISSION, TOO_MANY

_RETRIABLE: Mapping[str, str] = MappingProxyType(
    {
        "NoSuchBucket": NO_BUCKET,
        "AccessDenied": PERMISSION,
        "AllAccessDisabled": PERMISSION,
        "AccountProblem": PERMISSION,
        "403": PERMISSION,
        "ExpiredToken": CREDENTIALS,
        "ExpiredTokenException": CREDENTIALS,
        "TokenRefreshRequired": CREDENTIALS,
        "InvalidToken": CREDENTIALS,
        "InvalidAccessKeyId": CREDENTIALS,
        "InvalidClientTokenId": CREDENTIALS,
        "SignatureDoesNotMatch": CREDENTIALS,
        "XAdminUserNotFound": CREDENTIALS,  # a code of versitygw
        "RequestTimeTooSkewed": "this host's clock and the store's are too far apart",
        "RequestExpired": "this host's clock and the store's are too far apart",
        "SlowDown": TOO_MANY,
        "RequestLimitExceeded": TOO_MANY,
        "BadDigest": CHANGED,
        "XAmzContentChecksumMismatch": CHANGED,
    }
)

_CONFIGURATION: Mapping[str, str] = MappingProxyType(
    {
        "PermanentRedirect": "the bucket has another region or endpoint",
        "AuthorizationHeaderMalformed": "the bucket is in another region",
        "IllegalLocationConstraintException": "the bucket is in another region",
        "InvalidBucketName": "the name of the bucket is invalid",
        "InvalidStorageClass": "the store has no such storage class",
        "KMS.NotFoundException": "the store has no such encryption key",
    }
)

_NO_LISTING = frozenset({"AccessDenied", "403", "NotImplemented", "MethodNotAllowed"})

_STALE_CREDENTIALS = frozenset(code for code, text in _RETRIABLE.items() if text is CREDENTIALS)

_NO_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    TokenRetrievalError,
    SSOError,
)


def code_of(error: ClientError) -> str:
    """Return S3's error code; for a response without a body, the HTTP status."""
    code: str = error.response["Error"].get("Code", "")
    return code


def is_no_listing(error: ClientError) -> bool:
    """Return whether the store refuses to list uploads, in general or to this user."""
    return code_of(error) in _NO_LISTING


def was_repeated(error: ClientError) -> bool:
    """Return whether the SDK repeated the request; an earlier attempt may have succeeded."""
    attempts: int = error.response["ResponseMetadata"].get("RetryAttempts", 0)
    return attempts > 0


def is_about_credentials(error: Exception) -> bool:
    """Return whether new credentials may help."""
    if isinstance(error, ClientError):
        return code_of(error) in _STALE_CREDENTIALS
    return isinstance(error, _NO_CREDENTIALS)


def store_error(error: ClientError | BotoCoreError, **context: object) -> TieredStorageError:
    """Convert an error of the SDK; the caller chains it. `context` names the object."""
    if isinstance(error, ClientError):
        return _response_error(error, context)
    if isinstance(error, _NO_CREDENTIALS):
        return RetriableError(
            "cannot find credentials for the store", reason=_one_line(error), **context
        )
    if isinstance(error, ParamValidationError):
        return InvalidConfigError(
            "cannot send the request to the store: the S3 SDK rejected it",
            reason=_one_line(error),
            **context,
        )
    return RetriableError("the request to the store failed", reason=_one_line(error), **context)


def _response_error(error: ClientError, context: Mapping[str, object]) -> TieredStorageError:
    code = code_of(error)
    if code == "NoSuchKey":
        return NotFoundError("the object is not in the store", **context)
    if code == "NoSuchUpload":
        return NotFoundError("the upload is not in the store", **context)
    if code == "PreconditionFailed":
        return AlreadyExistsError("the chunk already exists", **context)
    if code in _CONFIGURATION:
        return InvalidConfigError(_CONFIGURATION[code], error=code, **context)
    message = _RETRIABLE.get(code, "the store failed")
    reason = error.response["Error"].get("Message", "")
    return RetriableError(message, error=code, reason=reason, **context)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
