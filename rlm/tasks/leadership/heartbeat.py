"""Registers this process in the metadata topic at an interval, as long as it runs.

In the registrations, a manager finds a second manager that serves the same broker by mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from uuid import UUID

from rlm.policy.peers.other_hosts import HostIdentity
from rlmm.events.registration import (
    AppliedPosition,
    FileDefault,
    ProcessReadiness,
    ProcessRegistered,
    ProcessRole,
    Registration,
    bounded_reasons,
)
from rlmm.registration import has_missed_heartbeats, is_live
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessDescription:
    """Represents what a process reports about itself in every heartbeat."""

    process_id: UUID
    role: ProcessRole
    broker_id: int
    heartbeat_interval_ms: int
    version: str
    host: HostIdentity = field(default_factory=HostIdentity)
    incarnation: UUID | None = None
    serves_https: bool = False
    file_defaults: tuple[FileDefault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """Represents the present state of a process. An empty value or UNKNOWN means "not known".

    `http_address` is where other hosts reach the HTTP server. `gateway_address` is where clients
    reach the gateway; it is empty if no client may be redirected there.
    """

    http_address: str = ""
    broker_address: str = ""
    readiness: ProcessReadiness = ProcessReadiness.UNKNOWN
    unready_reasons: Sequence[str] = ()
    gateway_address: str = ""


_NOTHING_KNOWN = ProcessState()
STOPPED = ProcessState(readiness=ProcessReadiness.STOPPED)
"""The last state of a process that was asked to stop: others count the process as gone at once."""

SIGN_OFF_MS = 3_000
"""The longest time for which a process tries to register as stopped: the cluster may stop, too."""


class Heartbeat:
    """Publishes one registration in each call of `step`."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        description: ProcessDescription,
        new_id: Callable[[], UUID],
        applied: Callable[[], Mapping[int, int]] = dict,
    ) -> None:
        """Register with `applied`, which returns the next offset of each metadata partition."""
        self._metadata = metadata
        self._description = description
        self._new_id = new_id
        self._applied = applied

    def step(self, state: ProcessState = _NOTHING_KNOWN) -> None:
        """Register once with `state`.

        Raises RetriableError if the metadata topic cannot be written.
        """
        description = self._description
        self._metadata.publish(
            ProcessRegistered(
                event_id=self._new_id(),
                process_id=description.process_id,
                role=description.role,
                broker_id=description.broker_id,
                http_address=state.http_address,
                heartbeat_interval_ms=description.heartbeat_interval_ms,
                version=description.version,
                gateway_address=state.gateway_address,
                applied=tuple(
                    AppliedPosition(partition=partition, offset=offset)
                    for partition, offset in sorted(self._applied().items())
                ),
                boot_id=description.host.boot_id,
                network_namespace=description.host.network_namespace,
                broker_address=state.broker_address,
                readiness=state.readiness,
                unready_reasons=bounded_reasons(state.unready_reasons),
                incarnation=description.incarnation,
                serves_https=description.serves_https,
                file_defaults=description.file_defaults,
            )
        )


class HeartbeatWatch:
    """Measures the time since the last heartbeat came back through the metadata topic. Thread-safe.

    Other processes use the same rule to count a manager as gone (rlmm.registration).
    """

    def __init__(self, clock: Clock, interval_ms: int) -> None:
        self._clock = clock
        self._interval_ms = interval_ms
        self._last_ms: int | None = None
        self._lock = Lock()

    def begin(self) -> None:
        """Start to expect heartbeats, unless they are expected already."""
        with self._lock:
            if self._last_ms is None:
                self._last_ms = self._clock.monotonic_ms()

    def record_heartbeat(self) -> None:
        """Record that a heartbeat was written and read back."""
        with self._lock:
            self._last_ms = self._clock.monotonic_ms()

    def with_problems(
        self, reasons: Sequence[str], failure: BaseException | None, *, is_metadata_ready: bool
    ) -> tuple[str, ...]:
        """Return why the process is not ready: each reason once, heartbeat problems last.

        `failure` is the error of the last heartbeat.
        """
        found = (*reasons, self.problem(is_metadata_ready=is_metadata_ready), failure)
        return tuple(dict.fromkeys(str(each) for each in found if each is not None))

    def problem(self, *, is_metadata_ready: bool) -> str | None:
        """Return the problem if expected heartbeats are missing; None otherwise.

        Missing heartbeats prove an unreachable cluster only if this process can use the metadata. A
        full disk, for example, prevents it from reading what it wrote.
        """
        with self._lock:
            last_ms = self._last_ms
        if last_ms is None:
            return None
        silent_ms = self._clock.monotonic_ms() - last_ms
        if not has_missed_heartbeats(silent_ms, self._interval_ms):
            return None
        silence = f"no heartbeat has come back through the metadata topic for {silent_ms // 1000} s"
        return f"the cluster cannot be reached: {silence}" if is_metadata_ready else silence


def live_rivals(
    registrations: Iterable[Registration], *, broker_id: int, process_id: UUID, broker_ms: int
) -> tuple[Registration, ...]:
    """Return live managers of this broker other than `process_id`.

    The brokers' clock decides, so that a replayed registration does not revive a dead process.
    """
    return tuple(
        each
        for each in registrations
        if each.process.role is ProcessRole.MANAGER
        and each.process.broker_id == broker_id
        and each.process.process_id != process_id
        and is_live(each, broker_ms)
    )
