"""Finds the live managers in the metadata, and requests their partitions' statuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rlm.operator.offload import CopyProgress
from rlm.policy.candidates import Lag
from rlm.rest.manager_client import ManagerClient
from rlm.status.report import LEADER
from rlmm.events.processes import ProcessRegistered, ProcessRole
from rlmm.events.values import TopicPolicy
from rlmm.registration import live_processes, now_of
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition, id_to_text

_ASKED_AT_ONCE = 16

_AnswerT = TypeVar("_AnswerT")


def live_managers(
    metadata: RemoteLogMetadataManager, clock: Clock
) -> tuple[ProcessRegistered, ...]:
    """Return the live managers by broker id; `clock` decides while no process writes records."""
    return registered_live(metadata, clock, ProcessRole.MANAGER)


def registered_live(
    metadata: RemoteLogMetadataManager, clock: Clock, role: ProcessRole
) -> tuple[ProcessRegistered, ...]:
    """Return the live processes of a role, as `live_managers` does."""
    now_ms = now_of(metadata.broker_time_ms(), clock.wall_ms())
    live = live_processes(metadata.registrations(), role, now_ms)
    return tuple(sorted(live, key=lambda process: process.broker_id))


def ask_each(
    managers: Sequence[ProcessRegistered], ask: Callable[[ProcessRegistered], _AnswerT]
) -> Sequence[tuple[ProcessRegistered, _AnswerT | TieredStorageError]]:
    """Return each manager with its response or error, in order.

    Sends 16 requests at once, so that an unreachable manager does not delay the other responses.
    """

    def answer(manager: ProcessRegistered) -> _AnswerT | TieredStorageError:
        try:
            return ask(manager)
        except TieredStorageError as error:
            return error

    if not managers:
        return ()
    with ThreadPoolExecutor(min(len(managers), _ASKED_AT_ONCE), "ask") as executor:
        return tuple(zip(managers, executor.map(answer, managers), strict=True))


LeadersOf = Callable[[str], Mapping[int, int | None]]
"""Returns the current leader of each partition of a topic. Raises TieredStorageError."""


class LeadingManagers:
    """Statuses from the managers of a topic's leaders, or why they are missing. For one thread."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        client: ManagerClient,
        leaders_of: LeadersOf,
        clock: Clock,
    ) -> None:
        self._metadata = metadata
        self._client = client
        self._leaders_of = leaders_of
        self._clock = clock
        self._errors: dict[int, TieredStorageError] = {}
        self._leaders: Mapping[int, int | None] | TieredStorageError = {}
        self._live: frozenset[int] = frozenset()

    def rows(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, Mapping[str, object]]:
        """Return the leaders' rows that saw this policy state; `silence` is about this call.

        Sends no request to other managers. Empty while the leaders are unknown.
        """
        managers = live_managers(self._metadata, self._clock)
        self._live = frozenset(each.broker_id for each in managers)
        self._errors = {}
        try:
            self._leaders = self._leaders_of(policy.topic)
        except TieredStorageError as error:
            self._leaders = error
            return {}
        leaders = frozenset(self._leaders.values())
        found: dict[TopicIdPartition, Mapping[str, object]] = {}
        for manager, rows in ask_each(
            [each for each in managers if each.broker_id in leaders],
            lambda manager: self._client.partitions(manager, topic=policy.topic),
        ):
            if isinstance(rows, TieredStorageError):
                self._errors[manager.broker_id] = rows
            else:
                found.update(_rows_of_leader(rows, policy))
        return found

    def silence(self, tip: TopicIdPartition) -> str:
        """Return why the last `rows` has no row for a partition, and what to do."""
        if isinstance(self._leaders, TieredStorageError):
            return f"its leader is not known: {self._leaders}"
        leader = self._leaders.get(tip.partition)
        found = silence_of(leader, self._live, self._errors)
        return found or f"the manager of broker {leader} has not looked at it yet"


def silence_of(
    leader: int | None, live: Collection[int], errors: Mapping[int, TieredStorageError]
) -> str:
    """Return why a partition's manager gave no status, and what to do; empty if it did.

    `live` are the brokers with a live manager, `errors` the errors of requests to them.
    """
    if leader is None:
        return "the partition has no leader"
    if leader in errors:
        return f"the manager of broker {leader} does not answer: {errors[leader]}"
    if leader not in live:
        return (
            f"no live manager is registered for broker {leader}, which leads it: "
            "start `rlm run` on that broker's host"
        )
    return ""


class ManagerLags:
    """The leading managers' lags of rolled segments that are not stored. See CopyLagSource."""

    def __init__(self, managers: LeadingManagers) -> None:
        self._managers = managers

    def lags(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, Lag]:
        """Return lags of a cycle that saw this policy state, for partitions with a status."""
        found: dict[TopicIdPartition, Lag] = {}
        for tip, row in self._managers.rows(policy).items():
            segments, size = row.get("lag_segments"), row.get("lag_bytes")
            if isinstance(segments, int) and isinstance(size, int):
                found[tip] = Lag(segments=segments, bytes=size)
        return found

    def silence(self, tip: TopicIdPartition) -> str:
        return self._managers.silence(tip)


class ManagerCopyProgress:
    """The leading managers' progress of copying rolled segments. See CopyProgressSource."""

    def __init__(self, managers: LeadingManagers) -> None:
        self._managers = managers

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, CopyProgress]:
        """Return the progress at the last cycle, for partitions with a status."""
        found: dict[TopicIdPartition, CopyProgress] = {}
        for tip, row in self._managers.rows(policy).items():
            rolled, stored, requested = (
                row.get(f"{name}_offset") for name in ("rolled_end", "stored_end", "offload")
            )
            requested_end = row.get("offload_end_offset")
            blocked = row.get("copy_blocked")
            if isinstance(rolled, int) and isinstance(stored, int) and isinstance(requested, int):
                found[tip] = CopyProgress(
                    rolled_end_offset=rolled,
                    stored_end_offset=stored,
                    requested_offset=requested,
                    requested_end_offset=requested_end if isinstance(requested_end, int) else None,
                    blocked=str(blocked.get("reason", "")) if isinstance(blocked, dict) else "",
                )
        return found

    def silence(self, tip: TopicIdPartition) -> str:
        return self._managers.silence(tip)


def _rows_of_leader(
    rows: Iterable[Mapping[str, object]], policy: TopicPolicy
) -> Iterator[tuple[TopicIdPartition, Mapping[str, object]]]:
    for row in rows:
        partition = row.get("partition")
        speaks = (
            row.get("role") == LEADER
            and row.get("claimed") is True
            and row.get("topic_id") == id_to_text(policy.topic_id)
            and row.get("policy_state") == policy.state.name
        )
        if speaks and isinstance(partition, int):
            tip = TopicIdPartition(
                topic_id=policy.topic_id, topic=policy.topic, partition=partition
            )
            yield tip, row
