"""Which address a gateway advertises, by its configuration and by where its broker is."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.load import load_gateway_config
from rlm.gateway.app.endpoints_setup import ServingContext, ServingMode, serving_mode
from rlm.gateway.endpoints.endpoint import Endpoint
from rlm.source.meta_properties import BrokerIdentity
from rlm.worker.cluster_access import open_bootstrap
from rlmm.topic.memory import MemoryLog, MemoryTopic
from tests.log_dir_builder import ManualClock

_VIEW = ClusterView(
    cluster_id="c",
    controller_id=None,
    brokers={1: BrokerAddress(node_id=1, host="broker1", port=9092)},
    topics={},
    refused={},
)


class _Keeper:
    """Admits no client."""

    def open(self, endpoint: Endpoint) -> None: ...

    def close(self, endpoint: Endpoint) -> None: ...


def _gateway(
    directory: Path,
    listener: socket.socket,
    settings: Mapping[str, str],
    *,
    identity: BrokerIdentity | None,
) -> ServingMode:
    """A gateway whose host reaches its broker from 10.0.0.1."""
    entries = {
        "bootstrap.servers": "broker1:9092",
        "state.dir": str(directory),
        "rsm.config.storage.filesystem.root": str(directory),
        **settings,
    }
    path = directory / "rlm.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in entries.items()))
    config, clock = load_gateway_config(path), ManualClock()
    return serving_mode(
        ServingContext(
            config=config,
            identity=identity,
            worker=1,
            listener=listener,
            cluster=open_bootstrap(config.cluster, clock),
            topic=MemoryTopic(MemoryLog(clock)),
            endpoint_listener=_Keeper(),
            clock=clock,
            unserved=lambda _: None,
            towards=lambda _host, _port: "10.0.0.1",
        )
    )


@pytest.mark.parametrize("identity", [BrokerIdentity(node_id=1, cluster_id="c"), None])
def test_mode_when_it_listens_on_a_wildcard_then_advertises_the_address_towards_the_broker(
    tmp_path: Path, identity: BrokerIdentity | None
) -> None:
    with closing(socket.create_server(("0.0.0.0", 0))) as listener:  # noqa: S104
        mode = _gateway(tmp_path, listener, {}, identity=identity)

        mode.address.update(_VIEW)

        advertised = f"10.0.0.1:{listener.getsockname()[1]}"
    assert (mode.own().address, mode.own().is_loopback) == (advertised, False)


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({"gateway.advertised.listener": "public:443"}, "public"),
        (
            {
                "gateway.listener.security.protocol": "SSL",
                "gateway.ssl.keystore.location": "/etc/gateway.pem",
            },
            socket.gethostname(),
        ),
    ],
)
def test_mode_when_set_or_by_tls_then_advertises_a_name_before_the_cluster_answers(
    tmp_path: Path, settings: Mapping[str, str], host: str
) -> None:
    identity = BrokerIdentity(node_id=1, cluster_id="c")
    with closing(socket.create_server(("0.0.0.0", 0))) as listener:  # noqa: S104
        mode = _gateway(tmp_path, listener, settings, identity=identity)

        assert mode.address.get().host == host


def test_mode_when_a_fixed_address_is_loopback_then_says_which(tmp_path: Path) -> None:
    settings = {"gateway.node.addresses": "1=10.0.0.1:1,2=localhost:2"}
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        mode = _gateway(
            tmp_path, listener, settings, identity=BrokerIdentity(node_id=1, cluster_id="c")
        )

        assert mode.own().fixed_loopback == "2=localhost:2"
        assert mode.own().has_loopback_listener
