"""Trimmed data through the gateway, beside the broker's own reads of the same records."""

from __future__ import annotations

from bench.dataset import TOPIC
from bench.gateway.stage import TIERED, Stage
from bench.gateway.throughput import Readers, Way
from bench.measurement import Measurement


def measure_trimmed(stage: Stage, readers: Readers) -> list[Measurement]:
    """A warm directory as the store."""
    local, trimmed = readers.alternate(local_way(stage), trimmed_way(stage))
    return [
        *local.measurements(),
        *trimmed.measurements(),
        trimmed.ratio(local, goal="≥ 1.0, floor 0.8"),
    ]


def local_way(stage: Stage) -> Way:
    """The broker reads from its own disk what the other topic has trimmed."""
    return Way(
        name="local data",
        address=stage.broker_address,
        topic=TOPIC,
        pieces=[stage.trimmed],
        processes={"broker": stage.broker},
    )


def trimmed_way(stage: Stage) -> Way:
    """Through the gateway of `rlm run`."""
    return Way(
        name="trimmed data",
        address=stage.gateway_address,
        topic=TIERED,
        pieces=[stage.trimmed],
        processes={"gateway": stage.gateway, "broker": stage.broker},
    )
