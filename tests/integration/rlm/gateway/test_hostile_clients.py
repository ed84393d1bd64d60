"""Clients that flood, send slowly or send nothing: only their own connections end."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from rlm.gateway.listener.server import ServerLimits
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.session.session_state import SessionLimits
from rlm.wire.api.api_versions import API_VERSIONS, ApiVersionsRequest
from rlm.wire.api.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from rlm.wire.error_codes import ErrorCode
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.waiting import wait_until

_FLOOD_BYTES = 256 << 20
_BOUND_BYTES = 32 << 20
_STALL_S = 0.5
_MANY_PARTITIONS = 20_000
_NAMES_VERSION = 11  # the last before topics have ids

_REFUSED_API_VERSIONS = b"\x00\x00\x00\x0a\x00\x12\x00\x63\x00\x00\x00\x01\xff\xff"
_API_VERSIONS = b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"


@pytest.fixture(scope="module")
def gateway(tiered_host: BrokerHost) -> Iterator[RunningGateway]:
    with running_gateway(
        tiered_host,
        session_limits=SessionLimits(request_bytes=8 << 20, gathered_request_bytes=1 << 20),
        server_limits=ServerLimits(progress_timeout_ms=400),
    ) as gateway:
        yield gateway


@pytest.fixture
def bystander(gateway: RunningGateway) -> Iterator[Callable[[], None]]:
    with _bystander(gateway) as ask:
        yield ask


@contextmanager
def _bystander(gateway: RunningGateway) -> Iterator[Callable[[], None]]:
    """Yield a function that sends a request on a connection that exists before the block."""
    with WireClient(gateway.bootstrap_servers) as client:

        def ask() -> None:
            answer = client.ask(API_VERSIONS, 0, ApiVersionsRequest())
            assert answer.error_code == ErrorCode.NONE

        ask()
        yield ask
        ask()


def _connected(gateway: RunningGateway) -> socket.socket:
    host, _, port = gateway.bootstrap_servers.rpartition(":")
    connection = socket.create_connection((host, int(port)))
    connection.settimeout(10.0)
    return connection


def _closed_by(gateway: RunningGateway, reason: DisconnectCause, count: int) -> None:
    """Wait until the gateway has closed `count` connections for this reason."""
    wait_until(
        lambda: gateway.counts.closed[reason] >= count, describe=lambda: str(gateway.counts.closed)
    )


def _sent_until_it_stalls(connection: socket.socket, frame: bytes) -> int:
    """Send copies of a frame until the gateway reads no more; return the number of bytes."""
    connection.settimeout(_STALL_S)
    frames = frame * ((1 << 20) // len(frame))
    sent_bytes = 0
    try:
        while sent_bytes < _FLOOD_BYTES:
            sent_bytes += connection.send(frames[sent_bytes % len(frame) :])
    except TimeoutError:
        pass
    return sent_bytes


def test_gateway_when_clients_never_send_anything_then_their_connections_end(
    gateway: RunningGateway, bystander: Callable[[], None]
) -> None:
    before = gateway.counts.closed[DisconnectCause.NO_REQUEST]
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(_connected(gateway))
        bystander()
        _closed_by(gateway, DisconnectCause.NO_REQUEST, before + 20)


def test_gateway_when_a_request_drips_then_the_connection_ends(
    gateway: RunningGateway, bystander: Callable[[], None]
) -> None:
    """Each byte restarts the idle timeout, but the request never completes."""
    before = gateway.counts.closed[DisconnectCause.SLOW_REQUEST]
    with _connected(gateway) as connection:
        connection.sendall(b"\x00\x10\x00\x00\x00\x01\x00\x0c\x00\x00\x00\x01\xff\xff")

        def dripped() -> bool:
            try:
                connection.sendall(b"\x00")
            except OSError:
                return True
            return gateway.counts.closed[DisconnectCause.SLOW_REQUEST] > before

        wait_until(dripped)
        bystander()
    _closed_by(gateway, DisconnectCause.SLOW_REQUEST, before + 1)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        pytest.param("7fffffff", DisconnectCause.MALFORMED_REQUEST, id="any frame"),
        pytest.param(
            "00200000 0001 000c 00000001 ffff 00", DisconnectCause.REQUEST_TOO_LARGE, id="fetch"
        ),
    ],
)
def test_gateway_when_a_request_is_oversized_then_ends_before_it_is_received(
    gateway: RunningGateway, bystander: Callable[[], None], head: str, reason: DisconnectCause
) -> None:
    before = gateway.counts.closed[reason]
    with _connected(gateway) as connection:
        connection.sendall(bytes.fromhex(head.replace(" ", "")))
        _closed_by(gateway, reason, before + 1)
        bystander()


def test_gateway_when_a_fetch_names_partitions_without_end_then_others_are_served_meanwhile(
    gateway: RunningGateway, bystander: Callable[[], None], tiered: TieredTopic
) -> None:
    """The request is well-formed and names a tiered topic; most of its partitions do not exist."""
    partitions = tuple(
        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1)
        for number in range(_MANY_PARTITIONS)
    )
    topic = FetchTopic(topic=tiered.name, partitions=partitions)
    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=(topic,))
    with WireClient(gateway.bootstrap_servers) as client:
        client.send(FETCH, _NAMES_VERSION, fetch)
        bystander()
        answer = client.answer(FETCH, _NAMES_VERSION)
    codes = [each.error_code for each in answer.responses[0].partitions]
    assert len(codes) == _MANY_PARTITIONS
    assert codes[-1] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(_REFUSED_API_VERSIONS, id="answered here"),
        pytest.param(_API_VERSIONS, id="answered by the broker"),
    ],
)
def test_gateway_when_a_client_asks_without_end_and_never_reads_then_it_is_not_read_either(
    gateway: RunningGateway, bystander: Callable[[], None], frame: bytes
) -> None:
    """The gateway's memory for a client is bounded; other requests stay in the client."""
    with _connected(gateway) as connection:
        assert _sent_until_it_stalls(connection, frame) < _BOUND_BYTES
        bystander()


def test_gateway_when_one_address_takes_all_connections_then_further_ones_are_refused(
    tiered_host: BrokerHost,
) -> None:
    limits = ServerLimits(connection_count_of_address=60)
    with (
        running_gateway(tiered_host, server_limits=limits) as gateway,
        _bystander(gateway) as bystander,
    ):
        with ExitStack() as stack:
            for _ in range(70):
                stack.enter_context(_connected(gateway))
            _closed_by(gateway, DisconnectCause.TOO_MANY_CONNECTIONS_OF_ADDRESS, 10)
            bystander()
        wait_until(lambda: gateway.counts.connections == 1)
