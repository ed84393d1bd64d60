"""The store fails under running processes, and comes back."""

from __future__ import annotations

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without __all__
    ConfigResource,
    ResourceType,
)

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster, admin_client, set_topic_configs
from tests.services.waiting import wait_until

_DEADLINE_S = 60.0


def _retention_ms(kafka: KafkaCluster, topic: str) -> str | None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_client(kafka.bootstrap_servers)
    found = admin.describe_configs([resource])[resource].result(10.0)
    value: str | None = found["retention.ms"].value
    return value


def test_manager_when_store_is_away_then_keeps_watch_and_catches_up(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog
) -> None:
    """D1, R9, scenario 93: status shows the lag, the retention is restored, no record is lost."""
    away = host.store.with_name("away")
    log.produce(2)
    with host.metadata() as metadata, host.running():
        host.rlm("topic", "set", log.partition.topic, "--local-retention-ms", "0")
        log.wait_tiered(metadata)
        host.store.rename(away)
        log.produce(3)
        topic = log.partition.topic
        wait_until(
            lambda: (host.report(topic).get("lag_segments") or 0) >= 2, _DEADLINE_S, "lag is seen"
        )
        wait_until(lambda: host.readiness()[0] == 503, _DEADLINE_S, "not ready without its store")

        admin = admin_client(kafka.bootstrap_servers)
        set_topic_configs(admin, topic, {"retention.ms": "1000000000"})

        wait_until(
            lambda: _retention_ms(kafka, topic) == "-1", _DEADLINE_S, "retention is put back"
        )
        away.rename(host.store)
        log.wait_tiered(metadata)
        host.wait_ready()
