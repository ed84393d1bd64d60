"""Measures the latency of local fetches while other clients backfill from the store.

Each fetch through the gateway follows the same fetch from the broker, because backfills also take
processor time from the broker and the clients.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import quantiles
from uuid import UUID

from bench.dataset import TOPIC
from bench.gateway.relay import MANY
from bench.gateway.stage import TIERED, GatewayStage
from bench.gateway.throughput import DEFAULT_FETCHES, Readers, Way, overlapping_pieces
from bench.gateway.wire_client import WireClient
from bench.measurement import Measurement, of_runs

_MS = 1000
_ALONE_COUNT = 200


def measure_local_with_backfills(stage: GatewayStage, readers: Readers) -> list[Measurement]:
    """Fetch up to 1 MiB of local data at a time, first alone, then during eight backfills."""
    backfills = Way(
        title="backfills",
        fetches=DEFAULT_FETCHES,
        address=stage.gateway_address,
        topic=TIERED,
        pieces=overlapping_pieces(
            stage.trimmed.end_offset, count=MANY, length=stage.trimmed.end_offset // 2
        ),
        processes={},
    )
    alone = iter(range(_ALONE_COUNT))
    measurements = _latencies(stage, "alone", lambda: next(alone, None) is not None)
    with readers.running(backfills) as is_running:
        return measurements + _latencies(stage, f"with {MANY} backfills", is_running)


def _latencies(stage: GatewayStage, which: str, goes_on: Callable[[], bool]) -> list[Measurement]:
    topic_id: UUID = stage.dataset.partition(TOPIC).topic_id
    record_count = stage.sizes.data.total_bytes // stage.sizes.data.record_bytes
    random = Random(1)
    direct_ms: list[float] = []
    gateway_ms: list[float] = []
    with WireClient(stage.broker_address) as direct, WireClient(stage.gateway_address) as gateway:
        while goes_on() or len(direct_ms) < 2:
            offset = random.randrange(record_count)
            direct_ms.append(direct.first_bytes_s(topic_id, offset) * _MS)
            gateway_ms.append(gateway.first_bytes_s(topic_id, offset) * _MS)
    return [
        of_runs(f"local fetch, direct, {which}", direct_ms, unit="ms"),
        of_runs(f"local fetch, gateway, {which}", gateway_ms, unit="ms"),
        of_runs(f"p99: local fetch, direct, {which}", [_p99(direct_ms)], unit="ms"),
        of_runs(f"p99: local fetch, gateway, {which}", [_p99(gateway_ms)], unit="ms"),
    ]


def _p99(figures: list[float]) -> float:
    return quantiles(figures, n=100, method="inclusive")[-1]
