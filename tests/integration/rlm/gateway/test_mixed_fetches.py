"""Several partitions in one Fetch, with one budget: either tier, untiered, forbidden, unknown."""

from __future__ import annotations

from uuid import UUID

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from rlm.wire.api.fetch import FetchResponse, PartitionData
from rlm.wire.error_codes import ErrorCode
from rsm.segment.ids import TopicIdPartition
from tests.integration.rlm.gateway.consumed import record_bytes, whole_batches
from tests.integration.rlm.gateway.raw_requests import fetch_all, from_offset
from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.kafka import admin_client
from tests.services.waiting import wait_until

_UNKNOWN = TopicIdPartition(topic_id=UUID(int=77), topic="nobody-knows-it", partition=0)
# Longer than a client of these tests waits for an answer.
_LONG_MS = 100_000


@pytest.fixture
def _denied(twin_topics: TwinTopics, broker: WireClient) -> None:
    """Deny everybody Read on the two topics "denied"."""
    admin = admin_client(twin_topics.host.cluster.bootstrap_servers)
    twin = twin_topics["denied"]
    for topic in (twin.tiered, twin.whole):
        binding = AclBinding(
            ResourceType.TOPIC,
            topic.topic,
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            "*",
            AclOperation.READ,
            AclPermissionType.DENY,
        )
        for made in admin.create_acls([binding]).values():
            made.result(30.0)
    wait_until(
        lambda: all(
            _rows(fetch_all(broker, 12, [(topic, from_offset(0))]))[0].error_code
            for topic in (twin.tiered, twin.whole)
        )
    )


@pytest.mark.parametrize("version", [12, 13, 18])
@pytest.mark.usefixtures("_denied")
def test_fetch_when_its_partitions_are_of_all_kinds_then_each_gets_its_own_answer(
    twin_topics: TwinTopics, client: WireClient, broker: WireClient, version: int
) -> None:
    """Only clients that the broker authorizes get stored data."""
    every, plain, denied = twin_topics.of("every", "plain", "denied")
    offsets = (0, 25, 0, 0, 0)
    tiered = [every.tiered, plain.tiered, plain.whole, denied.tiered, _UNKNOWN]
    whole = [every.whole, plain.whole, plain.whole, denied.whole, _UNKNOWN]
    asked = [from_offset(offset) for offset in offsets]
    answer = fetch_all(client, version, list(zip(tiered, asked, strict=True)))
    for mine, theirs, partition in zip(tiered, whole, asked, strict=True):
        seen = _row_of(answer, version, mine)
        direct = _row_of(fetch_all(broker, version, [(theirs, partition)]), version, theirs)
        assert seen.error_code == direct.error_code
        found = record_bytes(seen.records)
        assert bool(found) == bool(direct.records)
        assert record_bytes(direct.records).startswith(found)
    refused = _row_of(answer, version, denied.tiered)
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("partition_max_bytes", [1, 350, 1 << 20])
@pytest.mark.parametrize("max_bytes", [1, 400, 900, 1_500, 1 << 20])
def test_fetch_when_several_partitions_are_remote_then_only_the_first_may_exceed_the_budget(
    twin_topics: TwinTopics,
    client: WireClient,
    broker: WireClient,
    max_bytes: int,
    partition_max_bytes: int,
) -> None:
    """Scenarios 54, 55: as a broker does (KAFKA-14915, KAFKA-19795, KAFKA-20019)."""
    twins = twin_topics.of("every", "plain", "older", "deleted")
    asked = from_offset(0, partition_max_bytes)
    tiered = [(twin.tiered, asked) for twin in twins]
    seen = _rows(fetch_all(client, 18, tiered, max_bytes=max_bytes))
    whole = [(twin.whole, asked) for twin in twins]
    direct = _rows(fetch_all(broker, 18, whole, max_bytes=max_bytes))
    sizes = [len(record_bytes(row.records)) for row in seen]
    assert len(whole_batches(seen[0].records)) >= 1
    assert sum(sizes) <= max_bytes or len(whole_batches(seen[0].records)) == 1
    assert sum(sizes[1:]) <= max(max_bytes - sizes[0], 0)
    assert all(size <= partition_max_bytes for size in sizes[1:])
    for mine, theirs in zip(seen[1:], direct[1:], strict=True):
        assert bool(mine.records) <= bool(theirs.records)


@pytest.mark.parametrize("min_bytes", [1, 1 << 20])
def test_fetch_when_the_local_part_waits_for_new_records_then_the_remote_part_does_not(
    twin_topics: TwinTopics, client: WireClient, min_bytes: int
) -> None:
    every, plain = twin_topics.of("every", "plain")
    asked = [
        (plain.tiered, from_offset(plain.log.end_offset)),
        (every.tiered, from_offset(0)),
    ]
    waiting, remote = _rows(fetch_all(client, 18, asked, max_wait_ms=_LONG_MS, min_bytes=min_bytes))
    assert (waiting.error_code, record_bytes(waiting.records)) == (ErrorCode.NONE, b"")
    assert remote.records


def _row_of(response: FetchResponse, version: int, topic: TopicIdPartition) -> PartitionData:
    (found,) = (
        each
        for each in response.responses
        if (each.topic_id == topic.topic_id if version >= 13 else each.topic == topic.topic)
    )
    return found.partitions[0]


def _rows(response: FetchResponse) -> list[PartitionData]:
    return [row for topic in response.responses for row in topic.partitions]
