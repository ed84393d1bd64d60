"""Sockets that are bound all the time, and open only while a process serves."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from rlm.config.values import HostPort
from rlm.process.child import ChildSpec
from rlm.process.supervisor import ChildStatus
from rlm.worker.client_listener import bind_closed, refuse_connections, refuse_unserved
from rsm.segment.errors import InvalidConfigError

ANY_PORT = HostPort(host="127.0.0.1", port=0)
ONE, TWO = (ChildSpec(name=name, command=(name,)) for name in ("one", "two"))
MANAGER = ChildSpec(name="manager", command=("m",))


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    with closing(bind_closed(ANY_PORT, key="k")) as found:
        yield found


def connected(bound: socket.socket) -> socket.socket:
    """Return a client of the socket. The caller closes it."""
    return socket.create_connection(bound.getsockname(), timeout=10)


def listen_again(bound: socket.socket) -> None:
    """Listen like a process that serves, even if connections of an earlier process are left."""
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.listen()


def is_refused(bound: socket.socket) -> bool:
    try:
        connected(bound).close()
    except ConnectionRefusedError:
        return True
    return False


def test_clients_when_nobody_listens_yet_then_are_refused(bound: socket.socket) -> None:
    assert is_refused(bound)


@pytest.mark.parametrize("is_chosen_by_system", [True, False])
def test_socket_when_opened_and_closed_again_then_keeps_its_address(
    *, is_chosen_by_system: bool
) -> None:
    with closing(bind_closed(ANY_PORT, key="k")) as first:
        address = HostPort(host="127.0.0.1", port=first.getsockname()[1])
        if is_chosen_by_system:
            bound = first
        else:
            first.close()
            bound = bind_closed(address, key="k")
        with closing(bound):
            assert is_refused(bound)
            for _ in "12":
                listen_again(bound)
                assert not is_refused(bound)
                refuse_connections(bound)
                assert is_refused(bound)
                assert bound.getsockname()[1] == address.port


def test_client_when_nobody_has_accepted_it_then_is_reset(bound: socket.socket) -> None:
    listen_again(bound)
    with closing(connected(bound)) as waiting:
        refuse_connections(bound)

        with pytest.raises(ConnectionResetError):
            waiting.recv(1)


def test_client_when_it_was_accepted_then_stays_connected(bound: socket.socket) -> None:
    listen_again(bound)
    with closing(connected(bound)) as client, closing(bound.accept()[0]) as server:
        refuse_connections(bound)

        server.sendall(b"x")
        assert client.recv(1) == b"x"


def test_socket_when_closed_to_clients_twice_then_serves_again(bound: socket.socket) -> None:
    """A shutdown of a socket that does not listen would end all connections accepted later."""
    for _ in "12":
        refuse_connections(bound)
    listen_again(bound)

    with closing(connected(bound)) as client, closing(bound.accept()[0]) as server:
        server.sendall(b"x")
        assert client.recv(1) == b"x"


def test_address_when_another_process_listens_there_then_is_an_error_at_once() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        taken = HostPort(host="127.0.0.1", port=other.getsockname()[1])

        with pytest.raises(InvalidConfigError) as raised:
            bind_closed(taken, key="gateway.listener")

    assert raised.value.context["key"] == "gateway.listener"


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - to be refused
@pytest.mark.parametrize("has_served", [False, True])
@pytest.mark.parametrize("is_chosen_by_system", [True, False])
def test_address_when_nobody_listens_then_no_other_socket_can_be_bound_there(
    host: str, *, has_served: bool, is_chosen_by_system: bool
) -> None:
    """Another user of this host would get the clients and their passwords."""
    with ExitStack() as opened:
        bound = opened.enter_context(closing(bind_closed(ANY_PORT, key="k")))
        port = bound.getsockname()[1]
        if not is_chosen_by_system:
            bound.close()
            address = HostPort(host="127.0.0.1", port=port)
            bound = opened.enter_context(closing(bind_closed(address, key="k")))
        if has_served:
            listen_again(bound)
            refuse_connections(bound)
        other = opened.enter_context(socket.socket())
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)

        with pytest.raises(OSError) as raised:  # noqa: PT011 - by its number
            other.bind((host, port))

    assert raised.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize(
    ("running", "is_open"), [((ONE, TWO), True), ((TWO, MANAGER), True), ((MANAGER,), False)]
)
def test_socket_when_no_process_that_serves_runs_then_is_closed_to_clients(
    bound: socket.socket, running: tuple[ChildSpec, ...], *, is_open: bool
) -> None:
    listen_again(bound)
    statuses = [
        ChildStatus(spec=each, pid=1 if each in running else None, start_count=1)
        for each in (MANAGER, ONE, TWO)
    ]

    refuse_unserved(bound, (ONE, TWO), statuses)

    assert is_refused(bound) is not is_open
