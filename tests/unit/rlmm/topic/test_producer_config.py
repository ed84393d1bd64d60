"""Settings of event writes that a user's client settings cannot change."""

from __future__ import annotations

from rlmm.topic.kafka import KafkaTimeouts, producer_config

TIMEOUTS = KafkaTimeouts(produce_ms=500, delivery_ms=2_000)


def test_producer_when_configured_then_gives_up_a_leader_and_a_write_in_time() -> None:
    """Scenario 119: librdkafka's own limits are a minute for an attempt and five for a write."""
    found = producer_config({}, TIMEOUTS)

    assert found["socket.timeout.ms"] == found["request.timeout.ms"] == 500
    assert found["delivery.timeout.ms"] == 2_000


def test_producer_when_the_client_is_set_otherwise_then_writes_are_as_safe() -> None:
    client = {
        "acks": "1",
        "client.id": "mine",
        "delivery.timeout.ms": "300000",
        "enable.idempotence": "false",
        "linger.ms": "7",
        "socket.timeout.ms": "60000",
    }

    found = producer_config(client, TIMEOUTS)

    assert found == {
        "acks": "all",
        "allow.auto.create.topics": False,
        "client.id": "mine",
        "delivery.timeout.ms": 2_000,
        "enable.idempotence": True,
        "linger.ms": "7",
        "request.timeout.ms": 500,
        "socket.timeout.ms": 500,
    }


def test_timeouts_when_not_set_then_five_seconds_an_attempt_and_fifteen_a_write() -> None:
    assert (KafkaTimeouts().produce_ms, KafkaTimeouts().delivery_ms) == (5_000, 15_000)
