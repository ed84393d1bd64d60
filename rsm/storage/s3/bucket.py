"""Sends requests to one bucket, converts the SDK's errors, and renews credentials.

Only the SDK repeats requests: up to `max_attempts`, with growing, jittered pauses, and less often
if many requests fail. The SDK loads credentials once, unless they renew themselves. This module
loads them again after the store refused them: a rotated key in a file, or a repaired role, needs no
restart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from rsm.segment.errors import InvalidConfigError
from rsm.storage.chunk_storage import RequestObserver, ignore_request
from rsm.storage.s3.errors import is_about_credentials, store_error
from rsm.storage.s3.settings import S3Settings

_CONNECTIONS = 64
_RENEWAL_INTERVAL_S = 1.0


class S3Bucket:
    """Represents one bucket. Thread-safe. Opening sends no request.

    Raises InvalidConfigError for invalid settings.
    """

    def __init__(self, settings: S3Settings, *, observe: RequestObserver = ignore_request) -> None:
        self.settings = settings
        self._observe = observe
        self._lock = threading.Lock()
        self._renewed_at_s = time.monotonic()
        self._client = self._new_client()

    def call(self, operation: str, **parameters: object) -> Mapping[str, Any]:
        """Send one request to this bucket; the SDK's client defines the operations.

        Raises the SDK's ClientError, for callers that handle its codes, and converts other errors.
        """
        client = self._client
        try:
            response: Mapping[str, Any] = getattr(client, operation)(
                Bucket=self.settings.bucket, **parameters
            )
        except (ClientError, BotoCoreError) as error:
            if is_about_credentials(error):
                self._renew(client)
            if isinstance(error, ClientError):
                raise
            raise store_error(error, **self._context(operation, parameters)) from error
        return response

    def ask(self, operation: str, **parameters: object) -> Mapping[str, Any]:
        """Send one request as `call` does, and convert all errors."""
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
        """Load credentials again, unless another thread has done so; at most once a second."""
        with self._lock:
            now_s = time.monotonic()
            if self._client is stale and now_s - self._renewed_at_s >= _RENEWAL_INTERVAL_S:
                # The old client stays open: other threads may have requests in flight in it.
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
            # All content is sent with a checksum, so the signature need not cover it.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={
                "addressing_style": "path" if settings.path_style else "auto",
                "payload_signing_enabled": False,
            },
        )
        try:
            # A new session: the SDK's default session keeps its first credentials.
            client = boto3.session.Session().client(
                "s3",
                endpoint_url=settings.endpoint_url,
                region_name=settings.region,
                config=config,
            )
        except (BotoCoreError, ValueError) as error:
            raise InvalidConfigError(
                "cannot create the store's client",
                bucket=settings.bucket,
                reason=error,
                advice="Check the endpoint, the region and the credentials of the store",
            ) from error
        client.meta.events.register("before-send.s3", self._note_request)
        return client

    def _note_request(self, event_name: str, **_: object) -> None:
        self._observe(xform_name(event_name.rpartition(".")[2]))
