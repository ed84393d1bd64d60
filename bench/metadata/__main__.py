"""Measures metadata: `python -m bench.metadata [--out FILE] [--segments N …] [--runs N]`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from rich.console import Console

from bench.measurement import Goal, Measurement, at_least, at_most, of_runs
from bench.metadata.topic import fill_topic, metadata_broker
from bench.program import option_parser, run_benchmark
from bench.result_file import Method
from tests.services.kafka import KafkaCluster

_CHECKOUT = Path(__file__).resolve().parents[2]
_LOOKUPS = 50_000
_HEAP_PEER_SEGMENTS = 1_000_000
_MEASURED_SEGMENTS = 1_000_000  # With fewer, the client's start takes most of the time.
_FOLDED = at_least(150_000, floor=60_000)
_MEMORY_MIB = at_most(300)
_ALTERNATION = "Each run reads, folds and looks up in separate processes."

Runs = list[dict[str, float]]


def main() -> int:
    """Measure with the options of the command line."""
    parser = option_parser("bench.metadata", __doc__)
    parser.add_argument(
        "--segments",
        type=int,
        nargs="+",
        default=[10_000, 1_000_000],
        help="numbers of segments to measure (default %(default)s)",
    )
    parser.add_argument(
        "--runs", type=int, default=3, help="runs of each measurement (default %(default)s)"
    )
    options = parser.parse_args()
    method = Method(runs=options.runs, alternation=_ALTERNATION, is_short=False)
    return run_benchmark(
        "bench-metadata",
        method,
        lambda console: [measure_metadata(options.segments, options.runs, console)],
        options.out,
    )


def measure_metadata(
    sizes: Sequence[int], runs: int, console: Console, *, lookups: int = _LOOKUPS
) -> list[Measurement]:
    """Measure with each number of segments; print a line before each phase."""
    measurements: list[Measurement] = []
    with metadata_broker() as cluster:
        for segments in sizes:
            console.print(f"{segments} segments: writing {2 * segments} records")
            fill_topic(cluster, _topic(segments), segments)
            console.print(f"{segments} segments: folding and looking up, {runs} runs")
            measurements += _measure_size(cluster, segments, runs, lookups)
            if segments <= _HEAP_PEER_SEGMENTS:
                measurements += _measure_heap_map(segments, runs, lookups)
    return measurements


def _measure_size(
    cluster: KafkaCluster, segments: int, runs: int, lookups: int
) -> list[Measurement]:
    topic = {
        "topic_name": _topic(segments),
        "bootstrap_servers": cluster.bootstrap_servers,
        "segments": segments,
    }
    consumed: Runs = []
    folded: Runs = []
    found: Runs = []
    disk: list[float] = []
    with _cache_directory() as directory:
        for _ in range(runs):
            rmtree(directory, ignore_errors=True)
            consumed.append(_run("consume", **topic))
            folded.append(_run("fold", **topic, directory=str(directory)))
            found.append(
                _run("look_up", segments=segments, directory=str(directory), lookups=lookups)
            )
            disk.append(_bytes_below(directory) / segments)
    name = _short(segments)
    goal = _FOLDED if segments >= _MEASURED_SEGMENTS else None
    return [
        _of(f"{name}: events folded", folded, "events_per_s", "/s", goal),
        _of(f"{name}: events consumed only", consumed, "events_per_s", "/s"),
        _of(f"{name}: processor time per event", folded, "cpu_us_per_event", "µs"),
        _of(f"{name}: full rebuild", folded, "seconds", "s"),
        _of(f"{name}: merged after the rebuild in", folded, "merged_after_s", "s"),
        _of(f"{name}: memory after the rebuild", folded, "resident_mib", "MiB", _MEMORY_MIB),
        _of(f"{name}: lookup p50", found, "p50_us", "µs"),
        _of(f"{name}: lookup p99", found, "p99_us", "µs"),
        _of(f"{name}: lookup again p50", found, "again_p50_us", "µs"),
        _of(f"{name}: lookup again p99", found, "again_p99_us", "µs", at_most(50)),
        _of(f"{name}: lookup, all fields read, p50", found, "whole_p50_us", "µs"),
        _of(f"{name}: lookup, all fields read, p99", found, "whole_p99_us", "µs"),
        _of(f"{name}: memory after lookups", found, "resident_mib", "MiB", _MEMORY_MIB),
        _of(f"{name}: open to first lookup", found, "open_s", "s", at_most(1)),
        of_runs(f"{name}: disk per segment", disk, unit="bytes"),
    ]


def _measure_heap_map(segments: int, runs: int, lookups: int) -> list[Measurement]:
    heap = [_run("heap_map", segments=segments, lookups=lookups) for _ in range(runs)]
    name = f"{_short(segments)} in a dict"
    return [
        _of(f"{name}: events folded", heap, "events_per_s", "/s"),
        _of(f"{name}: lookup p50", heap, "p50_us", "µs"),
        _of(f"{name}: lookup p99", heap, "p99_us", "µs"),
        _of(f"{name}: memory", heap, "resident_mib", "MiB"),
    ]


def _of(metric: str, runs: Runs, figure: str, unit: str, goal: Goal | None = None) -> Measurement:
    return of_runs(metric, [run[figure] for run in runs], unit=unit, goal=goal)


def _run(task: str, **arguments: object) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.metadata.worker", task, json.dumps(arguments)]
    done = subprocess.run(command, cwd=_CHECKOUT, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


@contextmanager
def _cache_directory() -> Iterator[Path]:
    with TemporaryDirectory(prefix="bench-cache-", dir=_CHECKOUT / "build") as directory:
        yield Path(directory) / "cache"


def _bytes_below(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _topic(segments: int) -> str:
    return f"__metadata-{segments}"


def _short(segments: int) -> str:
    return f"{segments // 1_000_000} M" if segments >= 1_000_000 else f"{segments // 1_000} k"


if __name__ == "__main__":
    sys.exit(main())
