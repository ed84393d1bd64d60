"""Kafka's own tools read a trimmed topic through a gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.services.kafka_runtime import run_tool

_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


@pytest.fixture(scope="module")
def gateway(tiered_host: BrokerHost, tiered: TieredTopic) -> Iterator[RunningGateway]:
    assert tiered.local_start_offset(0) > 0
    with running_gateway(tiered_host) as gateway:
        yield gateway


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_java_consumer_when_it_reads_from_the_beginning_then_every_offset_once_in_order(
    gateway: RunningGateway, tiered: TieredTopic, isolation: str
) -> None:
    """Scenario 41, with topic ids, and without fetch sessions."""
    count = len(tiered.values[0])
    printed = run_tool(
        _CONSUMER,
        "--bootstrap-server",
        gateway.bootstrap_servers,
        "--topic",
        tiered.name,
        "--partition",
        "0",
        "--offset",
        "earliest",
        "--max-messages",
        str(count),
        "--isolation-level",
        isolation,
        "--timeout-ms",
        "30000",
        "--formatter-property",
        "print.value=false",
        "--formatter-property",
        "print.offset=true",
    )
    offsets = [int(each) for each in re.findall(r"^Offset:(\d+)", printed, re.MULTILINE)]
    assert offsets == list(range(count))
