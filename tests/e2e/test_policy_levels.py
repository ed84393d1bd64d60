"""A pattern tiers topics that are created after it; a topic's own settings win."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

DAY_MS = 86_400_000


def _policies(host: BrokerHost) -> dict[str, dict[str, Any]]:
    listed = json.loads(host.rlm("topic", "list", "--json"))["topics"]
    return {each["topic"]: each for each in listed}


def _is_active(host: BrokerHost, topic: str) -> bool:
    return _policies(host).get(topic, {}).get("state") == "ACTIVE"


def _origins(host: BrokerHost, topic: str) -> dict[str, tuple[object, str]]:
    described = json.loads(host.rlm("topic", "describe", topic, "--json"))
    return {each["name"]: (each["value"], each["origin"]) for each in described["settings"]}


def test_topic_when_created_under_a_pattern_then_is_tiered_and_stored_by_itself(
    kafka: KafkaCluster, host: BrokerHost, topic_name: str
) -> None:
    """Compacted topics are skipped and shown."""
    pattern, compacted = f"{topic_name}.*", f"{topic_name}.compacted"
    with host.metadata() as metadata, host.running():
        host.wait_ready()
        early = host.try_rlm("policy", "set", pattern, "--local-retention", "1d")
        host.rlm("policy", "set", "--default", "--local-deletion-lag-ms", "5000")
        kafka.create_topic(compacted, config={"cleanup.policy": "compact"})
        log = TieredLog.create(kafka, f"{topic_name}.new", host.store)
        log.produce(2)

        wait_until(lambda: _is_active(host, log.topic), describe=lambda: str(_policies(host)))
        wait_until(
            lambda: len(log.finished(metadata)) == 2, describe=lambda: log.untiered(metadata)
        )
        origins = _origins(host, log.topic)
        described = json.loads(host.rlm("policy", "describe", pattern, "--json"))

    assert early.returncode == 0
    assert f"note: pattern {pattern} matches no topic yet" in early.stderr
    assert origins["local.retention.ms"] == (DAY_MS, f"pattern {pattern}")
    assert origins["local.deletion.lag.ms"] == (5000, "default")
    assert origins["retention.ms"] == (-1, "topic")  # an override, which no pattern changes
    topics = {each["topic"]: (each["action"], each["obstacle"]) for each in described["topics"]}
    assert topics[log.topic] == ("keep", "")
    assert topics[compacted][0] == "skip"
    assert "cleanup.policy=compact" in topics[compacted][1]


def test_pattern_when_it_changes_then_topics_follow_unless_set_or_disabled(
    kafka: KafkaCluster, host: BrokerHost, topic_name: str, tmp_path: Path
) -> None:
    pattern = f"{topic_name}.*"
    follows, own, disabled = (f"{topic_name}.{each}" for each in ("follows", "own", "disabled"))
    policies = tmp_path / "policies.yaml"
    policies.write_text(f"patterns:\n  {pattern}:\n    retention_ms: 2d\n")
    with host.running():
        host.wait_ready()
        kafka.create_topic(disabled)
        host.rlm("policy", "set", pattern, "--retention", "1d", "--dry-run")
        before = _policies(host)
        host.rlm("policy", "set", pattern, "--retention", "1d", "--yes")
        host.rlm("topic", "disable", disabled)
        kafka.create_topic(follows)
        kafka.create_topic(own)
        wait_until(lambda: _is_active(host, own), describe=lambda: str(_policies(host)))
        host.rlm("topic", "set", own, "--retention", "3d")
        shown = json.loads(host.rlm("apply", "-f", str(policies), "--dry-run", "--json"))
        host.rlm("apply", "-f", str(policies))
        wait_until(
            lambda: _policies(host).get(follows, {}).get("retention_ms") == 2 * DAY_MS,
            describe=lambda: str(_policies(host)),
        )
        after = _policies(host)
        host.rlm("policy", "delete", pattern, "--yes")
        left = json.loads(host.rlm("policy", "list", "--json"))

    assert before == {}
    changes = {each["topic"]: each["action"] for each in shown["topics"]}
    assert changes == {follows: "change", disabled: "skip"}
    assert after[own]["retention_ms"] == 3 * DAY_MS
    assert after[disabled]["state"] == "DISABLED"
    assert left["levels"] == []
    (manager,) = left["managers"]
    assert (manager["settings"]["offload_mode"], manager["unknown_reason"]) == ("segment", "")


def test_policies_when_a_key_is_unknown_then_nothing_is_changed(
    host: BrokerHost, topic_name: str, tmp_path: Path
) -> None:
    policies = tmp_path / "policies.yaml"
    policies.write_text(
        f"patterns:\n  {topic_name}:\n    retention_ms: 1d\n    retentoin_bytes: 1\n"
    )

    refused = host.try_rlm("apply", "-f", str(policies))

    assert refused.returncode == 2
    assert "line=4" in refused.stderr
    assert "column=5" in refused.stderr
    assert json.loads(host.rlm("policy", "list", "--json"))["levels"] == []
