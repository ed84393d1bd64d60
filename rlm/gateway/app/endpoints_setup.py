"""Chooses what a gateway serves: the broker of `log.dirs`, else the whole cluster."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID, uuid5

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.errors import ForeignClusterError
from rlm.config.load import Config
from rlm.config.tls import ListenerProtocol
from rlm.config.values import HostPort
from rlm.gateway.endpoints.endpoint import Endpoint
from rlm.gateway.endpoints.endpoint_addresses import LISTENERS_KEY, EndpointAddresses
from rlm.gateway.endpoints.own_address import BrokerRoute, OwnAddress, WildcardListener
from rlm.gateway.endpoints.per_broker_routing import (
    EndpointListener,
    PerBrokerRouting,
    PerBrokerSettings,
)
from rlm.gateway.endpoints.routing import Routing
from rlm.gateway.endpoints.single_broker_routing import (
    SingleBrokerRouting,
    SingleBrokerSettings,
)
from rlm.gateway.endpoints.sni_routing import ServerNames, SniRouting
from rlm.policy.peers.gateway_address import OwnGateway
from rlm.process.host_check import check_directories, check_host
from rlm.process.local_address import local_address_towards
from rlm.process.state_dir import state_id
from rlm.source.meta_properties import BrokerIdentity
from rlm.worker.client_listener import bind_closed
from rlm.worker.fresh_id import fresh_id
from rlmm.events.registration import NO_BROKER, ProcessRole
from rlmm.topic.event_topic import EventTopic
from rsm.segment.clock import Clock

_PROCESS_IDS = UUID("5e0f0f0a-3b0e-4c70-9e54-6f0ad1c7e0b3")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingContext:
    """Represents the inputs of `serving_mode`.

    `identity`: the broker on this host, None if there is none. `worker`: this process's number
    among the gateway's processes. `listener`: a socket bound to `gateway.listener`, which listens
    after its endpoint is opened. `unserved`: receives the number of unserved brokers at each
    update of PerBrokerRouting. `towards`: see rlm.process.local_address.
    """

    config: Config
    identity: BrokerIdentity | None
    worker: int
    listener: socket.socket
    cluster: Bootstrap
    topic: EventTopic
    endpoint_listener: EndpointListener
    clock: Clock
    unserved: Callable[[int], object]
    towards: Callable[[str, int], str] = local_address_towards

    @property
    def bound(self) -> HostPort:
        """Return the address that `listener` is bound to."""
        host, port = self.listener.getsockname()[:2]
        return HostPort(host=host, port=port)

    @property
    def route(self) -> BrokerRoute:
        """Return the route from this host to its broker; to any broker if it has none."""
        broker_id = NO_BROKER if self.identity is None else self.identity.node_id
        return BrokerRoute(broker_id=broker_id, towards=self.towards)

    def own_address(self) -> OwnAddress:
        """Return the address that clients use for `listener`."""
        advertised, bound = self.config.gateway.advertised_listener, self.bound
        if advertised is not None or not bound.is_unspecified:
            return OwnAddress(advertised or bound)
        if self.config.gateway_tls.protocol is ListenerProtocol.SSL:
            return OwnAddress(HostPort(host=socket.gethostname(), port=bound.port))
        return OwnAddress(
            WildcardListener(
                port=bound.port,
                host_name=socket.gethostname(),
                route=self.route,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMode:
    """Represents the brokers that a gateway serves, and its identity.

    `address`: where clients find the first endpoint. `own` describes this gateway; call it after
    `address` is known. `process_id` is the same in every run. Call `confirm` before the gateway
    writes to the cluster. It raises ForeignClusterError or NotFoundError if this is not the
    expected cluster, and RetriableError if the cluster does not answer.
    """

    routing: Routing
    broker_id: int
    address: OwnAddress
    own: Callable[[], OwnGateway]
    process_id: UUID
    confirm: Callable[[], None]


def identity_of_host(config: Config) -> BrokerIdentity | None:
    """Return the broker that owns `log.dirs`; None if the key is not set.

    Raises the errors of `check_host`.
    """
    if config.host.log_dirs:
        return check_host(config)
    check_directories(config)
    return None


def serving_mode(context: ServingContext) -> ServingMode:
    """Choose the mode and open its first endpoint. Does not contact the cluster."""
    template = context.config.gateway_tls.name_template
    if context.identity is not None:
        return _single_broker_mode(context, context.identity)
    return _for_cluster(context) if template is None else _for_cluster_by_name(context, template)


def _single_broker_mode(context: ServingContext, identity: BrokerIdentity) -> ServingMode:
    settings = context.config.gateway
    address = context.own_address()
    routing = SingleBrokerRouting(
        SingleBrokerSettings(
            node_id=identity.node_id,
            own=address.get,
            fixed=settings.node_addresses,
            direct_if_unserved=settings.direct_if_unserved,
        )
    )
    context.endpoint_listener.open(
        Endpoint(name="broker", listener=context.listener, upstreams=routing.upstreams)
    )
    return ServingMode(
        routing=routing,
        broker_id=identity.node_id,
        address=address,
        own=_own_gateway(context, identity.node_id, address),
        process_id=uuid5(_PROCESS_IDS, _process_name(identity, context.worker)),
        confirm=partial(_confirm_cluster, context.cluster, identity),
    )


def _process_name(identity: BrokerIdentity, worker: int) -> str:
    name = f"{identity.cluster_id}/{identity.node_id}/{ProcessRole.GATEWAY.name}"
    return name if worker == 1 else f"{name}/{worker}"


def _for_cluster(context: ServingContext) -> ServingMode:
    settings = context.config.gateway
    address, bound = context.own_address(), context.bound
    key = LISTENERS_KEY if settings.node_listeners else "gateway.listener"
    routing = PerBrokerRouting(
        PerBrokerSettings(
            plan=lambda: EndpointAddresses(
                bootstrap=bound,
                advertised=address.get(),
                listeners=settings.node_listeners,
                addresses=settings.node_addresses,
            ),
            listen=partial(bind_closed, key=key),
            unserved=context.unserved,
            direct_if_unserved=settings.direct_if_unserved,
        ),
        context.endpoint_listener,
        context.clock,
    )
    context.endpoint_listener.open(
        Endpoint(name="bootstrap", listener=context.listener, upstreams=routing.any_upstreams)
    )
    return _whole_cluster_mode(context, routing, address)


def _for_cluster_by_name(context: ServingContext, template: str) -> ServingMode:
    settings = context.config.gateway
    address = context.own_address()
    routing = SniRouting(
        ServerNames(template), address.get(), direct_if_unserved=settings.direct_if_unserved
    )
    context.endpoint_listener.open(
        Endpoint(
            name="named",
            listener=context.listener,
            upstreams=routing.any_upstreams,
            upstreams_of_name=routing.upstreams_of_name,
        )
    )
    return _whole_cluster_mode(context, routing, address)


def _whole_cluster_mode(
    context: ServingContext, routing: Routing, address: OwnAddress
) -> ServingMode:
    return ServingMode(
        routing=routing,
        broker_id=NO_BROKER,
        address=address,
        own=_own_gateway(context, NO_BROKER, address),
        process_id=uuid5(
            state_id(context.config.host.state_dir, fresh_id), ProcessRole.GATEWAY.name
        ),
        # The manager or gateway next to a broker creates this topic. If the topic is missing, this
        # is probably another cluster.
        confirm=lambda: _require_topic(context.topic),
    )


def _own_gateway(
    context: ServingContext, broker_id: int, address: OwnAddress
) -> Callable[[], OwnGateway]:
    """Return a function to call after the address is known; `listener` may be closed by then."""
    settings, bound = context.config.gateway, context.bound
    is_set = settings.advertised_listener is not None
    fixed = [f"{n}={each}" for n, each in settings.node_addresses.items() if each.is_loopback]

    def own() -> OwnGateway:
        advertised = address.get()
        return OwnGateway(
            broker_id=broker_id,
            address=str(advertised),
            is_loopback=advertised.is_loopback,
            key="gateway.advertised.listener" if is_set else "gateway.listener",
            has_loopback_listener=bound.is_loopback,
            fixed_loopback=fixed[0] if fixed else "",
        )

    return own


def _require_topic(topic: EventTopic) -> None:
    topic.ensure(create=False)


def _confirm_cluster(cluster: Bootstrap, identity: BrokerIdentity) -> None:
    """Check the cluster id of `log.dirs`. Raises ForeignClusterError or RetriableError."""
    found = cluster.view(()).cluster_id
    if found != identity.cluster_id:
        raise ForeignClusterError(
            "bootstrap.servers and log.dirs belong to different clusters",
            expected=identity.cluster_id,
            found=found,
        )
