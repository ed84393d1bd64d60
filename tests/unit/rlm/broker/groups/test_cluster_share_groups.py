"""Every coordinator is asked for its share groups; a missing answer does not mean none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import repeat
from typing import Any
from uuid import UUID

import pytest

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.groups.cluster_share_groups import ClusterShareGroups
from rlm.facts.share_group_start import HiddenShareGroupsError, ShareGroupStart
from rlm.wire.api.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from rlm.wire.api.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from rlm.wire.api.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from rlm.wire.api.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from rlm.wire.api.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from rlm.wire.error_codes import ErrorCode
from rlm.wire.schema import Message
from rsm.segment.errors import RetriableError, UnsupportedError
from tests.fakes.clock import FakeClock
from tests.unit.rlm.broker.scripted_broker import (
    TOPIC_ID,
    ScriptedBroker,
    ScriptedConnector,
    metadata,
    partition,
)

_DESCRIBE, _CREATE = 1 << 8, 1 << 5
_NOT_REPORTED = -(1 << 31)

_Row = DescribeShareGroupOffsetsResponsePartition
_Groups = Mapping[str, tuple[_Row, ...] | int]


def _groups_topic(*leaders: int) -> MetadataResponse:
    response = metadata(*leaders)
    topic = replace(response.topics[0], name="__consumer_offsets", topic_id=UUID(int=9))
    return replace(response, topics=(topic,))


def _refused(error_code: int) -> MetadataResponse:
    topic = MetadataResponseTopic(name="__consumer_offsets", error_code=error_code)
    return replace(metadata(), topics=(topic,))


def _row(start: int, *, number: int = 0, error_code: int = 0) -> _Row:
    return _Row(partition_index=number, start_offset=start, error_code=error_code)


def _features(level: int | None, *, supported: bool = True, epoch: int = 7) -> ApiVersionsResponse:
    """Return the features of a broker whose cluster has this level of `share.version`, if any."""
    named = "share.version"
    known = SupportedFeatureKey(name=named, min_version=0, max_version=1)
    finalized = FinalizedFeatureKey(name=named, max_version_level=level or 0)
    return ApiVersionsResponse(
        supported_features=(known,) if supported else (),
        finalized_features_epoch=epoch,
        finalized_features=() if level is None else (finalized,),
    )


class _Coordinator(ScriptedBroker):
    """A broker with share groups; each group has rows of the topic, or an error code."""

    def __init__(self, groups: _Groups, responses: Iterator[MetadataResponse]) -> None:
        self._groups = groups
        self.features = _features(1)
        self.operations: Iterator[int] = repeat(_DESCRIBE | _CREATE)
        script: dict[str, Callable[[Any], Message]] = {
            "ApiVersions": self._answer_features,
            "DescribeCluster": self._answer_rights,
            "ListGroups": self._list,
            "DescribeShareGroupOffsets": self._describe,
            "Metadata": lambda request: self._answer_metadata(request, responses),
        }
        super().__init__(script)

    @staticmethod
    def _answer_metadata(
        request: MetadataRequest, responses: Iterator[MetadataResponse]
    ) -> MetadataResponse:
        assert not request.allow_auto_topic_creation
        return next(responses)

    def _answer_features(self, request: ApiVersionsRequest) -> ApiVersionsResponse:
        assert request.client_software_name
        return self.features

    def _answer_rights(self, request: DescribeClusterRequest) -> DescribeClusterResponse:
        assert request.include_cluster_authorized_operations
        return DescribeClusterResponse(cluster_authorized_operations=next(self.operations))

    def _list(self, request: ListGroupsRequest) -> ListGroupsResponse:
        assert request.types_filter == ("share",)
        classic = ListedGroup(group_id="other", group_type="classic")
        shares = (ListedGroup(group_id=each, group_type="share") for each in self._groups)
        return ListGroupsResponse(groups=(classic, *shares))

    def _describe(
        self, request: DescribeShareGroupOffsetsRequest
    ) -> DescribeShareGroupOffsetsResponse:
        assert all(each.topics is None for each in request.groups)
        return DescribeShareGroupOffsetsResponse(
            groups=tuple(self._described(each.group_id) for each in request.groups)
        )

    def _described(self, group: str) -> DescribeShareGroupOffsetsResponseGroup:
        rows = self._groups[group]
        if isinstance(rows, int):
            return DescribeShareGroupOffsetsResponseGroup(group_id=group, error_code=rows)
        topic = DescribeShareGroupOffsetsResponseTopic(
            topic_name="orders", topic_id=TOPIC_ID, partitions=rows
        )
        return DescribeShareGroupOffsetsResponseGroup(group_id=group, topics=(topic,))


def _share_groups(
    first: _Groups,
    second: _Groups | None = None,
    *,
    response: MetadataResponse | None = None,
    leaders_after: MetadataResponse | None = None,
) -> tuple[ClusterShareGroups, Mapping[int, _Coordinator]]:
    """Return the share groups of brokers 1 and 2, and the brokers by port.

    Broker 2 is away if `second` is None. Both brokers name the coordinators again after they have
    returned their groups; broker 2 then returns `leaders_after`.
    """
    leaders = response or _groups_topic(1, 2)
    brokers: dict[int, _Coordinator] = {9001: _Coordinator(first, repeat(leaders))}
    if second is not None:
        brokers[9002] = _Coordinator(second, repeat(leaders_after or leaders))
    bootstrap = Bootstrap([("127.0.0.1", 9001)], ScriptedConnector(brokers))
    return ClusterShareGroups(bootstrap, FakeClock()), brokers


def test_starts_when_groups_are_with_two_coordinators_then_the_lowest_of_each_partition() -> None:
    """R8."""
    groups, _ = _share_groups(
        {"a": (_row(70), _row(5, number=1))}, {"b": (_row(30),), "c": (_row(50),)}
    )
    found = groups.starts()
    assert found.failed == {}
    assert found.succeeded == {
        partition(0): ShareGroupStart(group="b", offset=30),
        partition(1): ShareGroupStart(group="a", offset=5),
    }


def test_starts_when_there_are_no_share_groups_then_nobody_is_asked_for_offsets() -> None:
    groups, brokers = _share_groups({}, {})
    assert groups.starts().succeeded == {}
    asked = [name for broker in brokers.values() for name, _ in broker.asked]
    assert "DescribeShareGroupOffsets" not in asked


def test_starts_when_there_was_never_a_group_then_no_coordinator_is_asked() -> None:
    missing = _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    groups, brokers = _share_groups({}, response=missing)
    assert groups.starts().succeeded == {}
    assert [name for name, _ in brokers[9001].asked] == ["Metadata"]


def test_starts_when_coordinators_may_not_be_seen_then_every_broker_is_asked() -> None:
    hidden = _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    groups, _ = _share_groups({}, {"b": (_row(30),)}, response=hidden)
    assert set(groups.starts().succeeded) == {partition(0)}


def test_starts_when_a_group_has_acknowledged_nothing_then_it_is_the_lowest() -> None:
    """R8: its consumers may have fetched records that the coordinator does not know of yet."""
    groups, _ = _share_groups({"a": (_row(0),), "b": (_row(-1),)}, {})
    assert groups.starts().succeeded == {partition(0): ShareGroupStart(group="b", offset=-1)}


def test_starts_when_a_group_or_its_topic_is_gone_then_left_out() -> None:
    groups, _ = _share_groups(
        {
            "of a deleted topic": (_row(0, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),),
            "deleted": ErrorCode.GROUP_ID_NOT_FOUND,
        },
        {},
    )
    found = groups.starts()
    assert (found.succeeded, found.failed) == ({}, {})


def test_starts_when_a_partition_of_a_group_can_not_be_known_then_that_one_fails() -> None:
    """R8: although the start of another group in that partition is known."""
    late = _row(0, error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    groups, _ = _share_groups({"a": (late, _row(5, number=1))}, {"b": (_row(30),)})
    found = groups.starts()
    assert set(found.succeeded) == {partition(1)}
    assert set(found.failed) == {partition(0)}


@pytest.mark.parametrize("code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NOT_COORDINATOR])
def test_starts_when_a_group_may_not_be_described_then_raises(code: int) -> None:
    """R8."""
    groups, _ = _share_groups({"a": code}, {})
    with pytest.raises(RetriableError):
        groups.starts()


def test_starts_when_a_coordinator_is_away_then_raises() -> None:
    """R8."""
    groups, _ = _share_groups({})
    with pytest.raises(RetriableError):
        groups.starts()


def test_starts_when_some_groups_have_no_coordinator_then_raises() -> None:
    groups, _ = _share_groups({}, {}, response=_groups_topic(1, -1))
    with pytest.raises(RetriableError):
        groups.starts()


def test_starts_when_groups_moved_meanwhile_then_raises() -> None:
    """R8: one broker has lost the groups, and the other one may get them after its response."""
    groups, _ = _share_groups({}, {}, leaders_after=_groups_topic(1, 1))
    with pytest.raises(RetriableError):
        groups.starts()


def test_starts_when_describe_on_the_cluster_is_missing_then_raises() -> None:
    """R8: a broker lists no group that the user may not describe, and reports no error."""
    groups, brokers = _share_groups({}, {"b": (_row(30),)})
    brokers[9001].operations = repeat(0)
    with pytest.raises(HiddenShareGroupsError, match=r"remote\.local\.trim\.accept\.hidden"):
        groups.starts()


@pytest.mark.parametrize("operations", [_CREATE, _NOT_REPORTED])
def test_starts_when_describe_is_not_among_the_rights_then_raises(operations: int) -> None:
    """R8."""
    groups, brokers = _share_groups({}, {})
    brokers[9002].operations = repeat(operations)
    with pytest.raises(HiddenShareGroupsError):
        groups.starts()


@pytest.mark.parametrize("operations", [(0, _DESCRIBE), (_DESCRIBE, 0)])
def test_starts_when_the_right_changes_meanwhile_then_raises(operations: tuple[int, int]) -> None:
    """R8: nobody knows with which right the groups were listed."""
    groups, brokers = _share_groups({}, {})
    brokers[9001].operations = iter(operations)
    with pytest.raises(HiddenShareGroupsError):
        groups.starts()


def test_starts_when_the_risk_is_accepted_then_what_is_listed_counts() -> None:
    _, brokers = _share_groups({}, {"b": (_row(30),)})
    for broker in brokers.values():
        broker.operations = repeat(0)
    bootstrap = Bootstrap([("127.0.0.1", 9001)], ScriptedConnector(brokers))
    groups = ClusterShareGroups(bootstrap, FakeClock(), accepts_hidden=True)
    assert groups.starts().succeeded == {partition(0): ShareGroupStart(group="b", offset=30)}


_SHARE_FETCH = ApiVersion(api_key=78, min_version=0, max_version=0)


@pytest.mark.parametrize(
    ("features", "needs_right"),
    [
        (_features(1), True),
        (_features(2), True),
        (_features(0), False),
        (_features(None), False),
        (_features(None, supported=False), False),
        # The broker has not read the cluster's features yet.
        (_features(None, epoch=-1), True),
        # The early share groups of Kafka 4.0 have no feature.
        (replace(_features(None, supported=False), api_keys=(_SHARE_FETCH,)), True),
        (replace(_features(0), api_keys=(_SHARE_FETCH,)), False),
    ],
)
def test_starts_when_share_groups_can_not_exist_then_the_right_is_not_needed(
    features: ApiVersionsResponse, needs_right: bool
) -> None:
    """R8."""
    groups, brokers = _share_groups({}, {})
    for broker in brokers.values():
        broker.features, broker.operations = features, repeat(0)
    if needs_right:
        with pytest.raises(HiddenShareGroupsError):
            groups.starts()
    else:
        assert groups.starts().succeeded == {}


def _unsupported(_: object) -> Message:
    raise UnsupportedError("cannot send the request: broker and client share no version")


def test_starts_when_brokers_have_no_types_of_groups_then_there_are_no_share_groups() -> None:
    script = {"Metadata": lambda _: _groups_topic(1), "ListGroups": _unsupported}
    old = ScriptedBroker({**script, "ApiVersions": _unsupported})
    bootstrap = Bootstrap([("127.0.0.1", 9001)], ScriptedConnector({9001: old}))
    assert ClusterShareGroups(bootstrap, FakeClock()).starts().succeeded == {}


def test_starts_when_listed_groups_can_not_be_described_then_raises() -> None:
    """R8: the early share groups of Kafka 4.0."""
    listed = ListGroupsResponse(groups=(ListedGroup(group_id="a", group_type="share"),))
    early = ScriptedBroker(
        {
            "ApiVersions": lambda _: _features(None, supported=False),
            "Metadata": lambda _: _groups_topic(1),
            "ListGroups": lambda _: listed,
            "DescribeShareGroupOffsets": _unsupported,
        }
    )
    bootstrap = Bootstrap([("127.0.0.1", 9001)], ScriptedConnector({9001: early}))
    with pytest.raises(UnsupportedError):
        ClusterShareGroups(bootstrap, FakeClock()).starts()
