"""Plain consumers read topics whose local logs were trimmed, through a gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition

from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.reading import consumer, read_from, to_the_end
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.tiered_topic import TieredTopic


@pytest.fixture(scope="module")
def gateway(tiered_host: BrokerHost, tiered: TieredTopic) -> Iterator[RunningGateway]:
    assert tiered.local_start_offset(0) > 0
    with running_gateway(tiered_host) as gateway:
        yield gateway


def test_consumer_when_the_local_log_was_trimmed_then_reads_every_record_once_in_order(
    gateway: RunningGateway, tiered: TieredTopic
) -> None:
    """Scenario 41."""
    read = read_from(gateway.bootstrap_servers, tiered.name)
    assert [message.offset() for message in read] == list(range(len(tiered.values[0])))
    assert [message.value() for message in read] == tiered.values[0]
    assert gateway.counts.remote_bytes > 1 << 20


def test_consumer_when_it_begins_within_a_batch_then_its_first_record_is_the_one_asked_for(
    gateway: RunningGateway, tiered: TieredTopic
) -> None:
    """Scenario 57."""
    for offset in (1, 3, 7, tiered.local_start_offset(0) - 1):
        read = read_from(gateway.bootstrap_servers, tiered.name, offset=offset)
        assert read[0].offset() == offset
        assert [message.value() for message in read] == tiered.values[0][offset:]


def test_consumer_when_it_reads_several_partitions_then_each_is_whole_and_in_order(
    gateway: RunningGateway, tiered: TieredTopic
) -> None:
    """Scenario 54, and 117: remote and local partitions in the same fetches."""
    read = read_from(gateway.bootstrap_servers, tiered.name, partitions=3)
    for number, values in tiered.values.items():
        of_partition = [message for message in read if message.partition() == number]
        assert [message.value() for message in of_partition] == values


def test_consumer_when_fetches_are_small_then_it_gets_on_from_batch_to_batch(
    gateway: RunningGateway, tiered: TieredTopic
) -> None:
    """Scenario 55: a first batch larger than the request's limit is returned whole."""
    small = {"fetch.message.max.bytes": 1_000, "max.partition.fetch.bytes": 1_000}
    read = read_from(gateway.bootstrap_servers, tiered.name, offset=100, settings=small)
    assert [message.value() for message in read] == tiered.values[0][100:]


def test_consumer_when_its_offset_is_above_the_end_then_it_is_out_of_range(
    gateway: RunningGateway, tiered: TieredTopic
) -> None:
    """Scenario 47."""
    end_offset = len(tiered.values[0])
    with pytest.raises(AssertionError, match="_AUTO_OFFSET_RESET"):
        read_from(gateway.bootstrap_servers, tiered.name, offset=end_offset + 10)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_when_its_committed_offset_is_remote_then_it_continues_there(
    gateway: RunningGateway, tiered: TieredTopic, protocol: str
) -> None:
    """Scenario 66, KIP-848; the group's own requests pass through the gateway too."""
    group = {
        "group.id": f"{tiered.name}-{protocol}",
        "group.protocol": protocol,
        "auto.offset.reset": "error",
    }
    before = consumer(gateway.bootstrap_servers, group)
    before.commit(
        offsets=[TopicPartition(tiered.name, each, 2) for each in (0, 1)]
        + [TopicPartition(tiered.name, 2, 0)],
        asynchronous=False,
    )
    before.close()
    member = consumer(gateway.bootstrap_servers, group)
    member.subscribe([tiered.name])
    read = to_the_end(member, 3)
    member.close()
    for number, start in ((0, 2), (1, 2), (2, 0)):
        values = [message.value() for message in read if message.partition() == number]
        assert values == tiered.values[number][start:]
