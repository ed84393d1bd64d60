"""Measures the cost of copies for a producer at 50 MB/s, and at its maximum rate.

Each run writes to a new topic while `rlm run` is running. In every second run the topic is tiered,
so its segments are copied during the writes. At 50 MB/s, the throughput is lower only if the
producer stalls. At the maximum rate, producer, broker and `rlm` share the processors, and the
producer alone can use one. The first two runs do not count, because the broker needs more
processor time until its code is compiled. Data of earlier runs is synced before each run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import quantiles

from confluent_kafka import KafkaError, Message, Producer

from bench.dataset import Dataset
from bench.measurement import Measurement, at_least, at_most, of_runs
from bench.partitions import tier, wait_stored
from tests.services.kafka import KafkaCluster
from tests.services.rlm_run import RlmRun

_RATE = 50_000_000  # bytes per second
_SHARE_OF_DATA = 2
_SEGMENTS = 8
_FLUSH_TIMEOUT_S = 120.0
_BURST_BYTES = 64 << 10
_BURSTS_PER_SECOND = 20  # This is the minimum; higher rates need more bursts.
_FASTEST_PEER = "maximum rate of a producer, topic not tiered"
_PEER = "producer, topic not tiered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRun:
    """The figures of one run: acknowledged bytes per second, and the p99 latency."""

    bytes_per_second: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTopic:
    """A topic whose segments are stored while it is written. `name` is part of the figures' names.

    `begin` tiers a new topic, and `end` waits until its segments are stored.
    """

    name: str
    begin: Callable[[str], object]
    end: Callable[[str], object]
    total_bytes: int


def measure_producing(dataset: Dataset, rlm: RlmRun) -> list[Measurement]:
    """Return the throughputs without copies, and the ratios of figures with and without them."""
    copied = ComparedTopic(
        name="copying",
        begin=lambda topic: tier(rlm, topic),
        end=lambda topic: wait_stored(dataset, rlm, topic),
        total_bytes=dataset.sizes.total_bytes // _SHARE_OF_DATA,
    )
    return compare_producers(dataset, copied)


def compare_producers(dataset: Dataset, compared: ComparedTopic) -> list[Measurement]:
    """Compare producers to `compared` topics with producers to topics that are not tiered."""
    _pairs(dataset, compared, "first", None, runs=1)
    fastest = _pairs(dataset, compared, "fastest", None, runs=dataset.sizes.runs)
    pairs = _pairs(dataset, compared, "paced", _RATE, runs=dataset.sizes.runs)
    plain = [each for each, _ in pairs]
    return [
        of_runs(_FASTEST_PEER, [p.bytes_per_second / 1e6 for p, _ in fastest], unit="MB/s"),
        of_runs(
            f"maximum rate of a producer with ÷ without {compared.name}",
            [t.bytes_per_second / p.bytes_per_second for p, t in fastest],
            unit="ratio",
            peer=_FASTEST_PEER,
            goal=at_least(0.95, floor=0.66),
        ),
        of_runs(_PEER, [p.bytes_per_second / 1e6 for p in plain], unit="MB/s"),
        of_runs(
            f"producer with ÷ without {compared.name}",
            [t.bytes_per_second / p.bytes_per_second for p, t in pairs],
            unit="ratio",
            peer=_PEER,
            goal=at_least(0.95),
        ),
        of_runs(
            "its p99 latency with ÷ without",
            [t.p99_s / p.p99_s for p, t in pairs],
            unit="ratio",
            peer=_PEER,
            goal=at_most(1.1, floor=1.57),
        ),
    ]


def _pairs(
    dataset: Dataset,
    compared: ComparedTopic,
    name: str,
    bytes_per_second: float | None,
    *,
    runs: int,
) -> list[tuple[ProduceRun, ProduceRun]]:
    """Return pairs of alternating runs: on a topic that is not tiered, and on a `compared` one."""
    found = []
    for number in range(runs):
        plain = _in_fresh_topic(
            dataset, f"{name}-plain-{number}", bytes_per_second, compared.total_bytes
        )
        tiered = _in_fresh_topic(
            dataset, f"{name}-tiered-{number}", bytes_per_second, compared.total_bytes, compared
        )
        found.append((plain, tiered))
    return found


def _in_fresh_topic(
    dataset: Dataset,
    name: str,
    bytes_per_second: float | None,
    total_bytes: int,
    compared: ComparedTopic | None = None,
) -> ProduceRun:
    topic = f"producing-{name}"
    segment_bytes = max(total_bytes // _SEGMENTS, 1 << 20)
    dataset.cluster.create_topic(topic, config={"segment.bytes": str(segment_bytes)})
    if compared is not None:
        compared.begin(topic)
    os.sync()
    produced = produce(
        dataset.cluster, topic, total_bytes, dataset.sizes.record_bytes, bytes_per_second
    )
    if compared is not None:
        compared.end(topic)
    return produced


def produce(
    cluster: KafkaCluster,
    topic: str,
    total_bytes: int,
    record_bytes: int,
    bytes_per_second: float | None,
    note: Callable[[Message], object] = lambda _message: None,
) -> ProduceRun:
    """Write `total_bytes` at a rate; at the maximum rate if it is None.

    Calls `note` for each acknowledged record. Raises RuntimeError if a record is not acknowledged.
    """
    latencies: list[float] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise RuntimeError(f"cannot deliver a record: {error}")
        latencies.append(message.latency() or 0.0)
        note(message)

    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5, "log_level": 3}
    )
    value = Random(2).randbytes(record_bytes)
    burst_bytes: float = _BURST_BYTES
    if bytes_per_second is not None:
        burst_bytes = min(burst_bytes, bytes_per_second / _BURSTS_PER_SECOND)
    started_s = time.perf_counter()
    written = 0
    while written < total_bytes:
        for _ in range(max(1, int(burst_bytes) // record_bytes)):
            _hand_over(producer, topic, value, delivered)
            written += record_bytes
        if bytes_per_second is not None:
            until_s = started_s + written / bytes_per_second
            # A poll ends with the first delivery that it reports.
            while (ahead_s := until_s - time.perf_counter()) > 0:
                producer.poll(ahead_s)
    if producer.flush(_FLUSH_TIMEOUT_S):
        raise RuntimeError(
            f"cannot produce all records: some are not acknowledged after {_FLUSH_TIMEOUT_S} s"
        )
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
