"""Measures how soon streams store a record, and what streams cost producers.

A record's time begins at its timestamp, which the producer sets. The time ends when the broker
appends the COPY_SEGMENT_FINISHED of the record's segment to the metadata topic. Producer and broker
share the machine's clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

from confluent_kafka import Consumer, Message, TopicPartition

from bench.copy_events import FinishedCopy, copied_segments
from bench.dataset import Dataset
from bench.measurement import Measurement, of_runs
from bench.partitions import tier
from bench.producing import ComparedTopic, compare_producers, produce
from tests.services.rlm_run import RlmRun
from tests.services.waiting import wait_until

_MB = 1_000_000
_STORED_DEADLINE_S = 120.0
_LOOK_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The rates of the producer, the seconds of each run, and the rollover time of streams."""

    rates_mb: tuple[int, ...] = (1, 50)
    seconds: float = 40.0
    rollover_ms: int = 5_000


def measure_delays(dataset: Dataset, rlm: RlmRun, load: Load) -> list[Measurement]:
    """Return, for each rate, the actual rate, and the median and p99 time of the records."""
    found: list[Measurement] = []
    for rate_mb in load.rates_mb:
        rates, medians, p99s = [], [], []
        for number in range(dataset.sizes.runs):
            rate, delays = _delays(dataset, rlm, load, rate_mb, f"delays-{rate_mb}-{number}")
            percentiles = quantiles(delays, n=100)
            rates.append(rate)
            medians.append(percentiles[49])
            p99s.append(percentiles[98])
        found += [
            of_runs(f"produced at {rate_mb} MB/s", rates, unit="MB/s"),
            of_runs(f"produce to stored, {rate_mb} MB/s, p50", medians, unit="s"),
            of_runs(f"produce to stored, {rate_mb} MB/s, p99", p99s, unit="s"),
        ]
    return found


def measure_producing_next_to_streams(
    dataset: Dataset, rlm: RlmRun, load: Load
) -> list[Measurement]:
    """Return the throughputs without streams, and the ratios of figures with and without them."""
    streamed = ComparedTopic(
        name="streaming",
        begin=lambda topic: _stream(rlm, topic, load),
        end=lambda topic: _wait_streamed(dataset, rlm, topic),
        total_bytes=dataset.sizes.total_bytes,
    )
    return compare_producers(dataset, streamed)


def _delays(
    dataset: Dataset, rlm: RlmRun, load: Load, rate_mb: int, topic: str
) -> tuple[float, list[float]]:
    """Write at a rate; return MB per second, and the seconds until each record is stored."""
    records: list[tuple[int, int]] = []

    def note(message: Message) -> None:
        offset, (_, produced_ms) = message.offset(), message.timestamp()
        assert offset is not None
        records.append((offset, produced_ms))

    segments = {"segment.bytes": str(dataset.sizes.segment_bytes)}
    dataset.cluster.create_topic(topic, config=segments)
    _stream(rlm, topic, load)
    produced = produce(
        dataset.cluster,
        topic,
        int(rate_mb * _MB * load.seconds),
        dataset.sizes.record_bytes,
        rate_mb * _MB,
        note,
    )
    stored = _wait_streamed(dataset, rlm, topic)
    ends = [each.end_offset for each in stored]
    return produced.bytes_per_second / _MB, [
        (stored[bisect_right(ends, offset)].finished_ms - produced_ms) / 1000
        for offset, produced_ms in records
    ]


def _stream(rlm: RlmRun, topic: str, load: Load) -> None:
    rollover = ("--offload-segment-rollover-ms", str(load.rollover_ms))
    tier(rlm, topic, "--offload-mode", "stream", *rollover)


def _wait_streamed(dataset: Dataset, rlm: RlmRun, topic: str) -> Sequence[FinishedCopy]:
    """Wait until a topic's only partition is stored to its end; return its segments in order."""
    end_offset = _end_offset(dataset, topic)
    stored: list[FinishedCopy] = []

    def is_stored() -> bool:
        rlm.require_running()
        found = copied_segments(dataset.cluster, topic)
        stored[:] = sorted(found, key=lambda each: each.end_offset)
        return bool(stored) and stored[-1].end_offset >= end_offset

    wait_until(is_stored, _STORED_DEADLINE_S, f"{topic} is stored", interval_s=_LOOK_INTERVAL_S)
    return stored


def _end_offset(dataset: Dataset, topic: str) -> int:
    settings = {"bootstrap.servers": dataset.cluster.bootstrap_servers, "group.id": "bench"}
    consumer = Consumer(settings)
    try:
        _, end_offset = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30.0)
    finally:
        consumer.close()
    return end_offset
