"""Runs the measured system: a broker with two copies of the data, and `rlm run` with its gateway.

One topic is complete on the broker. The other is tiered and trimmed: its log on the broker contains
only the newest segments. The older ones are read from the store, a directory.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console

from bench.dataset import JVM_OF_KAFKA, BenchSizes, Dataset, fill_topic, produced_dataset
from bench.gateway.processes import ProcessGroup, gateway_under, process_tree
from bench.gateway.throughput import DEFAULT_FETCHES, LARGE_FETCHES, MIDDLE_FETCHES, FetchSize
from rsm.segment.ranges import OffsetRange
from tests.services.ports import free_ports
from tests.services.rlm_run import RLM, RlmRun
from tests.services.waiting import wait_until

TIERED = "bench-tiered"
_TRIMMED_DEADLINE_S = 180.0
_KEPT_SEGMENTS = 1  # The active segment does not count.


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySizes:
    """Represents the sizes of data and load. `short()` is only for checking the benchmarks.

    Each way is measured with each size in `fetches`. The comparison with Kafka's own tiering has
    more sizes and runs, because its ratio depends on the size and varies between runs.
    """

    data: BenchSizes = field(default_factory=BenchSizes)
    fetches: tuple[FetchSize, ...] = (DEFAULT_FETCHES, LARGE_FETCHES)
    tiering_fetches: tuple[FetchSize, ...] = (DEFAULT_FETCHES, MIDDLE_FETCHES, LARGE_FETCHES)
    tiering_runs: int = 15
    idle_connections: int = 2_000
    delay_ms: int = 30
    jvm_flags: tuple[str, ...] = JVM_OF_KAFKA

    @staticmethod
    def short() -> GatewaySizes:
        return GatewaySizes(
            data=BenchSizes(total_bytes=6 << 20, segment_bytes=1 << 20, runs=1),
            fetches=(DEFAULT_FETCHES,),
            tiering_fetches=(DEFAULT_FETCHES,),
            tiering_runs=1,
            idle_connections=20,
            delay_ms=2,
            jvm_flags=(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayStage:
    """Represents the running system; only the store contains the offsets `trimmed` of TIERED."""

    dataset: Dataset
    sizes: GatewaySizes
    rlm: RlmRun
    gateway_address: str
    trimmed: OffsetRange

    @property
    def broker_address(self) -> str:
        return self.dataset.cluster.bootstrap_servers

    @property
    def broker(self) -> ProcessGroup:
        return process_tree(self.dataset.cluster.broker.pid)

    @property
    def gateway(self) -> ProcessGroup:
        return gateway_under(self.rlm.pid)


@contextmanager
def running_stage(sizes: GatewaySizes, console: Console) -> Iterator[GatewayStage]:
    """Yield the ready system; stop it and remove its files at the end."""
    console.print(f"producing {sizes.data.total_bytes >> 20} MiB, twice")
    with produced_dataset(sizes.data, jvm_flags=sizes.jvm_flags) as dataset:
        fill_topic(dataset.cluster, TIERED, sizes.data)
        (port,) = free_ports(1)
        address = f"127.0.0.1:{port}"
        rlm = RlmRun(
            dataset.scratch / "rlm", dataset.cluster, settings={"gateway.listener": address}
        )
        try:
            rlm.start()
            console.print("tiering and trimming one of the topics")
            trimmed = _tier(dataset, rlm)
            yield GatewayStage(
                dataset=dataset, sizes=sizes, rlm=rlm, gateway_address=address, trimmed=trimmed
            )
        finally:
            rlm.stop()


def _tier(dataset: Dataset, rlm: RlmRun) -> OffsetRange:
    """Tier the topic, wait until it is trimmed, and return the trimmed offsets."""
    subprocess.run(
        [
            *(RLM, "topic", "set", TIERED, "--config", str(rlm.configuration)),
            *("--local-retention-bytes", "1"),
        ],
        check=True,
        capture_output=True,
    )

    return wait_trimmed(dataset)


def wait_trimmed(dataset: Dataset) -> OffsetRange:
    """Wait until the broker has at most one rolled segment; return the trimmed offsets."""
    partition = dataset.partition(TIERED)

    def is_trimmed() -> bool:
        return len(dataset.source().local_log(partition).rolled) <= _KEPT_SEGMENTS

    wait_until(is_trimmed, _TRIMMED_DEADLINE_S, "the topic is trimmed", interval_s=0.2)
    os.sync()  # The first run must not wait for earlier writes.
    log = dataset.source().local_log(partition)
    starts = [segment.offsets.start_offset for segment in log.rolled]
    return OffsetRange(start_offset=0, end_offset=min([*starts, log.active_base_offset]))
