"""How long readers and the admin client wait for a response of a broker that may be cut off."""

from __future__ import annotations

import pytest

from rlmm.topic.kafka import KafkaTimeouts
from rlmm.topic.kafka_admin import admin_config
from rlmm.topic.kafka_reader import consumer_config

_TEN_SECONDS_MS = 10_000


def test_reader_when_configured_then_leaves_a_silent_leader_after_ten_seconds() -> None:
    """Scenario 119: librdkafka's own limit is a minute."""
    found = consumer_config({}, "metadata", 500, KafkaTimeouts().request_ms)

    assert found["socket.timeout.ms"] == _TEN_SECONDS_MS


def test_admin_when_configured_then_leaves_a_silent_broker_after_ten_seconds() -> None:
    found = admin_config({}, KafkaTimeouts().request_ms)

    assert found == {"socket.timeout.ms": _TEN_SECONDS_MS}


@pytest.mark.parametrize(
    "config",
    [
        admin_config({"socket.timeout.ms": "45000"}, _TEN_SECONDS_MS),
        consumer_config({"socket.timeout.ms": "45000"}, "metadata", 500, _TEN_SECONDS_MS),
    ],
    ids=["admin", "reader"],
)
def test_limit_when_the_client_sets_it_then_is_the_clients(config: dict[str, object]) -> None:
    limit = config["socket.timeout.ms"]

    assert limit == "45000"
