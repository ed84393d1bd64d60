"""The processes that register in the metadata topic, as values.

A registration is a heartbeat: each process repeats it, and the last one per process id wins.
Records of version 0.1.0 lack the fields from `boot_id` on, which then decode as not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

NO_BROKER = -1

UNREADY_REASONS_MAX_COUNT = 8
UNREADY_REASON_MAX_CHARACTERS = 500


class ProcessRole(Enum):
    """The role of a registered process."""

    MANAGER = 1
    GATEWAY = 2


class ProcessReadiness(Enum):
    """Whether a process reported at its last heartbeat that it does all of its work.

    UNKNOWN for a record of version 0.1.0, and for a value that only a newer version knows. The
    heartbeat still counts.
    """

    UNKNOWN = 0
    READY = 1
    NOT_READY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPosition:
    """A process has applied all records of a metadata partition below `offset`."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRegistered:
    """A live process; repeated as its heartbeat. The last record per process id wins.

    `broker_id` is the broker that it runs next to, NO_BROKER for a gateway of the whole cluster.
    `http_address` is host:port of its HTTP API, empty if it has none. `gateway_address` is where
    clients reach a gateway; it is empty for other processes, and for a gateway that clients must
    not be redirected to. `applied` is the next offset that it will apply of each metadata
    partition, empty if unknown. Liveness depends on the record's LogAppendTime, not its arrival.

    Two processes share a host if `boot_id` and `network_namespace` are equal; then each reaches the
    other at a loopback address. `broker_address` is the advertised address of `broker_id`. An empty
    text means not known. `bounded_reasons` limits `unready_reasons` to UNREADY_REASONS_MAX_COUNT
    of UNREADY_REASON_MAX_CHARACTERS each.

    `incarnation` is new at each start, and the process's claims contain it. It is None for version
    0.1.0, whose HTTP API accepts unsigned requests. `serves_https`: whether that API uses TLS.
    """

    event_id: UUID
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


def bounded_reasons(reasons: Iterable[str]) -> tuple[str, ...]:
    """Return the first reasons, each shortened, so that a heartbeat stays small."""
    bounded: list[str] = []
    for reason in reasons:
        if len(bounded) == UNREADY_REASONS_MAX_COUNT:
            break
        bounded.append(reason[:UNREADY_REASON_MAX_CHARACTERS])
    return tuple(bounded)
