"""A gateway's answers for a trimmed topic equal a broker's answers for its untrimmed twin.

The twins are equal byte for byte (tests.integration.rlm.gateway.twin_topics). One is tiered; the
other is complete at the broker, which is asked without a gateway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rlm.wire.api.fetch import FETCH, FetchPartition, PartitionData
from rlm.wire.api.list_offsets import LIST_OFFSETS, ListOffsetsPartitionResponse
from rlm.wire.api.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    EpochEndOffset,
    OffsetForLeaderPartition,
)
from rlm.wire.error_codes import ErrorCode, in_fetch
from rlm.wire.schema import Api
from tests.integration.rlm.gateway.consumed import (
    aborted_below,
    committed_offsets,
    record_bytes,
    whole_batches,
)
from tests.integration.rlm.gateway.crafted_logs import times_around
from tests.integration.rlm.gateway.raw_requests import (
    ANY_BYTES,
    epoch_end,
    fetch,
    from_offset,
    list_offsets,
)
from tests.integration.rlm.gateway.running_gateway import RunningGateway
from tests.integration.rlm.gateway.twin_topics import Twin, TwinTopics
from tests.integration.rlm.gateway.wire_client import WireClient

_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_LATEST, _EARLIEST, _MAX_TIMESTAMP = -1, -2, -3
_EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = -4, -5, -6
_FIRST_WITH_ISOLATION, _FIRST_WITH_MAX_TIMESTAMP = 2, 7
_TOPICS = ("every", "older", "plain", "streamed")
_ATTEMPTS = 5


def _versions(api: Api[Any, Any]) -> range:
    return range(api.versions.first, api.versions.last + 1)


class Pair:
    """A gateway that serves the tiered topics, and a broker that serves their whole twins."""

    def __init__(self, twins: TwinTopics, gateway: WireClient, broker: WireClient) -> None:
        self.twins = twins
        self._gateway = gateway
        self._broker = broker

    def fetch(
        self, twin: Twin, version: int, asked: FetchPartition, *, isolation_level: int = 0
    ) -> tuple[PartitionData, PartitionData]:
        """Return the answers of the gateway and of the broker for one partition.

        Requests to the gateway are retried, as by clients, after a retriable error and after an
        empty response for an offset in a gap between the tiers, or during a slow read.
        """
        direct = fetch(self._broker, twin.whole, version, asked, isolation_level=isolation_level)
        for _ in range(_ATTEMPTS - 1):
            seen = fetch(
                self._gateway, twin.tiered, version, asked, isolation_level=isolation_level
            )
            is_empty = seen.error_code == ErrorCode.NONE and not seen.records
            is_retriable = seen.error_code == in_fetch(ErrorCode.KAFKA_STORAGE_ERROR, version)
            if not is_retriable and not (is_empty and (direct.records or direct.error_code)):
                return seen, direct
        seen = fetch(self._gateway, twin.tiered, version, asked, isolation_level=isolation_level)
        return seen, direct

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of all these topics since the broker's restart."""
        topic = self.twins["every"].whole.topic
        return list_offsets(self._broker, topic, 4, _LATEST).leader_epoch

    @property
    def last_epoch(self) -> int:
        """The newest epoch in the broker's lineage; the leader epoch may be later."""
        asked = OffsetForLeaderPartition(partition=0, leader_epoch=self.leader_epoch)
        return epoch_end(self._broker, self.twins["every"].whole.topic, 4, asked).leader_epoch

    def offsets(
        self, twin: Twin, version: int, timestamp: int, *, isolation_level: int = 0, epoch: int = -1
    ) -> tuple[ListOffsetsPartitionResponse, ListOffsetsPartitionResponse]:
        seen, direct = (
            list_offsets(
                client,
                topic.topic,
                version,
                timestamp,
                isolation_level=isolation_level,
                epoch=epoch,
            )
            for client, topic in ((self._gateway, twin.tiered), (self._broker, twin.whole))
        )
        return seen, direct

    def epoch_end(
        self, twin: Twin, version: int, asked: OffsetForLeaderPartition
    ) -> tuple[EpochEndOffset, EpochEndOffset]:
        seen = epoch_end(self._gateway, twin.tiered.topic, version, asked)
        return seen, epoch_end(self._broker, twin.whole.topic, version, asked)


@pytest.fixture
def pair(gateway: RunningGateway, twin_topics: TwinTopics) -> Iterator[Pair]:
    with (
        WireClient(gateway.bootstrap_servers) as seen,
        WireClient(twin_topics.host.cluster.broker.address) as direct,
    ):
        yield Pair(twin_topics, seen, direct)


@pytest.mark.parametrize("version", _versions(FETCH))
def test_fetch_when_the_log_was_trimmed_then_answers_as_for_the_whole_log(
    pair: Pair, version: int
) -> None:
    """Scenarios 41, 47, 53, 55, 56, 57, 65, 112: all versions together ask for all offsets."""
    budgets = (1, 200, 700, ANY_BYTES)
    for twin in pair.twins.of(*_TOPICS):
        end_offset = twin.log.end_offset
        offsets = [*range(version % 3, end_offset, 3), end_offset + 1]
        for number, offset in enumerate(offsets):
            asked = from_offset(offset, budgets[number % len(budgets)])
            seen, direct = pair.fetch(twin, version, asked)
            _require_same(seen, direct, asked)


@pytest.mark.parametrize("version", [FETCH.versions.first, FETCH.versions.last])
def test_fetch_of_committed_when_the_log_was_trimmed_then_the_same_batches_are_delivered(
    pair: Pair, version: int
) -> None:
    """Scenarios 50 to 53: the aborted transactions of the returned range only (KAFKA-17801)."""
    twin = pair.twins["every"]
    for offset in range(twin.log.end_offset - 5):
        for max_bytes in (1, 500):
            asked = from_offset(offset, max_bytes)
            seen, direct = pair.fetch(twin, version, asked, isolation_level=_READ_COMMITTED)
            _require_same(seen, direct, asked)
            batches = whole_batches(seen.records)
            assert committed_offsets(seen, batches, offset) == committed_offsets(
                direct, batches, offset
            )
            if offset < twin.log.local_start_offset:
                assert seen.aborted_transactions == aborted_below(direct, batches[-1].next_offset)


@pytest.mark.parametrize("offset", [0, 20, 66, 72, 91])
@pytest.mark.parametrize("version", [9, 11, 12, 13, 18])
def test_fetch_when_the_leader_epoch_is_not_the_leaders_then_the_same_error(
    pair: Pair, version: int, offset: int
) -> None:
    """Scenario 49: an older epoch is fenced, a later one unknown, in either tier."""
    codes = []
    for epoch in range(-1, pair.leader_epoch + 2):
        asked = replace(from_offset(offset), current_leader_epoch=epoch)
        seen, direct = pair.fetch(pair.twins["every"], version, asked)
        assert seen.error_code == direct.error_code
        assert seen.current_leader == direct.current_leader
        codes.append(seen.error_code)
    assert set(codes) == {
        ErrorCode.NONE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }


@pytest.mark.parametrize("version", [12, 13, 18])
def test_fetch_when_the_reader_says_what_it_fetched_last_then_divergence_is_reported_alike(
    pair: Pair, version: int
) -> None:
    """Scenario 49, KIP-595: the epoch is compared with the lineage of the whole log."""
    twin = pair.twins["every"]
    for epoch in range(pair.last_epoch + 1):
        for offset in (0, 1, 23, 24, 25, 28, 60, 67):
            asked = replace(from_offset(offset), last_fetched_epoch=epoch)
            seen, direct = pair.fetch(twin, version, asked)
            _require_same(seen, direct, asked)


@pytest.mark.parametrize("version", _versions(LIST_OFFSETS))
def test_list_offsets_when_a_time_is_asked_for_then_the_whole_logs_answer(
    pair: Pair, version: int
) -> None:
    """Scenarios 42, 44, 46: before the first, at, between and after all records."""
    for twin in pair.twins.of(*_TOPICS):
        times = times_around(twin.log)
        for time_ms in times[version % 2 :: 2]:
            seen, direct = pair.offsets(twin, version, time_ms)
            assert seen == direct, (twin.tiered.topic, time_ms)


@pytest.mark.parametrize("isolation_level", [_READ_UNCOMMITTED, _READ_COMMITTED])
@pytest.mark.parametrize("version", _versions(LIST_OFFSETS))
def test_list_offsets_when_an_end_is_asked_for_then_the_whole_logs_answer(
    pair: Pair, version: int, isolation_level: int
) -> None:
    """Scenarios 42, 46: earliest and latest, for either isolation level, and the greatest time."""
    if version < _FIRST_WITH_ISOLATION:
        isolation_level = _READ_UNCOMMITTED
    questions = [_LATEST, _EARLIEST]
    if version >= _FIRST_WITH_MAX_TIMESTAMP:
        questions.append(_MAX_TIMESTAMP)
    for twin in pair.twins.of(*_TOPICS):
        for question in questions:
            seen, direct = pair.offsets(twin, version, question, isolation_level=isolation_level)
            assert seen == direct, (twin.tiered.topic, question)


def test_list_offsets_when_a_tiers_end_is_asked_for_then_answers_as_brokers_with_tiering_do(
    pair: Pair,
) -> None:
    """Scenario 42, KIP-405, KIP-1005, KIP-1023: the newest rolled segment is in both tiers."""
    twin = pair.twins["every"]
    expected = {
        _EARLIEST_LOCAL: (twin.log.local_start_offset, 1),
        _LATEST_TIERED: (twin.log.segments[-1][0] - 1, 1),
        _EARLIEST_PENDING_UPLOAD: (twin.log.segments[-1][0], 1),
    }
    for question, (offset, epoch) in expected.items():
        seen, _ = pair.offsets(twin, LIST_OFFSETS.versions.last, question)
        assert seen == ListOffsetsPartitionResponse(
            partition_index=0, timestamp=-1, offset=offset, leader_epoch=epoch
        )


@pytest.mark.parametrize("version", [4, 7, 11])
def test_list_offsets_when_the_leader_epoch_is_not_the_leaders_then_the_same_error(
    pair: Pair, version: int
) -> None:
    """Scenario 49."""
    for twin in pair.twins.of(*_TOPICS):
        for epoch in range(pair.leader_epoch + 2):
            for question in (_EARLIEST, times_around(twin.log)[1]):
                seen, direct = pair.offsets(twin, version, question, epoch=epoch)
                assert seen == direct, (twin.tiered.topic, epoch, question)


@pytest.mark.parametrize("version", _versions(OFFSET_FOR_LEADER_EPOCH))
def test_leader_epoch_when_its_end_is_asked_for_then_the_whole_logs_answer(
    pair: Pair, version: int
) -> None:
    """Scenarios 48, 49, R18."""
    for twin in pair.twins.of(*_TOPICS):
        for epoch in range(-1, pair.leader_epoch + 2):
            for current in range(-1, pair.leader_epoch + 2):
                asked = OffsetForLeaderPartition(
                    partition=0, current_leader_epoch=current, leader_epoch=epoch
                )
                seen, direct = pair.epoch_end(twin, version, asked)
                assert seen == direct, (twin.tiered.topic, epoch, current)


def _require_same(seen: PartitionData, direct: PartitionData, asked: FetchPartition) -> None:
    """Require equal fields, and equal bytes up to the shorter answer; both or none have batches.

    A broker may cut its records anywhere. Stored records in an answer are whole batches; a batch
    above the limit is the only one.
    """
    assert _without_records(seen) == _without_records(direct), asked
    found, expected = record_bytes(seen.records), record_bytes(direct.records)
    common_bytes = min(len(found), len(expected))
    assert found[:common_bytes] == expected[:common_bytes], asked
    batches = whole_batches(seen.records)
    assert bool(batches) == bool(whole_batches(direct.records)), asked
    assert len(batches) <= 1 or len(found) <= asked.partition_max_bytes, asked


def _without_records(row: PartitionData) -> PartitionData:
    return replace(row, records=None, aborted_transactions=None)
