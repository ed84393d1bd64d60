"""Measures the throughput and processor time of several ways to read, in alternating runs.

One or more consumers read at once, each in a separate process, because threads of one Python
process would limit each other. The processes live as long as the benchmark, so no measured run
includes their start. A single consumer always runs in the same process, whose memory is warm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from bench.consumer import DEFAULT_FETCH_BYTES, LARGE_FETCH_BYTES, ConsumeRun, consume
from bench.gateway.processes import ProcessGroup
from bench.measurement import Goal, Measurement, of_runs, ratios
from rsm.segment.ranges import OffsetRange

_MB = 1_000_000
_GB = 1_000_000_000
# HotSpot fully compiles a method after 5,000 calls. Ten runs of 1 GiB are 10,240 fetches of 1 MiB.
WARM_UPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSize:
    """Represents the maximum bytes per partition in a fetch; figure names end with `label`."""

    label: str
    limit_bytes: int


DEFAULT_FETCHES = FetchSize(label="", limit_bytes=DEFAULT_FETCH_BYTES)
MIDDLE_FETCHES = FetchSize(label=", 8 MiB fetches", limit_bytes=8 << 20)
LARGE_FETCHES = FetchSize(label=", large fetches", limit_bytes=LARGE_FETCH_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Represents a way to read partition 0 of a topic at an address, all `pieces` concurrently.

    `processes` maps names to the processes whose processor time is measured.
    """

    title: str
    fetches: FetchSize
    address: str
    topic: str
    pieces: Sequence[OffsetRange]
    processes: Mapping[str, ProcessGroup]

    @property
    def name(self) -> str:
        return self.title + self.fetches.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Represents the runs of one way: their throughput and processor time."""

    way: Way
    mb_per_s: tuple[float, ...]
    cpu_s_per_gb: Mapping[str, tuple[float, ...]]

    def measurements(self) -> list[Measurement]:
        """Return the throughput, and the processor time of each named group of processes."""
        return [
            of_runs(self.way.name, self.mb_per_s, unit="MB/s"),
            *(
                of_runs(f"{process} CPU: {self.way.name}", runs, unit="s/GB")
                for process, runs in self.cpu_s_per_gb.items()
            ),
        ]

    def ratio(self, peer: Readings, title: str, *, goal: Goal | None = None) -> Measurement:
        """Return this way's throughput divided by the peer's, run by run."""
        return of_runs(
            title + self.way.fetches.label,
            ratios(self.mb_per_s, peer.mb_per_s),
            unit="ratio",
            peer=peer.way.name,
            goal=goal,
        )


class Readers:
    """Runs ways to read, with one process for each concurrent consumer. Not thread-safe."""

    def __init__(self, processes: Sequence[Executor], *, record_bytes: int, runs: int) -> None:
        self._processes = processes
        self._record_bytes = record_bytes
        self._runs = runs

    def alternate(self, *ways: Way, runs: int | None = None) -> list[Readings]:
        """Run each way once per round: first WARM_UPS unmeasured rounds, then the measured ones.

        Every second round has the reverse order, so that no way always runs after the same one.
        """
        for number in range(WARM_UPS):
            self._round(ways, number)
        rounds = [self._round(ways, number) for number in range(runs or self._runs)]
        return [
            Readings(
                way=way,
                mb_per_s=tuple(mb_per_s for mb_per_s, _ in runs),
                cpu_s_per_gb={name: tuple(cpu[name] for _, cpu in runs) for name in way.processes},
            )
            for way, runs in zip(ways, zip(*rounds, strict=True), strict=True)
        ]

    def _round(self, ways: Sequence[Way], number: int) -> list[tuple[float, Mapping[str, float]]]:
        """Run each way once; return the figures in the order of `ways`."""
        order = -1 if number % 2 else 1
        return [self._run(way) for way in ways[::order]][::order]

    @contextmanager
    def running(self, way: Way) -> Iterator[Callable[[], bool]]:
        """Run `way` once in the background; yield a function that returns true until it ends."""
        reading = self._submit(way)
        yield lambda: not all(each.done() for each in reading)
        for each in reading:
            each.result()

    def _submit(self, way: Way) -> list[Future[ConsumeRun]]:
        read = partial(consume, way.address, way.topic, fetch_bytes=way.fetches.limit_bytes)
        processes = self._processes[: len(way.pieces)]
        return [
            process.submit(read, piece)
            for process, piece in zip(processes, way.pieces, strict=True)
        ]

    def _run(self, way: Way) -> tuple[float, Mapping[str, float]]:
        """Return MB/s of record values, and processor seconds per GB of record values."""
        before = {name: group.cpu_s() for name, group in way.processes.items()}
        consumed = [each.result() for each in self._submit(way)]
        read_bytes = sum(map(len, way.pieces)) * self._record_bytes
        seconds = max(c.ended_s for c in consumed) - min(c.started_s for c in consumed)
        cpu_s = {name: group.cpu_s() - before[name] for name, group in way.processes.items()}
        return read_bytes / _MB / seconds, {
            name: used / (read_bytes / _GB) for name, used in cpu_s.items()
        }


@contextmanager
def readers(*, consumers: int, record_bytes: int, runs: int) -> Iterator[Readers]:
    """Yield readers for up to `consumers` concurrent consumers, each in its own process."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
            for _ in range(consumers)
        ]
        yield Readers(processes, record_bytes=record_bytes, runs=runs)


def overlapping_pieces(end_offset: int, *, count: int, length: int) -> list[OffsetRange]:
    """Return `count` ranges of the same length, evenly spread over [0, end_offset)."""
    step = (end_offset - length) // max(1, count - 1)
    starts = [step * number for number in range(count)]
    return [OffsetRange(start_offset=start, end_offset=start + length) for start in starts]
