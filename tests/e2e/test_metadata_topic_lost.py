"""The metadata topic is lost, and with it the retention that topics had before tiering."""

from __future__ import annotations

from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]  # no __all__

from rlmm.events.policy import topic_policy
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.waiting import wait_until

_DEADLINE_S = 60.0
_OF_THE_TOPIC = 1  # source of a setting, by DescribeConfigs


def test_uninstall_when_the_metadata_topic_is_lost_then_restores_what_the_store_has_kept(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, topic_name: str
) -> None:
    """R9: the originals are mirrored in the store."""
    before = _overrides(kafka, topic_name)
    with host.metadata() as metadata, host.running():
        host.rlm("topic", "set", topic_name)
        prefix = f"originals/{topic_name}-"
        wait_until(
            lambda: any(key.startswith(prefix) for key in log.object_keys()),
            _DEADLINE_S,
            "the originals are in the store",
        )
        name = host.config.metadata.topic_name
        assert topic_policy(metadata, log.partition.topic_id) is not None
    admin = admin_client(kafka.bootstrap_servers)
    admin.delete_topics([name])[name].result(10.0)
    lifted = _overrides(kafka, topic_name)

    shown = host.rlm("uninstall", "--dry-run")
    host.rlm("uninstall", "--force", "--yes")

    assert topic_name in shown
    assert lifted == {"retention.ms": "-1", "retention.bytes": "-1"}
    wait_until(lambda: _overrides(kafka, topic_name) == before, _DEADLINE_S, "as it was")


def _overrides(kafka: KafkaCluster, topic: str) -> dict[str, str]:
    resource = ConfigResource("topic", topic)
    admin = admin_client(kafka.bootstrap_servers)
    found = admin.describe_configs([resource])[resource]
    return {
        name: entry.value
        for name, entry in found.result(30.0).items()
        if name.startswith("retention.") and entry.source == _OF_THE_TOPIC
    }
