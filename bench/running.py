"""Runs `rlm run` for benchmarks, and measures its memory while it copies a topic."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from bench.dataset import TOPIC, Dataset
from bench.measurement import Measurement, of_runs
from tests.services.rlm_run import RLM, RlmRun
from tests.services.waiting import wait_until

_MIB = 1 << 20
_COPIED_DEADLINE_S = 120.0
_SAMPLE_INTERVAL_S = 0.02
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a private directory is made in it
_AS_BY_DEFAULT = {"remote.log.manager.copier.thread.pool.size": "10"}  # tests use a lower number


@contextmanager
def running_rlm(dataset: Dataset, settings: Mapping[str, str] | None = None) -> Iterator[RlmRun]:
    """Yield a ready `rlm run` with the default number of copy threads; stop it at the end.

    The store is a directory, unless `settings` name another store.
    """
    rlm = RlmRun(
        dataset.scratch / "rlm",
        dataset.cluster,
        settings={**_AS_BY_DEFAULT, **(settings or {})},
    )
    try:
        rlm.start()
        yield rlm
    finally:
        rlm.stop()


@contextmanager
def rlm_without_disk(dataset: Dataset) -> Iterator[RlmRun]:
    """Yield a ready `rlm run` whose store is a directory in memory.

    A store on other machines uses neither the broker's disk nor its processors. A directory in
    memory comes closest. If /dev/shm does not exist, the store is a temporary directory on a disk.
    """
    memory = _IN_MEMORY if _IN_MEMORY.is_dir() else None
    with (
        TemporaryDirectory(dir=memory) as store,
        running_rlm(dataset, {"rsm.config.storage.filesystem.root": store}) as rlm,
    ):
        yield rlm


def measure_memory_of_copying(dataset: Dataset, rlm: RlmRun) -> list[Measurement]:
    """Tier the topic; return each process's maximum memory until the rolled segments are stored."""
    rolled_count = len(dataset.source().local_log(dataset.partition()).rolled)
    memory = _ResidentMemory(supervisor=psutil.Process(rlm.pid))
    subprocess.run(
        [RLM, "topic", "set", TOPIC, "--config", str(rlm.configuration)],
        check=True,
        capture_output=True,
    )

    def all_stored() -> bool:
        rlm.require_running()
        memory.sample()
        return rlm.remote_segments(TOPIC) == {0: rolled_count}

    wait_until(
        all_stored,
        _COPIED_DEADLINE_S,
        "the rolled segments are stored",
        interval_s=_SAMPLE_INTERVAL_S,
    )
    return [
        of_runs(f"{name}'s memory while copying", [peak / _MIB], unit="MiB")
        for name, peak in memory.peaks_bytes.items()
    ]


@dataclass(slots=True)
class _ResidentMemory:
    """The maximum resident memory of a supervisor and of its manager, over all samples."""

    supervisor: psutil.Process
    peaks_bytes: dict[str, int] = field(default_factory=dict)

    def sample(self) -> None:
        """Sample both processes, and update the maximum of each."""
        processes = {"supervisor": self.supervisor}
        for child in self.supervisor.children():
            processes["manager"] = child
        for name, process in processes.items():
            seen = process.memory_info().rss
            self.peaks_bytes[name] = max(seen, self.peaks_bytes.get(name, 0))
