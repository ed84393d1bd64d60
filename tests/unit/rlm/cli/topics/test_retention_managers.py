"""Which managers `rlm retention run` asks, and what it says when one is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from rlm.cli.topics.retention import LeadersRetention
from rlm.rest.manager_client import ManagerClient
from rsm.segment.errors import RetriableError
from tests.unit.rlm.cli.stated_managers import Cluster, StatedView


class _View(StatedView):
    """Leads partition 0 of the topic."""

    def retention(self, topic: str) -> Sequence[Mapping[str, object]]:
        return [{"topic": topic, "partition": 0}]


@pytest.fixture
def view() -> StatedView:
    return _View()


@pytest.fixture
def client() -> Iterator[ManagerClient]:
    client = Cluster().client()
    yield client
    client.close()


def test_due_when_all_leaders_managers_answer_then_their_rows(
    address: str, client: ManagerClient
) -> None:
    managers = [Cluster().manager(1, address)]

    rows = LeadersRetention(client, "orders", {0: 1}, managers).due()

    assert rows == [{"topic": "orders", "partition": 0}]


def test_due_when_a_leader_has_no_live_manager_then_its_broker_is_named(
    address: str, client: ManagerClient
) -> None:
    managers = [Cluster().manager(1, address)]

    with pytest.raises(RetriableError, match="no live manager") as raised:
        LeadersRetention(client, "orders", {0: 1, 1: 2}, managers).due()

    assert (raised.value.context["brokers"], raised.value.context["partitions"]) == ("2", "1")


def test_due_when_a_leaders_manager_cannot_be_reached_then_broker_address_and_setting_are_named(
    client: ManagerClient,
) -> None:
    managers = [Cluster().manager(1, "127.0.0.1:1")]

    with pytest.raises(RetriableError, match="cannot be reached") as raised:
        LeadersRetention(client, "orders", {0: 1}, managers).due()

    assert raised.value.context["address"] == "127.0.0.1:1"
    assert "rest.listener" in str(raised.value.context["check"])


def test_due_when_the_manager_has_not_taken_the_partition_yet_then_says_so(
    address: str, client: ManagerClient
) -> None:
    managers = [Cluster().manager(1, address)]

    with pytest.raises(RetriableError, match="not taken"):
        LeadersRetention(client, "orders", {0: 1, 1: 1}, managers).due()
