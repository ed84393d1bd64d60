"""Measures the copies of `rlm run`: throughput for 1, 4 and 16 partitions, and delay after a roll.

Runs alternate between the partition counts, with the same segment size and, unless the data set is
small, the same total bytes. The broker's writes are synced before each run, so that the fsyncs of
copies do not wait for them. Throughput is measured from the start event of the first copy to the
end event of the last one, by the broker's clock. The delay is measured from the roll (when the next
segment's producer snapshot is written) to the end event of the copy.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

from bench.copy_events import FinishedCopy, copied_segments
from bench.dataset import Dataset, fill_topic
from bench.measurement import Measurement, of_runs
from rlm.source.partition_files import PRODUCER_SNAPSHOT_SUFFIX, segment_path
from tests.services.rlm_run import RLM, RlmRun
from tests.services.waiting import wait_until

_MB = 1_000_000
_PARTITION_COUNTS = (1, 4, 16)
_SHARE_OF_DATA = 4
_SEGMENTS = 64
_MOST_ROUNDS = 3
_LEAST_SEGMENT_BYTES = 1 << 20  # Kafka's minimum
_STORED_DEADLINE_S = 120.0


def measure_partitions(dataset: Dataset, rlm: RlmRun) -> list[Measurement]:
    """Return the throughput for each partition count, then the delay after a roll."""
    rounds = range(min(dataset.sizes.runs, _MOST_ROUNDS))
    rates = [[_throughput(dataset, rlm, n, round_) for n in _PARTITION_COUNTS] for round_ in rounds]
    found = [
        of_runs(f"rlm run copies {count} partitions", runs, unit="MB/s")
        for count, runs in zip(_PARTITION_COUNTS, zip(*rates, strict=True), strict=True)
    ]
    return [*found, _delay(dataset, rlm)]


def tier(rlm: RlmRun, topic: str, *options: str) -> None:
    """Tier a topic. The local retention is the total retention, unless `options` change it."""
    subprocess.run(
        [RLM, "topic", "set", topic, *options, "--config", str(rlm.configuration)],
        check=True,
        capture_output=True,
    )


def wait_stored(dataset: Dataset, rlm: RlmRun, topic: str) -> list[FinishedCopy]:
    """Wait until all rolled segments of a topic are stored; return the copies."""
    wanted = {
        partition.partition: len(dataset.source().local_log(partition).rolled)
        for partition in dataset.source().partitions()
        if partition.topic == topic
    }

    def is_stored() -> bool:
        rlm.require_running()
        return rlm.remote_segments(topic) == wanted

    wait_until(is_stored, _STORED_DEADLINE_S, f"{topic} is stored")
    return copied_segments(dataset.cluster, topic)


def _throughput(dataset: Dataset, rlm: RlmRun, partitions: int, round_: int) -> float:
    """Fill and tier a topic of `partitions` partitions; return the MB per second of copies."""
    topic = f"partitions-{partitions}-{round_}"
    total_bytes = dataset.sizes.total_bytes // _SHARE_OF_DATA
    segment_bytes = max(total_bytes // _SEGMENTS, _LEAST_SEGMENT_BYTES)
    # At least one segment of each partition must be rolled, however small the data set.
    total_bytes = max(total_bytes, partitions * segment_bytes * 5 // 4)
    sizes = replace(dataset.sizes, total_bytes=total_bytes, segment_bytes=segment_bytes)
    fill_topic(dataset.cluster, topic, sizes, partitions=partitions)
    os.sync()
    tier(rlm, topic)
    copied = wait_stored(dataset, rlm, topic)
    size_mb = sum(each.size_bytes for each in copied) / _MB
    started_ms = min((each.started_ms for each in copied), default=0)
    ended_ms = max((each.finished_ms for each in copied), default=1)
    seconds = max(ended_ms - started_ms, 1) / 1000
    return size_mb / seconds


def _delay(dataset: Dataset, rlm: RlmRun) -> Measurement:
    topic = "rolls"
    sizes = replace(
        dataset.sizes,
        total_bytes=_LEAST_SEGMENT_BYTES * 5 // 4,
        segment_bytes=_LEAST_SEGMENT_BYTES,
    )
    fill_topic(dataset.cluster, topic, sizes)
    tier(rlm, topic)
    wait_stored(dataset, rlm, topic)
    for _ in range(dataset.sizes.runs):
        fill_topic(dataset.cluster, topic, sizes, create=False)
        wait_stored(dataset, rlm, topic)
    directory = dataset.cluster.broker.log_dirs[0] / f"{topic}-0"
    delays = [
        each.finished_ms / 1000
        - segment_path(directory, each.end_offset, PRODUCER_SNAPSHOT_SUFFIX).stat().st_mtime
        for each in copied_segments(dataset.cluster, topic)
    ]
    return of_runs("from roll to FINISHED, a cycle each 0.5 s", delays, unit="s")
