"""The processes that register in the metadata topic, as values.

A registration is a heartbeat: each process repeats it, and the last one per process id holds. A
record of version 0.1.0 has none of the fields from `boot_id` on; they then read as not known.
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
    """What a registered process does."""

    MANAGER = 1
    GATEWAY = 2


class ProcessReadiness(Enum):
    """Whether a process did all of its work at its last heartbeat, by its own account.

    UNKNOWN for a record of version 0.1.0, and for a value that only a newer version knows: the
    heartbeat counts all the same.
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
    """A process is alive; repeated as its heartbeat. The last one per process id holds.

    `broker_id` is the broker it runs beside, NO_BROKER for a gateway of the whole cluster.
    `http_address` is host:port of its HTTP API, empty if it has none. `gateway_address` is where
    clients reach a gateway; empty for other processes, and for a gateway that clients must not be
    led to. `applied` is how far it had applied the metadata topic: the next offset of each metadata
    partition, empty if it doesn't say. A process is judged alive by the broker's time of this
    record, not by its arrival.

    Two processes share a host if `boot_id` and `network_namespace` are equal: then either reaches
    the other at a loopback address. `broker_address` is what the broker of `broker_id` advertises.
    Empty texts are not known. `unready_reasons` are at most UNREADY_REASONS_MAX_COUNT, each of at
    most UNREADY_REASON_MAX_CHARACTERS; see `bounded_reasons`.

    `incarnation` is new at each start, and its claims carry it; None for version 0.1.0, whose HTTP
    API takes requests without a signature. `serves_https`: whether that API speaks TLS.
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
    """The first reasons, each shortened, so that a heartbeat stays small."""
    bounded: list[str] = []
    for reason in reasons:
        if len(bounded) == UNREADY_REASONS_MAX_COUNT:
            break
        bounded.append(reason[:UNREADY_REASON_MAX_CHARACTERS])
    return tuple(bounded)
