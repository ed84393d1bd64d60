"""SASL passes through a gateway to the broker, which still authorizes all requests."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.wire.api.fetch import FETCH, FetchRequest
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.reading import assigned, read_from, to_the_end
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.security.secured_broker import (
    MECHANISMS,
    SESSION_MS,
    SecuredBroker,
    login,
)
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.waiting import wait_until

_PROTOCOL = {"security.protocol": "SASL_PLAINTEXT"}
_WINDOWS = 3


@pytest.fixture
def gateway(secured: SecuredBroker, secured_host: BrokerHost) -> Iterator[RunningGateway]:
    with running_gateway(secured_host, upstream_port=secured.ports["LOGIN"]) as gateway:
        yield gateway


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_consumer_when_it_logs_in_through_a_gateway_then_reads_what_is_stored(
    gateway: RunningGateway, secured_topic: TieredTopic, mechanism: str
) -> None:
    settings = {**_PROTOCOL, **login(mechanism)}
    # A broker knows a new SCRAM user a moment after the controller.
    wait_until(lambda: _sees(gateway, secured_topic, settings))

    read = read_from(gateway.bootstrap_servers, secured_topic.name, settings=settings)

    assert [message.value() for message in read] == secured_topic.values[0]
    assert gateway.counts.remote_bytes > 0


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_consumer_when_its_password_is_wrong_then_the_broker_says_so(
    gateway: RunningGateway, secured_topic: TieredTopic, mechanism: str
) -> None:
    errors: list[str] = []
    settings = {**_PROTOCOL, **login(mechanism, password="not-it")}  # noqa: S106 - guards nothing
    reader = Consumer(
        {
            "bootstrap.servers": gateway.bootstrap_servers,
            "group.id": "unused",
            "error_cb": lambda error: errors.append(error.name()),
            "log_level": 0,
            **settings,
        }
    )
    reader.subscribe([secured_topic.name])

    wait_until(lambda: reader.poll(0.1) is not None or "_AUTHENTICATION" in errors)

    reader.close()
    assert "_AUTHENTICATION" in errors
    assert gateway.counts.remote_bytes == 0


def test_consumer_when_it_did_not_log_in_then_it_gets_nothing(
    gateway: RunningGateway, secured_topic: TieredTopic
) -> None:
    assert not _sees(gateway, secured_topic, {})
    assert gateway.counts.closed[DisconnectCause.BROKER_CLOSED] > 0


def test_fetch_when_others_log_in_and_its_client_did_not_then_the_gateway_does_nothing_for_it(
    gateway: RunningGateway, secured_topic: TieredTopic
) -> None:
    settings = {**_PROTOCOL, **login("PLAIN")}
    wait_until(lambda: _sees(gateway, secured_topic, settings))

    with WireClient(gateway.bootstrap_servers) as client:
        client.send(FETCH, 11, FetchRequest(max_wait_ms=0, min_bytes=0))
        wait_until(lambda: gateway.counts.closed[DisconnectCause.NOT_LOGGED_IN] == 1)


def test_consumer_when_its_session_ends_again_and_again_then_it_reads_on_by_logging_in_again(
    gateway: RunningGateway, secured_topic: TieredTopic
) -> None:
    """The gateway sends no request of its own between the messages of a login (KIP-368).

    On a slow machine, a client may log in again too late once, but not each time.
    """
    settings = {**_PROTOCOL, **login("PLAIN"), "fetch.message.max.bytes": "100000"}
    reader = assigned(gateway.bootstrap_servers, secured_topic.name, settings=settings)
    try:
        assert any(_reads_on(reader, gateway, secured_topic) for _ in range(_WINDOWS))
    finally:
        reader.close()


def test_consumer_when_it_may_not_read_a_topic_then_the_gateway_does_not_help_it(
    gateway: RunningGateway, secured: SecuredBroker, secured_topic: TieredTopic
) -> None:
    """Stored data is as protected as the broker's data."""
    settings = {**_PROTOCOL, **login("PLAIN")}
    read = read_from(gateway.bootstrap_servers, secured_topic.name, settings=settings)
    assert len(read) == len(secured_topic.values[0])
    served_bytes = gateway.counts.remote_bytes

    with (
        secured.without_reading(secured_topic.name),
        pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"),
    ):
        read_from(gateway.bootstrap_servers, secured_topic.name, settings=settings)

    assert gateway.counts.remote_bytes == served_bytes


def _reads_on(reader: Consumer, gateway: RunningGateway, topic: TieredTopic) -> bool:
    """Read during several login sessions; return whether the broker closed no connection."""
    before = gateway.counts.closed[DisconnectCause.BROKER_CLOSED]
    ends_s = time.monotonic() + 2.5 * SESSION_MS / 1000
    rounds = 0
    while time.monotonic() < ends_s or rounds < 3:
        read = to_the_end(reader, 1)
        assert [message.value() for message in read] == topic.values[0]
        rounds += 1
        reader.assign([TopicPartition(topic.name, 0, 0)])
    return gateway.counts.closed[DisconnectCause.BROKER_CLOSED] == before


def _sees(gateway: RunningGateway, secured_topic: TieredTopic, settings: dict[str, str]) -> bool:
    asker = Consumer(
        {
            "bootstrap.servers": gateway.bootstrap_servers,
            "group.id": "unused",
            "log_level": 0,
            **settings,
        }
    )
    try:
        return secured_topic.name in asker.list_topics(secured_topic.name, timeout=2.0).topics
    except KafkaException:
        return False
    finally:
        asker.close()
