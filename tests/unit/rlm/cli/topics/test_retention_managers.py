"""Which managers `rlm retention run` asks, and its error if one is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from rlm.cli.topics.retention import LeadersRetention
from rlm.policy.blocked import Blocked
from rlm.rest.manager_client import ManagerClient
from rlm.status.retention_preview import DueDeletion, RetentionPreview
from rsm.segment.errors import RetriableError
from tests.unit.rlm.cli.stated_managers import Cluster, StatedView

PREVIEW = RetentionPreview(
    topic="orders",
    partition=0,
    log_start_offset=0,
    new_log_start_offset=10,
    local_start_offset=0,
    new_local_start_offset=0,
    rule="retention.ms=5",
    expiring_segments=1,
    expiring_bytes=9,
    deletions=(DueDeletion(base_offset=0, end_offset=10, size_bytes=9, rule="below log start 10"),),
    trim_blocked=Blocked(reason="not_stored", values={"stored_end_offset": 10}),
)


class _View(StatedView):
    """Leads partition 0 of the topic."""

    def retention(self, topic: str) -> Sequence[RetentionPreview]:
        return [PREVIEW]


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

    assert rows == [PREVIEW]


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
    assert "rest.listener" in str(raised.value.context["advice"])


def test_due_when_the_manager_has_not_taken_the_partition_yet_then_says_so(
    address: str, client: ManagerClient
) -> None:
    managers = [Cluster().manager(1, address)]

    with pytest.raises(RetriableError, match="no manager claimed them"):
        LeadersRetention(client, "orders", {0: 1, 1: 1}, managers).due()
