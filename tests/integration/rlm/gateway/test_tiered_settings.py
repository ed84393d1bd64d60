"""A tiered topic's settings, changed through a gateway by a plain admin client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from tests.integration.rlm.gateway.running_gateway import running_gateway
from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.services.kafka import admin_client


@pytest.fixture(scope="module")
def admin(twin_topics: TwinTopics) -> Iterator[AdminClient]:
    with running_gateway(twin_topics.host) as gateway:
        yield admin_client(gateway.bootstrap_servers)


def _set(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(30.0)


def _get(admin: AdminClient, topic: str, name: str) -> str | None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (found,) = admin.describe_configs([resource]).values()
    value: str | None = found.result(30.0)[name].value
    return value


@pytest.mark.parametrize("name", ["retention.ms", "retention.bytes"])
def test_retention_when_it_is_set_for_a_tiered_topic_then_is_refused_and_stays_off(
    twin_topics: TwinTopics, admin: AdminClient, name: str
) -> None:
    """R9: the broker would delete what is not stored yet."""
    topic = twin_topics["plain"].tiered.topic

    with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
        _set(admin, topic, name, "1000")

    assert _get(admin, topic, name) == "-1"


def test_settings_when_they_do_not_endanger_what_is_not_stored_then_pass(
    twin_topics: TwinTopics, admin: AdminClient
) -> None:
    twin = twin_topics["plain"]

    _set(admin, twin.whole.topic, "retention.bytes", "1000000000")
    _set(admin, twin.tiered.topic, "max.message.bytes", "1000000")

    assert _get(admin, twin.whole.topic, "retention.bytes") == "1000000000"
    assert _get(admin, twin.tiered.topic, "max.message.bytes") == "1000000"
