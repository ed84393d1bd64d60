"""Requests to one bucket: the SDK's client, its errors spelt as ours, its credentials kept fresh.

The SDK repeats requests, and nothing above it does: `max_attempts` with growing, jittered pauses,
fewer of them when many fail. It reads credentials once, where they don't carry their own renewal;
when the store no longer takes them they are looked for again, so that a rotated key in a file or
a repaired role needs no restart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from rsm.segment.errors import InvalidConfigError
from rsm.storage.s3.errors import is_about_credentials, store_error
from rsm.storage.s3.settings import S3Settings

_CONNECTIONS = 64
_RENEWAL_INTERVAL_S = 1.0

RequestObserver = Callable[[str], None]
"""Is told the name of each operation as it is asked for. Thread-safe."""


class S3Bucket:
    """Thread-safe. Opening asks the store nothing; InvalidConfigError for what cannot be right."""

    def __init__(
        self, settings: S3Settings, *, observe: RequestObserver = lambda _operation: None
    ) -> None:
        self.settings = settings
        self._observe = observe
        self._lock = threading.Lock()
        self._renewed_at_s = time.monotonic()
        self._client = self._new_client()

    def call(self, operation: str, **parameters: object) -> Mapping[str, Any]:
        """One request, named as the SDK's client names it, to this bucket.

        Raises the SDK's ClientError, for callers that know its codes.
        """
        self._observe(operation)
        client = self._client
        try:
            answer: Mapping[str, Any] = getattr(client, operation)(
                Bucket=self.settings.bucket, **parameters
            )
        except (ClientError, BotoCoreError) as error:
            if is_about_credentials(error):
                self._renew(client)
            if isinstance(error, ClientError):
                raise
            raise store_error(error, **self._context(operation, parameters)) from error
        return answer

    def ask(self, operation: str, **parameters: object) -> Mapping[str, Any]:
        """The same, with all errors spelt as ours."""
        try:
            return self.call(operation, **parameters)
        except ClientError as error:
            raise store_error(error, **self._context(operation, parameters)) from error

    def close(self) -> None:
        self._client.close()

    def _context(self, operation: str, parameters: Mapping[str, object]) -> Mapping[str, object]:
        context: dict[str, object] = {"operation": operation, "bucket": self.settings.bucket}
        if "Key" in parameters:
            context["name"] = parameters["Key"]
        return context

    def _renew(self, stale: object) -> None:
        """Look for credentials again, now and then, unless another thread has."""
        with self._lock:
            now_s = time.monotonic()
            if self._client is stale and now_s - self._renewed_at_s >= _RENEWAL_INTERVAL_S:
                # The old client is not closed: requests of other threads may be under way in it.
                self._client = self._new_client()
                self._renewed_at_s = now_s

    def _new_client(self) -> Any:  # noqa: ANN401 - the SDK makes its clients' classes at run time
        settings = self.settings
        timeout_s = settings.attempt_timeout_ms / 1000
        config = Config(
            connect_timeout=timeout_s,
            read_timeout=timeout_s,
            max_pool_connections=_CONNECTIONS,
            retries={"mode": "standard", "total_max_attempts": settings.max_attempts},
            # We send a checksum with all content, so that the signature need not cover it.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={
                "addressing_style": "path" if settings.path_style else "auto",
                "payload_signing_enabled": False,
            },
        )
        try:
            # A session of its own: the SDK's default one keeps the credentials that it found.
            return boto3.session.Session().client(
                "s3",
                endpoint_url=settings.endpoint_url,
                region_name=settings.region,
                config=config,
            )
        except (BotoCoreError, ValueError) as error:
            raise InvalidConfigError(
                "the store's client cannot be made", bucket=settings.bucket, reason=error
            ) from error
