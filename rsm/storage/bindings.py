"""Which stores can be configured, and what opens each. A binding's SDK loads when it is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rsm.storage.chunk_storage import ChunkStorage


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemSettings:
    """A directory that exists."""

    root: Path


# The memory store is not among them: what is trimmed locally must be stored durably.
StoreSettings = FilesystemSettings
"""What tells a store and how to reach it."""


def open_storage(settings: StoreSettings) -> ChunkStorage:
    """Open the store that a configuration names.

    Raises InvalidConfigError for what the binding finds wrong at once (a root that is not there,
    an SDK that is not installed), RetriableError.
    """
    # Lazily: only the chosen binding's dependencies are needed.
    from rsm.storage.filesystem import FilesystemChunkStorage  # noqa: PLC0415

    return FilesystemChunkStorage(settings.root)
