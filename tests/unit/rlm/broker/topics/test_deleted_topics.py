"""When a topic counts as deleted: every live broker confirms it, without exception."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.errors import ForeignClusterError
from rlm.broker.topics.deleted_topics import find_deleted_topics
from rlm.wire.api.metadata import MetadataResponse, MetadataResponseTopic
from rlm.wire.error_codes import ErrorCode
from rlm.wire.schema import NULL_ID
from rsm.segment.errors import RetriableError
from tests.unit.rlm.broker.scripted_broker import (
    CLUSTER_ID,
    TOPIC_ID,
    ScriptedBroker,
    ScriptedConnector,
    metadata,
)

HAS_IT = metadata(1)
ORDERS = {TOPIC_ID: "orders"}


def lacks_it(code: int = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) -> MetadataResponse:
    return replace(HAS_IT, topics=(MetadataResponseTopic(name="orders", error_code=code),))


def deleted(*answers: MetadataResponse | None, cluster_id: str = CLUSTER_ID) -> frozenset[UUID]:
    """Return the result of these brokers' answers, in order; None: the broker is unreachable."""
    brokers = {
        9001 + number: ScriptedBroker({"Metadata": _saying(answer)})
        for number, answer in enumerate(answers)
        if answer is not None
    }
    bootstrap = Bootstrap([("127.0.0.1", 9001)], ScriptedConnector(brokers))
    return find_deleted_topics(bootstrap, ORDERS, cluster_id=cluster_id)


def _saying(answer: MetadataResponse) -> Callable[[object], MetadataResponse]:
    return lambda _: answer


def test_topic_when_every_broker_lacks_it_then_deleted() -> None:
    """Scenario 76."""
    assert deleted(lacks_it(), lacks_it()) == {TOPIC_ID}


def test_topic_when_created_again_then_the_old_one_is_deleted() -> None:
    """Scenarios 38, 76."""
    (topic,) = HAS_IT.topics
    again = replace(HAS_IT, topics=(replace(topic, topic_id=UUID(int=8)),))

    assert deleted(again, again) == {TOPIC_ID}


def test_topic_when_brokers_do_not_report_its_id_then_not_deleted() -> None:
    """As after a decrease of `inter.broker.protocol.version` below 2.8."""
    (topic,) = HAS_IT.topics
    without_id = replace(HAS_IT, topics=(replace(topic, topic_id=NULL_ID),))

    assert deleted(without_id, without_id) == frozenset()


def test_topic_when_one_broker_has_it_still_then_not_deleted() -> None:
    """Scenario 76: brokers learn of a new or deleted topic one after the other."""
    assert deleted(lacks_it(), HAS_IT) == frozenset()


def test_topic_when_a_live_broker_can_not_be_asked_then_not_known() -> None:
    with pytest.raises(RetriableError):
        deleted(lacks_it(), None)


@pytest.mark.parametrize(
    "code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION]
)
def test_topic_when_hidden_from_rlm_then_not_deleted(code: int) -> None:
    """A missing right does not prove that the topic was deleted."""
    assert deleted(lacks_it(code), lacks_it(code)) == frozenset()


def test_topic_when_another_cluster_answers_then_nothing_is_deleted() -> None:
    with pytest.raises(ForeignClusterError):
        deleted(lacks_it(), lacks_it(), cluster_id="another")
