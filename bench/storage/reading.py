"""Measures reads of segments from S3: whole segments in order, and small ranges at random."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from random import Random
from statistics import median

import obstore

from bench.measurement import Measurement, at_least, of_runs, ratios
from bench.storage.copying import copy_all, layouts, storage_manager
from bench.storage.stage import AT_ONCE, BUCKET, StorageStage, run_all
from rsm.manager import SegmentStorageManager
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange

_MIB = 1 << 20
_CHUNK_BYTES = 4 << 20  # rsm.config.chunk.size
_READERS = 10  # remote.log.reader.threads
_SMALL_BYTES = 1 << 10
_SMALL_READS = 1_000
_RAW = "read raw"

_Range = tuple[RemoteLogSegmentMetadata, ByteRange]
_Read = Callable[[_Range], bytes]


def measure_reading(stage: StorageStage) -> list[Measurement]:
    """Read whole segments in alternating runs; then read small ranges, one way after the other.

    Each layout stores its own copy of the segments. The plain clients read the copy of `raw`.
    """
    with ExitStack() as stack:
        ways: dict[str, _Read] = {}
        stored: dict[str, list[RemoteLogSegmentMetadata]] = {}
        for name, layout in layouts().items():
            manager = stack.enter_context(closing(storage_manager(stage, layout)))
            ways[f"read {name}"] = _ours(manager)
            stored[f"read {name}"] = copy_all(stage, manager, at_once=AT_ONCE)[1]
        plain = _plain_reads(stage)
        os.sync()
        seconds: dict[str, list[float]] = {}
        for _ in range(stage.dataset.sizes.runs):
            for way, read in (ways | plain).items():
                wanted = _ranges(stored.get(way, stored[_RAW]))
                seconds.setdefault(way, []).append(run_all(read, wanted, at_once=_READERS))
        stage.sent.clear()
        run_all(ways[_RAW], _ranges(stored[_RAW]), at_once=_READERS)
        per_gib = stage.sent["get_object"] * (1 << 30) / stage.total_bytes
        found = [of_runs("requests per GiB, read raw", [per_gib], unit="requests")]
        found += _small_reads({_RAW: ways[_RAW]} | plain, stored[_RAW])
    stage.empty()
    return _compared(stage, seconds) + found


def _compared(stage: StorageStage, seconds: dict[str, list[float]]) -> list[Measurement]:
    total_mib = stage.total_bytes / _MIB
    plain = [name for name in seconds if not name.startswith("read")]
    fastest = min(plain, key=lambda name: sum(seconds[name]))
    found = [
        of_runs(name, [total_mib / each for each in runs], unit="MiB/s")
        for name, runs in seconds.items()
    ]
    for name, peer, title in (
        (_RAW, fastest, f"{_RAW} ÷ the fastest plain client"),
        ("read block_v1", _RAW, f"read block_v1 ÷ {_RAW}"),
    ):
        faster = ratios(seconds[peer], seconds[name])
        found.append(of_runs(title, faster, unit="ratio", peer=peer, goal=at_least(0.9)))
    return found


def _small_reads(
    ways: dict[str, _Read], stored: list[RemoteLogSegmentMetadata]
) -> list[Measurement]:
    random = Random(1)
    ranges: list[_Range] = []
    for _ in range(_SMALL_READS):
        metadata = random.choice(stored)
        start = random.randrange(metadata.segment_size_bytes - _SMALL_BYTES)
        positions = ByteRange(start_position=start, end_position=start + _SMALL_BYTES)
        ranges.append((metadata, positions))
    found = []
    for name, read in ways.items():
        latencies_ms = []
        cpu_s = time.process_time()
        for wanted in ranges:
            started = time.perf_counter()
            read(wanted)
            latencies_ms.append((time.perf_counter() - started) * 1000)
        cpu_ms = (time.process_time() - cpu_s) * 1000 / len(ranges)
        found += [
            of_runs(f"1 KiB, {name}, p50", [median(latencies_ms)], unit="ms"),
            of_runs(f"1 KiB, {name}, CPU", [cpu_ms], unit="ms"),
        ]
    return found


def _ranges(stored: list[RemoteLogSegmentMetadata]) -> list[_Range]:
    return [
        (
            metadata,
            ByteRange(
                start_position=start,
                end_position=min(start + _CHUNK_BYTES, metadata.segment_size_bytes),
            ),
        )
        for metadata in stored
        for start in range(0, metadata.segment_size_bytes, _CHUNK_BYTES)
    ]


def _ours(manager: SegmentStorageManager) -> _Read:
    return lambda wanted: manager.fetch_log_segment(*wanted)


def _plain_reads(stage: StorageStage) -> dict[str, _Read]:
    client, store = stage.boto3_client(), stage.obstore()

    def get_object(wanted: _Range) -> bytes:
        metadata, positions = wanted
        answer = client.get_object(
            Bucket=BUCKET, Key=metadata.objects[0].key, Range=positions.to_http()
        )
        content: bytes = answer["Body"].read()
        return content

    def get_range(wanted: _Range) -> bytes:
        metadata, positions = wanted
        return bytes(
            obstore.get_range(
                store,
                metadata.objects[0].key,
                start=positions.start_position,
                end=positions.end_position,
            )
        )

    return {"boto3 get_object": get_object, "obstore get_range": get_range}
