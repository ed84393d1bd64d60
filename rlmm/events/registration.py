"""Defines the registration of a process in the metadata topic. Pure.

A registration is a heartbeat: each process repeats it, and the last record of a process id wins.
Records of version 0.1.0 do not contain `boot_id` and the fields after it, which then decode as
their defaults.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Protocol
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import ClusterFamily
from rlmm.events.rows import ClusterReader
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind
from rsm.segment.metadata_codec import enum_from_number, id_from_bytes

NO_BROKER = -1

UNREADY_REASONS_MAX_COUNT = 8
UNREADY_REASON_MAX_CHARACTERS = 500
FILE_DEFAULTS_MAX_COUNT = 32
FILE_DEFAULT_MAX_CHARACTERS = 500


class ProcessRole(Enum):
    """Represents the role of a registered process."""

    MANAGER = 1
    GATEWAY = 2


class ProcessReadiness(Enum):
    """Represents what a process reported at its last heartbeat: whether it does all of its work.

    UNKNOWN means a record of version 0.1.0, or a value that only a newer version knows; the
    heartbeat still counts. STOPPED means that the process was asked to stop, or an operator
    removed it (rlm processes --forget).
    """

    UNKNOWN = 0
    READY = 1
    NOT_READY = 2
    STOPPED = 3


_READINESS = {each.value: each for each in ProcessReadiness}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPosition:
    """Represents how far a process has applied a metadata partition: all below `offset`."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDefault:
    """Represents a setting that a manager's file gives topics; `value` is None if it is unset."""

    key: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRegistered(Event):
    """Represents a registered process; the process repeats the record as its heartbeat.

    `broker_id` is the broker next to the process, or NO_BROKER for a gateway of the whole cluster.
    `http_address` is host:port of the process's HTTP API; it is empty if there is none. Clients
    reach a gateway at `gateway_address`; it is empty for other processes, and for a gateway to
    which clients must not be redirected. `applied` contains the next offset to apply in each
    metadata partition; it is empty if unknown. Liveness depends on the record's LogAppendTime, not
    on its arrival.

    Two processes share a host if `boot_id` and `network_namespace` are equal; then each reaches the
    other at a loopback address. `broker_address` is the advertised address of `broker_id`. Each of
    these three is empty if it is unknown. `bounded_reasons` limits `unready_reasons` to
    UNREADY_REASONS_MAX_COUNT texts of UNREADY_REASON_MAX_CHARACTERS each.

    `incarnation` is new at each start, and the process's claims contain it. It is None for version
    0.1.0, whose HTTP API accepts unsigned requests. `serves_https` is whether that API uses TLS.

    `file_defaults` contains what a manager's configuration file gives topics; it is empty if
    unknown. `bounded_defaults` limits it to FILE_DEFAULTS_MAX_COUNT entries, with texts of up to
    FILE_DEFAULT_MAX_CHARACTERS.
    """

    process_id: UUID
    role: ProcessRole
    broker_id: int
    http_address: str
    heartbeat_interval_ms: int
    version: str
    gateway_address: str = ""
    applied: tuple[AppliedPosition, ...] = ()
    boot_id: str = ""
    network_namespace: str = ""
    broker_address: str = ""
    readiness: ProcessReadiness = ProcessReadiness.UNKNOWN
    unready_reasons: tuple[str, ...] = ()
    incarnation: UUID | None = None
    serves_https: bool = False
    file_defaults: tuple[FileDefault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """Represents a registered process and the LogAppendTime of its last heartbeat."""

    process: ProcessRegistered
    heartbeat_ms: int


class RegistrationFamily(ClusterFamily[ProcessRegistered, pb.ProcessRegistered, Registration]):
    """Defines the family of registrations; drops reasons and defaults beyond the limits."""

    event_type = ProcessRegistered
    kind = RecordKind.REGISTRATION
    field = "process_registered"
    row_prefix = b"process"
    has_row_time = True

    def to_message(self, event: ProcessRegistered) -> pb.ProcessRegistered:
        is_readiness_known = event.readiness is not ProcessReadiness.UNKNOWN
        return pb.ProcessRegistered(
            process_id=event.process_id.bytes,
            role=event.role.name,
            broker_id=event.broker_id,
            http_address=event.http_address,
            heartbeat_interval_ms=event.heartbeat_interval_ms,
            version=event.version,
            gateway_address=event.gateway_address,
            applied=[
                pb.AppliedPosition(partition=a.partition, offset=a.offset) for a in event.applied
            ],
            boot_id=event.boot_id,
            network_namespace=event.network_namespace,
            broker_address=event.broker_address,
            readiness=event.readiness.name if is_readiness_known else None,
            unready_reasons=bounded_reasons(event.unready_reasons),
            incarnation=None if event.incarnation is None else event.incarnation.bytes,
            serves_https=event.serves_https,
            file_defaults=[
                pb.FileDefault(key=each.key, value=each.value)
                for each in bounded_defaults(event.file_defaults)
            ],
        )

    def from_message(self, event_id: UUID, message: pb.ProcessRegistered) -> ProcessRegistered:
        return ProcessRegistered(
            event_id=event_id,
            process_id=id_from_bytes(message.process_id),
            role=enum_from_number(ProcessRole, message.role, "process role"),
            broker_id=message.broker_id,
            http_address=message.http_address,
            heartbeat_interval_ms=message.heartbeat_interval_ms,
            version=message.version,
            gateway_address=message.gateway_address,
            applied=tuple(
                AppliedPosition(partition=a.partition, offset=a.offset) for a in message.applied
            ),
            boot_id=message.boot_id,
            network_namespace=message.network_namespace,
            broker_address=message.broker_address,
            readiness=_READINESS.get(message.readiness, ProcessReadiness.UNKNOWN),
            unready_reasons=bounded_reasons(message.unready_reasons),
            incarnation=id_from_bytes(message.incarnation) if message.incarnation else None,
            serves_https=message.serves_https,
            file_defaults=bounded_defaults(
                FileDefault(key=each.key, value=each.value if each.HasField("value") else None)
                for each in message.file_defaults
            ),
        )

    def record_key(self, event: ProcessRegistered) -> RecordKey:
        return RecordKey(kind=self.kind, subject=event.process_id.bytes)

    def value_of(self, event: ProcessRegistered, append_time_ms: int) -> Registration:
        return Registration(process=event, heartbeat_ms=append_time_ms)


REGISTRATIONS = RegistrationFamily()


def registrations(metadata: ClusterReader) -> tuple[Registration, ...]:
    """Return all registrations, live or not; `rlmm.registration` decides which are live."""
    return metadata.cluster_values(REGISTRATIONS)


class DatedClusterReader(ClusterReader, Protocol):
    """Also returns the time with which heartbeats are compared: a metadata manager."""

    @abstractmethod
    def cluster_time_ms(self) -> int:
        """Return the LogAppendTime of the last record applied from the registrations' partition."""


def dated_registrations(metadata: DatedClusterReader) -> tuple[tuple[Registration, ...], int]:
    """Return all registrations, and the time that decides which are live.

    Reads the time first: heartbeats that are read later are newer, so no live process looks gone.
    """
    now_ms = metadata.cluster_time_ms()
    return registrations(metadata), now_ms


def bounded_reasons(reasons: Iterable[str]) -> tuple[str, ...]:
    """Return the first reasons, each shortened, so that a heartbeat stays small."""
    bounded: list[str] = []
    for reason in reasons:
        if len(bounded) == UNREADY_REASONS_MAX_COUNT:
            break
        bounded.append(reason[:UNREADY_REASON_MAX_CHARACTERS])
    return tuple(bounded)


def bounded_defaults(defaults: Iterable[FileDefault]) -> tuple[FileDefault, ...]:
    """Return the first defaults, with shortened texts, so that a heartbeat stays small."""
    return tuple(
        FileDefault(
            key=each.key[:FILE_DEFAULT_MAX_CHARACTERS],
            value=None if each.value is None else each.value[:FILE_DEFAULT_MAX_CHARACTERS],
        )
        for each in islice(defaults, FILE_DEFAULTS_MAX_COUNT)
    )
