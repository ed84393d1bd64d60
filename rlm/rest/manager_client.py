"""Sends requests to managers over HTTP. See rlm.rest.manager_api.

Requests are signed. The client trusts a response only if the manager's registered incarnation has
signed it (rlm.rest.signing). A manager of version 0.1.0 registers no incarnation; the client sends
it unsigned requests, and trusts its unsigned responses.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Protocol, TypeVar

import httpx

from rlm.rest import signing
from rlm.rest.http_exchange import HttpExchange, HttpResponse
from rlm.rest.refusals import RequestRefusal, refusal_text
from rlm.rest.signing import ManagerIdentity, SignedRequest
from rlm.status.document import PartitionReport
from rlm.status.explanation import OffsetExplanation
from rlm.status.json_object import JsonObject, objects_of
from rlm.status.retention_preview import RetentionPreview
from rlmm.events.registration import ProcessRegistered
from rlmm.events.secret import ClusterSecret, SigningSecret
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError

_SETTINGS = "Check rest.listener and rest.advertised.listener of that host"
_LOG = "If the command fails again, look at the log of that manager"

_DocumentT = TypeVar("_DocumentT")


class Credentials(Protocol):
    """Represents what a client signs with. Thread-safe."""

    @property
    def cluster_id(self) -> str:
        """Return the id of the managers' cluster."""

    def secret(self) -> ClusterSecret | None:
        """Return the cluster's secret; None if not set. Raises RetriableError while unknown."""

    def broker_time_ms(self) -> int:
        """Return the brokers' time."""


class ManagerClient:
    """Represents a client of managers. Thread-safe. Every call ends within its timeouts.

    Raises RetriableError if a manager is unreachable or refuses, or if another process answers at
    its address. Raises CorruptError if a response is malformed or too large, or has a wrong
    signature. Errors of requests name the broker and, if known, the manager's address.
    """

    def __init__(self, credentials: Credentials, tls: ssl.SSLContext | None = None) -> None:
        """`tls` is for managers with HTTPS; None uses the system's trusted certificates."""
        self._credentials = credentials
        self._exchange = HttpExchange(tls)

    def partitions(
        self, manager: ProcessRegistered, *, topic: str | None = None
    ) -> Sequence[PartitionReport]:
        """Fetch the reports of a manager's hosted partitions, of all topics if `topic` is None."""
        params = {} if topic is None else {"topic": topic}
        return self._read(manager, "partitions", params, _each(PartitionReport.from_json))

    def retention(self, manager: ProcessRegistered, topic: str) -> Sequence[RetentionPreview]:
        """Fetch what retention would do now to the manager's led partitions of a topic."""
        params = {"topic": topic}
        return self._read(manager, "retention", params, _each(RetentionPreview.from_json))

    def explanation(
        self, manager: ProcessRegistered, topic: str, partition: int, offset: int
    ) -> OffsetExplanation:
        """Fetch where a record is, from the manager of the partition's leader.

        Raises RetriableError also if that manager does not lead the partition.
        """
        params = {"topic": topic, "partition": str(partition), "offset": str(offset)}
        return self._read(manager, "explanation", params, OffsetExplanation.from_json)

    def metrics(self, manager: ProcessRegistered) -> bytes:
        """Fetch the manager's metrics as Prometheus text."""
        return self._ask(manager, "GET", "/metrics", {}).body

    def logs(self, manager: ProcessRegistered) -> bytes:
        """Fetch the last log lines of all processes of the manager's host."""
        return self._ask(manager, "GET", "logs", {}).body

    def run_cycle(self, manager: ProcessRegistered) -> None:
        """Make the manager run a cycle now."""
        self._ask(manager, "POST", "cycle", {})

    def delete_streamed(self, manager: ProcessRegistered, topic: str, partition: int) -> None:
        """Request the deletion of a partition's streamed segments from its leader's manager.

        Raises RetriableError also if that manager does not lead the partition.
        """
        params = {"topic": topic, "partition": str(partition)}
        self._ask(manager, "POST", "streamed-deletion", params)

    def close(self) -> None:
        """Release connections."""
        self._exchange.close()

    def _read(
        self,
        manager: ProcessRegistered,
        what: str,
        params: Mapping[str, str],
        read: Callable[[object], _DocumentT],
    ) -> _DocumentT:
        """Fetch JSON and return its document. Raises CorruptError if it is malformed."""
        response = self._ask(manager, "GET", what, params)
        try:
            return read(httpx.Response(response.status, content=response.body).json())
        except (ValueError, RecursionError) as error:  # RecursionError: deep nesting
            raise _malformed(manager) from error
        except CorruptError as error:
            raise _malformed(manager, **error.context) from error

    def _ask(
        self, manager: ProcessRegistered, method: str, what: str, params: Mapping[str, str]
    ) -> HttpResponse:
        if not manager.http_address:
            raise RetriableError(
                "the manager has no address that other hosts can reach",
                broker_id=manager.broker_id,
                advice=_SETTINGS,
            )
        response = self._proven(manager, method, what, params)
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise RetriableError(
                "the manager refused the request",
                broker_id=manager.broker_id,
                address=manager.http_address,
                request=f"{method} {_path(what)}",
                http_status=response.status,
                advice=_LOG,
            )
        return response

    def _proven(
        self, manager: ProcessRegistered, method: str, what: str, params: Mapping[str, str]
    ) -> HttpResponse:
        """Send a request; return the manager's verified response, of any status."""
        if manager.incarnation is None:
            return self._send(manager, method, what, params, {})
        expected = ManagerIdentity(
            cluster_id=self._credentials.cluster_id,
            broker_id=manager.broker_id,
            incarnation=manager.incarnation,
        )
        secret = self._credentials.secret()
        if secret is None:
            raise RetriableError(
                "cannot sign requests: the managers have not set the cluster's secret yet",
                broker_id=manager.broker_id,
                advice="Look at the readiness of the managers in `rlm processes`",
            )
        refusal = ""
        for key in filter(None, (secret.current, secret.previous)):
            response, request_signature = self._send_signed(manager, method, what, params, key)
            _require_identity(manager, response, expected)
            if signing.REFUSAL_HEADER not in response.headers:
                _require_signature(manager, response, key, request_signature, expected)
                return response
            refusal = response.headers[signing.REFUSAL_HEADER]
            if refusal != RequestRefusal.UNKNOWN_SECRET.value:
                break
        raise _refused(manager, refusal)

    def _send_signed(
        self,
        manager: ProcessRegistered,
        method: str,
        what: str,
        params: Mapping[str, str],
        secret: SigningSecret,
    ) -> tuple[HttpResponse, str]:
        """Send a request signed with `secret`; return the response and the request's signature."""
        assert manager.incarnation is not None
        url = _url(manager, what, params)
        request = SignedRequest(
            method=method,
            path=url.raw_path,
            body=b"",
            time_ms=self._credentials.broker_time_ms(),
            nonce=secrets.token_bytes(signing.NONCE_BYTES),
            target=manager.incarnation,
        )
        signature = request.signature(secret.key)
        headers = {
            signing.SECRET_ID_HEADER: secret.secret_id.hex,
            signing.TIME_HEADER: str(request.time_ms),
            signing.NONCE_HEADER: request.nonce.hex(),
            signing.TARGET_HEADER: request.target.hex,
            signing.SIGNATURE_HEADER: signature,
        }
        return self._send(manager, method, what, params, headers), signature

    def _send(
        self,
        manager: ProcessRegistered,
        method: str,
        what: str,
        params: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> HttpResponse:
        url = _url(manager, what, params)
        try:
            return self._exchange.send(method, url, headers)
        except RetriableError as error:
            raise RetriableError(
                "the manager cannot be reached",
                broker_id=manager.broker_id,
                address=manager.http_address,
                reason=error.message,
                advice=_SETTINGS,
            ) from error
        except CorruptError as error:
            raise _malformed(manager) from error


def _url(manager: ProcessRegistered, what: str, params: Mapping[str, str]) -> httpx.URL:
    """Build the URL. Raises RetriableError if the registered address is invalid."""
    scheme = "https" if manager.serves_https else "http"
    try:
        return httpx.URL(f"{scheme}://{manager.http_address}{_path(what)}", params=dict(params))
    except (httpx.InvalidURL, ValueError) as error:
        raise RetriableError(
            "the registered address of the manager is invalid",
            broker_id=manager.broker_id,
            address=manager.http_address,
            reason=error,
            advice=_SETTINGS,
        ) from error


def _path(what: str) -> str:
    """Return the path of a request; WORKER_ENDPOINTS are not below /v1."""
    return what if what.startswith("/") else f"/v1/{what}"


def _require_identity(
    manager: ProcessRegistered, response: HttpResponse, expected: ManagerIdentity
) -> None:
    found = tuple(
        response.headers.get(name, "")
        for name in (
            signing.CLUSTER_ID_HEADER,
            signing.BROKER_ID_HEADER,
            signing.INCARNATION_HEADER,
        )
    )
    wanted = (expected.cluster_id, str(expected.broker_id), expected.incarnation.hex)
    if found == wanted:
        return
    if found[:2] == wanted[:2]:
        raise RetriableError(
            "the manager has restarted and has not registered yet",
            broker_id=manager.broker_id,
            address=manager.http_address,
            advice="Run the command again in a few seconds",
        )
    if not any(found):
        raise RetriableError(
            "the manager did not answer: it has too many connections, or another program answers "
            "at its address",
            broker_id=manager.broker_id,
            address=manager.http_address,
            http_status=response.status,
            advice=_SETTINGS,
        )
    raise RetriableError(
        "another process answers at the manager's address",
        broker_id=manager.broker_id,
        address=manager.http_address,
        found_broker_id=found[1][:20] or "none",
        advice=_SETTINGS,
    )


def _require_signature(
    manager: ProcessRegistered,
    response: HttpResponse,
    secret: SigningSecret,
    request_signature: str,
    expected: ManagerIdentity,
) -> None:
    wanted = signing.response_signature(
        secret.key,
        request_signature=request_signature,
        status=response.status,
        body=response.body,
        identity=expected,
    )
    if not signing.is_same(wanted, response.headers.get(signing.SIGNATURE_HEADER, "")):
        raise CorruptError(
            "the response is not signed by this manager: another program may answer at its address",
            broker_id=manager.broker_id,
            address=manager.http_address,
            advice=_SETTINGS,
        )


def _refused(manager: ProcessRegistered, refusal: str) -> TieredStorageError:
    text = refusal_text(refusal)
    return RetriableError(
        "the manager refused the request",
        broker_id=manager.broker_id,
        address=manager.http_address,
        reason=text.reason,
        advice=text.advice,
    )


def _each(
    read: Callable[[JsonObject], _DocumentT],
) -> Callable[[object], tuple[_DocumentT, ...]]:
    return lambda rows: tuple(map(read, objects_of(rows)))


def _malformed(manager: ProcessRegistered, **fields: object) -> CorruptError:
    return CorruptError(
        "cannot read the manager's response: it is malformed or too large",
        broker_id=manager.broker_id,
        address=manager.http_address,
        **fields,
        advice="Check that `rlm` has the same version on both hosts",
    )
