from __future__ import annotations

import pytest

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.cluster import BrokerAddress, fetch_cluster_view
from rlm.wire.api.metadata import MetadataResponse, MetadataResponseTopic
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    UnsupportedError,
)
from tests.unit.rlm.broker.scripted_broker import (
    CLUSTER_ID,
    ScriptedBroker,
    ScriptedConnector,
    metadata,
    partition,
)


def _broker(response: MetadataResponse) -> ScriptedBroker:
    return ScriptedBroker({"Metadata": lambda _: response})


def test_view_when_metadata_answers_then_brokers_topics_and_leaders() -> None:
    view = fetch_cluster_view(_broker(metadata(1, 2, -1)))

    assert view.cluster_id == CLUSTER_ID
    assert view.broker(2) == BrokerAddress(node_id=2, host="127.0.0.1", port=9002)
    assert view.led_by(1) == {partition(0): 4}
    assert view.topic("orders").partitions[2].leader_id is None
    assert view.topic("orders").replica_ids() == {1, 2}


def test_view_when_asked_then_no_topic_is_created() -> None:
    broker = _broker(metadata())

    fetch_cluster_view(broker, ("orders",))

    assert not broker.asked[0][1].allow_auto_topic_creation


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NotFoundError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, RetriableError),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, InvalidConfigError),
    ],
)
def test_topic_when_not_described_then_the_reason_is_raised(
    code: int, error: type[Exception]
) -> None:
    row = MetadataResponseTopic(name="orders", error_code=code)
    view = fetch_cluster_view(_broker(MetadataResponse(cluster_id=CLUSTER_ID, topics=(row,))))

    with pytest.raises(error):
        view.topic("orders")


def test_topic_when_it_has_no_id_then_unsupported_with_the_setting() -> None:
    """Kafka with ZooKeeper, and an `inter.broker.protocol.version` below 2.8."""
    row = MetadataResponseTopic(name="orders")
    view = fetch_cluster_view(_broker(MetadataResponse(cluster_id=CLUSTER_ID, topics=(row,))))

    with pytest.raises(UnsupportedError, match=r"inter\.broker\.protocol\.version"):
        view.topic("orders")
    assert view.topics == {}


def test_view_when_cluster_id_is_absent_then_corrupt() -> None:
    with pytest.raises(CorruptError):
        fetch_cluster_view(_broker(MetadataResponse()))


def test_bootstrap_when_first_server_is_down_then_next_is_asked() -> None:
    broker = _broker(metadata())
    connector = ScriptedConnector({9002: broker})

    view = Bootstrap([("a", 9001), ("b", 9002)], connector).view()

    assert view.cluster_id == CLUSTER_ID
    assert connector.connected == [9001, 9002]
    assert broker.closed_count == 1


def test_bootstrap_when_first_server_is_down_then_it_delays_one_question_only() -> None:
    """Scenario 119: each request to a frozen host used to take half a minute."""
    connector = ScriptedConnector({9002: _broker(metadata()), 9003: _broker(metadata())})
    bootstrap = Bootstrap([("a", 9001), ("b", 9002), ("c", 9003)], connector)

    for _ in range(3):
        bootstrap.view()

    assert connector.connected == [9001, 9002, 9002, 9002]


def test_bootstrap_when_the_server_that_answered_last_is_down_then_all_others_are_tried() -> None:
    answering = _broker(metadata())
    connector = ScriptedConnector({9002: answering})
    bootstrap = Bootstrap([("a", 9001), ("b", 9002), ("c", 9003)], connector)
    bootstrap.view()
    connector.brokers = {9001: answering}
    connector.connected.clear()

    bootstrap.view()

    assert connector.connected == [9002, 9003, 9001]


def test_bootstrap_when_a_server_freezes_during_a_request_then_the_next_one_is_asked_later() -> (
    None
):
    def freeze(_: object) -> MetadataResponse:
        raise RetriableError("the connection to the broker failed")

    connector = ScriptedConnector(
        {9001: ScriptedBroker({"Metadata": freeze}), 9002: _broker(metadata())}
    )
    bootstrap = Bootstrap([("a", 9001), ("b", 9002)], connector)
    with pytest.raises(RetriableError):
        bootstrap.view()

    assert bootstrap.view().cluster_id == CLUSTER_ID
    assert connector.connected == [9001, 9002]


def test_bootstrap_when_no_server_answers_then_retriable_naming_them() -> None:
    with pytest.raises(RetriableError, match="a:9001,b:9002"):
        Bootstrap([("a", 9001), ("b", 9002)], ScriptedConnector({})).view()
