from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.own_broker import OwnBroker, ReconnectBackoff
from rlm.broker.spi import RecordDeletion
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.wire.api.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from rlm.wire.api.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rlm.wire.api.metadata import MetadataResponse
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import (
    FencedError,
    InvalidConfigError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)
from tests.unit.rlm.broker.scripted_broker import (
    CLUSTER_ID,
    ScriptedBroker,
    ScriptedConnector,
    metadata,
    partition,
)

_LATEST = -1
_READ_COMMITTED = 1
_START, _STABLE, _WATERMARK = 10, 40, 50


class _ManualClock:
    def __init__(self) -> None:
        self.now_ms = 0

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms

    def sleep_ms(self, duration_ms: int) -> None:
        self.now_ms += duration_ms


class _Log:
    """The logs of the scripted broker: one per partition, led in epoch 4."""

    def __init__(self, *, delete_codes: Mapping[int, int] | None = None) -> None:
        self.starts: dict[int, int] = {}
        self.delete_codes = dict(delete_codes or {})
        self.epoch_errors: dict[int, int] = {}

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        self._offset(each.partition_index, each.timestamp, request.isolation_level)
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _offset(self, number: int, timestamp: int, isolation: int) -> ListOffsetsPartitionResponse:
        code = self.epoch_errors.get(number, ErrorCode.NONE)
        latest = _STABLE if isolation == _READ_COMMITTED else _WATERMARK
        offset = latest if timestamp == _LATEST else self.starts.get(number, _START)
        return ListOffsetsPartitionResponse(
            partition_index=number, error_code=code, offset=-1 if code else offset
        )

    def delete_records(self, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        (topic,) = request.topics
        rows = []
        for each in topic.partitions:
            code = self.delete_codes.get(each.partition_index, ErrorCode.NONE)
            if code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
                self.starts[each.partition_index] = each.offset
            rows.append(
                DeleteRecordsPartitionResult(partition_index=each.partition_index, error_code=code)
            )
        result = DeleteRecordsTopicResult(name=topic.name, partitions=tuple(rows))
        return DeleteRecordsResponse(topics=(result,))


def _scripted(log: _Log, answer: MetadataResponse | None = None) -> ScriptedBroker:
    return ScriptedBroker(
        {
            "Metadata": lambda _: answer or metadata(1, 2, 1),
            "ListOffsets": log.list_offsets,
            "DeleteRecords": log.delete_records,
        }
    )


class _World:
    """The own broker (id 1 at 9001), found by a bootstrap server at 9000."""

    def __init__(self, log: _Log | None = None, answer: MetadataResponse | None = None) -> None:
        self.clock = _ManualClock()
        self.log = log or _Log()
        self.broker = _scripted(self.log, answer)
        self.other = _scripted(_Log(), answer)
        self.connector = ScriptedConnector({9000: self.other, 9001: self.broker, 9002: self.other})
        self.own = OwnBroker(
            Bootstrap([("bootstrap", 9000)], self.connector),
            self.clock,
            node_id=1,
            cluster_id=CLUSTER_ID,
            backoff=ReconnectBackoff(first_ms=100, longest_ms=350),
        )

    def asked(self, api: str) -> list[Any]:
        return [request for name, request in self.broker.asked if name == api]


def _deletions(*numbers: int, before_offset: int = 30) -> Mapping[Any, RecordDeletion]:
    deletion = RecordDeletion(before_offset=before_offset, leader_epoch=4)
    return {partition(each): deletion for each in numbers}


def test_leadership_when_asked_then_only_what_this_broker_leads() -> None:
    assert _World().own.leadership() == {partition(0): 4, partition(2): 4}


def test_offsets_when_asked_for_many_then_three_requests_with_the_epochs() -> None:
    world = _World()

    answer = world.own.offsets({partition(0): 4, partition(2): 4})

    expected = PartitionOffsets(
        log_start_offset=_START, last_stable_offset=_STABLE, high_watermark=_WATERMARK
    )
    assert answer.succeeded == {partition(0): expected, partition(2): expected}
    requests = world.asked("ListOffsets")
    assert len(requests) == 3
    assert {p.current_leader_epoch for r in requests for p in r.topics[0].partitions} == {4}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, FencedError),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, FencedError),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, FencedError),
        (ErrorCode.OFFSET_NOT_AVAILABLE, RetriableError),
        (12345, RetriableError),
    ],
)
def test_offsets_when_one_partition_is_refused_then_typed_and_the_other_answered(
    code: int, error: type[TieredStorageError]
) -> None:
    world = _World()
    world.log.epoch_errors[0] = code

    answer = world.own.offsets({partition(0): 4, partition(2): 4})

    assert isinstance(answer.failed[partition(0)], error)
    assert set(answer.succeeded) == {partition(2)}


def test_delete_records_when_asked_for_many_then_one_request_and_new_starts() -> None:
    """R2: one request for many partitions."""
    world = _World()

    answer = world.own.delete_records(_deletions(0, 2))

    assert answer.succeeded == {partition(0): 30, partition(2): 30}
    (request,) = world.asked("DeleteRecords")
    assert request.timeout_ms == 1000


def test_delete_records_when_it_times_out_then_start_is_read_again() -> None:
    """R2: after error 7, the leader has deleted the records, although a follower is down."""
    world = _World(_Log(delete_codes={0: ErrorCode.REQUEST_TIMED_OUT}))

    answer = world.own.delete_records(_deletions(0))

    assert answer.succeeded == {partition(0): 30}


@pytest.mark.parametrize("code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH])
def test_delete_records_when_epoch_is_refused_then_nothing_is_deleted(code: int) -> None:
    """R1: the broker confirms the epoch first; FENCED or UNKNOWN ends the attempt."""
    world = _World()
    world.log.epoch_errors[0] = code

    answer = world.own.delete_records(_deletions(0))

    assert isinstance(answer.failed[partition(0)], FencedError)
    assert not world.asked("DeleteRecords")


def test_delete_records_when_not_leader_then_fenced_and_asked_nowhere_else() -> None:
    """R1: NOT_LEADER ends the attempt; no other broker gets the request."""
    world = _World(_Log(delete_codes={0: ErrorCode.NOT_LEADER_OR_FOLLOWER}))

    answer = world.own.delete_records(_deletions(0))

    assert isinstance(answer.failed[partition(0)], FencedError)
    assert len(world.asked("DeleteRecords")) == 1
    assert {name for name, _ in world.other.asked} == {"Metadata"}


def test_delete_records_when_policy_forbids_it_then_unsupported() -> None:
    world = _World(_Log(delete_codes={0: ErrorCode.POLICY_VIOLATION}))

    answer = world.own.delete_records(_deletions(0))

    assert isinstance(answer.failed[partition(0)], UnsupportedError)


def test_deletion_when_offset_means_the_high_watermark_then_refused() -> None:
    with pytest.raises(ValueError, match="the deletion is invalid"):
        RecordDeletion(before_offset=-1, leader_epoch=4)


def test_connection_when_it_works_then_kept() -> None:
    world = _World()

    world.own.leadership()
    world.own.leadership()

    assert world.connector.connected == [9000, 9001]


def test_connection_when_it_expires_then_opened_again() -> None:
    world = _World()
    world.own.leadership()

    world.broker.expired = True
    world.own.leadership()

    assert world.broker.closed_count == 1
    assert world.connector.connected == [9000, 9001, 9000, 9001]


def test_connection_when_broker_is_down_then_attempts_are_spaced_by_the_backoff() -> None:
    world = _World()
    del world.connector.brokers[9001]

    attempts = []
    for _ in range(100):
        with pytest.raises(RetriableError):
            world.own.leadership()
        attempts.append(world.connector.connected.count(9001))
        world.clock.now_ms += 10

    # Attempts at 0, 100, 300 and 650 ms; the next one would be at 1000 ms.
    assert attempts[-1] == 4


def test_connection_when_broker_comes_back_then_asked_again() -> None:
    world = _World()
    del world.connector.brokers[9001]
    with pytest.raises(RetriableError):
        world.own.leadership()

    world.connector.brokers[9001] = world.broker
    world.clock.now_ms += 100

    assert world.own.leadership()


def test_connection_when_broker_is_not_registered_then_retriable() -> None:
    world = _World(answer=metadata(2, node_ids=(2, 3)))

    with pytest.raises(RetriableError):
        world.own.leadership()


def test_connection_when_cluster_is_another_then_invalid_config() -> None:
    world = _World(answer=metadata(cluster_id="foreign"))

    with pytest.raises(InvalidConfigError) as raised:
        world.own.leadership()

    assert raised.value.context["found_id"] == "foreign"
