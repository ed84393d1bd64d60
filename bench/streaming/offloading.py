"""Compares streams with copies of the same rolled segments: throughput, CPU, memory, requests.

Each run is a process that stores to an S3 server, as the manager does between its two metadata
events. Each stream ends where a segment ends, so both modes store the same ranges. Runs alternate.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping

from bench.measurement import Measurement, at_least, of_runs
from bench.storage.stage import AT_ONCE, StorageStage
from bench.streaming.worker import OffloadRun

_MB = 1_000_000
_GIB = 1 << 30
_MIB = 1 << 20
_MODES = ("segment", "stream")

_Runs = Mapping[str, list[OffloadRun]]


def measure_offloading(stage: StorageStage) -> list[Measurement]:
    """Return the figures of both modes, with one range at a time and with several at once."""
    found: list[Measurement] = []
    for at_once in (1, AT_ONCE):
        runs: dict[str, list[OffloadRun]] = {mode: [] for mode in _MODES}
        for number in range(stage.dataset.sizes.runs):
            for mode in _MODES:
                runs[mode].append(_run(stage, mode, at_once, f"{mode}-{at_once}-{number}"))
                stage.empty()
        found += _throughput(runs, f"×{at_once}")
        if at_once == 1:
            found += _costs(runs)
        else:
            found += _each(runs, f"memory ×{at_once}", "MiB", lambda run: run.memory_bytes / _MIB)
    return found


def _throughput(runs: _Runs, label: str) -> list[Measurement]:
    pairs = zip(runs["segment"], runs["stream"], strict=True)
    return [
        *_each(runs, f"mode {label}", "MB/s", lambda run: run.size_bytes / run.seconds / _MB),
        of_runs(
            f"stream ÷ segment mode {label}",
            [segment.seconds / stream.seconds for segment, stream in pairs],
            unit="ratio",
            peer=f"segment mode {label}",
            goal=at_least(0.9, floor=0.7),
        ),
    ]


def _costs(runs: _Runs) -> list[Measurement]:
    return [
        *_each(runs, "mode: CPU per GB", "s", lambda run: run.cpu_s * 1000 * _MB / run.size_bytes),
        *_each(
            runs,
            "mode: requests per GiB",
            "requests",
            lambda run: run.requests * _GIB / run.size_bytes,
        ),
    ]


def _each(
    runs: _Runs, title: str, unit: str, figure: Callable[[OffloadRun], float]
) -> list[Measurement]:
    return [of_runs(f"{mode} {title}", [*map(figure, runs[mode])], unit=unit) for mode in _MODES]


def _run(stage: StorageStage, mode: str, at_once: int, prefix: str) -> OffloadRun:
    log_dir = stage.dataset.cluster.broker.log_dirs[0]
    worker = [sys.executable, "-m", "bench.streaming.worker"]
    done = subprocess.run(
        [*worker, mode, str(at_once), str(log_dir), stage.server.url, prefix],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return OffloadRun(**json.loads(done.stdout))
