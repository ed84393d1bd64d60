"""Defines routing: a gateway's brokers, and the addresses that clients get for them.

one broker         `rlm.gateway.endpoints.single_broker_routing`: other brokers have gateways too
the whole cluster  `rlm.gateway.endpoints.per_broker_routing`: an endpoint for each broker
                   `rlm.gateway.endpoints.sni_routing`: a TLS server name for each broker
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rlm.broker.cluster import ClusterView
from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlmm.events.registration import Registration


class Routing(Protocol):
    """Represents the routing of a gateway. Call both methods from one thread."""

    def update(self, view: ClusterView) -> None:
        """Replace the known brokers. Raises NotFoundError if no broker to serve is live."""

    def topology(
        self, registrations: Iterable[Registration], broker_time_ms: int
    ) -> GatewayTopology:
        """Return the address that clients now get for each broker."""
