"""The front of a gateway that stands for a whole cluster: a door for each broker, one to begin at.

A broker's door is opened when the broker is first seen, and stays while it is away, for brokers
come back: who comes in meanwhile is turned away as the broker itself would. It is closed when the
broker has been gone for long. A broker that can't have a door is a problem, tried again as often
as the cluster is heard; its clients are led to the bootstrap door, where they ask anew.

Its clients are led to its own doors only: gateways beside brokers serve clients of their own.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from rlm.broker.cluster import ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.broker_addresses import BrokerAddresses
from rlm.gateway.endpoints.door import Door
from rlm.gateway.endpoints.door_plan import DoorPlan
from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlmm.spi import Registration
from rsm.segment.clock import Clock
from rsm.segment.errors import TieredStorageError

_log = logging.getLogger(__name__)

_GONE_MS = 600_000


class Doorkeeper(Protocol):
    """Who lets clients in (rlm.gateway.listener.server_thread)."""

    def open(self, door: Door) -> None:
        """Accept clients at a door, whose socket is taken over. RetriableError."""

    def close(self, door: Door) -> None:
        """Accept nobody there any more; who came in stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorSettings:
    """`plan` is known once the cluster is heard. `listen` binds, or raises InvalidConfigError.

    `unserved` is told, each time the cluster was heard, how many live brokers have no door.
    """

    plan: Callable[[], DoorPlan]
    listen: Callable[[HostPort], socket.socket]
    unserved: Callable[[int], object]
    direct_if_unserved: bool = False


@dataclass(slots=True, kw_only=True)
class _BrokerDoor:
    door: Door
    address: HostPort
    seen_ms: int


class ClusterFront:
    """`hear` and `topology` are one thread's; the upstreams are thread-safe."""

    def __init__(self, settings: DoorSettings, keeper: Doorkeeper, clock: Clock) -> None:
        self._settings = settings
        self._keeper = keeper
        self._clock = clock
        self._doors: dict[int, _BrokerDoor] = {}
        self._problems: dict[int, str] = {}
        self._addresses = BrokerAddresses()

    def hear(self, view: ClusterView) -> None:
        self._addresses.hear(view)
        now_ms, live = self._clock.monotonic_ms(), self._addresses.live
        for node_id in sorted(live):
            if node_id in self._doors:
                self._doors[node_id].seen_ms = now_ms
            else:
                self._open(node_id, now_ms)
        self._close_gone(now_ms)
        self._problems = {n: problem for n, problem in self._problems.items() if n in live}
        self._settings.unserved(len(self._problems))

    def topology(
        self, registrations: Iterable[Registration], broker_time_ms: int
    ) -> GatewayTopology:
        return GatewayTopology(
            live={node_id: each.address for node_id, each in self._doors.items()},
            direct_if_unserved=self._settings.direct_if_unserved,
            elsewhere=self._settings.plan().advertised,
        )

    def any_upstreams(self) -> tuple[HostPort, ...]:
        """All live brokers, another one first each time: those behind the bootstrap door."""
        return self._addresses.any()

    def _open(self, node_id: int, now_ms: int) -> None:
        plan = self._settings.plan()
        try:
            listener = self._settings.listen(plan.listener_of(node_id))
            door = Door(
                name=f"broker-{node_id}",
                listener=listener,
                upstreams=partial(self._addresses.of, node_id),
            )
            try:
                address = plan.address_of(node_id, bound_port=listener.getsockname()[1])
            except TieredStorageError:
                listener.close()
                raise
            self._keeper.open(door)
        except TieredStorageError as error:
            self._note(node_id, str(error))
            return
        self._problems.pop(node_id, None)
        self._doors[node_id] = _BrokerDoor(door=door, address=address, seen_ms=now_ms)
        _log.info("a broker is served", extra={"node_id": node_id, "address": str(address)})

    def _close_gone(self, now_ms: int) -> None:
        for node_id, each in tuple(self._doors.items()):
            if now_ms - each.seen_ms >= _GONE_MS:
                self._keeper.close(each.door)
                del self._doors[node_id]
                _log.info("a broker is gone, its door is closed", extra={"node_id": node_id})

    def _note(self, node_id: int, problem: str) -> None:
        if self._problems.get(node_id) != problem:
            _log.warning("a broker has no door", extra={"node_id": node_id, "reason": problem})
        self._problems[node_id] = problem
