"""Measures reads of local data through the gateway, compared with reads from the broker."""

from __future__ import annotations

from dataclasses import replace

from bench.dataset import TOPIC
from bench.gateway.stage import GatewayStage
from bench.gateway.throughput import FetchSize, Readers, Way, overlapping_pieces
from bench.measurement import Measurement, at_least

MANY = 8
_GOALS = {1: at_least(0.95, floor=0.85), MANY: at_least(0.9, floor=0.65)}
_SHARE_OF_EACH = 4


def measure_relay_to_one(stage: GatewayStage, readers: Readers) -> list[Measurement]:
    """Measure one consumer that reads the whole log."""
    return _measure(stage, readers, consumers=1)


def measure_relay_to_many(stage: GatewayStage, readers: Readers) -> list[Measurement]:
    """Measure eight concurrent consumers, each of which reads a quarter of the log."""
    return _measure(stage, readers, consumers=MANY)


def _measure(stage: GatewayStage, readers: Readers, *, consumers: int) -> list[Measurement]:
    who = "1 consumer" if consumers == 1 else f"{consumers} consumers"
    measurements: list[Measurement] = []
    for fetches in stage.sizes.fetches:
        ways = relay_ways(stage, fetches, consumers=consumers, who=who)
        direct, relayed = readers.alternate(*ways)
        measurements += direct.measurements()
        measurements += relayed.measurements()
        ratio = relayed.ratio(direct, f"relayed ÷ direct, {who}", goal=_GOALS[consumers])
        measurements.append(ratio)
    return measurements


def relay_ways(
    stage: GatewayStage, fetches: FetchSize, *, consumers: int, who: str
) -> tuple[Way, Way]:
    """Return the direct way and the relayed way; their titles contain `who`."""
    record_count = stage.sizes.data.total_bytes // stage.sizes.data.record_bytes
    pieces = overlapping_pieces(
        record_count,
        count=consumers,
        length=record_count if consumers == 1 else record_count // _SHARE_OF_EACH,
    )
    direct = Way(
        title=f"direct, {who}",
        fetches=fetches,
        address=stage.broker_address,
        topic=TOPIC,
        pieces=pieces,
        processes={"broker": stage.broker},
    )
    relayed = replace(
        direct,
        title=f"relayed, {who}",
        address=stage.gateway_address,
        processes={"gateway": stage.gateway, "broker": stage.broker},
    )
    return direct, relayed
