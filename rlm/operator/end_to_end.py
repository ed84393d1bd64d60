"""Runs the end-to-end check: a canary topic passes through every manager and every gateway.

The order of effects:

    registrations read → canary topic created → tiered → one round of records written through each
    gateway → stored and trimmed by each leader's manager → read through each gateway
    → log starts moved to the ends, so that the managers delete all stored data → topic deleted

Unless `keep` is set, the check deletes the topic, whether the check passes or fails. After a failed
phase it still checks what it can. It changes only the canary topic, except that the clean-up also
deletes abandoned canary topics of earlier checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from rlm.broker.topics.canary_topics import CanaryTopics
from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.facts.canary_records import CanaryRecord
from rlm.operator.check_rows import POLL_MS, CheckRows, holds_within
from rlm.policy.blocked import Blocked
from rlm.policy.request.canary import (
    MIN_ROUNDS,
    CanaryTopic,
    CheckRow,
    abandoned_canaries,
    canary_topic,
    gateway_addresses,
    missing_records,
    registration_rows,
)
from rlm.policy.topic.policy_values import TRIM_MIN_AGE_MS
from rlm.policy.topic.topic_policy import PolicyFlags
from rlm.topics.enable import Tiering
from rlmm.events.log_start import LogStartRequested
from rlmm.events.registration import ProcessRegistered, ProcessRole
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState

_CREATE_MS = 30_000
_WRITE_MS = 15_000
_READ_MS = 30_000
_DELETE_MS = 60_000
_WAKE_MS = 5_000
# An operator's settings can delay trims. That is no fault, so the check skips the row.
_YOUNGER_THAN_MIN_AGE = "younger_than_min_age"
_DELAYED_BY_CONFIGURATION = frozenset(
    {"within_margin", "within_deletion_lag", _YOUNGER_THAN_MIN_AGE}
)
_LONGER_AGE = (
    f"The managers' {TRIM_MIN_AGE_MS} is longer than this command's: "
    "run the check with --config and the managers' file"
)


class Managers(Protocol):
    """Represents the cluster's managers, which this host calls over HTTP. No call raises."""

    def problem(self, manager: ProcessRegistered) -> str:
        """Return why the manager cannot be reached from here; empty if it can."""

    def wake(self) -> None:
        """Ask all reachable managers to start a cycle now."""

    def blocked(self, topic: str) -> Mapping[int, tuple[Blocked | None, Blocked | None]]:
        """Return what blocks copies and trims, by partition; None if nothing does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """Represents the settings. `wait_ms` limits all but the clean-up; `keep` keeps the topic."""

    wait_ms: int
    keep: bool
    unique: str
    max_replicas: int
    trim_min_age_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTools:
    """Groups the systems that the check uses."""

    topics: TopicAdmin
    canaries: CanaryTopics
    tiering: Tiering
    metadata: RemoteLogMetadataManager
    managers: Managers
    live: Callable[[ProcessRole], Sequence[ProcessRegistered]]
    clock: Clock
    new_id: Callable[[], UUID]


@dataclass(slots=True)
class _Canary:
    """Represents the canary topic, and the records written to it by partition and offset."""

    topic: CanaryTopic
    partitions: tuple[TopicIdPartition, ...] = ()
    written: dict[tuple[int, int], bytes] = field(default_factory=dict)
    stored: set[int] = field(default_factory=set)
    is_created: bool = False

    @property
    def ends(self) -> Mapping[int, int]:
        """Return the offset after the last record of each partition."""
        return {
            number: max((o for p, o in self.written if p == number), default=-1) + 1
            for number in range(len(self.topic.leaders))
        }

    def target(self, partition: TopicIdPartition) -> str:
        """Return a partition's display name, with the broker whose manager it tests."""
        leader = self.topic.leaders[partition.partition]
        return f"broker {leader} (partition {partition.partition})"


class EndToEndCheck:
    """Represents one run of the check. Not thread-safe; `report` gets each complete row at once."""

    def __init__(
        self, tools: CheckTools, settings: CheckSettings, report: Callable[[CheckRow], None]
    ) -> None:
        self._tools = tools
        self._settings = settings
        self._rows = CheckRows(tools.clock, report)
        self._deadline_ms = tools.clock.monotonic_ms() + settings.wait_ms

    def registrations(self) -> tuple[CheckRow, ...]:
        """Check which processes are registered and whether the managers answer; changes nothing.

        Raises RetriableError if the cluster does not answer.
        """
        view = self._tools.topics.view(())
        managers = self._tools.live(ProcessRole.MANAGER)
        hosts = {node_id: broker.host for node_id, broker in view.brokers.items()}
        for row in registration_rows(hosts, managers, self._tools.live(ProcessRole.GATEWAY)):
            self._rows.add(row)
        for manager in managers:
            if manager.http_address:
                target = f"manager of broker {manager.broker_id} at {manager.http_address}"
                with self._rows.step("reached", target):
                    _require(self._tools.managers.problem(manager))
        return self._rows.all

    def run(self) -> tuple[CheckRow, ...]:
        """Run the whole check. Raises the errors of `registrations`; a failed phase is a row."""
        self.registrations()
        gateways = gateway_addresses(self._tools.live(ProcessRole.GATEWAY))
        canary = _Canary(topic=self._new_topic(rounds=max(MIN_ROUNDS, len(gateways))))
        reserve_ms = min(self._settings.wait_ms // 3, _READ_MS * len(gateways))
        try:
            if self._create(canary) and self._tier(canary):
                self._write(canary, gateways)
                for partition in canary.partitions:
                    self._await_stored(canary, partition, reserve_ms)
                for partition in canary.partitions:
                    self._await_trimmed(canary, partition, reserve_ms)
                self._read(canary, gateways)
        finally:
            self._clean_up(canary)
        return self._rows.all

    def _new_topic(self, *, rounds: int) -> CanaryTopic:
        return canary_topic(
            self._tools.topics.view(()).brokers,
            unique=self._settings.unique,
            now_ms=self._tools.clock.wall_ms(),
            rounds=rounds,
            max_replicas=self._settings.max_replicas,
            trim_min_age_ms=self._settings.trim_min_age_ms,
        )

    def _create(self, canary: _Canary) -> bool:
        topic = canary.topic
        with self._rows.step("created", topic.name) as step:
            canary.is_created = True  # The broker may create it without a response.
            self._create_with(topic, topic.config_choices)
            self._await_known(topic.name)
        return step.has_passed

    def _create_with(self, topic: CanaryTopic, choices: Sequence[Mapping[str, str]]) -> None:
        """Create the topic with the first configuration whose names the brokers know."""
        first, *others = choices
        limit_ms = self._limit(_CREATE_MS)
        try:
            self._tools.canaries.create(topic.name, topic.replicas, first, limit_ms)
        except RetriableError as error:
            if not others or error.context.get("error") != "INVALID_CONFIG":
                raise
            self._create_with(topic, others)

    def _tier(self, canary: _Canary) -> bool:
        topic = canary.topic
        with self._rows.step("tiered", topic.name) as step:
            policy = self._tools.tiering.enable(
                topic.name,
                PolicyFlags(local_retention_ms=1, retention_ms=topic.retention_ms),
                timeout_ms=self._limit(_CREATE_MS),
            )
            canary.partitions = tuple(
                TopicIdPartition(topic_id=policy.topic_id, topic=topic.name, partition=number)
                for number in range(len(topic.leaders))
            )
        return step.has_passed

    def _await_known(self, name: str) -> None:
        """Wait until the topic has leaders; raise RetriableError at the time limit."""

        def has_leaders() -> bool:
            found = self._tools.topics.view((name,)).topics.get(name)
            return found is not None and all(
                each.leader_id is not None for each in found.partitions
            )

        if not holds_within(self._tools.clock, self._limit(_CREATE_MS), has_leaders):
            raise RetriableError(
                "cannot use the topic: it is unknown, or a partition has no leader", topic=name
            )

    def _write(self, canary: _Canary, gateways: Sequence[str]) -> None:
        """Write a round through each gateway; write to the brokers what a gateway did not write."""
        now_ms = self._tools.clock.wall_ms()
        for number in range(max(MIN_ROUNDS, len(gateways))):
            records: Sequence[CanaryRecord] = canary.topic.round(number, now_ms)
            if number < len(gateways):
                with self._rows.step("written through", gateways[number]):
                    records = self._write_at(gateways[number], canary, records)
            if records and self._write_at(None, canary, records):
                return  # The partition's "stored" row reports the failure.

    def _write_at(
        self, address: str | None, canary: _Canary, records: Sequence[CanaryRecord]
    ) -> Sequence[CanaryRecord]:
        """Return the records that were not written. Raises RetriableError if a gateway fails."""
        limit_ms = self._limit(_WRITE_MS)
        done = self._tools.canaries.write(address, canary.topic.name, records, limit_ms)
        canary.written.update(done.positions)
        if address is not None:
            _require(done.problem)
        written = {position[0] for position in done.positions}
        return [each for each in records if each.partition not in written]

    def _await_stored(self, canary: _Canary, partition: TopicIdPartition, reserve_ms: int) -> None:
        with self._rows.step("stored", canary.target(partition)):
            wanted = canary.ends[partition.partition] - 1  # The last record's segment is active.
            leader = canary.topic.leaders[partition.partition]
            if wanted < 1:
                raise RetriableError("cannot check copies: the broker accepted too few records")
            if all(each.broker_id != leader for each in self._tools.live(ProcessRole.MANAGER)):
                raise RetriableError("no live manager is registered")
            if not self._until_woken(lambda: self._stored_end(partition) >= wanted, reserve_ms):
                raise RetriableError(self._not_stored(partition, wanted))
            canary.stored.add(partition.partition)

    def _stored_end(self, partition: TopicIdPartition) -> int:
        records = self._tools.metadata.list_remote_log_segments(
            partition, states=(SegmentState.COPY_SEGMENT_FINISHED,)
        )
        return max((each.metadata.offsets.end_offset for each in records), default=0)

    def _not_stored(self, partition: TopicIdPartition, wanted: int) -> str:
        if self._tools.metadata.partition_state(partition).owner is None:
            return "no manager has claimed the partition"
        blocked, _ = self._blocked(partition)
        reason = f": copies are blocked by {_shown(blocked)}" if blocked else ""
        return f"stored to offset {self._stored_end(partition)} of {wanted}{reason}"

    def _await_trimmed(self, canary: _Canary, partition: TopicIdPartition, reserve_ms: int) -> None:
        with self._rows.step("trimmed", canary.target(partition)) as step:
            if partition.partition not in canary.stored:
                step.is_skippable = True
                raise RetriableError("cannot check trims: the partition is not stored")
            if not self._until_woken(lambda: self._local_start(partition) > 0, reserve_ms):
                _, blocked = self._blocked(partition)
                if blocked is None:
                    raise RetriableError("the broker still has offset 0")
                step.is_skippable = blocked.reason in _DELAYED_BY_CONFIGURATION
                advice = _LONGER_AGE if blocked.reason == _YOUNGER_THAN_MIN_AGE else None
                raise RetriableError(
                    f"the broker still has offset 0: trims are blocked by {_shown(blocked)}",
                    advice=advice,
                )

    def _blocked(self, partition: TopicIdPartition) -> tuple[Blocked | None, Blocked | None]:
        blocked = self._tools.managers.blocked(partition.topic)
        return blocked.get(partition.partition, (None, None))

    def _local_start(self, partition: TopicIdPartition) -> int:
        view = self._tools.topics.view((partition.topic,)).topic(partition.topic)
        return self._tools.topics.log_spans(view, 0)[partition].local_start_offset

    def _read(self, canary: _Canary, gateways: Sequence[str]) -> None:
        for gateway in gateways:
            with self._rows.step("read through", gateway):
                done = self._tools.canaries.read(
                    gateway, canary.topic.name, canary.ends, self._limit(_READ_MS)
                )
                _require(done.problem)
                late = [n for n, low in done.earliest.items() if low > 0]
                if late:
                    raise RetriableError(f"the earliest offset of partition {late[0]} is not 0")
                _require(missing_records(canary.written, done.found))

    def _clean_up(self, canary: _Canary) -> None:
        if self._settings.keep or not canary.is_created:
            return
        self._deadline_ms = self._tools.clock.monotonic_ms() + _DELETE_MS
        if canary.stored:
            with self._rows.step("deleted from the store", canary.topic.name):
                self._move_log_starts(canary)
                if not self._until_woken(lambda: not self._left(canary), 0):
                    left = self._left(canary)
                    raise RetriableError(f"segments still stored: {left}; the managers continue")
        with self._rows.step("deleted", canary.topic.name):
            self._tools.canaries.delete(canary.topic.name, _CREATE_MS)
            for name in self._abandoned():
                self._tools.canaries.delete(name, _CREATE_MS)

    def _move_log_starts(self, canary: _Canary) -> None:
        """Request the deletion of all records, like DeleteRecords through a gateway."""
        view = self._tools.topics.view((canary.topic.name,)).topic(canary.topic.name)
        for partition, span in self._tools.topics.log_spans(view, 0).items():
            self._tools.metadata.publish(
                LogStartRequested(
                    event_id=self._tools.new_id(),
                    topic_id_partition=partition,
                    offset=span.high_watermark,
                )
            )

    def _abandoned(self) -> tuple[str, ...]:
        names = self._tools.canaries.names(_CREATE_MS)
        return abandoned_canaries(names, self._tools.clock.wall_ms())

    def _left(self, canary: _Canary) -> int:
        metadata = self._tools.metadata
        return sum(1 for tip in canary.partitions for _ in metadata.list_remote_log_segments(tip))

    def _until_woken(self, done: Callable[[], bool], reserve_ms: int) -> bool:
        """Wait until `done`, waking the managers at intervals; return False at the time limit.

        Leaves `reserve_ms` of the check's time for later phases.
        """
        woken_ms: int | None = None

        def asked() -> bool:
            nonlocal woken_ms
            if done():
                return True
            now_ms = self._tools.clock.monotonic_ms()
            if woken_ms is None or now_ms - woken_ms >= _WAKE_MS:
                woken_ms = now_ms
                self._tools.managers.wake()
            return False

        left_ms = self._deadline_ms - self._tools.clock.monotonic_ms()
        return holds_within(self._tools.clock, left_ms - reserve_ms, asked)

    def _limit(self, limit_ms: int) -> int:
        """Return the rest of the check's time, at most `limit_ms`, at least one poll interval."""
        left_ms = self._deadline_ms - self._tools.clock.monotonic_ms()
        return max(POLL_MS, min(limit_ms, left_ms))


def _require(problem: str) -> None:
    if problem:
        raise RetriableError(problem)


def _shown(blocked: Blocked) -> str:
    values = " ".join(f"{name}={value}" for name, value in blocked.values.items())
    return f"{blocked.reason} ({values})" if values else blocked.reason
