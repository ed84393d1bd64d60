"""A manager's signed API on a real socket, and the objects that its client needs."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from rlm.config.values import HostPort
from rlm.rest.credentials import MetadataAuthority, MetadataCredentials
from rlm.rest.http_server import HttpServer, bind_listener, local_address
from rlm.rest.manager_api import manager_api
from rlm.rest.manager_client import ManagerClient
from rlm.rest.signed_api import SignedApi
from rlm.rest.signing import ManagerIdentity
from rlmm.events.registration import ProcessRegistered
from tests import metadata_builder as build
from tests.unit.rlm.cli.stated_managers import Cluster, StatedView

CLUSTER_ID = "cluster"
INCARNATION = UUID(int=0xABC)
IDENTITY = ManagerIdentity(cluster_id=CLUSTER_ID, broker_id=1, incarnation=INCARNATION)


@dataclass
class SignedManager:
    """A manager with a signed API. `refusals` are the reasons that it has counted."""

    cluster: Cluster = field(default_factory=Cluster)
    identity: ManagerIdentity = IDENTITY
    view: StatedView = field(default_factory=StatedView)
    refusals: list[str] = field(default_factory=list)
    logs: Callable[[], bytes] = bytes

    def set_secret(self, number: int, *, previous: int | None = None) -> None:
        event = build.cluster_secret(number, previous=previous)
        assert self.cluster.metadata.publish(event).accepted

    @property
    def app(self) -> SignedApi:
        return SignedApi(
            manager_api(self.view, CollectorRegistry(), logs=self.logs),
            MetadataAuthority(metadata=self.cluster.metadata, identity=self.identity),
            refused=self.refusals.append,
        )


@contextmanager
def serving(app: ASGIApp, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve an application, by HTTPS with `tls`; yield its address."""
    bound = bind_listener(HostPort(host="127.0.0.1", port=0), key="rest.listener")
    server = HttpServer(app, bound, name="served-app", tls=tls)
    server.start()
    try:
        yield str(local_address(bound))
    finally:
        server.stop()


def registered(
    address: str, identity: ManagerIdentity = IDENTITY, *, serves_https: bool = False
) -> ProcessRegistered:
    """Return a manager's registration as a command finds it in the metadata."""
    return replace(
        build.registration(http_address=address),
        broker_id=identity.broker_id,
        incarnation=identity.incarnation,
        serves_https=serves_https,
    )


def client_of(cluster: Cluster, tls: ssl.SSLContext | None = None) -> ManagerClient:
    return ManagerClient(MetadataCredentials(metadata=cluster.metadata, cluster_id=CLUSTER_ID), tls)
