from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rlm.gateway.relay.socket_tuning import (
    accept_unpaced,
    enlarge_send_buffer,
    limit_send_buffer,
    pace_by_distance,
)


@contextmanager
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A gateway's socket and its client's, on one host."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        accepted, _ = listener.accept()
        with accepted:
            yield accepted, client


def send_bytes(client: socket.socket) -> int:
    return client.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def test_send_buffer_when_answers_come_from_the_store_then_holds_more_than_for_a_relay() -> None:
    most_bytes = int(Path("/proc/sys/net/core/wmem_max").read_text())
    with connected() as (client, _):
        limit_send_buffer(client)
        for_relay_bytes = send_bytes(client)
        enlarge_send_buffer(client)

        # The system doubles the value for its own use.
        assert for_relay_bytes == 2 * min(256 << 10, most_bytes)
        assert send_bytes(client) == 2 * min(2 << 20, most_bytes)


def test_send_buffer_when_the_client_has_left_then_nothing_is_raised() -> None:
    with connected() as (client, far):
        client.shutdown(socket.SHUT_RDWR)
        far.close()

        limit_send_buffer(client)
        enlarge_send_buffer(client)
        pace_by_distance(client)


def test_send_buffer_when_no_address_shows_where_the_client_is_then_is_the_systems() -> None:
    client, far = socket.socketpair()
    with client, far:
        before_bytes = send_bytes(client)

        enlarge_send_buffer(client)

        assert send_bytes(client) == before_bytes


def congestion_control(of: socket.socket) -> bytes:
    return of.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


def unpaced(usual: bytes) -> bytes:
    """Return the congestion control that replaces the system's own."""
    return b"reno" if usual.startswith(b"bbr") else usual


def test_congestion_control_when_both_ends_are_here_then_is_one_without_a_timer() -> None:
    with connected() as (ours, far):
        usual = congestion_control(far)

        pace_by_distance(ours)

        assert congestion_control(ours) == unpaced(usual)
        assert congestion_control(far) == usual  # each end selects its own


@pytest.mark.parametrize(("come_from", "is_usual"), [("127.0.0.1", False), ("127.0.0.2", True)])
def test_congestion_control_when_a_client_is_accepted_then_is_the_systems_unless_it_is_here(
    come_from: str, *, is_usual: bool
) -> None:
    """A peer whose address is not one of this host's counts as on another host."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket() as client,
    ):
        usual = congestion_control(client)
        accept_unpaced(listener)
        client.bind((come_from, 0))
        client.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            assert congestion_control(accepted) == unpaced(usual)

            pace_by_distance(accepted)

            assert congestion_control(accepted) == (usual if is_usual else unpaced(usual))


def test_congestion_control_when_a_listener_does_not_pace_then_it_stays() -> None:
    """Another process of the gateway may have set it, or it may be the system's default."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")

        accept_unpaced(listener)

        assert congestion_control(listener) == b"reno"
