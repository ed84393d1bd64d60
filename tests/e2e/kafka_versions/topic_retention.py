"""The retention that a broker itself applies to a topic."""

from __future__ import annotations

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without __all__
    ConfigResource,
    ResourceType,
)

from tests.services.kafka import KafkaCluster, admin_client

UNLIMITED = {"retention.ms": "-1", "retention.bytes": "-1"}
_WEEK_MS = 7 * 24 * 3_600_000
WEEK = {"retention.ms": str(_WEEK_MS), "retention.bytes": "-1"}


def retention_of(cluster: KafkaCluster, topic: str) -> dict[str, str]:
    """Return the values by setting."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_client(cluster.bootstrap_servers)
    found = admin.describe_configs([resource])[resource].result(30.0)
    return {name: found[name].value for name in UNLIMITED}
