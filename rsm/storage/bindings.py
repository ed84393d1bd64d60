"""Which stores can be configured, and how their settings are read. Bindings load when chosen.

A backend's settings are those below `rsm.config.storage.<backend>.`, without that prefix.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import MappingProxyType

from rsm.segment.errors import InvalidConfigError
from rsm.storage.chunk_storage import ChunkStorage


def open_storage(backend: str, settings: Mapping[str, str]) -> ChunkStorage:
    """Open the store that a configuration names.

    Raises InvalidConfigError for an unknown backend or setting, one that is missing, and what the
    binding finds wrong at once (a root that is not there); RetriableError.
    """
    opener = _OPENERS.get(backend)
    if opener is None:
        raise InvalidConfigError(
            "unknown storage backend",
            key="rsm.config.storage.backend",
            found=backend,
            expected=" or ".join(sorted(_OPENERS)),
        )
    return opener(settings)


def _open_filesystem(settings: Mapping[str, str]) -> ChunkStorage:
    # Lazily: only the chosen binding's dependencies are needed.
    from rsm.storage.filesystem import FilesystemChunkStorage  # noqa: PLC0415

    _check_known("filesystem", settings, {"root"})
    root = settings.get("root", "")
    if not root:
        raise InvalidConfigError(
            "a setting is missing",
            key="rsm.config.storage.filesystem.root",
            expected="an existing directory",
        )
    return FilesystemChunkStorage(Path(root))


# The memory store is not among them: what is trimmed locally must be stored durably.
_OPENERS: Mapping[str, Callable[[Mapping[str, str]], ChunkStorage]] = MappingProxyType(
    {"filesystem": _open_filesystem}
)


def _check_known(backend: str, settings: Mapping[str, str], known: AbstractSet[str]) -> None:
    for key in settings:
        if key not in known:
            nearest = difflib.get_close_matches(key, known, n=1, cutoff=0)
            raise InvalidConfigError(
                "unknown setting",
                key=f"rsm.config.storage.{backend}.{key}",
                nearest=f"rsm.config.storage.{backend}.{nearest[0]}",
            )
