"""Calls of user interfaces: a gateway's answers equal the broker's, except where documented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from copy import deepcopy
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from rlm.wire.error_codes import ErrorCode
from tests.clients.admin_calls import ADMIN_CLIENTS, Answers, CallArguments, admin_calls
from tests.integration.rlm.gateway.crafted_logs import BASE_MS
from tests.integration.rlm.gateway.running_gateway import RunningGateway
from tests.integration.rlm.gateway.twin_topics import Twin, TwinTopics
from tests.services.waiting import wait_until

_WRITTEN, _TRANSACTION = "admin-calls", "admin-calls-transaction"
_SCRATCH = "admin-calls-scratch"
_PROTOCOLS = ("classic", "consumer")
_GROUPS = tuple(f"admin-calls-{protocol}" for protocol in _PROTOCOLS)
_STORED_MS = BASE_MS + 10
_REFUSAL = (
    "cannot change the broker's retention: the topic is tiered. "
    "Change the topic's retention with `rlm topic set`"
)
# These fields change from call to call. kadm also reports the ids of created topics as ID.
_MOVING = {
    "ID",
    "finalizedFeaturesEpoch",
    "highWatermark",
    "lastCaughtUpTimestamp",
    "lastFetchTimestamp",
    "logEndOffset",
    "usableBytes",
    "UsableBytes",
}


@pytest.fixture(scope="module")
def arguments(twin_topics: TwinTopics, gateway: RunningGateway) -> Iterator[CallArguments]:
    """A topic with an open transaction, and an active group of each protocol."""
    twin = twin_topics["every"]
    twin_topics.host.cluster.create_topic(_WRITTEN)
    with _open_transaction(gateway), _member(gateway, 0), _member(gateway, 1):
        yield CallArguments(
            tiered=twin.tiered.topic,
            whole=twin.whole.topic,
            written=_WRITTEN,
            groups=",".join(_GROUPS),
            transaction=_TRANSACTION,
            time_ms=_STORED_MS,
            scratch=_SCRATCH,
        )


@contextmanager
def _open_transaction(gateway: RunningGateway) -> Iterator[None]:
    producer = Producer(
        {
            "bootstrap.servers": gateway.bootstrap_servers,
            "transactional.id": _TRANSACTION,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(30.0)
    producer.begin_transaction()
    for number in range(3):
        producer.produce(_WRITTEN, value=b"%d" % number)
    assert producer.flush(30.0) == 0
    yield
    producer.abort_transaction(30.0)


@contextmanager
def _member(gateway: RunningGateway, number: int) -> Iterator[None]:
    """Keep a consumer in a group, with a committed offset, until the block ends."""
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": gateway.bootstrap_servers,
        "group.id": _GROUPS[number],
        "group.protocol": _PROTOCOLS[number],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_uncommitted",
    }
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([_WRITTEN])
        wait_until(lambda: _has_read(consumer), describe="a member reads")
        consumer.commit(asynchronous=False)
        yield


def _has_read(consumer: Consumer) -> bool:
    message = consumer.poll(0.2)
    return message is not None and message.error() is None


@pytest.mark.parametrize("client", ADMIN_CLIENTS)
def test_admin_calls_when_made_through_a_gateway_then_answers_differ_only_as_documented(
    twin_topics: TwinTopics, gateway: RunningGateway, arguments: CallArguments, client: str
) -> None:
    broker = twin_topics.host.cluster.broker.address

    direct, seen = (
        _settled(answers)
        for answers in admin_calls(client, arguments, (broker, gateway.bootstrap_servers))
    )

    expected = _readdressed(direct, {broker: gateway.bootstrap_servers})
    change = _expect_of_java if client == "java" else _expect_of_kadm
    change(expected, twin_topics["every"])
    different = {name for name in seen | expected if seen.get(name) != expected.get(name)}
    assert {name: (seen[name], expected[name]) for name in different} == {}


def _expect_of_java(answers: Answers, twin: Twin) -> None:
    """Change a broker's answers to those that docs/gateway.md promises for a tiered topic."""
    tiered, whole = (f"{topic.topic}-0" for topic in (twin.tiered, twin.whole))
    for name in ("earliest", "maxTimestamp", "timestamp"):
        found = answers[f"listOffsets.{name}"]
        assert found[tiered] != found[whole], name
        found[tiered] = found[whole]
    stored_end = twin.log.segments[-1][0]
    for name, offset in (("latestTiered", stored_end - 1), ("earliestPendingUpload", stored_end)):
        answers[f"listOffsets.{name}"][tiered] = {
            "offset": offset,
            "timestamp": -1,
            "leaderEpoch": 1,
        }
    for name in ("beginningOffsets", "offsetsForTimes"):
        answers[f"consumer.{name}"][tiered] = answers[f"consumer.{name}"][whole]
    first = answers[f"consumer.firstRecord.{twin.whole.topic}"]
    assert first[0] == 0
    answers[f"consumer.firstRecord.{twin.tiered.topic}"] = first
    low = answers[f"deleteRecords.{twin.tiered.topic}"]
    assert low["lowWatermark"] == twin.log.local_start_offset
    low["lowWatermark"] = 0
    for name in ("retention.ms", "retention.bytes"):
        call = f"incrementalAlterConfigs.tiered.{name}"
        assert answers[call] is None
        answers[call] = f"PolicyViolationException: {_REFUSAL}"


def _expect_of_kadm(answers: Answers, twin: Twin) -> None:
    """Change the broker's answers to kadm in the same way."""
    tiered, whole = twin.tiered.topic, twin.whole.topic
    for name in ("Start", "MaxTimestamp", "AfterMilli"):
        found = answers[f"ListOffsets.{name}"]
        assert found[tiered]["0"]["Offset"] != found[whole]["0"]["Offset"], name
        found[tiered] = {"0": found[whole]["0"] | {"Topic": tiered}}
    lag = answers["Lag.Empty"][_SCRATCH]["Lag"][tiered]["0"]
    lag["Start"] = answers["ListOffsets.Start"][tiered]["0"]
    answers["ListOffsets.LatestRemote"][tiered]["0"] |= {
        "Offset": twin.log.segments[-1][0] - 1,
        "LeaderEpoch": 1,
    }
    low = answers["DeleteRecords"][tiered]["0"]
    assert low["LowWatermark"] == twin.log.local_start_offset
    low["LowWatermark"] = 0
    for name in ("retention.ms", "retention.bytes"):
        (answer,) = answers[f"ValidateAlterTopicConfigs.tiered.{name}"]
        assert answer["Err"] is None
        answer["Err"] = {
            "Code": int(ErrorCode.POLICY_VIOLATION),
            "Description": "Request parameters do not satisfy the configured policy.",
            "Message": "POLICY_VIOLATION",
            "Retriable": False,
        }
        answer["ErrMessage"] = _REFUSAL


def _settled(answers: Any) -> Any:
    """Leave out what changes from call to call."""
    if isinstance(answers, list):
        return [_settled(each) for each in answers]
    if isinstance(answers, dict):
        return {name: _settled(value) for name, value in answers.items() if name not in _MOVING}
    return answers


def _readdressed(answers: Any, addresses: Mapping[str, str]) -> Any:
    """Replace the addresses of nodes."""
    if isinstance(answers, list):
        return [_readdressed(each, addresses) for each in answers]
    if not isinstance(answers, dict):
        return answers
    found = {name: _readdressed(value, addresses) for name, value in answers.items()}
    for host, port in (("host", "port"), ("Host", "Port")):
        known = addresses.get(f"{found.get(host)}:{found.get(port)}")
        if known is not None:
            name, _, number = known.rpartition(":")
            found |= {host: name, port: int(number)}
    return deepcopy(found)
