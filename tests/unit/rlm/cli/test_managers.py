"""R9: which reports of managers prove that what is rolled is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from rlm.cli.managers import ManagerLags, live_managers
from rlm.config.values import HostPort
from rlm.policy.candidates import Lag
from rlm.rest.http_server import HttpServer, bind_listener, local_address
from rlm.rest.manager_api import manager_api
from rlm.rest.manager_client import ManagerClient
from rlm.tasks.report import PartitionReport, report_as_json
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events import PolicyState, ProcessRegistered, ProcessRole, TopicPolicy
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.log_dir_builder import ManualClock

TOPIC_ID = UUID(int=7)
TIP = TopicIdPartition(topic_id=TOPIC_ID, topic="orders", partition=0)
DISABLING = TopicPolicy(
    topic="orders",
    topic_id=TOPIC_ID,
    state=PolicyState.DISABLING,
    retention_ms=-1,
    retention_bytes=-1,
)


class StatedView:
    """A manager that says what it is told to say."""

    def __init__(self) -> None:
        self.reports: tuple[PartitionReport, ...] = ()

    def readiness(self) -> tuple[bool, Sequence[str]]:
        return True, ()

    def partition_status(self) -> Sequence[Mapping[str, object]]:
        return tuple(report_as_json(report) for report in self.reports)


@pytest.fixture
def view() -> StatedView:
    return StatedView()


@pytest.fixture
def address(view: StatedView) -> Iterator[str]:
    bound = bind_listener(HostPort(host="127.0.0.1", port=0), key="rest.listener")
    server = HttpServer(manager_api(view, CollectorRegistry()), bound, name="stated-manager")
    server.start()
    yield str(local_address(bound))
    server.stop()
    bound.close()


@pytest.fixture
def client() -> Iterator[ManagerClient]:
    client = ManagerClient()
    yield client
    client.close()


class Cluster:
    """Metadata in memory, with managers registered in it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.metadata = TopicBasedRemoteLogMetadataManager(
            MemoryTopic(MemoryLog(self.clock)), MetadataCache(MemoryStore()), self.clock
        )
        assert self.metadata.wait_ready(1000).ready

    def register(self, broker_id: int, address: str) -> None:
        event = ProcessRegistered(
            event_id=UUID(int=self.clock.now_ms + broker_id),
            process_id=UUID(int=broker_id),
            role=ProcessRole.MANAGER,
            broker_id=broker_id,
            http_address=address,
            heartbeat_interval_ms=1000,
            version="1",
        )
        assert self.metadata.publish(event).accepted


def report(**changes: object) -> PartitionReport:
    fields: dict[str, object] = {
        "topic_id_partition": TIP,
        "role": "leader",
        "leader_epoch": 3,
        "claimed": True,
        "policy_state": "DISABLING",
        "lag_segments": 2,
        "lag_bytes": 2048,
        **changes,
    }
    return PartitionReport(**fields)  # type: ignore[arg-type]  # field names are the tests' own


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
        client.partitions("not an address")
