"""What commands print if the cluster's state or the user's rights do not allow them; exit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

import pytest

from rlm.broker.cluster import ClusterView, PartitionReplicas, TopicView
from rlm.broker.errors import error_of
from rlm.cli.host.processes import forget_process
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_partition, find_tiered
from rlm.cli.invocation.options import reaching_cluster
from rlm.cli.invocation.session import CommandSession, metadata_topic
from rlm.cli.segments.deletion import require_deleted
from rlm.config.load import client_command_config
from rlm.operator.streamed_deletion import DeletionState, SegmentDeletion
from rlm.policy.stream.deletion import StreamedSegment
from rlm.policy.topic.topic_policy import check_tierable
from rlm.wire.error_codes import ErrorCode
from rlmm.events.registration import registrations
from rsm.segment.errors import TieredStorageError
from tests.metadata_builder import segment_metadata
from tests.unit.rlm.cli.command_session import session_of
from tests.unit.rlm.cli.errors.ended_command import ended, on_terminal, shown, without_advice
from tests.unit.rlm.cli.golden_text import assert_golden
from tests.unit.rlm.cli.stated_managers import Cluster
from tests.unit.rlm.policy.topic.test_topic_policy import OWN_TOPICS, configs
from tests.unit.rlm.topics.tiering_world import TOPIC, World

pytestmark = pytest.mark.usefixtures("logging_as_before")
CONFIG = client_command_config("broker1:9092", None, lambda _: None)
VIEW = ClusterView(
    cluster_id="memory",
    controller_id=1,
    brokers={},
    topics={
        "orders": TopicView(
            topic="orders",
            topic_id=UUID(int=1),
            is_internal=False,
            partitions=(
                PartitionReplicas(
                    partition=0, leader_id=1, leader_epoch=0, replicas=(1,), isr=(1,)
                ),
            ),
        )
    },
    refused={"payroll": ErrorCode.TOPIC_AUTHORIZATION_FAILED},
)
DEAD_LETTERED = SegmentDeletion(
    segment=StreamedSegment(metadata=segment_metadata(), replaced_by=(), to_copy=(), only_here=()),
    state=DeletionState.DEAD_LETTERED,
)
UNREACHABLE = "--bootstrap-server 127.0.0.1:1 --timeout 100ms"


def _session() -> CommandSession:
    return session_of(World().process(), CONFIG)


def _named(name: str) -> None:
    with reaching_cluster(CONFIG):
        find_partition(VIEW, PartitionName.parse(name))


def _absent_metadata_topic() -> None:
    topic = metadata_topic(CONFIG, VIEW, create=False, clock=World().clock)
    topic.publish(0, b"", b"")


def _refused(code: int) -> None:
    with reaching_cluster(CONFIG):
        raise error_of(code)


def _forgotten(*, is_live: bool) -> None:
    cluster = Cluster()
    cluster.register(1, "10.0.0.1:8090")
    heartbeat_ms = registrations(cluster.metadata)[0].heartbeat_ms
    forget_process(cluster.metadata, UUID(int=1 if is_live else 9), now_ms=heartbeat_ms)


def _tiered(topic: str = "orders", **settings: str) -> None:
    check_tierable(configs(topic, **settings), own_topics=OWN_TOPICS)


ERRORS: Mapping[str, Callable[[], object]] = {
    "an unknown topic": lambda: _named("oders"),
    "an unknown partition": lambda: _named("orders:7"),
    "no right to describe the topic": lambda: _named("payroll"),
    "no right on the cluster": lambda: _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    "a topic that is not tiered": lambda: find_tiered(_session(), PartitionName(topic=TOPIC)),
    "a compacted topic": lambda: _tiered(cleanup_policy="compact"),
    "a topic that Kafka tiers": lambda: _tiered(remote_storage_enable="true"),
    "an internal topic": lambda: _tiered("__consumer_offsets"),
    "a topic of rlm": lambda: _tiered(OWN_TOPICS[0]),
    "no metadata topic": _absent_metadata_topic,
    "an unknown process": lambda: _forgotten(is_live=False),
    "a live process": lambda: _forgotten(is_live=True),
    "objects that cannot be deleted": lambda: require_deleted([DEAD_LETTERED]),
}


def test_cluster_when_it_refuses_then_one_line_says_what_why_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [*ended(f"status {UNREACHABLE}", capsys), ""]
    for title, act in ERRORS.items():
        with pytest.raises(TieredStorageError) as raised:
            act()
        lines += [title, *shown(raised.value), ""]

    assert without_advice(lines) == []
    assert_golden("errors_cluster.txt", on_terminal(lines))
