"""Defines the canary topic of the end-to-end check and evaluates registrations. Pure.

A canary topic has one partition per broker, led by that broker, so that every manager stores and
trims one. Each record fills a segment: a broker rolls a segment when a record's timestamp is
`segment.ms` later than the segment's first. So the check does not wait for time to pass, and its
records can be older than the minimum trim age. They are at least a week old, because the managers
may be configured with a longer minimum age than the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from rlm.config.host_address import is_loopback, is_unspecified
from rlm.facts.canary_records import CanaryRecord
from rlmm.events.registration import NO_BROKER, ProcessReadiness, ProcessRegistered

CANARY_PREFIX = "rlm-canary-"
MIN_ROUNDS = 4
"""The newest rolled segment and the active one of a partition stay local: two can be trimmed."""

_SEGMENT_MS = 60_000
_DAY_MS = 24 * 3_600_000
_MIN_AGE_MS = 7 * _DAY_MS
_ABANDONED_AFTER_MS = 3_600_000


class CheckResult(Enum):
    """Represents the result of a check. SKIPPED is not a failure: `CheckRow.problem` says why."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """Represents one check of a process, partition or address, and its result."""

    check: str
    target: str
    result: CheckResult
    duration_ms: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryTopic:
    """Represents a canary topic.

    `leaders` and `replicas` are node ids by partition; the leader is the first replica.
    """

    name: str
    leaders: tuple[int, ...]
    replicas: tuple[tuple[int, ...], ...]
    age_ms: int

    @property
    def config_choices(self) -> Sequence[Mapping[str, str]]:
        """Return configurations for the topic, best first: brokers refuse keys of later versions.

        A cluster may refuse old timestamps by default: `message.timestamp.before.max.ms` since
        Kafka 3.6, `message.timestamp.difference.max.ms` before 4.0 (KIP-937). If a broker knows
        both, it uses the first one, unless that one has its default. So the value here must not
        be the default, which is the maximum.
        """
        configs = {
            "cleanup.policy": "delete",
            "message.timestamp.type": "CreateTime",
            "min.insync.replicas": "1",
            "retention.ms": str(self.retention_ms),
            "segment.ms": str(_SEGMENT_MS),
        }
        limit_ms = str(self.retention_ms)
        return (
            {**configs, "message.timestamp.before.max.ms": limit_ms},
            {**configs, "message.timestamp.difference.max.ms": limit_ms},
        )

    @property
    def retention_ms(self) -> int:
        """Return a retention that expires the data of an interrupted check about a day later."""
        return self.age_ms + _DAY_MS

    def round(self, number: int, now_ms: int) -> tuple[CanaryRecord, ...]:
        """Return one record per partition; rounds are numbered from 0 and written in order."""
        timestamp_ms = now_ms - self.age_ms + number * 2 * _SEGMENT_MS
        return tuple(
            CanaryRecord(
                partition=partition,
                value=f"{self.name}/{partition}/{number}".encode(),
                timestamp_ms=timestamp_ms,
            )
            for partition in range(len(self.leaders))
        )


def canary_topic(
    broker_ids: Iterable[int],
    *,
    unique: str,
    now_ms: int,
    rounds: int,
    max_replicas: int,
    trim_min_age_ms: int,
) -> CanaryTopic:
    """Return the topic for a check that starts now and writes `rounds` rounds."""
    leaders = tuple(sorted(broker_ids))
    count = min(max(1, max_replicas), len(leaders))
    return CanaryTopic(
        name=f"{CANARY_PREFIX}{now_ms}-{unique}",
        leaders=leaders,
        replicas=tuple(
            tuple(leaders[(first + n) % len(leaders)] for n in range(count))
            for first in range(len(leaders))
        ),
        age_ms=max(_MIN_AGE_MS, 2 * trim_min_age_ms) + rounds * 2 * _SEGMENT_MS,
    )


def abandoned_canaries(topics: Iterable[str], now_ms: int) -> tuple[str, ...]:
    """Return canary topics whose names show that their checks began more than an hour ago."""
    found = []
    for name in topics:
        started_ms, dash, unique = name.removeprefix(CANARY_PREFIX).partition("-")
        is_canary = name.startswith(CANARY_PREFIX) and started_ms.isdecimal() and dash and unique
        if is_canary and now_ms - int(started_ms) > _ABANDONED_AFTER_MS:
            found.append(name)
    return tuple(sorted(found))


def missing_records(
    expected: Mapping[tuple[int, int], bytes], found: Mapping[tuple[int, int], bytes]
) -> str:
    """Describe the `expected` records that are missing or differ in `found`; empty if none."""
    absent = sorted(position for position in expected if position not in found)
    wrong = sorted(
        position
        for position in expected
        if found.get(position, expected[position]) != expected[position]
    )
    problems = []
    if absent:
        partitions = ", ".join(
            str(number) for number in sorted({position[0] for position in absent})
        )
        problems.append(
            f"cannot find {len(absent)} of {len(expected)} records (partitions={partitions})"
        )
    if wrong:
        partition, offset = wrong[0]
        problems.append(f"a record has other bytes (partition={partition} offset={offset})")
    return "; ".join(problems)


def registration_rows(
    brokers: Mapping[int, str],
    managers: Sequence[ProcessRegistered],
    gateways: Sequence[ProcessRegistered],
) -> tuple[CheckRow, ...]:
    """Return a row for each broker's manager and gateway, and each gateway of the whole cluster.

    `brokers` maps node ids to advertised hosts. The caller passes only live processes.
    """
    spread = any(not is_loopback(host) for host in brokers.values())
    rows = []
    for broker_id in sorted(brokers):
        manager = [each for each in managers if each.broker_id == broker_id]
        rows.append(
            _row(f"manager of broker {broker_id}", _manager_problem(manager, spread=spread))
        )
        own = [each for each in gateways if each.broker_id == broker_id]
        rows.append(
            _row(f"gateway of broker {broker_id}", _gateway_problem(own, gateways, spread=spread))
        )
    rows += [
        _row(f"gateway {each.gateway_address}", _gateway_problem([each], gateways, spread=spread))
        for each in gateways
        if each.broker_id == NO_BROKER
    ]
    return tuple(rows)


def gateway_addresses(gateways: Iterable[ProcessRegistered]) -> tuple[str, ...]:
    """Return the addresses that the gateways give clients, each address once."""
    return tuple(sorted({each.gateway_address for each in gateways if each.gateway_address}))


def _row(target: str, problem: str) -> CheckRow:
    result = CheckResult.FAILED if problem else CheckResult.PASSED
    return CheckRow(check="registered", target=target, result=result, problem=problem)


def _manager_problem(found: Sequence[ProcessRegistered], *, spread: bool) -> str:
    if not found:
        return "no live manager is registered. Start `rlm run` on the broker's host."
    (process, *_) = found
    if (unready := _unready(process)) or not process.http_address:
        return unready or "it has registered no HTTP address. Set rest.listener on its host."
    if _cannot_be_reached(process.http_address, spread=spread):
        return (
            f"its HTTP address is {process.http_address}, which other hosts cannot reach. "
            "Set rest.listener or rest.advertised.listener on its host."
        )
    return ""


def _gateway_problem(
    found: Sequence[ProcessRegistered], gateways: Sequence[ProcessRegistered], *, spread: bool
) -> str:
    if not found:
        return (
            "no live gateway is registered. Set gateway.listener and start `rlm run` on the "
            "broker's host."
        )
    (process, *_) = found
    if unready := _unready(process):
        return unready
    address = process.gateway_address
    if not address:
        return "it gives clients no address. `/readyz` on its host says why."
    if _cannot_be_reached(address, spread=spread):
        return (
            f"it gives clients the address {address}, which other hosts cannot reach. "
            "Set gateway.listener or gateway.advertised.listener on its host."
        )
    others = sorted(
        {
            each.broker_id
            for each in gateways
            if each.gateway_address == address
            and NO_BROKER not in {each.broker_id, process.broker_id}
            and each.broker_id != process.broker_id
        }
    )
    if others:
        ids = ", ".join(map(str, others))
        shown = f"gateway of broker {ids} does"
        if len(others) > 1:
            shown = f"gateways of brokers {ids} do"
        return (
            f"it gives clients the address {address}, as the {shown}. "
            "Set gateway.listener or gateway.advertised.listener on each host."
        )
    return ""


def _unready(process: ProcessRegistered) -> str:
    if process.readiness is not ProcessReadiness.NOT_READY:
        return ""
    return "not ready: " + ("; ".join(process.unready_reasons) or "`/readyz` on its host says why.")


def _cannot_be_reached(address: str, *, spread: bool) -> bool:
    """Return whether a host:port is unusable: port 0, unspecified, or loopback if `spread`."""
    host, _, port = address.rpartition(":")
    return port == "0" or is_unspecified(host) or (spread and is_loopback(host))
