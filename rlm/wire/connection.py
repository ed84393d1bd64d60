"""Opens one blocking connection to a broker: connects, secures, authenticates, then sends requests.

This is the only module of the package that uses the network. A deadline bounds each request as a
whole, from the first byte sent to the last byte received: a peer that sends its bytes slowly does
not extend the deadline. A failure of the network or a refused login is a RetriableError, because
the network or the broker may be repaired. Bytes that violate the protocol cause a CorruptError. Any
error between the first and the last byte closes the connection, because the remaining bytes in
transit are unknown.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rlm.wire.api.api_versions import ApiVersionsResponse
from rlm.wire.api.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from rlm.wire.api.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from rlm.wire.client import ProtocolClient
from rlm.wire.error_codes import ErrorCode, error_name
from rlm.wire.schema import Api, Message, RequestT, ResponseT
from rlm.wire.security.sasl import PlainExchange, SaslExchange, ScramExchange
from rlm.wire.security.settings import SaslSettings, SecuritySettings
from rlm.wire.security.tls_context import client_context
from rsm.segment.clock import Clock
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError

_RECEIVE_BYTES = 65536
_NONCE_BYTES = 24
# A login needs few messages; a server that requires more does not speak these mechanisms.
_MAX_SASL_ROUNDS = 8
# Reconnect before the broker closes an authenticated connection at its session's end (KIP-368).
_SESSION_FRACTION = 0.8


class Requester(Protocol):
    """Represents a connection that sends requests, or its fake in tests."""

    def request(
        self, api: Api[RequestT, ResponseT], message: RequestT, *, at_least: int = 0
    ) -> ResponseT:
        """Send a request in the newest common version, not below `at_least`; await the response.

        Raises RetriableError if the network fails, CorruptError if the response is invalid,
        UnsupportedError if the broker is too old.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """Represents how to connect. `max_response_bytes` bounds the memory of one response.

    `connect_timeout_ms` bounds connect, TLS and the exchange of versions together, because a frozen
    host accepts connections and never responds. Each message of a login may take
    `request_timeout_ms`.
    """

    security: SecuritySettings
    client_id: str = "rlm"
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    max_response_bytes: int = 64 * 1024 * 1024


class Connection:
    """Represents an open connection, authenticated if configured. Not thread-safe."""

    def __init__(
        self, stream: socket.socket, address: str, settings: ConnectionSettings, clock: Clock
    ) -> None:
        self._stream = stream
        self._address = address
        self._settings = settings
        self._clock = clock
        self._expires_at_ms: int | None = None
        self._protocol = ProtocolClient(
            client_id=settings.client_id, max_response_bytes=settings.max_response_bytes
        )

    def request(
        self, api: Api[RequestT, ResponseT], message: RequestT, *, at_least: int = 0
    ) -> ResponseT:
        """Send a request as `Requester.request` does, within the request timeout."""
        data = self._protocol.request(api, message, at_least=at_least)
        remaining_s = _deadline(self._clock, self._settings.request_timeout_ms)
        response = self._exchange(data, remaining_s)
        assert isinstance(response, api.response)
        return response

    def is_expired(self) -> bool:
        """Return whether the broker may soon end the session of this login."""
        return self._expires_at_ms is not None and self._clock.monotonic_ms() > self._expires_at_ms

    def close(self) -> None:
        """Close the stream; idempotent."""
        self._stream.close()

    def begin(self, remaining_s: Callable[[], float]) -> None:
        """Read the broker's versions before the deadline, then authenticate if configured."""
        data: bytes | None = self._protocol.hello()
        while data is not None:
            response = self._exchange(data, remaining_s)
            assert isinstance(response, ApiVersionsResponse)
            data = self._protocol.learn(response)
        if self._settings.security.sasl is not None:
            self._authenticate(self._settings.security.sasl)

    def _authenticate(self, sasl: SaslSettings) -> None:
        handshake = self.request(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=sasl.mechanism))
        if handshake.error_code != ErrorCode.NONE:
            raise self._refused(
                handshake.error_code, mechanism=sasl.mechanism, offered=handshake.mechanisms
            )
        exchange = _exchange_of(sasl)
        message = exchange.first_message()
        for _ in range(_MAX_SASL_ROUNDS):
            response = self.request(SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message))
            if response.error_code != ErrorCode.NONE:
                raise self._refused(response.error_code, reason=response.error_message)
            message = exchange.answer(response.auth_bytes)
            if exchange.is_done:
                if response.session_lifetime_ms > 0:
                    lifetime_ms = int(response.session_lifetime_ms * _SESSION_FRACTION)
                    self._expires_at_ms = self._clock.monotonic_ms() + lifetime_ms
                return
        raise CorruptError(
            "cannot log in: the broker does not end the SASL exchange", address=self._address
        )

    def _refused(self, error_code: int, **context: object) -> RetriableError:
        return RetriableError(
            "cannot log in: the broker refuses the login",
            address=self._address,
            error=error_name(error_code),
            **context,
        )

    def _exchange(self, data: bytes, remaining_s: Callable[[], float]) -> Message:
        try:
            self._send(data, remaining_s)
            while (response := self._protocol.next_response()) is None:
                self._stream.settimeout(remaining_s())
                received = self._stream.recv(_RECEIVE_BYTES)
                if not received:
                    raise RetriableError(
                        "cannot read the response: the broker closed the connection",
                        address=self._address,
                    )
                self._protocol.receive(received)
        except OSError as error:
            self.close()
            raise RetriableError(
                "the connection to the broker failed", address=self._address, reason=error
            ) from error
        except TieredStorageError:
            self.close()
            raise
        return response

    def _send(self, data: bytes, remaining_s: Callable[[], float]) -> None:
        unsent = memoryview(data)
        while unsent:
            self._stream.settimeout(remaining_s())
            unsent = unsent[self._stream.send(unsent) :]


class Connector:
    """Opens connections with the same settings. Thread-safe.

    Raises InvalidConfigError if a certificate, key or CA file is unusable.
    """

    def __init__(self, settings: ConnectionSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        tls = settings.security.tls
        self._tls = None if tls is None else client_context(tls)

    def connect(self, host: str, port: int) -> Connection:
        """Connect, and authenticate if configured.

        Raises RetriableError if the broker is unreachable, is not trusted, or refuses the login.
        Raises CorruptError if the peer is not a Kafka broker, or cannot prove that it knows the
        password. Raises UnsupportedError if the broker supports no common version.
        """
        address = f"{host}:{port}"
        remaining_s = _deadline(self._clock, self._settings.connect_timeout_ms)
        try:
            stream = self._dial(host, port, remaining_s)
        except OSError as error:
            raise RetriableError(
                "cannot connect to the broker", address=address, reason=error
            ) from error
        connection = Connection(stream, address, self._settings, self._clock)
        try:
            connection.begin(remaining_s)
        except TieredStorageError:
            connection.close()
            raise
        return connection

    def _dial(self, host: str, port: int, remaining_s: Callable[[], float]) -> socket.socket:
        """Try the host's addresses in order. Raises the OSError of the last address or lookup."""
        failure = OSError("the host has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            stream = socket.socket(family, kind, protocol)
            try:
                stream.settimeout(remaining_s())
                stream.connect(address)
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                stream.settimeout(remaining_s())
                if self._tls is None:
                    return stream
                return self._tls.wrap_socket(stream, server_hostname=host)
            except OSError as error:
                stream.close()
                failure = error
        raise failure


def _deadline(clock: Clock, timeout_ms: int) -> Callable[[], float]:
    """Return a function that returns the seconds left; it raises TimeoutError at the deadline."""
    ends_at_ms = clock.monotonic_ms() + timeout_ms

    def remaining_s() -> float:
        left_ms = ends_at_ms - clock.monotonic_ms()
        if left_ms <= 0:
            raise TimeoutError(f"the deadline of {timeout_ms} ms has passed")
        return left_ms / 1000

    return remaining_s


def _exchange_of(sasl: SaslSettings) -> SaslExchange:
    if sasl.mechanism == "PLAIN":
        return PlainExchange(username=sasl.username, password=sasl.password)
    return ScramExchange(
        mechanism=sasl.mechanism,
        username=sasl.username,
        password=sasl.password,
        nonce=secrets.token_urlsafe(_NONCE_BYTES),
    )
