"""The background tasks of a gateway's server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from rlm.config.values import HostPort
from rlm.gateway.listener.server import GatewayParts, ServerLimits
from rlm.gateway.model.context import GatewayContext
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.worker.client_listener import bind_closed, refuse_connections
from tests.unit.rlm.gateway.relay_world import Side, relay_world
from tests.unit.rlm.gateway.session_world import TIERED

_DEADLINE_S = 10.0
_FAILURE_COUNT = 2


def test_background_task_when_a_step_fails_then_it_is_logged_and_counted_and_the_next_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def is_under_memory_pressure() -> bool:
        raise ValueError("unexpected")

    limits = ServerLimits(pressure_timeout_ms=40)

    failures = _failures(
        lambda parts: replace(
            parts, is_under_memory_pressure=is_under_memory_pressure, limits=limits
        )
    )

    assert failures == ["overdue_connections: unexpected"] * _FAILURE_COUNT
    assert "background task failed task=overdue_connections" in caplog.text


def test_look_for_stray_connections_when_it_fails_then_it_runs_again() -> None:
    def context() -> GatewayContext:
        raise ValueError("unexpected")

    failures = _failures(
        lambda parts: replace(parts, session=replace(parts.session, context=context))
    )

    assert failures == ["stray_connections: unexpected"] * _FAILURE_COUNT


def test_counts_when_a_topic_has_no_policy_any_more_then_are_forgotten() -> None:
    """Topics that are created and deleted must not fill the memory and the metrics."""

    async def act() -> None:
        looked = asyncio.Event()

        def change(parts: GatewayParts) -> GatewayParts:
            def context() -> GatewayContext:
                looked.set()
                return parts.session.context()

            return replace(parts, session=replace(parts.session, context=context))

        async with relay_world(change) as world, asyncio.timeout(_DEADLINE_S):
            world.counts.topic(TIERED.topic).requests += 1
            world.counts.topic("deleted").requests += 1
            looked.clear()
            await looked.wait()

            assert world.counts.topics.keys() == {TIERED.topic}

    asyncio.run(act())


def test_server_when_connections_of_an_earlier_process_are_left_then_serves_there_again() -> None:
    async def act() -> None:
        listener = bind_closed(HostPort(host="127.0.0.1", port=0), key="gateway.listener")
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.listen()
        with (
            closing(socket.create_connection(listener.getsockname())),
            closing(listener.accept()[0]),
        ):
            refuse_connections(listener)
            async with relay_world(listener=listener) as world:
                assert world.counts.accepted == 1

    asyncio.run(act())


def test_clients_when_the_address_must_not_be_given_out_then_are_closed_and_refused() -> None:
    """The gateway closes connected clients, and then each new one."""

    async def act() -> None:
        refusing = False
        async with relay_world(lambda parts: replace(parts, is_refusing=lambda: refusing)) as world:
            host, port = world.client.writer.get_extra_info("peername")

            refusing = True
            assert await world.client.receive_to_end() == b""
            reader, writer = await asyncio.open_connection(host, port)
            later = Side(reader=reader, writer=writer)
            assert await later.receive_to_end() == b""
            later.leave()

            assert world.counts.closed == {DisconnectCause.UNUSABLE_ADDRESS: 2}

    asyncio.run(act())


def _failures(change: Callable[[GatewayParts], GatewayParts]) -> list[str]:
    """Return the first failures that a gateway with these parts counts."""

    async def act() -> list[str]:
        failures: list[str] = []
        is_counted = asyncio.Event()

        def failed(task: str, error: Exception) -> None:
            failures.append(f"{task}: {error}")
            if len(failures) >= _FAILURE_COUNT:
                is_counted.set()

        async with (
            relay_world(lambda parts: replace(change(parts), failed=failed)),
            asyncio.timeout(_DEADLINE_S),
        ):
            await is_counted.wait()
        return failures[:_FAILURE_COUNT]

    return asyncio.run(act())
