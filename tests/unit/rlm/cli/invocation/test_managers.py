"""R9: which reports of managers prove that rolled segments are stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from threading import Barrier
from typing import cast
from uuid import UUID

import pytest

from rlm.cli.invocation.managers import (
    LeadingManagers,
    ManagerCopyProgress,
    ManagerLags,
    live_managers,
)
from rlm.policy.candidates import Lag
from rlm.rest.manager_client import ManagerClient
from rlm.status.document import PartitionReport, StreamReport
from rlmm.events.policy import PolicyState, TopicPolicy
from rlmm.events.registration import ProcessRegistered
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

UNHEARD = "127.0.0.1:1"  # nobody listens there


@pytest.fixture
def client() -> Iterator[ManagerClient]:
    client = Cluster().client()
    yield client
    client.close()


def _lags(
    cluster: Cluster, client: ManagerClient, leaders: Mapping[int, int | None] | None = None
) -> ManagerLags:
    known = {0: 1} if leaders is None else leaders
    return ManagerLags(LeadingManagers(cluster.metadata, client, lambda _: known, cluster.clock))


def test_lags_when_the_leading_manager_has_seen_the_policy_then_its_lag(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    cluster = Cluster()
    cluster.register(1, address)
    view.reports = (report(),)

    lags = _lags(cluster, client).lags(DISABLING)

    assert lags == {TIP: Lag(segments=2, bytes=2048)}


@pytest.mark.parametrize(
    "changes",
    [
        {"policy_state": "ACTIVE"},
        {"role": "follower"},
        {"is_claimed": False},
        {"topic_id_partition": TopicIdPartition(topic_id=UUID(int=8), topic="orders", partition=0)},
    ],
)
def test_lags_when_a_report_is_older_or_not_a_leaders_then_it_proves_nothing(
    view: StatedView, address: str, client: ManagerClient, changes: dict[str, object]
) -> None:
    cluster = Cluster()
    cluster.register(1, address)
    view.reports = (report(**changes),)

    assert _lags(cluster, client).lags(DISABLING) == {}


class _MeetingManagers:
    """Each manager answers only once this number of them is asked at the same time."""

    def __init__(self, count: int) -> None:
        self._barrier = Barrier(count, timeout=30)
        self.asked: list[int] = []

    def partitions(
        self, manager: ProcessRegistered, *, topic: str | None = None
    ) -> Sequence[PartitionReport]:
        self.asked.append(manager.broker_id)
        self._barrier.wait()
        return ()


def test_lags_when_several_managers_lead_then_they_are_asked_at_once_and_no_others() -> None:
    """An unreachable manager that leads nothing must not delay the command."""
    cluster, managers = Cluster(), _MeetingManagers(2)
    for broker_id in (1, 2, 3):
        cluster.register(broker_id, f"broker{broker_id}:80")

    _lags(cluster, cast("ManagerClient", managers), {0: 1, 1: 3, 2: None}).lags(DISABLING)

    assert sorted(managers.asked) == [1, 3]


def test_silence_when_the_leaders_cannot_be_looked_up_then_says_why(client: ManagerClient) -> None:
    def unknown(_: str) -> Mapping[int, int | None]:
        raise RetriableError("no bootstrap server answers")

    cluster = Cluster()
    cluster.register(1, "127.0.0.1:1")
    lags = ManagerLags(LeadingManagers(cluster.metadata, client, unknown, cluster.clock))

    found = lags.lags(DISABLING)

    assert found == {}
    assert "its leader is not known: no bootstrap server answers" in lags.silence(TIP)


def test_lags_when_a_manager_does_not_answer_then_left_out(client: ManagerClient) -> None:
    cluster = Cluster()
    cluster.register(1, UNHEARD)

    assert _lags(cluster, client).lags(DISABLING) == {}


def test_live_managers_when_heartbeats_are_missed_then_not_live_by_the_brokers_clock() -> None:
    cluster = Cluster()
    cluster.register(1, "gone:1")
    cluster.clock.now_ms += 3001
    cluster.register(2, "here:1")

    assert [each.broker_id for each in live_managers(cluster.metadata, cluster.clock)] == [2]


def test_live_managers_when_nobody_writes_any_more_then_not_live_by_the_commands_clock() -> None:
    """No process of `rlm` runs, so the topic's clock does not advance."""
    cluster = Cluster()
    cluster.register(1, "gone:1")
    cluster.clock.now_ms += 2 * 24 * 3600 * 1000

    assert live_managers(cluster.metadata, cluster.clock) == ()


def test_silence_when_all_managers_are_down_then_says_to_start_them(client: ManagerClient) -> None:
    """The error must not blame `rest.listener`."""
    cluster = Cluster()
    cluster.register(1, UNHEARD)
    cluster.clock.now_ms += 2 * 24 * 3600 * 1000
    lags = _lags(cluster, client)
    lags.lags(DISABLING)

    silence = lags.silence(TIP)

    assert "no live manager is registered for broker 1" in silence
    assert "start `rlm run`" in silence
    assert "rest.listener" not in silence


def test_partitions_when_address_is_nonsense_then_retriable(client: ManagerClient) -> None:
    with pytest.raises(RetriableError):
        client.partitions(Cluster().manager(1, "not an address"))


@pytest.mark.parametrize(
    ("leaders", "said"),
    [
        ({0: None}, "no leader"),
        ({0: 2}, "no live manager is registered for broker 2"),
        ({0: 1}, "the manager cannot be reached: Connection refused (broker_id=1, "),
    ],
)
def test_silence_when_a_leaders_manager_says_nothing_then_it_is_named_with_its_address(
    client: ManagerClient, leaders: dict[int, int | None], said: str
) -> None:
    """The text names the manager that cannot be reached."""
    cluster = Cluster()
    cluster.register(1, UNHEARD)
    lags = _lags(cluster, client, leaders)
    lags.lags(DISABLING)

    silence = lags.silence(TIP)

    assert said in silence
    if leaders == {0: 1}:
        assert "address=127.0.0.1:1" in silence
        assert "rest.advertised.listener" in silence


def test_silence_when_the_leaders_manager_answers_of_another_state_then_it_has_not_looked_yet(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    cluster = Cluster()
    cluster.register(1, address)
    view.reports = (report(policy_state="ACTIVE"),)
    lags = _lags(cluster, client)
    lags.lags(DISABLING)

    assert "has not processed" in lags.silence(TIP)


@pytest.mark.parametrize(
    ("stream", "end_offset", "asked"), [(StreamReport(), 15, [TIP]), (None, 10, [])]
)
def test_progress_when_streamed_then_ends_where_the_broker_says_now(
    view: StatedView,
    address: str,
    client: ManagerClient,
    *,
    stream: StreamReport | None,
    end_offset: int,
    asked: list[TopicIdPartition],
) -> None:
    """The end as of the last cycle would omit newer records."""
    cluster = Cluster()
    cluster.register(1, address)
    view.reports = (report(stream=stream, rolled_end_offset=10, stored_end_offset=10),)
    questions: list[TopicIdPartition] = []

    def ends(partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, int]:
        questions.extend(partitions)
        return {TIP: 15}

    managers = LeadingManagers(cluster.metadata, client, lambda _: {0: 1}, cluster.clock)
    progress = ManagerCopyProgress(managers, ends).rolled(DISABLING)

    assert progress[TIP].rolled_end_offset == end_offset
    assert questions == asked


def test_progress_when_the_leader_of_a_stream_does_not_answer_then_is_omitted_and_says_why(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    """With the end of the last cycle, an offload would return without the newest records."""
    cluster = Cluster()
    cluster.register(1, address)
    view.reports = (report(stream=StreamReport(), rolled_end_offset=10, stored_end_offset=10),)
    managers = LeadingManagers(cluster.metadata, client, lambda _: {0: 1}, cluster.clock)
    source = ManagerCopyProgress(managers, lambda _: {})

    assert source.rolled(DISABLING) == {}
    assert "the leader does not answer" in source.silence(TIP)


def test_managers_when_woken_then_those_of_the_leaders_run_a_cycle(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    cluster = Cluster()
    cluster.register(1, address)
    cluster.register(2, UNHEARD)
    managers = LeadingManagers(cluster.metadata, client, lambda _: {0: 1, 1: 2}, cluster.clock)
    managers.reports(DISABLING)

    managers.wake()

    assert view.cycle_count == 1
