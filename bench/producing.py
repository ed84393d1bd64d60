"""Measures the cost of copies for a producer, at half the rate that saturates the broker.

Each run writes to a fresh topic while `rlm run` is running. In every other run the topic is tiered,
so its segments are copied during the writes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from statistics import quantiles

from confluent_kafka import KafkaError, Message, Producer

from bench.dataset import Dataset
from bench.measurement import Measurement, of_runs
from bench.partitions import tier, wait_stored
from tests.services.kafka import KafkaCluster
from tests.services.rlm_run import RlmRun

_SHARE_OF_DATA = 8
_SEGMENTS = 8
_FLUSH_TIMEOUT_S = 120.0
_BURST_BYTES = 64 << 10
_PEER = "producer, topic not tiered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRun:
    """One run: acknowledged bytes per second, and the p99 latency."""

    bytes_per_second: float
    p99_s: float


def measure_producing(dataset: Dataset, rlm: RlmRun) -> list[Measurement]:
    """Return ratios of throughput and of p99, run by run."""
    saturating = _in_fresh_topic(dataset, rlm, "saturated", None, tiered=False)
    rate = saturating.bytes_per_second / 2
    plain, tiered = [], []
    for number in range(dataset.sizes.runs):
        plain.append(_in_fresh_topic(dataset, rlm, f"plain-{number}", rate, tiered=False))
        tiered.append(_in_fresh_topic(dataset, rlm, f"tiered-{number}", rate, tiered=True))
    pairs = list(zip(plain, tiered, strict=True))
    return [
        of_runs(_PEER, [p.bytes_per_second / 1e6 for p in plain], unit="MB/s"),
        of_runs(
            "producer with ÷ without copying",
            [t.bytes_per_second / p.bytes_per_second for p, t in pairs],
            unit="ratio",
            peer=_PEER,
            goal="0.95 – 1.1",
        ),
        of_runs(
            "its p99 latency with ÷ without",
            [t.p99_s / p.p99_s for p, t in pairs],
            unit="ratio",
            peer=_PEER,
            goal="≤ 1.1",
        ),
    ]


def _in_fresh_topic(
    dataset: Dataset, rlm: RlmRun, name: str, bytes_per_second: float | None, *, tiered: bool
) -> ProduceRun:
    topic = f"producing-{name}"
    total_bytes = dataset.sizes.total_bytes // _SHARE_OF_DATA
    segment_bytes = max(total_bytes // _SEGMENTS, 1 << 20)
    dataset.cluster.create_topic(topic, config={"segment.bytes": str(segment_bytes)})
    if tiered:
        tier(rlm, topic)
    produced = _produce(
        dataset.cluster, topic, total_bytes, dataset.sizes.record_bytes, bytes_per_second
    )
    if tiered:
        wait_stored(dataset, rlm, topic)
    return produced


def _produce(
    cluster: KafkaCluster,
    topic: str,
    total_bytes: int,
    record_bytes: int,
    bytes_per_second: float | None,
) -> ProduceRun:
    """Write `total_bytes` at a rate; None: at the maximum rate."""
    latencies: list[float] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise RuntimeError(f"not delivered: {error}")
        latencies.append(message.latency() or 0.0)

    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5, "log_level": 3}
    )
    value = Random(2).randbytes(record_bytes)
    started_s = time.perf_counter()
    written = 0
    while written < total_bytes:
        for _ in range(_BURST_BYTES // record_bytes):
            _hand_over(producer, topic, value, delivered)
            written += record_bytes
        if bytes_per_second is not None:
            ahead_s = written / bytes_per_second - (time.perf_counter() - started_s)
            producer.poll(max(0.0, ahead_s))
    if producer.flush(_FLUSH_TIMEOUT_S):
        raise RuntimeError("the broker did not acknowledge all records in time")
    took_s = time.perf_counter() - started_s
    return ProduceRun(bytes_per_second=written / took_s, p99_s=quantiles(latencies, n=100)[-1])


def _hand_over(producer: Producer, topic: str, value: bytes, delivered: object) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=0, on_delivery=delivered)  # type: ignore[arg-type]  # a function
        except BufferError:
            producer.poll(0.05)
        else:
            producer.poll(0)
            return
