"""Fetches the share groups of a cluster, each from its coordinator.

A group's coordinator is the leader of its partition of `__consumer_offsets`. After that leadership
moves, the old coordinator omits the group, without an error. So a response counts only if the
broker still sees the same leaders after it. Unless hidden groups are accepted, the user must also
have the right to list all share groups, before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.cluster import BrokerAddress, ClusterView, fetch_cluster_view
from rlm.broker.errors import error_of
from rlm.broker.groups.listed_groups import require_all_share_groups_listed
from rlm.broker.groups.share_groups import ShareGroups
from rlm.broker.partition_results import PartitionResults
from rlm.facts.share_group_start import ShareGroupStart
from rlm.wire.api.describe_share_group_offsets import (
    DESCRIBE_SHARE_GROUP_OFFSETS,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
)
from rlm.wire.api.list_groups import LIST_GROUPS, SHARE, ListGroupsRequest
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError, UnsupportedError
from rsm.segment.ids import TopicIdPartition

_GROUPS_TOPIC = "__consumer_offsets"
_FIRST_VERSION_WITH_TYPES = 5
_COORDINATORS_AT_ONCE = 8
# Trims wait for the responses, and their plans expire after a few seconds.
_TIMEOUT_MS = 3_000
_GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})

_Leaders = Mapping[int, tuple[int, int]]
_Row = tuple[TopicIdPartition, ShareGroupStart | TieredStorageError]


class ClusterShareGroups(ShareGroups):
    """Represents the share groups of a cluster; sends requests to up to eight brokers at once."""

    def __init__(self, bootstrap: Bootstrap, clock: Clock, *, accepts_hidden: bool = False) -> None:
        """Assume that brokers list all groups if `accepts_hidden`.

        **Data loss:** trims can then remove records that hidden groups have not read.
        """
        self._bootstrap = bootstrap
        self._clock = clock
        self._accepts_hidden = accepts_hidden

    def starts(self) -> PartitionResults[ShareGroupStart]:
        deadline_ms = self._clock.monotonic_ms() + _TIMEOUT_MS
        view = self._bootstrap.view((_GROUPS_TOPIC,))
        leaders = _leaders(view)
        if leaders is None:
            coordinators = tuple(view.brokers)
        else:
            coordinators = tuple(sorted({leader_id for leader_id, _ in leaders.values()}))
        with ThreadPoolExecutor(_COORDINATORS_AT_ONCE, "share-groups") as executor:
            responses = executor.map(
                lambda each: self._ask(view.broker(each), leaders, deadline_ms), coordinators
            )
            return _lowest(row for response in responses for row in response)

    def _ask(
        self, address: BrokerAddress, leaders: _Leaders | None, deadline_ms: int
    ) -> list[_Row]:
        if self._clock.monotonic_ms() > deadline_ms:
            raise RetriableError(
                "cannot list share groups: the time limit was reached", broker=address
            )
        with self._bootstrap.at(address) as coordinator:
            self._require_all_listed(coordinator)
            rows = _starts_at(coordinator)
            # An operator may revoke the right during the listing.
            self._require_all_listed(coordinator)
            if _leaders(fetch_cluster_view(coordinator, (_GROUPS_TOPIC,))) != leaders:
                raise RetriableError(
                    "cannot list share groups: groups are moving between coordinators",
                    broker=address,
                )
            return rows

    def _require_all_listed(self, coordinator: Requester) -> None:
        if not self._accepts_hidden:
            require_all_share_groups_listed(coordinator)


def _leaders(view: ClusterView) -> _Leaders | None:
    """Return the leader and epoch of each partition of the groups topic; None if it is hidden.

    Returns an empty mapping if the topic does not exist, because then no group exists.
    """
    refusal = view.refused.get(_GROUPS_TOPIC)
    if refusal == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return None
    if refusal == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return {}
    found: dict[int, tuple[int, int]] = {}
    for each in view.topic(_GROUPS_TOPIC).partitions:
        if each.leader_id is None:
            raise RetriableError(
                f"cannot list share groups: a partition of {_GROUPS_TOPIC} has no leader",
                partition=each.partition,
            )
        found[each.partition] = (each.leader_id, each.leader_epoch)
    return found


def _starts_at(coordinator: Requester) -> list[_Row]:
    groups = _share_groups(coordinator)
    if not groups:
        return []
    request = DescribeShareGroupOffsetsRequest(
        groups=tuple(
            DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None) for group in groups
        )
    )
    response = coordinator.request(DESCRIBE_SHARE_GROUP_OFFSETS, request)
    return [row for group in response.groups for row in _rows(group)]


def _share_groups(coordinator: Requester) -> tuple[str, ...]:
    try:
        response = coordinator.request(
            LIST_GROUPS,
            ListGroupsRequest(types_filter=(SHARE,)),
            at_least=_FIRST_VERSION_WITH_TYPES,
        )
    except UnsupportedError:
        # Kafka before 3.8 has no group types, and therefore no share groups.
        return ()
    if response.error_code != ErrorCode.NONE:
        raise error_of(response.error_code)
    return tuple(each.group_id for each in response.groups if each.group_type.lower() == SHARE)


def _rows(group: DescribeShareGroupOffsetsResponseGroup) -> Iterable[_Row]:
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return  # The group was deleted after the listing.
    if group.error_code != ErrorCode.NONE:
        raise error_of(group.error_code, group=group.group_id, reason=group.error_message)
    for topic in group.topics:
        for each in topic.partitions:
            start = _start(group.group_id, each)
            if start is not None:
                partition = TopicIdPartition(
                    topic_id=topic.topic_id,
                    topic=topic.topic_name,
                    partition=each.partition_index,
                )
                yield partition, start


def _start(
    group: str, row: DescribeShareGroupOffsetsResponsePartition
) -> ShareGroupStart | TieredStorageError | None:
    """Return the group's start or the row's error; None if the partition or topic is gone."""
    if row.error_code in _GONE:
        return None
    if row.error_code != ErrorCode.NONE:
        return error_of(row.error_code, group=group, reason=row.error_message)
    return ShareGroupStart(group=group, offset=row.start_offset)


def _lowest(rows: Iterable[_Row]) -> PartitionResults[ShareGroupStart]:
    succeeded: dict[TopicIdPartition, ShareGroupStart] = {}
    failed: dict[TopicIdPartition, TieredStorageError] = {}
    for partition, start in rows:
        if isinstance(start, TieredStorageError):
            failed[partition] = start
        elif partition not in succeeded or start.offset < succeeded[partition].offset:
            succeeded[partition] = start
    known = {each: start for each, start in succeeded.items() if each not in failed}
    return PartitionResults(succeeded=known, failed=failed)
