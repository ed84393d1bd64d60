"""The chunk storages that the contract suites run over: add a binding or a wrapper here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.filesystem import FilesystemChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.observed import ObservedChunkStorage


def _memory(_directory: Path) -> ChunkStorage:
    return MemoryChunkStorage(wall_ms=lambda: time.time_ns() // 1_000_000)


def _observed(directory: Path) -> ChunkStorage:
    return ObservedChunkStorage(_memory(directory), observe=lambda _operation, _result: None)


CHUNK_STORAGES: Mapping[str, Callable[[Path], ChunkStorage]] = {
    "memory": _memory,
    "filesystem": FilesystemChunkStorage,
    "observed": _observed,
}
