"""The addresses of gateways on several hosts: each of them is right on every other host."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.hosts import http_client, kafka_client
from tests.hosts.operated_cluster import EACH_HOST, OperatedCluster, OperatedHost
from tests.hosts.operator_config import SHORT_TIMES, host_configuration
from tests.hosts.reachability import connect
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_PORT = 19092
_HTTP_PORT = 9465
_DEADLINE_S = 60.0


@contextmanager
def _configured(host: OperatedHost, settings: Mapping[str, str | None]) -> Iterator[None]:
    """Run the host's `rlm run` with these settings until the block ends."""
    host.restart(settings)
    try:
        yield
    finally:
        host.restart()
        host.wait_ready()


def _led_to(via: OperatedHost) -> set[str]:
    """Return the address to which a gateway redirects clients, for each broker."""
    found: dict[str, str] = via.host.call(kafka_client.broker_addresses, bootstrap=via.gateway)
    return set(found.values())


def _wait_led_to(via: OperatedHost, wanted: set[str]) -> None:
    wait_until(
        lambda: _led_to(via) == wanted,
        _DEADLINE_S,
        lambda: f"clients are led to {wanted}, not {_led_to(via)}",
        interval_s=0.5,
    )


@contextmanager
def _gateway_alone(host: OperatedHost, settings: Mapping[str, str | None]) -> Iterator[None]:
    """Run `rlm gateway` on the host, with its HTTP server on all addresses."""
    wildcard = {"rest.listener": f"0.0.0.0:{_HTTP_PORT}"}
    path = host.host.directory / "gateway.properties"
    path.write_text(host_configuration(host.host.dns_name, {**SHORT_TIMES, **wildcard, **settings}))
    command = host.host.command(sys.executable, "-m", "rlm", "gateway", "--config", str(path))
    process = ServiceProcess(command, log_path=host.host.directory / "gateway.log")
    try:
        yield
    finally:
        code = process.terminate(deadline_s=25.0)
    assert code == 0, process.log_tail()


def _processes(on: OperatedHost, *, of_brokers: bool = True) -> list[dict[str, Any]]:
    """Return rows of `rlm processes`, which lists an ended cluster gateway for a day."""
    rows: list[dict[str, Any]] = json.loads(on.rlm("processes", "--json"))["processes"]
    return [row for row in rows if (row["broker_id"] is not None) is of_brokers]


def _wait_registered(
    gateways: Callable[[], list[dict[str, Any]]], wanted: Mapping[str, object]
) -> None:
    """Wait until one of these rows has these values."""
    rows: list[dict[str, Any]] = []

    def is_registered() -> bool:
        rows[:] = gateways()
        return any(wanted.items() <= row.items() for row in rows)

    wait_until(is_registered, _DEADLINE_S, lambda: f"{wanted} is in {rows}", interval_s=0.5)


def _gateway_row(on: OperatedHost, broker_id: int) -> dict[str, Any]:
    (row,) = [
        each
        for each in _processes(on)
        if (each["role"], each["broker_id"]) == ("gateway", broker_id)
    ]
    return row


@EACH_HOST
def test_processes_when_listed_on_any_host_then_are_all_ready(
    operated: OperatedCluster, number: int
) -> None:
    host = operated.hosts[number - 1]
    rows: list[dict[str, Any]] = []

    def are_ready() -> bool:
        rows[:] = _processes(host)
        return all(row["ready"] for row in rows)

    wait_until(are_ready, _DEADLINE_S, lambda: f"all are ready: {rows}", interval_s=1.0)

    assert sorted((row["role"], row["broker_id"]) for row in rows) == sorted(
        (role, each) for role in ("broker", "manager", "gateway") for each in (1, 2, 3)
    )
    assert {row["address"] for row in rows if row["role"] == "gateway"} == {
        f"{each.host.address}:{_PORT}" for each in operated.hosts
    }


def test_gateway_when_it_listens_on_loopback_then_accepts_no_client_and_none_is_redirected_to_it(
    operated: OperatedCluster,
) -> None:
    """The default without `gateway.listener`."""
    first, second, third = operated.hosts
    others = {f"{each.host.address}:{_PORT}" for each in (first, third)}
    with _configured(second, {"gateway.listener": None}):
        second.wait_not_ready(f"gateway.listener=127.0.0.1:{_PORT}")

        assert second.host.call(connect, host="127.0.0.1", port=_PORT) == "refused"
        _wait_led_to(first, others)
        row = _gateway_row(third, 2)
        assert (row["ready"], row["address"]) == (False, None)
        assert "Set gateway.listener to this host's own address" in row["reasons"][0]
    _wait_led_to(first, {f"{each.host.address}:{_PORT}" for each in operated.hosts})


def test_gateway_when_another_brokers_gateway_has_its_address_then_the_later_one_yields(
    operated: OperatedCluster,
) -> None:
    first, second, _ = operated.hosts
    taken = f"{first.host.address}:{_PORT}"
    settings = {"gateway.listener": f"0.0.0.0:{_PORT}", "gateway.advertised.listener": taken}
    with _configured(second, settings):
        second.wait_not_ready(f"gateway.advertised.listener={taken} broker_id=1")

        assert first.readiness() == (200, [])
        assert second.host.call(connect, host=second.host.address, port=_PORT) == "refused"
        assert first.host.call(connect, host=first.host.address, port=_PORT) == "accepted"


def test_gateway_alone_when_its_http_server_listens_on_a_wildcard_then_other_hosts_reach_it(
    operated: OperatedCluster,
) -> None:
    """Scenario 118: the bare host name is not registered, because other hosts do not know it."""
    first, second, _ = operated.hosts
    address = f"{second.host.address}:{_HTTP_PORT}"
    second.stop()
    try:
        with _gateway_alone(second, {}):
            _wait_registered(
                lambda: [_gateway_row(first, 2)], {"ready": True, "http_address": address}
            )

            answer = first.host.call(http_client.get, url=f"http://{address}/readyz")
    finally:
        second.start()
        second.wait_ready()

    assert answer[0] == 200


@pytest.mark.long
def test_gateway_of_no_broker_when_it_listens_on_wildcards_then_other_hosts_reach_it(
    operated: OperatedCluster,
) -> None:
    first, second, _ = operated.hosts
    address = f"{second.host.address}:{_HTTP_PORT}"
    of_no_broker = {
        "log.dirs": None,
        "state.dir": "/var/lib/rlm-gateway",
        "gateway.listener": "0.0.0.0:19300",
    }

    def rows() -> list[dict[str, Any]]:
        return _processes(first, of_brokers=False)

    with _gateway_alone(second, of_no_broker):
        _wait_registered(
            rows,
            {
                "ready": True,
                "http_address": address,
                "address": f"{second.host.address}:19300",
            },
        )

        answer = first.host.call(http_client.get, url=f"http://{address}/readyz")
    _wait_registered(rows, {"http_address": address, "live": False})

    assert answer[0] == 200


def test_clients_when_the_gateway_cannot_start_then_are_refused_at_once(
    operated: OperatedCluster,
) -> None:
    host = operated.hosts[1]
    state = host.host.outside(host.setting("state.dir")) / "gateway"
    host.stop()
    away = state.rename(state.with_name("gateway-away"))
    state.write_text("no directory")
    host.start()
    try:
        host.wait_not_ready("gateway")

        found = {
            operated.hosts[0].host.call(connect, host=host.host.address, port=_PORT)
            for _ in range(10)
        }

        assert found == {"refused"}
    finally:
        host.stop()
        state.unlink()
        away.rename(state)
        host.start()
        host.wait_ready()
