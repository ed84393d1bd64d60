"""Finds the live managers in the metadata, and requests the statuses of their partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from rlm.cli.invocation.session import CommandSession
from rlm.config.load import CommandConfig
from rlm.operator.offload import CopyProgress
from rlm.policy.candidates import Lag
from rlm.policy.topic.policy_values import FileDefaults
from rlm.rest.manager_client import ManagerClient
from rlm.status.document import LEADER, PartitionReport
from rlm.worker.file_defaults import file_defaults, read_registered
from rlmm.events.policy import TopicPolicy
from rlmm.events.registration import ProcessRegistered, ProcessRole, registrations
from rlmm.registration import live_processes, now_of
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition

_ASKED_AT_ONCE = 16

_AnswerT = TypeVar("_AnswerT")


def live_managers(
    metadata: RemoteLogMetadataManager, clock: Clock
) -> tuple[ProcessRegistered, ...]:
    """Return the live managers, sorted by broker id, as `registered_live` does."""
    return registered_live(metadata, clock, ProcessRole.MANAGER)


def registered_live(
    metadata: RemoteLogMetadataManager, clock: Clock, role: ProcessRole
) -> tuple[ProcessRegistered, ...]:
    """Return the live processes of a role, sorted by broker id.

    A heartbeat's age is by the brokers' clock, or by `clock` while no process writes records.
    """
    now_ms = now_of(metadata.broker_time_ms(), clock.wall_ms())
    live = live_processes(registrations(metadata), role, now_ms)
    return tuple(sorted(live, key=lambda process: process.broker_id))


def ask_each(
    managers: Sequence[ProcessRegistered], ask: Callable[[ProcessRegistered], _AnswerT]
) -> Sequence[tuple[ProcessRegistered, _AnswerT | TieredStorageError]]:
    """Return each manager with its response or error, in the order of `managers`.

    Sends up to 16 requests at once, so that an unreachable manager does not delay the others.
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


CommittedEnds = Callable[[Collection[TopicIdPartition]], Mapping[TopicIdPartition, int]]
"""Returns the ends of committed records now; omits partitions whose leader does not answer."""


class LeadingManagers:
    """Represents the managers of a topic's leaders. Not thread-safe."""

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
        self._live: Mapping[int, ProcessRegistered] = {}
        self._leading: tuple[ProcessRegistered, ...] = ()

    def reports(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, PartitionReport]:
        """Return the leaders' reports with this policy state; `silence` explains missing reports.

        Sends no request to other managers. Returns no reports while the leaders are unknown.
        """
        managers = live_managers(self._metadata, self._clock)
        self._live = {each.broker_id: each for each in managers}
        self._leading = ()
        self._errors = {}
        try:
            self._leaders = self._leaders_of(policy.topic)
        except TieredStorageError as error:
            self._leaders = error
            return {}
        leaders = frozenset(self._leaders.values())
        self._leading = tuple(each for each in managers if each.broker_id in leaders)
        found: dict[TopicIdPartition, PartitionReport] = {}
        for manager, reports in ask_each(
            self._leading, lambda manager: self._client.partitions(manager, topic=policy.topic)
        ):
            if isinstance(reports, TieredStorageError):
                self._errors[manager.broker_id] = reports
            else:
                found.update(_reports_of_leader(reports, policy))
        return found

    def wake(self) -> None:
        """Request a cycle now from the managers of the last `reports`; ignore errors."""
        ask_each(self._leading, self._client.run_cycle)

    def silence(self, tip: TopicIdPartition) -> str:
        """Return why the last `reports` lacks a partition."""
        if isinstance(self._leaders, TieredStorageError):
            return f"its leader is not known: {self._leaders}"
        leader = self._leaders.get(tip.partition)
        found = silence_of(leader, self._live, self._errors)
        return found or f"the manager of broker {leader} has not processed it yet"

    def delete_streamed(self, tip: TopicIdPartition) -> None:
        """Request a deletion from the manager of the leader in the last `reports`.

        Raises RetriableError if the leader has no live manager, or if the manager refuses. See
        DeletionManagers.
        """
        leaders = {} if isinstance(self._leaders, TieredStorageError) else self._leaders
        leader = leaders.get(tip.partition)
        manager = None if leader is None else self._live.get(leader)
        if manager is None:
            raise RetriableError(
                "cannot request the deletion: no live manager decides for the partition",
                partition=tip,
                reason=self.silence(tip),
                advice="Run the command again when a manager decides for it",
            )
        self._client.delete_streamed(manager, tip.topic, tip.partition)


def silence_of(
    leader: int | None, live: Collection[int], errors: Mapping[int, TieredStorageError]
) -> str:
    """Return why a partition's manager gave no status; empty if no reason is known.

    `live` are the brokers with a live manager, `errors` the errors of requests to them.
    """
    if leader is None:
        return "the partition has no leader"
    if leader in errors:
        return str(errors[leader])
    if leader not in live:
        return (
            f"no live manager is registered for broker {leader}, which leads the partition: "
            "start `rlm run` on that broker's host"
        )
    return ""


class ManagerLags:
    """Represents the copy lags that the leaders' managers report. See CopyLagSource."""

    def __init__(self, managers: LeadingManagers) -> None:
        self._managers = managers

    def lags(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, Lag]:
        """Return lags from cycles with this policy state; omit partitions whose report has none."""
        return {
            tip: Lag(segments=report.lag_segments, bytes=report.lag_bytes)
            for tip, report in self._managers.reports(policy).items()
            if report.lag_segments is not None and report.lag_bytes is not None
        }

    def silence(self, tip: TopicIdPartition) -> str:
        return self._managers.silence(tip)


class ManagerCopyProgress:
    """Represents the progress of copies and streams, as leaders' managers report it.

    See CopyProgressSource.
    """

    def __init__(self, managers: LeadingManagers, committed_ends: CommittedEnds) -> None:
        self._managers = managers
        self._committed_ends = committed_ends
        self._unknown_ends: frozenset[TopicIdPartition] = frozenset()

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, CopyProgress]:
        """Return the progress at the last cycle; omit partitions whose report lacks it.

        The end of a stream is what its broker reports now, because the end at the last cycle may be
        too low. Omits a stream whose broker does not answer.
        """
        reports = self._managers.reports(policy)
        streamed = [tip for tip, report in reports.items() if report.stream is not None]
        ends = self._committed_ends(streamed) if streamed else {}
        self._unknown_ends = frozenset(streamed) - ends.keys()
        progress = {
            tip: _progress(report, ends.get(tip, 0))
            for tip, report in reports.items()
            if tip not in self._unknown_ends
        }
        return {tip: found for tip, found in progress.items() if found is not None}

    def silence(self, tip: TopicIdPartition) -> str:
        if tip in self._unknown_ends:
            return "the end of the committed records is unknown: the leader does not answer"
        return self._managers.silence(tip)

    def wake(self) -> None:
        self._managers.wake()


def _progress(report: PartitionReport, committed_end_offset: int) -> CopyProgress | None:
    """Return the progress that a manager reports; None if it reports no ends or no request."""
    rolled, stored = report.rolled_end_offset, report.stored_end_offset
    if rolled is None or stored is None or report.offload_offset is None:
        return None
    return CopyProgress(
        rolled_end_offset=max(rolled, committed_end_offset),
        stored_end_offset=stored,
        requested_offset=report.offload_offset,
        requested_end_offset=report.offload_end_offset,
        blocked="" if report.copy_blocked is None else report.copy_blocked.reason,
        lag_segments=report.lag_segments,
        lag_bytes=report.lag_bytes,
    )


def _reports_of_leader(
    reports: Iterable[PartitionReport], policy: TopicPolicy
) -> Iterator[tuple[TopicIdPartition, PartitionReport]]:
    for report in reports:
        reported = report.topic_id_partition
        is_proof = (
            report.role == LEADER
            and report.is_claimed
            and reported.topic_id == policy.topic_id
            and report.policy_state == policy.state.name
        )
        if is_proof:
            tip = TopicIdPartition(
                topic_id=policy.topic_id, topic=policy.topic, partition=reported.partition
            )
            yield tip, report


def managers_defaults(session: CommandSession) -> FileDefaults:
    """Return the managers' defaults for settings that a topic lacks.

    The defaults that live managers registered take precedence over the command's own file. So a
    command on another host shows and writes the values that managers apply.
    """
    return defaults_with(session.config, live_managers(session.metadata, session.clock))


def defaults_with(config: CommandConfig, managers: Iterable[ProcessRegistered]) -> FileDefaults:
    """Return the defaults of the manager with the lowest broker id that registered any.

    If none did, return those of the command's file. `rlm status` shows managers that differ.
    Partitions move, so the stream buffer is the smallest buffer of all managers.
    """
    known = sorted(
        (each for each in managers if each.file_defaults), key=lambda each: each.broker_id
    )
    if not known:
        return file_defaults(config)
    found = [read_registered(each.file_defaults) for each in known]
    return replace(found[0], stream_buffer_bytes=min(each.stream_buffer_bytes for each in found))
