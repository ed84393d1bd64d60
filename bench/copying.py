"""Measures copies of rolled segments to a directory, compared with plain copies of the files.

`rlm` copies as the manager does between the two metadata events: it opens a consistent segment,
checks every batch, writes the objects and verifies them. The plain copy is made within the kernel
and synced. The two alternate for each segment, so that other load affects both. A run makes both
copies of each rolled segment, and removes them.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from bench.dataset import TOPIC, Dataset
from bench.measurement import Measurement, at_least, of_runs
from bench.segment_copier import SegmentCopier
from rlm.facts.local_log import LocalLog
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.spi import RemoteStorageManager
from rsm.storage.filesystem.storage import FilesystemChunkStorage

_MB = 1_000_000
_PEER = "plain file copy with fsync"


def measure_copying(dataset: Dataset) -> list[Measurement]:
    """Return the throughput of both kinds of copies, and their ratio run by run."""
    log = dataset.source().local_log(dataset.partition())
    total_mb = sum(segment.size_bytes for segment in log.rolled) / _MB
    os.sync()  # The first run must not wait for the broker's writes.
    _run(dataset, log)  # warm-up: files in the page cache, code loaded
    seconds = [_run(dataset, log) for _ in range(dataset.sizes.runs)]
    ratios = [plain / ours for plain, ours in seconds]
    return [
        of_runs(_PEER, [total_mb / plain for plain, _ in seconds], unit="MB/s"),
        of_runs(
            "segment copy to a directory", [total_mb / ours for _, ours in seconds], unit="MB/s"
        ),
        of_runs("segment copy ÷ plain copy", ratios, unit="ratio", peer=_PEER, goal=at_least(0.9)),
    ]


def _run(dataset: Dataset, log: LocalLog) -> tuple[float, float]:
    """Copy every rolled segment both ways; return the seconds of plain copies and of `rlm`'s."""
    plain_s, ours_s = 0.0, 0.0
    with _new_directory(dataset.scratch / "plain") as target, _store(dataset) as storage:
        source, partition = dataset.source(), dataset.partition()
        copier = SegmentCopier(source=source, storage=storage, partition=partition, log=log)
        directory = dataset.cluster.broker.log_dirs[0] / f"{TOPIC}-0"
        for segment in log.rolled:
            name = f"{segment.offsets.start_offset:020d}.log"
            plain_s += _timed(partial(_copy_plainly, directory / name, target / name))
            ours_s += _timed(partial(copier.copy, segment))
    os.sync()  # The next run must not wait for the removal.
    return plain_s, ours_s


def _copy_plainly(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    with target.open("rb") as copied:
        os.fsync(copied.fileno())


@contextmanager
def _store(dataset: Dataset) -> Iterator[RemoteStorageManager]:
    with (
        _new_directory(dataset.scratch / "store") as root,
        closing(
            SegmentStorageManager(
                storage=FilesystemChunkStorage(root),
                keys=ObjectKeys(prefix=""),
                layouts=(RawLayout(),),
            )
        ) as storage,
    ):
        yield storage


@contextmanager
def _new_directory(path: Path) -> Iterator[Path]:
    path.mkdir()
    yield path
    shutil.rmtree(path)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
