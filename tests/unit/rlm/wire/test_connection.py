"""A connection to a peer that misbehaves: every wait ends by its deadline."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rlm.wire.api.api_versions import ApiVersion, ApiVersionsResponse
from rlm.wire.api.list_offsets import LIST_OFFSETS, ListOffsetsRequest
from rlm.wire.codec import encode
from rlm.wire.connection import ConnectionSettings, Connector
from rlm.wire.frames import ResponseHeader
from rlm.wire.security.settings import SecuritySettings, TlsSettings
from rsm.segment.errors import CorruptError, InvalidConfigError, RetriableError
from rsm.system_clock import SystemClock

_TIMEOUT_MS = 400
_Peer = Callable[[socket.socket, threading.Event], None]


@contextmanager
def _serving(peer: _Peer) -> Iterator[int]:
    """Serve one connection, and yield the port; the peer ends when the event is set."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            stream, _ = server.accept()
            with stream:
                peer(stream, stop)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def _connector(tls: TlsSettings | None = None) -> Connector:
    settings = ConnectionSettings(
        security=SecuritySettings(tls=tls),
        connect_timeout_ms=_TIMEOUT_MS,
        request_timeout_ms=_TIMEOUT_MS,
        max_response_bytes=1000,
    )
    return Connector(settings, SystemClock())


def _answer_versions(stream: socket.socket) -> None:
    (size,) = struct.unpack(">i", stream.recv(4, socket.MSG_WAITALL))
    stream.recv(size, socket.MSG_WAITALL)
    keys = (ApiVersion(api_key=LIST_OFFSETS.key, min_version=1, max_version=11),)
    head = encode(ResponseHeader(correlation_id=0), 0, flexible=False)
    body = encode(ApiVersionsResponse(api_keys=keys), 4, flexible=True)
    stream.sendall(struct.pack(">i", len(head) + len(body)) + head + body)


def _silent(_: socket.socket, stop: threading.Event) -> None:
    stop.wait()


def _closing(stream: socket.socket, _: threading.Event) -> None:
    stream.recv(4)


def _dripping(stream: socket.socket, stop: threading.Event) -> None:
    _answer_versions(stream)
    stream.sendall(struct.pack(">i", 900))
    while not stop.wait(_TIMEOUT_MS / 1000 / 8):
        stream.sendall(b"\0")


def _oversized(stream: socket.socket, stop: threading.Event) -> None:
    _answer_versions(stream)
    stream.sendall(struct.pack(">i", 1001))
    stop.wait()


def _web_server(stream: socket.socket, stop: threading.Event) -> None:
    stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    stop.wait()


@pytest.mark.parametrize("peer", [_silent, _closing])
def test_connect_when_peer_does_not_answer_then_retriable(peer: _Peer) -> None:
    with _serving(peer) as port, pytest.raises(RetriableError):
        _connector().connect("127.0.0.1", port)


def test_connect_when_peer_accepts_and_is_frozen_then_ends_with_the_time_to_connect() -> None:
    """The time to connect is shorter than that of a request, so connecting fails sooner."""
    settings = ConnectionSettings(
        security=SecuritySettings(),
        connect_timeout_ms=_TIMEOUT_MS,
        request_timeout_ms=100 * _TIMEOUT_MS,
    )

    def frozen(_: socket.socket, stop: threading.Event) -> None:
        stop.wait(20 * _TIMEOUT_MS / 1000)

    with _serving(frozen) as port, pytest.raises(RetriableError, match="timed out"):
        Connector(settings, SystemClock()).connect("127.0.0.1", port)


def test_connect_when_nobody_listens_then_retriable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    with pytest.raises(RetriableError):
        _connector().connect("127.0.0.1", port)


def test_connect_when_host_is_unknown_then_retriable() -> None:
    with pytest.raises(RetriableError):
        _connector().connect("no-such-host.invalid", 9092)


def test_connect_when_peer_is_no_broker_then_corrupt() -> None:
    with _serving(_web_server) as port, pytest.raises(CorruptError):
        _connector().connect("127.0.0.1", port)


def test_connect_when_peer_speaks_no_tls_then_retriable() -> None:
    with _serving(_web_server) as port, pytest.raises(RetriableError):
        _connector(TlsSettings()).connect("127.0.0.1", port)


def test_request_when_answer_drips_then_ends_at_the_deadline() -> None:
    with _serving(_dripping) as port:
        connection = _connector().connect("127.0.0.1", port)

        with pytest.raises(RetriableError):
            connection.request(LIST_OFFSETS, ListOffsetsRequest(replica_id=-1))


def test_request_when_answer_is_too_large_then_corrupt() -> None:
    with _serving(_oversized) as port:
        connection = _connector().connect("127.0.0.1", port)

        with pytest.raises(CorruptError):
            connection.request(LIST_OFFSETS, ListOffsetsRequest(replica_id=-1))


def test_request_when_connection_was_closed_then_retriable() -> None:
    with _serving(_oversized) as port:
        connection = _connector().connect("127.0.0.1", port)
        connection.close()

        with pytest.raises(RetriableError):
            connection.request(LIST_OFFSETS, ListOffsetsRequest(replica_id=-1))


@pytest.mark.parametrize(
    "tls",
    [TlsSettings(ca_path="/absent/ca.pem"), TlsSettings(certificate_path="/absent/own.pem")],
)
def test_connector_when_a_certificate_cannot_be_read_then_invalid_config(tls: TlsSettings) -> None:
    with pytest.raises(InvalidConfigError):
        _connector(tls)
