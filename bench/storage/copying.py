"""Measures copies of segments to S3, and compares them with plain uploads of the same files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

import psutil

from bench.measurement import Measurement, at_least, of_runs, ratios
from bench.segment_copier import SegmentCopier
from bench.storage.stage import AT_ONCE, StorageStage, plain_uploads, run_all
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.metadata import RemoteLogSegmentMetadata

_MIB = 1 << 20
_SAMPLE_S = 0.005


def layouts() -> dict[str, SegmentLayout]:
    """Return the layouts to measure, by name."""
    return {"raw": RawLayout(), "block_v1": BlockV1Layout(block_bytes=64 << 20)}


def storage_manager(stage: StorageStage, layout: SegmentLayout) -> SegmentStorageManager:
    """Return a storage manager that writes a layout to the stage's S3 server."""
    return SegmentStorageManager(
        storage=stage.storage(), keys=ObjectKeys(prefix=""), layouts=(layout,)
    )


def copy_all(
    stage: StorageStage, manager: SegmentStorageManager, *, at_once: int
) -> tuple[float, list[RemoteLogSegmentMetadata]]:
    """Copy every segment; return the seconds, and the stored segments."""
    copier = SegmentCopier(
        source=stage.dataset.source(),
        storage=manager,
        partition=stage.dataset.partition(),
        log=stage.log,
    )
    stored: list[RemoteLogSegmentMetadata] = []
    seconds = run_all(
        lambda segment: stored.append(copier.copy(segment)), list(stage.log.rolled), at_once=at_once
    )
    return seconds, sorted(stored, key=lambda each: each.offsets.start_offset)


def measure_copying(stage: StorageStage) -> list[Measurement]:
    """Return all throughputs, and the ratios raw ÷ fastest plain client and block_v1 ÷ raw."""
    found = []
    for at_once, label in ((AT_ONCE, f"×{AT_ONCE}"), (1, "×1")):
        ways = _ways(stage, at_once)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(stage.dataset.sizes.runs):
            for name, way in ways.items():
                seconds[name].append(way())
                stage.empty()
        found += _compared(stage, seconds, label)
    return found


def _compared(
    stage: StorageStage, seconds: dict[str, list[float]], label: str
) -> list[Measurement]:
    total_mib = stage.total_bytes / _MIB
    plain = [name for name in seconds if not name.startswith("copy")]
    fastest = min(plain, key=lambda name: sum(seconds[name]))
    found = [
        of_runs(f"{name} {label}", [total_mib / each for each in runs], unit="MiB/s")
        for name, runs in seconds.items()
    ]
    for name, peer, title in (
        ("copy raw", fastest, f"copy raw ÷ the fastest plain client {label}"),
        ("copy block_v1", "copy raw", f"copy block_v1 ÷ copy raw {label}"),
    ):
        faster = ratios(seconds[peer], seconds[name])
        found.append(of_runs(title, faster, unit="ratio", peer=peer, goal=at_least(0.9)))
    return found


def _ways(stage: StorageStage, at_once: int) -> dict[str, Callable[[], float]]:
    ways: dict[str, Callable[[], float]] = {}
    for name, upload in plain_uploads(stage).items():
        ways[name] = partial(run_all, upload, list(stage.files()), at_once=at_once)
    for name, layout in layouts().items():
        ways[f"copy {name}"] = partial(_copied_s, stage, layout, at_once)
    return ways


def _copied_s(stage: StorageStage, layout: SegmentLayout, at_once: int) -> float:
    with closing(storage_manager(stage, layout)) as manager:
        return copy_all(stage, manager, at_once=at_once)[0]


def measure_requests_and_memory(stage: StorageStage) -> list[Measurement]:
    """Make ten concurrent copies; return their requests per GiB and their memory."""
    stage.sent.clear()
    with closing(storage_manager(stage, RawLayout())) as manager, _peak_rss() as peak:
        copy_all(stage, manager, at_once=10)
    stage.empty()
    per_gib = sum(stage.sent.values()) * (1 << 30) / stage.total_bytes
    return [
        of_runs("requests per GiB, copy raw", [per_gib], unit="requests"),
        of_runs("memory of 10 copies at once", [peak() / _MIB], unit="MiB"),
    ]


@contextmanager
def _peak_rss() -> Iterator[Callable[[], int]]:
    """Yield a function that returns the maximum growth of resident memory within the block."""
    process = psutil.Process()
    before = process.memory_info().rss
    samples = [before]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(_SAMPLE_S):
            samples.append(process.memory_info().rss)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield lambda: max(samples) - before
    finally:
        done.set()
        sampler.join()
