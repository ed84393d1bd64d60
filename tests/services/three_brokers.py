"""A cluster of three brokers, which tests stop one by one."""

from __future__ import annotations

from pathlib import Path

from tests.services.kafka import KafkaCluster
from tests.services.provider import ServiceProvider

_PROPERTIES = {
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": "6000",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


def three_brokers(services: ServiceProvider, directory: Path) -> KafkaCluster:
    """Return a cluster to start; to stop one of its brokers, use `KafkaCluster.without`.

    Leaders move only when a broker stops, or a test moves them. Each broker is in a separate rack.
    """
    cluster = services.kafka(directory, brokers=3, properties=_PROPERTIES)
    for broker in cluster.brokers:
        broker.properties["broker.rack"] = f"rack-{broker.node_id}"
    return cluster
