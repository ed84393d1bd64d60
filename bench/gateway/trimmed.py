"""Measures reads of trimmed data through the gateway, compared with two peers.

The peers are reads of local data from the broker, and Kafka's own tiering.
"""

from __future__ import annotations

from dataclasses import replace

from bench.dataset import TOPIC
from bench.gateway.delayed_gateway import running_delayed_gateway
from bench.gateway.first_fetch import measure_peers_first_fetch
from bench.gateway.kafka_tiering import KafkaTiering, running_kafka_tiering
from bench.gateway.stage import TIERED, GatewayStage
from bench.gateway.throughput import FetchSize, Readers, Way
from bench.measurement import Measurement, at_least, of_runs
from rsm.segment.ranges import OffsetRange


def measure_trimmed(stage: GatewayStage, readers: Readers) -> list[Measurement]:
    """Measure reads from a directory whose files are in the page cache."""
    measurements: list[Measurement] = []
    for fetches in stage.sizes.fetches:
        local_way = _local_way(stage, fetches, "local data")
        local, trimmed = readers.alternate(local_way, _trimmed_way(stage, fetches))
        measurements += local.measurements()
        measurements += trimmed.measurements()
        measurements.append(
            trimmed.ratio(local, "trimmed data ÷ local data", goal=at_least(1.0, floor=0.8))
        )
    return measurements


def measure_delayed_trimmed(stage: GatewayStage, readers: Readers) -> list[Measurement]:
    """Measure reads from the slow store, and then the gateway's memory."""
    which = f"{stage.sizes.delay_ms} ms store"
    measurements: list[Measurement] = []
    with running_delayed_gateway(stage) as gateway:
        for fetches in stage.sizes.fetches:
            delayed_way = replace(
                _trimmed_way(stage, fetches),
                title=f"trimmed data, {which}",
                address=gateway.address,
                processes={"gateway": gateway.processes, "broker": stage.broker},
            )
            local_way = _local_way(stage, fetches, f"local data with {which}")
            local, trimmed = readers.alternate(local_way, delayed_way)
            measurements += local.measurements()
            measurements += trimmed.measurements()
            ratio = f"trimmed ÷ local data, {which}"
            measurements.append(trimmed.ratio(local, ratio, goal=at_least(0.8, floor=0.5)))
        resident_mib = gateway.processes.resident_bytes() / (1 << 20)
    memory = of_runs(f"gateway memory after all of it, {which}", [resident_mib], unit="MiB")
    return [*measurements, memory]


def measure_kafka_tiering(stage: GatewayStage, readers: Readers) -> list[Measurement]:
    """Compare the gateway with Kafka's own tiering; both read from a directory."""
    ratio = "trimmed data ÷ Kafka's own tiering"
    with running_kafka_tiering(stage) as peer:
        measurements = [measure_peers_first_fetch(peer)]
        for fetches in stage.sizes.tiering_fetches:
            theirs_way, ours_way = _ways_of_tiering(stage, peer, fetches)
            theirs, ours = readers.alternate(theirs_way, ours_way, runs=stage.sizes.tiering_runs)
            measurements += theirs.measurements()
            measurements += ours.measurements()
            measurements.append(ours.ratio(theirs, ratio, goal=at_least(1.3, floor=1.0)))
    return measurements


def _ways_of_tiering(
    stage: GatewayStage, peer: KafkaTiering, fetches: FetchSize
) -> tuple[Way, Way]:
    """Return the ways to read the same offsets through Kafka's tiering and through the gateway."""
    end_offset = min(peer.trimmed.end_offset, stage.trimmed.end_offset)
    ours = replace(
        _trimmed_way(stage, fetches),
        title="trimmed data at the same time",
        pieces=[OffsetRange(start_offset=0, end_offset=end_offset)],
    )
    theirs = replace(
        ours,
        title="Kafka's own tiering",
        address=peer.address,
        processes={"broker": peer.broker},
    )
    return theirs, ours


def _local_way(stage: GatewayStage, fetches: FetchSize, title: str) -> Way:
    """Return the way to read the same offsets of the untiered topic from the broker."""
    return Way(
        title=title,
        fetches=fetches,
        address=stage.broker_address,
        topic=TOPIC,
        pieces=[stage.trimmed],
        processes={"broker": stage.broker},
    )


def _trimmed_way(stage: GatewayStage, fetches: FetchSize) -> Way:
    """Return the way to read trimmed data through the gateway of `rlm run`."""
    return Way(
        title="trimmed data",
        fetches=fetches,
        address=stage.gateway_address,
        topic=TIERED,
        pieces=[stage.trimmed],
        processes={"gateway": stage.gateway, "broker": stage.broker},
    )
