"""Trimmed data through the gateway, beside others that read the same records.

The peers: the broker's own reads of its local disk, and Kafka's own tiering.
"""

from __future__ import annotations

from dataclasses import replace

from bench.dataset import TOPIC
from bench.gateway.delayed_gateway import running_delayed_gateway
from bench.gateway.first_fetch import measure_peers_first_fetch
from bench.gateway.kafka_tiering import running_kafka_tiering
from bench.gateway.stage import TIERED, Stage
from bench.gateway.throughput import Readers, Way
from bench.measurement import Measurement
from rsm.segment.ranges import OffsetRange


def measure_trimmed(stage: Stage, readers: Readers) -> list[Measurement]:
    """From a directory that is in the system's page cache."""
    local, trimmed = readers.alternate(_local_way(stage, "local data"), _trimmed_way(stage))
    return [
        *local.measurements(),
        *trimmed.measurements(),
        trimmed.ratio(local, goal="≥ 1.0, floor 0.8"),
    ]


def measure_delayed_trimmed(stage: Stage, readers: Readers) -> list[Measurement]:
    """From a store that takes its time."""
    which = f"{stage.sizes.delay_ms} ms store"
    with running_delayed_gateway(stage) as gateway:
        delayed_way = replace(
            _trimmed_way(stage),
            name=f"trimmed data, {which}",
            address=gateway.address,
            processes={"gateway": gateway.processes, "broker": stage.broker},
        )
        local_way = _local_way(stage, f"local data beside {which}")
        local, trimmed = readers.alternate(local_way, delayed_way)
    return [
        *local.measurements(),
        *trimmed.measurements(),
        trimmed.ratio(local, goal="≥ 0.8, floor 0.5", metric=f"trimmed ÷ local data, {which}"),
    ]


def measure_kafka_tiering(stage: Stage, readers: Readers) -> list[Measurement]:
    """The gateway beside Kafka's own tiering, both from a directory."""
    with running_kafka_tiering(stage) as peer:
        end_offset = min(peer.trimmed.end_offset, stage.trimmed.end_offset)
        pieces = [OffsetRange(start_offset=0, end_offset=end_offset)]
        first_fetch = measure_peers_first_fetch(peer)
        theirs_way = Way(
            name="Kafka's own tiering",
            address=peer.address,
            topic=TIERED,
            pieces=pieces,
            processes={"broker": peer.broker},
        )
        ours_way = replace(_trimmed_way(stage), name="trimmed data beside it", pieces=pieces)
        theirs, ours = readers.alternate(theirs_way, ours_way)
    return [
        first_fetch,
        *theirs.measurements(),
        *ours.measurements(),
        ours.ratio(theirs, goal="≥ 1.3, floor 1.0", metric="trimmed data ÷ Kafka's own tiering"),
    ]


def _local_way(stage: Stage, name: str) -> Way:
    """The broker reads from its own disk what the other topic has trimmed."""
    return Way(
        name=name,
        address=stage.broker_address,
        topic=TOPIC,
        pieces=[stage.trimmed],
        processes={"broker": stage.broker},
    )


def _trimmed_way(stage: Stage) -> Way:
    """Through the gateway of `rlm run`."""
    return Way(
        name="trimmed data",
        address=stage.gateway_address,
        topic=TIERED,
        pieces=[stage.trimmed],
        processes={"gateway": stage.gateway, "broker": stage.broker},
    )
