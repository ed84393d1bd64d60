"""Stores a log once in its own process, to measure the memory and CPU of one mode.

`python -m bench.streaming.worker MODE AT_ONCE LOG_DIR S3_URL PREFIX` prints the figures as one
JSON object. MODE is `segment` or `stream`; both store the ranges of the rolled segments.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.dataset import TOPIC
from bench.segment_copier import SegmentCopier
from bench.segment_streamer import SegmentStreamer
from bench.storage.stage import BUCKET, run_all
from rlm.facts.local_log import RolledSegment
from rlm.source.logdir import LogDirSource
from rsm.opening import open_segments
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from rsm.store_settings import SegmentSettings
from rsm.system_clock import SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRun:
    """The cost of storing a log: time, processor time, growth of peak memory, and requests."""

    size_bytes: int
    seconds: float
    cpu_s: float
    memory_bytes: int
    requests: int


def store(mode: str, at_once: int, log_dir: Path, url: str, prefix: str) -> OffloadRun:
    """Store all rolled segments of the topic's partition, `at_once` of them concurrently."""
    source = LogDirSource((log_dir,), clock=SystemClock())
    (partition,) = [each for each in source.partitions() if each.topic == TOPIC]
    log = source.local_log(partition)
    sent: Counter[str] = Counter()
    settings = S3Settings(bucket=BUCKET, endpoint_url=url, path_style=True)
    bucket = S3Bucket(settings, observe=lambda name: sent.update([name]))
    chunks = S3ChunkStorage(bucket)
    with closing(open_segments(SegmentSettings(key_prefix=prefix), chunks)) as storage:
        parts = {"source": source, "storage": storage, "partition": partition, "log": log}
        copier, streamer = SegmentCopier(**parts), SegmentStreamer(**parts)  # type: ignore[arg-type]  # the fields of both

        def stream(segment: RolledSegment) -> object:
            return streamer.stream(segment.offsets)

        work: Callable[[RolledSegment], object] = stream if mode == "stream" else copier.copy
        memory_bytes, cpu_s = _peak_bytes(), time.process_time()
        seconds = run_all(work, list(log.rolled), at_once=at_once)
        return OffloadRun(
            size_bytes=sum(segment.size_bytes for segment in log.rolled),
            seconds=seconds,
            cpu_s=time.process_time() - cpu_s,
            memory_bytes=_peak_bytes() - memory_bytes,
            requests=sent.total(),
        )


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> int:
    """Run once, and print the figures."""
    mode, at_once, log_dir, url, prefix = sys.argv[1:]
    print(json.dumps(asdict(store(mode, int(at_once), Path(log_dir), url, prefix))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
