"""R9: which reports of managers prove that what is rolled is stored."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from rlm.cli.managers import ManagerLags, live_managers
from rlm.policy.candidates import Lag
from rlm.rest.manager_client import ManagerClient
from rlmm.events import PolicyState, TopicPolicy
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.unit.rlm.cli.stated_managers import TIP, TOPIC_ID, Cluster, StatedView, report

DISABLING = TopicPolicy(
    topic="orders",
    topic_id=TOPIC_ID,
    state=PolicyState.DISABLING,
    retention_ms=-1,
    retention_bytes=-1,
)


@pytest.fixture
def client() -> Iterator[ManagerClient]:
    client = Cluster().client()
    yield client
    client.close()


def test_lags_when_the_leading_manager_has_seen_the_policy_then_its_lag(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    cluster = Cluster()
    cluster.register(1, address)
    view.reports = (report(),)

    lags = ManagerLags(cluster.metadata, client).lags(DISABLING)

    assert lags == {TIP: Lag(segments=2, bytes=2048)}


@pytest.mark.parametrize(
    "changes",
    [
        {"policy_state": "ACTIVE"},
        {"role": "follower"},
        {"claimed": False},
        {"topic_id_partition": TopicIdPartition(topic_id=UUID(int=8), topic="orders", partition=0)},
    ],
)
def test_lags_when_a_report_is_older_or_not_a_leaders_then_it_proves_nothing(
    view: StatedView, address: str, client: ManagerClient, changes: dict[str, object]
) -> None:
    cluster = Cluster()
    cluster.register(1, address)
    view.reports = (report(**changes),)

    assert ManagerLags(cluster.metadata, client).lags(DISABLING) == {}


def test_lags_when_a_manager_does_not_answer_then_left_out(client: ManagerClient) -> None:
    cluster = Cluster()
    cluster.register(1, "127.0.0.1:1")

    assert ManagerLags(cluster.metadata, client).lags(DISABLING) == {}


def test_live_managers_when_heartbeats_are_missed_then_not_live_by_the_brokers_clock() -> None:
    cluster = Cluster()
    cluster.register(1, "gone:1")
    cluster.clock.now_ms += 3001
    cluster.register(2, "here:1")

    assert [each.broker_id for each in live_managers(cluster.metadata)] == [2]


def test_partitions_when_address_is_nonsense_then_retriable(client: ManagerClient) -> None:
    with pytest.raises(RetriableError):
        client.partitions(Cluster().manager(1, "not an address"))
