"""A topic was deleted and created again: requests by name get none of the old data."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlm.wire.api.fetch import FETCH
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.offset_for_leader_epoch import OffsetForLeaderPartition
from rlm.wire.error_codes import ErrorCode, in_fetch
from rsm.segment.ids import TopicIdPartition
from tests.integration.rlm.gateway.consumed import record_bytes
from tests.integration.rlm.gateway.crafted_logs import BASE_MS
from tests.integration.rlm.gateway.raw_requests import (
    delete_records,
    epoch_end,
    fetch,
    from_offset,
    list_offsets,
)
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.kafka import admin_client
from tests.services.waiting import wait_until

_FIRST_WITH_IDS = 13
_LATEST, _EARLIEST, _MAX_TIMESTAMP = -1, -2, -3


@pytest.fixture(scope="module")
def former(twin_topics: TwinTopics) -> TopicIdPartition:
    """The deleted topic; an empty topic has its name now."""
    topic = twin_topics["recreated"].tiered
    cluster = twin_topics.host.cluster
    admin = admin_client(cluster.bootstrap_servers)
    admin.delete_topics([topic.topic])[topic.topic].result(30.0)
    wait_until(lambda: topic.topic not in admin.list_topics(timeout=10.0).topics)
    cluster.create_topic(topic.topic)
    return topic


@pytest.fixture(scope="module")
def gateway(twin_topics: TwinTopics, former: TopicIdPartition) -> Iterator[RunningGateway]:
    """A gateway that knows names only from policies, so that the name means the deleted topic."""
    with running_gateway(twin_topics.host) as gateway:
        assert gateway.metadata.partition_state(former).trimmed_offset
        yield gateway


@pytest.mark.parametrize("version", range(FETCH.versions.first, _FIRST_WITH_IDS))
def test_fetch_by_name_when_the_topic_is_a_new_one_then_no_old_record_is_given(
    former: TopicIdPartition, client: WireClient, version: int
) -> None:
    """R15: the answer is not OFFSET_OUT_OF_RANGE, either, which is not proven for the new topic."""
    for offset in (1, 5, 19, 25):
        row = fetch(client, former, version, from_offset(offset))
        assert row.error_code == in_fetch(ErrorCode.KAFKA_STORAGE_ERROR, version)
        assert record_bytes(row.records) == b""


def test_fetch_by_id_when_the_topic_is_gone_then_the_broker_says_so(
    former: TopicIdPartition, client: WireClient
) -> None:
    row = fetch(client, former, _FIRST_WITH_IDS, from_offset(5))
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("question", [_LATEST, _EARLIEST, _MAX_TIMESTAMP, 0, BASE_MS + 5])
def test_list_offsets_when_the_topic_is_a_new_one_then_the_brokers_answer(
    former: TopicIdPartition, client: WireClient, broker: WireClient, question: int
) -> None:
    version = LIST_OFFSETS.versions.last
    seen = list_offsets(client, former.topic, version, question)
    assert seen == list_offsets(broker, former.topic, version, question)


def test_leader_epoch_when_the_topic_is_a_new_one_then_the_brokers_answer(
    former: TopicIdPartition, client: WireClient, broker: WireClient
) -> None:
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    seen = epoch_end(client, former.topic, 4, asked)
    assert seen == epoch_end(broker, former.topic, 4, asked)


def test_delete_records_when_the_topic_is_a_new_one_then_the_former_one_is_left_alone(
    former: TopicIdPartition, gateway: RunningGateway, client: WireClient
) -> None:
    """R13."""
    answer = delete_records(client, former.topic, 2, 0)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 0)
    assert gateway.metadata.caught_up(former)
    assert gateway.metadata.partition_state(former).log_start_requested_offset is None
