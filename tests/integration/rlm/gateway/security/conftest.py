"""A broker with listeners of every kind, a host next to it, and a topic that is tiered there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.security.secured_broker import SecuredBroker, secured_broker
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.services.provider import ServiceProvider


@pytest.fixture(scope="package")
def secured(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    with secured_broker(services, tmp_path_factory.mktemp("secured")) as secured:
        yield secured


@pytest.fixture(scope="package")
def secured_host(secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> BrokerHost:
    directory = tmp_path_factory.mktemp("host")
    return BrokerHost(directory, secured.cluster, metadata_topic="metadata")


@pytest.fixture(scope="package")
def secured_topic(secured: SecuredBroker, secured_host: BrokerHost) -> TieredTopic:
    topic = TieredTopic(secured.cluster, "tiered")
    topic.produce(3)
    topic.tier(secured_host)
    assert topic.local_start_offset() > 0
    return topic
