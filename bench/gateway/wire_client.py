"""Sends single Fetch requests on one connection, and measures when the response starts.

librdkafka cannot do that: it decides when to fetch, and returns records instead of responses.
"""

from __future__ import annotations

import socket
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self
from uuid import UUID

from rlm.wire.api.api_versions import ApiVersionsResponse
from rlm.wire.api.fetch import FETCH, FetchPartition, FetchRequest, FetchResponse, FetchTopic
from rlm.wire.client import ProtocolClient
from rlm.wire.error_codes import ErrorCode, error_name
from rlm.wire.schema import Message

FETCH_BYTES = 1 << 20  # Consumers have the same default.
_FETCH_ALL_BYTES = 50 << 20
_MAX_WAIT_MS = 500
_MAX_RESPONSE_BYTES = 128 << 20
_RECEIVE_BYTES = 1 << 18
_TIMEOUT_S = 30.0


class WireClient(AbstractContextManager["WireClient"]):
    """Represents a connected client that knows the broker's API versions. Not thread-safe.

    Unusable after an error.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._protocol = ProtocolClient(client_id="bench", max_response_bytes=_MAX_RESPONSE_BYTES)
        self._stream = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
        self._stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        response, _ = self._exchange(self._protocol.hello())
        assert isinstance(response, ApiVersionsResponse)
        if self._protocol.learn(response) is not None:
            raise RuntimeError(
                "cannot connect: the broker supports only older versions of ApiVersions"
            )

    def first_bytes_s(self, topic_id: UUID, offset: int) -> float:
        """Return the seconds from a Fetch of one partition to the first bytes of the response.

        Raises RuntimeError if the response contains an error or no records, CorruptError if it is
        invalid, UnsupportedError if the broker does not support Fetch version 13, and OSError if
        the connection fails.
        """
        partition = FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_ALL_BYTES,
            topics=(FetchTopic(topic_id=topic_id, partitions=(partition,)),),
        )
        response, seconds = self._exchange(self._protocol.request(FETCH, request, at_least=13))
        assert isinstance(response, FetchResponse)
        data = response.responses[0].partitions[0]
        if data.error_code != ErrorCode.NONE or not data.records:
            raise RuntimeError(
                "cannot fetch: the response contains an error or no records "
                f"(offset={offset} error={error_name(data.error_code)})"
            )
        return seconds

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _exchange(self, request: bytes) -> tuple[Message, float]:
        """Return the response, and the seconds until its first bytes arrived."""
        started_s = time.monotonic()
        first_byte_s: float | None = None
        self._stream.sendall(request)
        while (response := self._protocol.next_response()) is None:
            received = self._stream.recv(_RECEIVE_BYTES)
            first_byte_s = first_byte_s or time.monotonic()
            if not received:
                raise ConnectionError("cannot read the response: the peer closed the connection")
            self._protocol.receive(received)
        return response, (first_byte_s or started_s) - started_s
