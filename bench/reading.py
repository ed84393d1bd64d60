"""Measures reads of stored segments, and compares them with a librdkafka consumer's.

The topic is stored and not trimmed, so all three ways read the same offsets. `rlm` reads them from
the store, and the consumer reads them from the broker. `rlm read --json` decodes and prints every
record. The scan is the part of that command that fetches from the store and checks every batch. A
program that serves batches needs only this part. Runs alternate.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from bench.consumer import consume
from bench.dataset import TOPIC, Dataset
from bench.measurement import Measurement, of_runs, ratios
from rlm.cli.invocation.session import open_session
from rlm.config.load import load_command_config
from rlm.remote_read.reader import RemoteLogReader
from rlm.worker.store_access import open_chunk_storage, open_storage_manager
from rsm.read.segment_scan import ScanSettings
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from tests.services.rlm_run import RLM

_MB = 1_000_000
_PEER = "librdkafka consumer, local data"
_TIMEOUT_S = 60.0
_FETCH_THREADS = 2  # `rlm read` uses the same number.


def measure_reading(dataset: Dataset, configuration: Path) -> list[Measurement]:
    """Return MB of segments per second for each way, and the ratios of each round of runs."""
    rolled = dataset.source().local_log(dataset.partition()).rolled
    segments = rolled[: dataset.sizes.read_segments]
    offsets = OffsetRange(start_offset=0, end_offset=segments[-1].offsets.end_offset)
    size_mb = sum(segment.size_bytes for segment in segments) / _MB
    consumed: list[float] = []
    scanned: list[float] = []
    printed: list[float] = []
    with _remote_reader(configuration) as reader:
        for _ in range(dataset.sizes.runs):
            consumed.append(size_mb / _consume(dataset, offsets))
            scanned.append(size_mb / _scan(reader, dataset.partition(), offsets))
            printed.append(size_mb / _rlm_read(configuration, offsets))
    return [
        of_runs(_PEER, consumed, unit="MB/s"),
        of_runs("scan, remote data", scanned, unit="MB/s"),
        of_runs("rlm read, remote data", printed, unit="MB/s"),
        of_runs("scan ÷ consumer", ratios(scanned, consumed), unit="ratio", peer=_PEER),
        of_runs("rlm read ÷ consumer", ratios(printed, consumed), unit="ratio", peer=_PEER),
    ]


def _consume(dataset: Dataset, offsets: OffsetRange) -> float:
    consumed = consume(dataset.cluster.bootstrap_servers, TOPIC, offsets)
    return consumed.ended_s - consumed.started_s


@contextmanager
def _remote_reader(configuration: Path) -> Iterator[RemoteLogReader]:
    """Yield a reader like that of `rlm read`, after it has read all metadata."""
    config = load_command_config(configuration)
    with (
        open_session(config, timeout_ms=int(_TIMEOUT_S * 1000)) as session,
        closing(
            open_storage_manager(
                config.required_storage(), open_chunk_storage(config.required_storage())
            )
        ) as storage,
        ThreadPoolExecutor(_FETCH_THREADS) as executor,
    ):
        yield RemoteLogReader(session.metadata, storage, executor, ScanSettings())


def _scan(reader: RemoteLogReader, partition: TopicIdPartition, offsets: OffsetRange) -> float:
    """Read all batches of the offsets; return the seconds."""
    started = time.perf_counter()
    scan = reader.scan(partition, offsets.start_offset, offsets.end_offset)
    for _ in scan:
        pass
    if scan.next_offset < offsets.end_offset:
        raise RuntimeError(
            f"cannot scan all offsets: ended at {scan.next_offset}, expected {offsets.end_offset}"
        )
    return time.perf_counter() - started


def _rlm_read(configuration: Path, offsets: OffsetRange) -> float:
    """Run the command and discard its output; return the seconds, including its start."""
    command = [RLM, "read", f"{TOPIC}:0", "--json", "--config", str(configuration)]
    started = time.perf_counter()
    subprocess.run(
        [*command, "--from", str(offsets.start_offset), "--to", str(offsets.end_offset)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - started
