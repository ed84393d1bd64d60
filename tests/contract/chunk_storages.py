"""The chunk storages that the contract suites run over: add a binding or a wrapper here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.settings import FaultPlan
from rsm.storage.wrappers.faulty import FaultyChunkStorage
from rsm.storage.wrappers.observed import ObservedChunkStorage
from rsm.storage.wrappers.restricted import NoAppendChunkStorage
from rsm.storage.wrappers.slow import SlowChunkStorage
from rsm.storage.wrappers.throttle import ThrottledChunkStorage
from tests.contract.configured_plugins import plugin_storage
from tests.fakes.clock import FakeClock


def _memory(_directory: Path) -> ChunkStorage:
    return MemoryChunkStorage(wall_ms=lambda: time.time_ns() // 1_000_000)


def _observed(directory: Path) -> ChunkStorage:
    return ObservedChunkStorage(
        _memory(directory), FakeClock(), lambda _operation, _result, _duration_ms: None, slow_ms=1
    )


def _slow(directory: Path) -> ChunkStorage:
    return SlowChunkStorage(_memory(directory), FakeClock(), delay_ms=30)


def _throttled(directory: Path) -> ChunkStorage:
    return ThrottledChunkStorage(
        _memory(directory), FakeClock(), bytes_per_second=1_000, requests_per_second=10
    )


def _faulty_at_rest(directory: Path) -> ChunkStorage:
    plan = FaultPlan(fail_share=1.0, flip_share=1.0)
    return FaultyChunkStorage(_memory(directory), plan, active=lambda: False)


CHUNK_STORAGES: Mapping[str, Callable[[Path], ChunkStorage]] = {
    "memory": _memory,
    "filesystem": FilesystemChunkStorage,
    "observed": _observed,
    "no-append": lambda directory: NoAppendChunkStorage(_memory(directory)),
    "slow": _slow,
    "throttled": _throttled,
    "faulty, at rest": _faulty_at_rest,
    "plug-in": plugin_storage,
}
