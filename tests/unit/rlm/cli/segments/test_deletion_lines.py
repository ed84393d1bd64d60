"""The output of `rlm segments delete`, and the request that it sends to managers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from rlm.cli.invocation.managers import LeadingManagers
from rlm.cli.segments.deletion import require_deleted
from rlm.cli.segments.deletion_lines import deletion_lines, deletions_json
from rlm.operator.streamed_deletion import DeletionState, SegmentDeletion
from rlm.policy.stream.deletion import StreamedSegment
from rlm.rest.manager_client import ManagerClient
from rlmm.events.policy import PolicyState, TopicPolicy
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import FINISHED, ORDERS, segment_metadata
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden
from tests.unit.rlm.cli.stated_managers import TIP, TOPIC_ID, Cluster, StatedView, report

SECOND = replace(ORDERS, partition=1)
POLICY = TopicPolicy(
    topic="orders",
    topic_id=TOPIC_ID,
    state=PolicyState.DISABLING,
    retention_ms=-1,
    retention_bytes=-1,
)


def row(
    number: int,
    state: DeletionState,
    *,
    partition: TopicIdPartition = ORDERS,
    to_copy: tuple[OffsetRange, ...] = (),
    only_here: tuple[OffsetRange, ...] = (),
) -> SegmentDeletion:
    start = 1_234_567_800 + 100 * number
    metadata = segment_metadata(number, start, start + 100, state=FINISHED, partition=partition)
    segment = StreamedSegment(
        metadata=replace(metadata, segment_size_bytes=64 << 20),
        replaced_by=(),
        to_copy=to_copy,
        only_here=only_here,
    )
    return SegmentDeletion(segment=segment, state=state)


def offsets(start: int, end: int) -> OffsetRange:
    return OffsetRange(start_offset=start, end_offset=end)


def rows() -> list[SegmentDeletion]:
    first, second = offsets(1_234_567_900, 1_234_567_950), offsets(1_234_567_960, 1_234_568_000)
    return [
        row(1, DeletionState.ONLY_COPY, to_copy=(first, second), only_here=(first,)),
        row(2, DeletionState.TO_DELETE, to_copy=(first, second)),
        row(3, DeletionState.TO_DELETE),
        row(4, DeletionState.DELETED, to_copy=(first,), partition=SECOND),
        row(5, DeletionState.DEAD_LETTERED, partition=SECOND),
    ]


def test_lines_when_segments_differ_then_as_reviewed() -> None:
    assert_golden("segments_delete.txt", deletion_lines(rows(), width=COLUMNS))


def test_lines_when_nothing_was_streamed_then_says_so() -> None:
    assert list(deletion_lines([], width=COLUMNS)) == ["no streamed segments"]


def test_json_when_segments_differ_then_has_states_and_ranges() -> None:
    found = json.loads(deletions_json(rows()))["segments"]

    assert [each["state"] for each in found] == [
        "only_copy",
        "to_delete",
        "to_delete",
        "deleted",
        "dead_lettered",
    ]
    assert found[0]["only_copy"] == [{"start_offset": 1234567900, "end_offset": 1234567950}]
    assert len(found[1]["to_copy"]) == 2
    assert (found[3]["partition"], found[3]["topic_id"]) == (1, id_to_text(ORDERS.topic_id))


@pytest.fixture
def client() -> Iterator[ManagerClient]:
    client = Cluster().client()
    yield client
    client.close()


def _managers(
    cluster: Cluster, client: ManagerClient, leaders: Mapping[int, int | None]
) -> LeadingManagers:
    return LeadingManagers(cluster.metadata, client, lambda _: leaders, cluster.clock)


def test_request_when_the_leader_has_a_manager_then_it_gets_the_partition(
    view: StatedView, address: str, client: ManagerClient
) -> None:
    cluster = Cluster()
    cluster.register(0, address)
    view.reports = (report(),)
    managers = _managers(cluster, client, {0: 0})

    assert managers.reports(POLICY).keys() == {TIP}
    managers.delete_streamed(TIP)

    assert view.requested == [("orders", 0)]


@pytest.mark.parametrize("leaders", [{0: 2}, {0: None}, {}])
def test_request_when_no_manager_leads_then_says_why(
    address: str, client: ManagerClient, leaders: Mapping[int, int | None]
) -> None:
    cluster = Cluster()
    cluster.register(0, address)
    managers = _managers(cluster, client, leaders)
    managers.reports(POLICY)

    with pytest.raises(RetriableError, match="no live manager decides for the partition") as raised:
        managers.delete_streamed(TIP)

    assert raised.value.context["reason"] == managers.silence(TIP)


def test_command_when_objects_of_a_segment_are_left_then_it_fails_after_its_output() -> None:
    """A script must not take the objects that are left for deleted."""
    deleted, kept = row(1, DeletionState.DELETED), row(2, DeletionState.ONLY_COPY)
    left = row(3, DeletionState.DEAD_LETTERED)
    require_deleted([deleted, kept, row(4, DeletionState.TO_DELETE)])

    with pytest.raises(RetriableError, match="rlm dlq list") as failed:
        require_deleted([deleted, left])

    assert failed.value.context["segments"] == 1
    assert failed.value.context["first_segment"] == left.segment.metadata.segment_id
