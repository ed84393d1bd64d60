"""Wraps a store to make it slow, faulty, throttled or read-only, as the settings say.

You can thus rehearse a failing store with the real programs. The throttle and the read-only mode
are also useful outside rehearsals.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rsm.segment.clock import Clock
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.settings import RehearsalSettings
from rsm.storage.wrappers.faulty import FaultyChunkStorage
from rsm.storage.wrappers.restricted import ReadOnlyChunkStorage
from rsm.storage.wrappers.slow import SlowChunkStorage
from rsm.storage.wrappers.throttle import ThrottledChunkStorage


def rehearsed(storage: ChunkStorage, settings: RehearsalSettings, clock: Clock) -> ChunkStorage:
    """Wrap `storage` as the settings say; the default settings return it unchanged."""
    if settings.delay_ms:
        storage = SlowChunkStorage(storage, clock, delay_ms=settings.delay_ms)
    if settings.bytes_per_second or settings.requests_per_second:
        storage = ThrottledChunkStorage(
            storage,
            clock,
            bytes_per_second=settings.bytes_per_second,
            requests_per_second=settings.requests_per_second,
        )
    if settings.faults.fail_share or settings.faults.flip_share:
        storage = FaultyChunkStorage(
            storage, settings.faults, active=_existence_of(settings.faults_while_file)
        )
    return ReadOnlyChunkStorage(storage) if settings.is_read_only else storage


def _existence_of(path: Path | None) -> Callable[[], bool]:
    return (lambda: True) if path is None else path.exists
