"""Passes signed requests to the manager's API, and signs its responses (rlm.rest.signing).

**Security:** every user who may read the metadata topic can read the secret and sign requests.

Refuses unsigned requests, except those for OPEN_PATHS. A refusal is not signed; a header contains
its reason, and a metric counts it. The size of a request's body is limited.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol
from uuid import UUID

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rlm.process.readiness import ReadinessReport
from rlm.rest import signing
from rlm.rest.refusals import RequestRefusal
from rlm.rest.signing import ManagerIdentity, SignedRequest
from rlm.rest.used_nonces import NonceUse, UsedNonces
from rlmm.events.secret import ClusterSecret
from rsm.segment.errors import CorruptError, TieredStorageError

WINDOW_MS = 120_000
_BODY_MAX_BYTES = 65_536
_NONCES_MAX_COUNT = 20_000
_HEALTH_PATH = "/healthz"
_READINESS_PATH = "/readyz"
OPEN_PATHS: Mapping[str, str] = MappingProxyType(
    {
        _HEALTH_PATH: "anyone",
        _READINESS_PATH: "anyone; only signed requests get reasons and warnings",
    }
)
"""The paths that need no signature, and who may call them."""


_OF_NONCES = {
    NonceUse.OUTSIDE_WINDOW: RequestRefusal.OUTSIDE_WINDOW,
    NonceUse.REPLAYED: RequestRefusal.REPLAYED,
    NonceUse.FULL: RequestRefusal.BUSY,
}


class Authority(Protocol):
    """Represents what a manager signs with. Thread-safe, does not wait."""

    @property
    def identity(self) -> ManagerIdentity:
        """Return the identity of the signing manager."""

    def secret(self) -> ClusterSecret | None:
        """Return the cluster's secret; None if not set. Raises RetriableError while unknown."""

    def broker_time_ms(self) -> int:
        """Return the brokers' time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Credential:
    """Represents a request's headers that authenticate it."""

    secret_id: UUID
    time_ms: int
    nonce: bytes
    target: UUID
    signature: str


class SignedApi:
    """Represents an ASGI application that passes signed requests to another one.

    It also passes unsigned requests for OPEN_PATHS.
    """

    def __init__(
        self,
        app: ASGIApp,
        authority: Authority,
        *,
        refused: Callable[[str], None],
        window_ms: int = WINDOW_MS,
    ) -> None:
        """`refused` receives the reason of each refusal."""
        self._app = app
        self._authority = authority
        self._refused = refused
        self._nonces = UsedNonces(
            window_ms=window_ms,
            max_count=_NONCES_MAX_COUNT,
            now_ms=authority.broker_time_ms,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        if scope["path"] == _HEALTH_PATH:
            await self._app(scope, receive, send)
        elif scope["path"] == _READINESS_PATH and signing.SIGNATURE_HEADER not in headers:
            response = await _response_of(self._app, scope, b"")
            await _without_reasons(response)(scope, receive, send)
        else:
            await self._serve_signed(scope, receive, send, headers)

    async def _serve_signed(
        self, scope: Scope, receive: Receive, send: Send, headers: Mapping[str, str]
    ) -> None:
        credential = _credential_of(headers)
        if isinstance(credential, RequestRefusal):
            await self._refuse(credential)(scope, receive, send)
            return
        body = await _body_of(receive)
        if isinstance(body, RequestRefusal):
            await self._refuse(body)(scope, receive, send)
            return
        key = self._check(scope, body, credential)
        if isinstance(key, RequestRefusal):
            await self._refuse(key)(scope, receive, send)
            return
        response = await _response_of(self._app, scope, body)
        identity = self._authority.identity
        response.headers[signing.SIGNATURE_HEADER] = signing.response_signature(
            key,
            request_signature=credential.signature,
            status=response.status_code,
            body=bytes(response.body),
            identity=identity,
        )
        _name(response, identity)
        await response(scope, receive, send)

    def _check(self, scope: Scope, body: bytes, credential: _Credential) -> bytes | RequestRefusal:
        """Return the key of a valid signature; the reason if the request is refused."""
        if credential.target != self._authority.identity.incarnation:
            return RequestRefusal.WRONG_TARGET
        try:
            known = self._authority.secret()
        except TieredStorageError:
            known = None
        if known is None:
            return RequestRefusal.NO_SECRET
        secret = known.valid(credential.secret_id, self._authority.broker_time_ms())
        if secret is None:
            return RequestRefusal.UNKNOWN_SECRET
        request = SignedRequest(
            method=scope["method"],
            path=_path_of(scope),
            body=body,
            time_ms=credential.time_ms,
            nonce=credential.nonce,
            target=credential.target,
        )
        if not signing.is_same(request.signature(secret.key), credential.signature):
            return RequestRefusal.WRONG_SIGNATURE
        use = self._nonces.use(credential.nonce, credential.time_ms)
        return secret.key if use is NonceUse.FRESH else _OF_NONCES[use]

    def _refuse(self, reason: RequestRefusal) -> Response:
        self._refused(reason.value)
        document = {"error": f"the manager refused the request: {reason.value}"}
        response = JSONResponse(document, status_code=reason.status)
        response.headers[signing.REFUSAL_HEADER] = reason.value
        _name(response, self._authority.identity)
        return response


def _name(response: Response, identity: ManagerIdentity) -> None:
    response.headers[signing.CLUSTER_ID_HEADER] = identity.cluster_id
    response.headers[signing.BROKER_ID_HEADER] = str(identity.broker_id)
    response.headers[signing.INCARNATION_HEADER] = identity.incarnation.hex


def _credential_of(headers: Mapping[str, str]) -> _Credential | RequestRefusal:
    if signing.SIGNATURE_HEADER not in headers:
        return RequestRefusal.UNSIGNED
    try:
        credential = _Credential(
            secret_id=UUID(hex=headers[signing.SECRET_ID_HEADER]),
            time_ms=int(headers[signing.TIME_HEADER]),
            nonce=bytes.fromhex(headers[signing.NONCE_HEADER]),
            target=UUID(hex=headers[signing.TARGET_HEADER]),
            signature=headers[signing.SIGNATURE_HEADER],
        )
    except (KeyError, ValueError):
        return RequestRefusal.MALFORMED
    is_sized = (
        len(credential.nonce) == signing.NONCE_BYTES
        and len(credential.signature) == signing.SIGNATURE_CHARACTERS
    )
    return credential if is_sized else RequestRefusal.MALFORMED


def _path_of(scope: Scope) -> bytes:
    path: bytes = scope.get("raw_path") or scope["path"].encode("utf-8")
    query: bytes = scope["query_string"]
    return path + b"?" + query if query else path


async def _body_of(receive: Receive) -> bytes | RequestRefusal:
    """Read the request's body; refuse it if it is incomplete or too large."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return RequestRefusal.MALFORMED
        body += message.get("body", b"")
        if len(body) > _BODY_MAX_BYTES:
            return RequestRefusal.BODY_TOO_LARGE
        if not message.get("more_body", False):
            return bytes(body)


async def _response_of(app: ASGIApp, scope: Scope, body: bytes) -> Response:
    """Collect the application's whole response."""
    parts: list[bytes] = []
    start: Message = {"status": 500, "headers": []}

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    response = Response(b"".join(parts), status_code=start["status"])
    for name, value in start["headers"]:
        if name.lower() != b"content-length":
            response.headers[name.decode("latin-1")] = value.decode("latin-1")
    return response


def _without_reasons(response: Response) -> Response:
    try:
        is_ready = ReadinessReport.from_json(json.loads(bytes(response.body))).is_ready
    except (ValueError, CorruptError):
        is_ready = False
    return JSONResponse({"ready": is_ready}, status_code=response.status_code)
