"""The reports of managers on partitions, and the output for managers without a report."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from rlm.cli.reading.manager_statuses import ask_managers
from rlm.policy.blocked import Blocked
from rlm.rest.manager_client import ManagerClient
from rlm.status.document import FutureTimestamps
from rsm.segment.ids import TopicIdPartition
from tests.unit.rlm.cli.stated_managers import TIP, Cluster, StatedView, report

UNHEARD = "127.0.0.1:1"  # nobody listens there


@pytest.fixture
def client() -> Iterator[ManagerClient]:
    client = Cluster().client()
    yield client
    client.close()


def test_ask_managers_when_leader_answers_then_its_lag_and_what_holds_a_trim(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    cluster = Cluster()
    cluster.register(1, address)
    blocked = Blocked(reason="young", values={"age_ms": 5})
    future = FutureTimestamps(segment_count=2, max_timestamp_ms=9)
    view.reports = (report(trim_blocked=blocked, future_timestamps=future),)

    answers = ask_managers(
        cluster.metadata,
        (TIP,),
        client=client,
        clock=cluster.clock,
        required=(1,),
    )

    assert answers.reports == {TIP: {1: report(trim_blocked=blocked, future_timestamps=future)}}
    assert answers.silent == {}


def test_ask_managers_when_one_does_not_answer_then_its_reason_and_the_others_reports(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    cluster = Cluster()
    cluster.register(1, UNHEARD)
    cluster.register(2, address)
    view.reports = (report(role="follower"),)

    answers = ask_managers(
        cluster.metadata,
        (TIP,),
        client=client,
        clock=cluster.clock,
        required=(1,),
    )

    assert answers.reports == {TIP: {2: report(role="follower")}}
    assert answers.silent.keys() == {1}
    assert answers.silent[1].startswith("the manager cannot be reached: ")
    assert "broker_id=1" in answers.silent[1]


def test_ask_managers_when_a_leader_has_no_manager_then_its_reason(client: ManagerClient) -> None:

    cluster = Cluster()
    answers = ask_managers(
        cluster.metadata,
        (TIP,),
        client=client,
        clock=cluster.clock,
        required=(3,),
    )

    assert answers.reports == {TIP: {}}
    assert answers.silent.keys() == {3}
    assert "no live manager is registered for broker 3" in answers.silent[3]


def test_ask_managers_when_answer_is_of_an_older_topic_of_that_name_then_not_believed(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    """Scenario 38: a report on a deleted topic does not apply to its successor."""
    cluster = Cluster()
    cluster.register(1, address)
    older = TopicIdPartition(topic_id=UUID(int=8), topic="orders", partition=0)
    view.reports = (report(topic_id_partition=older),)

    answers = ask_managers(
        cluster.metadata,
        (TIP,),
        client=client,
        clock=cluster.clock,
        required=(1,),
    )

    assert answers.reports == {TIP: {}}


def test_ask_managers_when_nothing_is_tiered_then_nobody_is_asked(client: ManagerClient) -> None:
    cluster = Cluster()
    cluster.register(1, UNHEARD)

    answers = ask_managers(
        cluster.metadata,
        (),
        client=client,
        clock=cluster.clock,
        required=(1,),
    )

    assert (answers.reports, answers.silent) == ({}, {})


def test_ask_managers_when_a_manager_that_leads_nothing_is_silent_then_no_reason(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    """The command does not need the answer of a manager that leads nothing."""
    cluster = Cluster()
    cluster.register(1, address)
    cluster.register(2, UNHEARD)
    view.reports = (report(),)

    answers = ask_managers(
        cluster.metadata,
        (TIP,),
        client=client,
        clock=cluster.clock,
        required=(1,),
    )

    assert set(answers.reports[TIP]) == {1}
    assert answers.silent == {}
