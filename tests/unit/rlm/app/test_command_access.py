"""From a manager's heartbeat to a command's request, over one metadata topic. Scenario 118."""

from __future__ import annotations

from contextlib import closing
from uuid import UUID

from prometheus_client import CollectorRegistry

from rlm.app.command_access import CommandAccess
from rlm.app.registered_address import HostView, RegisteredAddress
from rlm.broker.cluster import BrokerAddress
from rlm.cli.invocation.managers import live_managers
from rlm.operator.cluster_secret import SecretWriter
from rlm.policy.peers.other_hosts import HostIdentity
from rlm.rest.api_listener import ApiListener
from rlm.rest.credentials import MetadataAuthority
from rlm.rest.http_server import HttpServer
from rlm.rest.manager_api import manager_api
from rlm.rest.signed_api import SignedApi
from rlm.rest.signing import ManagerIdentity
from rlm.tasks.leadership.heartbeat import Heartbeat, ProcessDescription, ProcessState
from rlm.worker.fresh_id import fresh_id
from rlmm.events.registration import ProcessRole
from rlmm.events.secret import cluster_secret
from tests.unit.rlm.cli.stated_managers import Cluster, StatedView, report
from tests.unit.rlm.rest.signed_manager import CLUSTER_ID, client_of


def _access(cluster: Cluster, listener: ApiListener) -> CommandAccess:
    broker = BrokerAddress(node_id=1, host="broker1", port=9092)
    return CommandAccess(
        address=RegisteredAddress(
            listener,
            advertised=None,
            node_id=1,
            brokers=lambda: {1: broker},
            metadata=cluster.metadata,
            host=HostView(
                identity=HostIdentity(),
                is_own=lambda _: True,
                towards=lambda _host, _port: "127.0.0.1",
            ),
        ),
        authority=MetadataAuthority(
            metadata=cluster.metadata,
            identity=ManagerIdentity(
                cluster_id=CLUSTER_ID, broker_id=1, incarnation=UUID(int=0xABC)
            ),
        ),
        secrets=SecretWriter(cluster.metadata, fresh_id, lambda length: b"s" * length),
    )


def _beat(cluster: Cluster, access: CommandAccess) -> None:
    """Do what a manager does at each heartbeat."""
    description = ProcessDescription(
        process_id=UUID(int=1),
        role=ProcessRole.MANAGER,
        broker_id=1,
        heartbeat_interval_ms=1000,
        version="1",
        incarnation=access.incarnation,
    )
    access.refresh()
    state = ProcessState(http_address=access.address.http_address)
    Heartbeat(cluster.metadata, description, fresh_id).step(state)


def test_command_when_the_manager_has_registered_then_finds_it_and_is_answered() -> None:
    cluster, listener, view = Cluster(), ApiListener(), StatedView()
    view.reports = (report(),)
    access = _access(cluster, listener)
    api = SignedApi(
        manager_api(view, CollectorRegistry(), logs=bytes), access.authority, refused=lambda _: None
    )
    listener.start(lambda bound: HttpServer(api, bound, name="manager-http"))
    try:
        _beat(cluster, access)
        (manager,) = live_managers(cluster.metadata, cluster.clock)
        with closing(client_of(cluster)) as client:
            before = client.partitions(manager)
            access.secrets.rotate()
            after = client.partitions(manager)
    finally:
        listener.stop()

    assert [row.topic_id_partition.topic for row in before] == ["orders"]
    assert after == before


def test_heartbeat_when_repeated_then_address_and_secret_stay() -> None:
    cluster, listener = Cluster(), ApiListener()
    access = _access(cluster, listener)
    try:
        found = []
        for _ in range(2):
            _beat(cluster, access)
            (manager,) = live_managers(cluster.metadata, cluster.clock)
            found.append((manager.http_address, cluster_secret(cluster.metadata)))
    finally:
        listener.stop()

    assert found[0] == found[1]
