"""Runs one measurement in a separate process, so that no other memory is measured.

`python -m bench.metadata.worker TASK JSON` prints one JSON object of figures.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from statistics import quantiles
from typing import Any

import psutil

from bench.metadata import catalogue
from bench.metadata.topic import open_topic
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.codec import decode
from rlmm.events.segment import SegmentEvent
from rlmm.follow.applier import Applier
from rlmm.follow.follower import FollowerSettings
from rlmm.follow.progress import Progress
from rlmm.positions import ReadPosition
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState

_BATCH = FollowerSettings().max_records_per_step
_POLL_MS = 500
_WARM_UP = 20_000  # These lookups bring shared parts of the cache into memory.
_IDLE_WINDOW_S, _IDLE_SHARE = 1.0, 0.1
_SEED = 405
_LOOKED_UP_AGAIN, _TIMES_AGAIN = 2_000, 25
_FIELDS = [each.name for each in fields(RemoteLogSegmentMetadata) if each.init]

Figures = Mapping[str, float]


def consume(topic_name: str, bootstrap_servers: str, segments: int) -> Figures:
    """Read the topic without folding its events."""
    _use_one_core()
    topic = open_topic(bootstrap_servers, topic_name)
    topic.assign(dict.fromkeys(range(catalogue.METADATA_PARTITIONS), ReadPosition(offset=0)))
    count, started_s = 0, time.monotonic()
    while count < 2 * segments:
        count += len(topic.poll(max_records=_BATCH, timeout_ms=_POLL_MS))
    seconds = time.monotonic() - started_s
    topic.close()
    return {"events_per_s": count / seconds, "cpu_us_per_event": _cpu_s() / count * 1e6}


def fold(topic_name: str, bootstrap_servers: str, segments: int, directory: str) -> Figures:
    """Fold the topic into an empty cache."""
    _use_one_core()
    topic = open_topic(bootstrap_servers, topic_name)
    cache = MetadataCache(RocksDbStore(Path(directory)))
    applier = Applier(topic, cache, Progress())
    cache.set_bulk_mode(enabled=True)  # The follower does the same until it is ready.
    topic.assign(dict.fromkeys(range(catalogue.METADATA_PARTITIONS), ReadPosition(offset=0)))
    count, cpu_s, started_s = 0, _cpu_s(), time.monotonic()
    while count < 2 * segments:
        count += applier.step(
            max_records=_BATCH,
            timeout_ms=_POLL_MS,
            partition_count=catalogue.METADATA_PARTITIONS,
        ).accepted
    cache.set_bulk_mode(enabled=False)
    seconds = time.monotonic() - started_s
    figures = {
        "events_per_s": count / seconds,
        "seconds": seconds,
        "cpu_us_per_event": (_cpu_s() - cpu_s) / count * 1e6,
        "resident_mib": _resident_mib(),
    }
    topic.close()
    figures["merged_after_s"] = _until_idle_s()
    cache.close()
    return figures


def look_up(segments: int, directory: str, lookups: int) -> Figures:
    """Open the cache and look up one segment, then many with the files in the page cache."""
    started_s = time.monotonic()
    cache = MetadataCache(RocksDbStore(Path(directory)))
    cache.positions()
    _find(cache.finished_segment, segments // 2)
    opened_s = time.monotonic() - started_s
    _until_idle_s()
    for table in Path(directory).glob("*.sst"):  # This warms the page cache.
        table.read_bytes()
    find = cache.finished_segment
    figures = _look_up_at_random(find, segments, lookups)
    figures |= _look_up_again(find, segments)
    figures |= _prefixed("whole", _look_up_at_random(_and_read(find), segments, lookups))
    figures |= {"open_s": opened_s, "resident_mib": _resident_mib()}
    cache.close()
    return figures


class _HeapMap:
    """Represents all metadata as Python objects, with a sorted list per partition and epoch."""

    def __init__(self) -> None:
        self._starts: dict[tuple[object, int], list[int]] = {}
        self._segments: dict[tuple[object, int], list[RemoteLogSegmentMetadata]] = {}
        self._by_id: dict[RemoteLogSegmentId, RemoteLogSegmentMetadata] = {}

    def take(self, event: SegmentEvent) -> None:
        metadata = event.metadata
        self._by_id[metadata.segment_id] = metadata
        if metadata.state is SegmentState.COPY_SEGMENT_FINISHED:
            for entry in metadata.segment_leader_epochs.entries:
                key = (metadata.topic_id_partition, entry.epoch)
                self._starts.setdefault(key, []).append(entry.start_offset)
                self._segments.setdefault(key, []).append(metadata)

    def find(
        self, partition: object, offset: int, leader_epoch: int
    ) -> RemoteLogSegmentMetadata | None:
        key = (partition, leader_epoch)
        index = bisect_right(self._starts.get(key, []), offset)
        return self._segments[key][index - 1] if index else None


def heap_map(segments: int, lookups: int) -> Figures:
    """Decode the catalogue's records into Python objects, and look up segments in dicts."""
    heap, count, seconds = _HeapMap(), 0, 0.0
    for each in catalogue.records(segments):
        started_s = time.perf_counter()
        event = decode(each.record.key, each.record.value)
        assert isinstance(event, SegmentEvent), "the catalogue contains another event"
        heap.take(event)
        seconds += time.perf_counter() - started_s
        count += 1
    figures = _look_up_at_random(heap.find, segments, lookups)
    return {**figures, "events_per_s": count / seconds, "resident_mib": _resident_mib()}


def _look_up_at_random(find: Callable[..., Any], segments: int, lookups: int) -> dict[str, float]:
    numbers = random.Random(_SEED)
    for _ in range(_WARM_UP):
        _find(find, numbers.randrange(segments))
    return _percentiles([_find(find, numbers.randrange(segments)) * 1e6 for _ in range(lookups)])


def _look_up_again(find: Callable[..., Any], segments: int) -> dict[str, float]:
    """Look up the same segments several times; their blocks fit into the block cache."""
    chosen = random.Random(_SEED)
    numbers = [chosen.randrange(segments) for _ in range(_LOOKED_UP_AGAIN)]
    for number in numbers:
        _find(find, number)
    times_us = [_find(find, number) * 1e6 for _ in range(_TIMES_AGAIN) for number in numbers]
    return _prefixed("again", _percentiles(times_us))


def _and_read(find: Callable[..., Any]) -> Callable[..., Any]:
    """Return a lookup that also reads all fields of the segment."""

    def found_and_read(*arguments: object) -> object:
        found = find(*arguments)
        for name in _FIELDS:
            getattr(found, name)
        return found

    return found_and_read


def _prefixed(prefix: str, figures: Mapping[str, float]) -> dict[str, float]:
    return {f"{prefix}_{name}": figure for name, figure in figures.items()}


def _percentiles(times_us: Sequence[float]) -> dict[str, float]:
    cuts = quantiles(times_us, n=100)
    return {"p50_us": cuts[49], "p99_us": cuts[98]}


def _find(find: Callable[..., Any], number: int) -> float:
    """Look up a segment by its middle offset and check the result; return the seconds."""
    partition = catalogue.user_partition(number)
    offset = catalogue.start_offset(number) + catalogue.OFFSETS_PER_SEGMENT // 2
    started_s = time.perf_counter()
    found = find(partition, offset, catalogue.LEADER_EPOCH)
    seconds = time.perf_counter() - started_s
    assert found is not None, f"cannot find segment {number}: the lookup returned none"
    is_expected = found.segment_id.id == catalogue.segment_id(number)
    assert is_expected, f"cannot find segment {number}: the lookup returned another one"
    return seconds


def _use_one_core() -> None:
    """Bind this thread, and those that it starts, to one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _until_idle_s() -> float:
    """Wait until this process, and so RocksDB's compaction, is idle; return the seconds."""
    started_s, used_s = time.monotonic(), -1.0
    while (now_s := _cpu_s()) - used_s > _IDLE_SHARE * _IDLE_WINDOW_S:
        used_s = now_s
        time.sleep(_IDLE_WINDOW_S)
    return time.monotonic() - started_s


def _cpu_s() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


def _resident_mib() -> float:
    return float(psutil.Process().memory_info().rss) / (1 << 20)


_TASKS: Mapping[str, Callable[..., Figures]] = {
    "consume": consume,
    "fold": fold,
    "look_up": look_up,
    "heap_map": heap_map,
}

if __name__ == "__main__":
    name, arguments = sys.argv[1:]
    print(json.dumps(_TASKS[name](**json.loads(arguments))))
