"""Opens the SDK's client for one bucket, converts its errors, and renews credentials.

Only the SDK repeats requests, with growing, jittered pauses. Credentials are loaded at the first
request, and again after the store refused them, so that a replaced key or a repaired role needs no
restart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import google.auth
from google.api_core.exceptions import NotFound
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.transport.requests import AuthorizedSession
from google.cloud.storage import Blob, Client
from google.cloud.storage.retry import DEFAULT_RETRY
from google.oauth2.service_account import Credentials as ServiceAccount
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from rsm.segment.errors import NotFoundError, RetriableError
from rsm.storage.chunk_storage import RequestObserver, ignore_request
from rsm.storage.gcs.errors import SDK_ERRORS, cause_of, is_about_credentials, store_error
from rsm.storage.gcs.settings import GcsSettings

_CONNECTIONS = 64
_RENEWAL_INTERVAL_S = 1.0
_SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)


class GcsBucket:
    """Represents one bucket. Thread-safe. Opening sends no request."""

    def __init__(self, settings: GcsSettings, *, observe: RequestObserver = ignore_request) -> None:
        self.settings = settings
        timeout_s = settings.attempt_timeout_ms / 1000
        retry = DEFAULT_RETRY.with_timeout(settings.retry_timeout_ms / 1000)
        self.bounds: Mapping[str, Any] = {
            "timeout": (timeout_s, timeout_s),
            "retry": retry if settings.retry_timeout_ms else None,
        }
        """The timeout and the retries of a request, as arguments of the SDK's methods."""
        self._observe = observe
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._renewed_at_s = 0.0

    def blob(self, name: str) -> Blob:
        """Return a handle of the object, without a request for its metadata. Raises SDK_ERRORS."""
        return self._opened().bucket(self.settings.bucket).blob(name)

    def blobs(self, **which: object) -> Iterator[Blob]:
        """Return an iterator over objects. The call and the iteration raise SDK_ERRORS."""
        return iter(self._opened().list_blobs(self.settings.bucket, **which, **self.bounds))

    def check_access(self) -> None:
        """See ChunkStorage.check_access."""
        with self._spelling({}):
            next(self.blobs(max_results=1), None)

    def lifecycle_rules(self) -> list[Mapping[str, Any]]:
        """Return the lifecycle rules. Needs `storage.buckets.get`. Raises RetriableError."""
        with self._spelling({}):
            found = self._opened().get_bucket(self.settings.bucket, **self.bounds)
            return list(found.lifecycle_rules)

    @contextmanager
    def errors(self, name: str) -> Iterator[None]:
        """Convert the SDK's errors; `name` is part of their context."""
        with self._spelling({"name": name}):
            try:
                yield
            except NotFound as error:
                self.check_access()  # A missing bucket has the same status as a missing object.
                raise NotFoundError("the object is not in the store", name=name) from error

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()

    @contextmanager
    def _spelling(self, context: Mapping[str, object]) -> Iterator[None]:
        client = self._client
        try:
            yield
        except SDK_ERRORS as error:
            if is_about_credentials(error):
                self._forget(client)
            raise store_error(error, bucket=self.settings.bucket, **context) from cause_of(error)

    def _forget(self, stale: Client | None) -> None:
        """Discard a refused client, unless another thread has done so; at most once a second."""
        with self._lock:
            now_s = time.monotonic()
            if self._client is stale and now_s - self._renewed_at_s >= _RENEWAL_INTERVAL_S:
                # The old client stays open: other threads may have requests in flight in it.
                self._client = None
                self._renewed_at_s = now_s

    def _opened(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = self._new_client()
            return self._client

    def _new_client(self) -> Client:
        credentials = self._credentials()
        session = AuthorizedSession(credentials)
        session.mount("https://", _ObservedAdapter(self._observe))
        session.mount("http://", _ObservedAdapter(self._observe))
        endpoint = self.settings.endpoint_url
        return Client(
            project="none",  # Requests to a bucket need no project.
            credentials=credentials,
            _http=session,
            client_options=None if endpoint is None else {"api_endpoint": endpoint},
        )

    def _credentials(self) -> Credentials:
        if self.settings.is_anonymous:
            return AnonymousCredentials()
        path = self.settings.credentials_file
        if path is None:
            found, _project = google.auth.default(scopes=_SCOPES)
            return found
        try:
            key: Credentials = ServiceAccount.from_service_account_file(str(path), scopes=_SCOPES)
        except (OSError, ValueError) as error:
            raise RetriableError("cannot read the credentials", path=path, reason=error) from error
        return key


class _ObservedAdapter(HTTPAdapter):
    """Sends each request of the bucket's session, after reporting its method to `observe`."""

    def __init__(self, observe: RequestObserver) -> None:
        super().__init__(pool_maxsize=_CONNECTIONS)
        self._observe = observe

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:  # noqa: ANN401 - the base class's
        self._observe(str(request.method))
        return super().send(request, *args, **options)
