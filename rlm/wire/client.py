"""Encodes the requests and decodes the responses of one connection; does no I/O.

The client assigns correlation ids and chooses versions. On a new connection:

    data = client.hello()                    the first bytes to send
    client.receive(received)                 received bytes, however they are split
    client.next_response()                   -> ApiVersionsResponse
    client.learn(response)                   -> None: versions are known; else bytes to send

Then use `request` and `next_response` for all other requests. Responses come in the order of their
requests, as Kafka guarantees. After CorruptError the connection is unusable. Not thread-safe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from rlm.wire.api.api_versions import API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import FrameBuffer, read_response, request_frame
from rlm.wire.schema import Api, Buffer, Message, RequestT, ResponseT, Versions
from rsm.segment.errors import CorruptError, UnsupportedError

_SOFTWARE_NAME = "kafka-rlm"
_SOFTWARE_VERSION = "0"
_LAST_CORRELATION_ID = 0x7FFFFFFF


class ProtocolClient:
    """Represents the protocol state of one connection."""

    def __init__(self, *, client_id: str, max_response_bytes: int) -> None:
        self._client_id = client_id
        self._frames = FrameBuffer(max_frame_bytes=max_response_bytes)
        self._pending: deque[tuple[int, Api[Any, Any], int]] = deque()
        self._next_correlation_id = 0
        self._broker_versions: Mapping[int, Versions] | None = None

    def hello(self) -> bytes:
        """Return a connection's first request: ApiVersions, in this client's newest version."""
        return self._hello(API_VERSIONS.versions.last)

    def learn(self, response: ApiVersionsResponse) -> bytes | None:
        """Store the broker's versions and return None; return another request if one is needed.

        A broker that supports only older versions of ApiVersions responds with UNSUPPORTED_VERSION
        and their range. The next request is then ApiVersions in the newest of them. Raises
        UnsupportedError for any other error, and if the broker refuses a version that it offers.
        """
        versions = {
            row.api_key: Versions(row.min_version, row.max_version) for row in response.api_keys
        }
        if response.error_code == ErrorCode.NONE:
            self._broker_versions = versions
            return None
        if response.error_code != ErrorCode.UNSUPPORTED_VERSION:
            raise UnsupportedError(
                "cannot agree on API versions: the broker answers with an error",
                error_code=response.error_code,
            )
        known = versions.get(API_VERSIONS.key, Versions(0, 0))
        if known.last >= API_VERSIONS.versions.last:
            raise UnsupportedError(
                "cannot agree on API versions: the broker refuses a version of ApiVersions that it "
                "offers",
                version=API_VERSIONS.versions.last,
            )
        return self._hello(known.last)

    def version_of(self, api: Api[RequestT, ResponseT], *, at_least: int = 0) -> int:
        """Return the newest version of `api` that both sides support.

        Raises UnsupportedError if that is below `at_least`, if there is none, or before `learn`.
        """
        if self._broker_versions is None:
            raise UnsupportedError(
                "cannot choose an API version: the broker's versions are unknown", api=api.name
            )
        broker = self._broker_versions.get(api.key, Versions.parse("none"))
        version = min(api.versions.last, broker.last)
        if version < max(api.versions.first, broker.first, at_least):
            raise UnsupportedError(
                "cannot send the request: broker and client share no version of the API",
                api=api.name,
                broker_versions="none" if broker.last < 0 else f"{broker.first}-{broker.last}",
                client_versions=f"{max(api.versions.first, at_least)}-{api.versions.last}",
            )
        return version

    def request(
        self, api: Api[RequestT, ResponseT], message: RequestT, *, at_least: int = 0
    ) -> bytes:
        """Return the bytes of a request, in the version that `version_of` returns.

        Raises UnsupportedError as `version_of` does, and if the version cannot carry the message.
        """
        return self._frame(api, self.version_of(api, at_least=at_least), message)

    def receive(self, data: Buffer) -> None:
        """Buffer received bytes."""
        self._frames.add(data)

    def next_response(self) -> Message | None:
        """Return the response to the oldest open request; None until all of it is received.

        Raises CorruptError if the received bytes are not that response.
        """
        frame = self._frames.next_frame()
        if frame is None:
            return None
        if not self._pending:
            raise CorruptError(
                "cannot read the response: no request is open", size_bytes=len(frame)
            )
        correlation_id, api, version = self._pending.popleft()
        if api.key == API_VERSIONS.key and _refuses_version(frame):
            version = 0
        header, response = read_response(api, version, frame)
        assert isinstance(response, Message)
        if header.correlation_id != correlation_id:
            raise CorruptError(
                "cannot read the response: it belongs to another request",
                api=api.name,
                expected_id=correlation_id,
                found_id=header.correlation_id,
            )
        return response

    def _hello(self, version: int) -> bytes:
        names_client = version in API_VERSIONS.flexible
        message = named_api_versions_request() if names_client else ApiVersionsRequest()
        return self._frame(API_VERSIONS, version, message)

    def _frame(self, api: Api[RequestT, ResponseT], version: int, message: RequestT) -> bytes:
        correlation_id = self._next_correlation_id
        frame = request_frame(
            api, version, message, correlation_id=correlation_id, client_id=self._client_id
        )
        self._next_correlation_id = (correlation_id + 1) & _LAST_CORRELATION_ID
        self._pending.append((correlation_id, api, version))
        return frame


def named_api_versions_request() -> ApiVersionsRequest:
    """Return an ApiVersions request with the client's name, for version 3 and later (KIP-511)."""
    return ApiVersionsRequest(
        client_software_name=_SOFTWARE_NAME, client_software_version=_SOFTWARE_VERSION
    )


def _refuses_version(frame: bytes) -> bool:
    """Return whether the error is UNSUPPORTED_VERSION; the response then has version 0."""
    return frame[4:6] == int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
