"""A tiered topic's settings, changed through a gateway by a plain admin client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from rlm.wire.api.alter_configs import (
    ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from rlm.wire.error_codes import ErrorCode
from tests.integration.rlm.gateway.running_gateway import running_gateway
from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.kafka import admin_client, set_topic_configs
from tests.services.waiting import wait_until

_TOPIC = 2  # ConfigResource.Type


@pytest.fixture(scope="module")
def address(twin_topics: TwinTopics) -> Iterator[str]:
    with running_gateway(twin_topics.host) as gateway:
        yield gateway.bootstrap_servers


@pytest.fixture(scope="module")
def admin(address: str) -> AdminClient:
    return admin_client(address)


def _get(admin: AdminClient, topic: str, name: str) -> str | None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (found,) = admin.describe_configs([resource]).values()
    value: str | None = found.result(30.0)[name].value
    return value


@pytest.mark.parametrize("name", ["retention.ms", "retention.bytes"])
def test_retention_when_it_is_set_for_a_tiered_topic_then_is_refused_and_stays_off(
    twin_topics: TwinTopics, admin: AdminClient, name: str
) -> None:
    """R9: the broker would delete records that are not stored yet."""
    topic = twin_topics["plain"].tiered.topic

    with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
        set_topic_configs(admin, topic, {name: "1000"})

    assert _get(admin, topic, name) == "-1"


def test_settings_when_they_do_not_endanger_what_is_not_stored_then_pass(
    twin_topics: TwinTopics, admin: AdminClient
) -> None:
    twin = twin_topics["plain"]

    set_topic_configs(admin, twin.whole.topic, {"retention.bytes": "1000000000"})
    set_topic_configs(admin, twin.tiered.topic, {"max.message.bytes": "1000000"})

    assert _get(admin, twin.whole.topic, "retention.bytes") == "1000000000"
    assert _get(admin, twin.tiered.topic, "max.message.bytes") == "1000000"


def _replace(address: str, topics: tuple[str, ...]) -> list[int]:
    """Replace all settings of some topics by a retention with AlterConfigs; return the errors."""
    configs = (AlterableConfig(name="retention.ms", value="1000"),)
    resources = tuple(
        AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=configs)
        for topic in topics
    )
    with WireClient(address) as client:
        answer = client.ask(ALTER_CONFIGS, 1, AlterConfigsRequest(resources=resources))
    codes = {each.resource_name: each.error_code for each in answer.responses}
    return [codes[topic] for topic in topics]


def test_replacement_when_it_resets_a_tiered_topics_retention_then_nothing_of_it_changes(
    twin_topics: TwinTopics, admin: AdminClient, address: str
) -> None:
    """R9, through the older API."""
    tiered = twin_topics["plain"].tiered.topic
    set_topic_configs(admin, tiered, {"max.message.bytes": "1000001"})

    assert _replace(address, (tiered,)) == [ErrorCode.POLICY_VIOLATION]

    assert _get(admin, tiered, "retention.ms") == "-1"
    assert _get(admin, tiered, "max.message.bytes") == "1000001"


@contextmanager
def _nobody_may_alter(admin: AdminClient, topics: tuple[str, ...]) -> Iterator[None]:
    place = (ResourcePatternType.LITERAL, "User:*", "*")
    rule = (AclOperation.ALTER_CONFIGS, AclPermissionType.DENY)
    bindings = [AclBinding(ResourceType.TOPIC, topic, *place, *rule) for topic in topics]
    for made in admin.create_acls(bindings).values():
        made.result(30.0)
    yield
    filters = [AclBindingFilter(ResourceType.TOPIC, topic, *place, *rule) for topic in topics]
    for deleted in admin.delete_acls(filters).values():
        deleted.result(30.0)


def test_retention_when_the_client_may_not_set_it_then_it_does_not_learn_what_is_tiered(
    twin_topics: TwinTopics, admin: AdminClient, address: str
) -> None:
    """The broker's authorizer decides, and its audit sees the attempt."""
    twin = twin_topics["plain"]
    topics = twin.tiered.topic, twin.whole.topic

    with _nobody_may_alter(admin, topics):
        wait_until(lambda: _replace(address, topics[1:]) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED])
        replaced = _replace(address, topics)
        with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            set_topic_configs(admin, twin.tiered.topic, {"retention.ms": "1000"})

    assert replaced == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
