"""Lists brokers, managers and gateways of a cluster with their addresses and readiness. Pure.

The cluster lists the brokers. The metadata topic contains the registrations of managers and
gateways. A process that is asked to stop registers as stopped. Any other process is dead if its
last heartbeat is too old (rlmm.registration). By default, a dead process of a live broker stays
listed. A stopped process, or a process whose broker is not live, stays listed for a day. A process
is replaced if another process of the same role and broker is live, or stopped later. By default,
replaced processes are not listed. A gateway of the whole cluster is never replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlm.status.document_parts import Json
from rlmm.events.registration import (
    NO_BROKER,
    FileDefault,
    ProcessReadiness,
    ProcessRegistered,
    ProcessRole,
    Registration,
)
from rlmm.registration import has_stopped, is_live
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import id_to_text

BROKER, MANAGER, GATEWAY = "broker", "manager", "gateway"
_ROLES = {ProcessRole.MANAGER: MANAGER, ProcessRole.GATEWAY: GATEWAY}
_ORDER = (BROKER, MANAGER, GATEWAY)

_GONE_SHOWN_MS = 24 * 3600 * 1000

PROCESS_STATUS = JsonShape(
    name="ProcessStatus",
    meaning="One broker, manager or gateway. A null field is unknown or does not apply.",
    fields={
        "role": JsonField(JsonKind.TEXT, "`broker`, `manager` or `gateway`."),
        "broker_id": JsonField(
            JsonKind.COUNT,
            "The id of the broker, or of the broker that the process serves; null for a gateway "
            "of the whole cluster.",
            is_nullable=True,
        ),
        "address": JsonField(
            JsonKind.TEXT,
            "Where Kafka clients connect, as `host:port`; null for a manager, for a broker that is "
            "not live, and for a gateway if no client may be redirected to it.",
            is_nullable=True,
        ),
        "http_address": JsonField(
            JsonKind.TEXT, "Where its HTTP API listens, as `host:port`.", is_nullable=True
        ),
        "version": JsonField(JsonKind.TEXT, "Version of `rlm`.", is_nullable=True),
        "heartbeat_age_ms": JsonField(
            JsonKind.DURATION, "Time since its last heartbeat.", is_nullable=True
        ),
        "live": JsonField(
            JsonKind.FLAG,
            "For a broker, whether the cluster lists it. For another process, whether its last "
            "heartbeat is recent and it was not asked to stop.",
        ),
        "ready": JsonField(
            JsonKind.FLAG,
            "Whether the process is live and reports that it does all of its work.",
            is_nullable=True,
        ),
        "reasons": JsonField(JsonKind.TEXT, "Why it needs attention.", is_list=True),
        "process_id": JsonField(JsonKind.ID, "The id that it registers with.", is_nullable=True),
        "boot_id": JsonField(JsonKind.TEXT, "The boot id of its host.", is_nullable=True),
        "network_namespace": JsonField(
            JsonKind.TEXT, "The network namespace on that host.", is_nullable=True
        ),
        "file_defaults": JsonField(
            JsonKind.MAP,
            "The defaults from a manager's configuration file for topics, by key. Each value is a "
            "text; null if the file sets no default. Empty if unknown.",
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """Represents one broker, manager or gateway.

    A field that is empty or None is unknown or does not apply. Kafka clients connect to `address`.
    It is empty for a manager, and for a gateway to which no client may be redirected. A broker
    `is_live` if the cluster lists it; another process, if its heartbeat is recent and it has not
    stopped. `is_ready` is the process's own report in that heartbeat. A process `is_stopped` if it
    was asked to stop, or if an operator removed it (`rlm processes --forget`). `file_defaults` are
    the defaults that a manager's configuration file sets.
    """

    role: str
    broker_id: int
    address: str
    is_live: bool
    is_ready: bool | None = None
    is_stopped: bool = False
    reasons: tuple[str, ...] = ()
    http_address: str = ""
    version: str = ""
    heartbeat_age_ms: int | None = None
    process_id: str = ""
    boot_id: str = ""
    network_namespace: str = ""
    file_defaults: tuple[FileDefault, ...] = ()

    @property
    def state(self) -> str:
        """Return stopped, dead, ready, not ready or unknown.

        Processes of version 0.1.0 do not report their readiness: it is unknown.
        """
        if self.is_stopped:
            return "stopped"
        if not self.is_live:
            return "dead"
        if self.is_ready is None:
            return "unknown"
        return "ready" if self.is_ready else "not ready"

    def to_json(self) -> Json:
        """Return the row as `rlm processes --json` prints it."""
        return {
            "role": self.role,
            "broker_id": None if self.broker_id == NO_BROKER else self.broker_id,
            "address": self.address or None,
            "http_address": self.http_address or None,
            "version": self.version or None,
            "heartbeat_age_ms": self.heartbeat_age_ms,
            "live": self.is_live,
            "ready": self.is_ready if self.is_live else False,
            "reasons": list(self.reasons),
            "process_id": self.process_id or None,
            "boot_id": self.boot_id or None,
            "network_namespace": self.network_namespace or None,
            "file_defaults": {each.key: each.value for each in self.file_defaults},
        }


def cluster_processes(
    brokers: Mapping[int, str],
    registrations: Iterable[Registration],
    *,
    now_ms: int,
    lists_all: bool = False,
) -> tuple[ProcessStatus, ...]:
    """Return the listed processes: brokers, then managers, then gateways, each by broker id.

    `brokers` maps the ids of the live brokers to their addresses. With `lists_all`, the result
    includes replaced processes, and dead and stopped processes of any age.
    """
    known = [(each, is_live(each, now_ms)) for each in registrations]
    served = {_role_at_broker(each) for each, is_live in known if is_live}
    stopped_ms = _last_stops(each for each, _ in known)
    shown = [
        (each, is_live)
        for each, is_live in known
        if lists_all
        or is_live
        or not (
            _is_replaced(each, served, stopped_ms)
            or _is_over(each, now_ms, is_broker_live=each.process.broker_id in brokers)
        )
    ]
    away_ids = _away_ids((each for each, _ in shown), brokers)
    rows = [
        *(_broker(node_id, address, served) for node_id, address in brokers.items()),
        *(_away(broker_id) for broker_id in away_ids),
        *(_process(each, now_ms, is_live=is_live) for each, is_live in shown),
    ]
    return tuple(
        sorted(rows, key=lambda row: (_ORDER.index(row.role), row.broker_id, row.process_id))
    )


def _role_at_broker(registration: Registration) -> tuple[ProcessRole, int]:
    return registration.process.role, registration.process.broker_id


def _last_stops(registrations: Iterable[Registration]) -> Mapping[tuple[ProcessRole, int], int]:
    """Return when the last process of each role and broker stopped."""
    found: dict[tuple[ProcessRole, int], int] = {}
    for each in registrations:
        if has_stopped(each):
            found[_role_at_broker(each)] = max(
                each.heartbeat_ms, found.get(_role_at_broker(each), 0)
            )
    return found


def _is_replaced(
    registration: Registration,
    served: set[tuple[ProcessRole, int]],
    stopped_ms: Mapping[tuple[ProcessRole, int], int],
) -> bool:
    """Return whether another process of the same role and broker is live or stopped later.

    Returns False for a gateway of the whole cluster.
    """
    key = _role_at_broker(registration)
    if registration.process.broker_id == NO_BROKER:
        return False
    return key in served or registration.heartbeat_ms < stopped_ms.get(key, 0)


def _is_over(registration: Registration, now_ms: int, *, is_broker_live: bool) -> bool:
    """Return whether to hide a process that is not live.

    A dead process of a live broker stays listed, because nobody asked it to stop.
    """
    if is_broker_live and not has_stopped(registration):
        return False
    return now_ms - registration.heartbeat_ms >= _GONE_SHOWN_MS


def _broker(node_id: int, address: str, served: set[tuple[ProcessRole, int]]) -> ProcessStatus:
    """Return a broker's row. Gateways are optional, so a missing gateway is not a reason."""
    has_manager = (ProcessRole.MANAGER, node_id) in served
    return ProcessStatus(
        role=BROKER,
        broker_id=node_id,
        address=address,
        is_live=True,
        is_ready=True,
        reasons=() if has_manager else ("no live manager is registered for it",),
    )


def _away_ids(shown: Iterable[Registration], brokers: Mapping[int, str]) -> list[int]:
    ids = {each.process.broker_id for each in shown} - {NO_BROKER}
    return sorted(ids - brokers.keys())


def _away(broker_id: int) -> ProcessStatus:
    return ProcessStatus(
        role=BROKER,
        broker_id=broker_id,
        address="",
        is_live=False,
        reasons=("the cluster has no live broker with this id",),
    )


def _process(registration: Registration, now_ms: int, *, is_live: bool) -> ProcessStatus:
    process = registration.process
    return ProcessStatus(
        role=_ROLES[process.role],
        broker_id=process.broker_id,
        address=process.gateway_address,
        is_live=is_live,
        is_ready=_is_ready(process),
        is_stopped=has_stopped(registration),
        reasons=process.unready_reasons if is_live else (_why_gone(registration),),
        http_address=process.http_address,
        version=process.version,
        heartbeat_age_ms=max(0, now_ms - registration.heartbeat_ms),
        process_id=id_to_text(process.process_id),
        boot_id=process.boot_id,
        network_namespace=process.network_namespace,
        file_defaults=process.file_defaults,
    )


def _why_gone(registration: Registration) -> str:
    return (
        "it was asked to stop, or an operator removed it with `rlm processes --forget`"
        if has_stopped(registration)
        else "its heartbeats ended: it is down or cannot use its metadata. For the cause, see its "
        "`/readyz` or its log"
    )


def _is_ready(process: ProcessRegistered) -> bool | None:
    if process.readiness is ProcessReadiness.UNKNOWN:
        return None
    return process.readiness is ProcessReadiness.READY
