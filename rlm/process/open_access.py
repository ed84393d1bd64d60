"""Finds configured paths that other users of this host can access, but should not.

A user of the host who reads the store bypasses Kafka's ACLs. This module changes nothing: the
operator decides about the permissions of existing files.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from rlm.config.load import Config
from rsm.config.fetch_cache import CACHE_PATH_KEY
from rsm.config.properties import read_properties
from rsm.config.store_choice import FILESYSTEM_ROOT_KEY
from rsm.secret_keys import is_secret
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_OTHERS_READ = 0o004
_OTHERS_SEARCH = 0o001
_OTHERS = 0o007


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAccess:
    """Represents a path that `mode` opens to others; `message` includes the remedy."""

    message: str
    key: str
    path: Path
    mode: int


def warn_of_open_access(config: Config, config_path: Path) -> None:
    """Log a WARNING for each path that `open_access` returns."""
    for each in open_access(config, config_path):
        fields = {"key": each.key, "path": each.path, "mode": f"{each.mode:04o}"}
        _log.warning(LogLine(each.message, **fields))


def open_access(config: Config, config_path: Path) -> tuple[OpenAccess, ...]:
    """Return the store root, state.dir, cache directory and config file if they are open to others.

    The config file counts only if it sets a secret. A path is not open if others cannot search its
    parents. Missing paths are skipped.
    """
    cache = config.gateway.chunk_cache_path
    found = [
        _open_directory(config.host.state_dir, key="state.dir", allowed=0),
        None if cache is None else _open_directory(cache, key=CACHE_PATH_KEY, allowed=0),
        _open_config(config_path),
    ]
    root = config.storage.filesystem_root
    if root is not None:
        allowed = config.storage.file_access().directory_mode
        found.append(_open_directory(root, key=FILESYSTEM_ROOT_KEY, allowed=allowed))
    return tuple(each for each in found if each is not None)


def _open_directory(path: Path, *, key: str, allowed: int) -> OpenAccess | None:
    mode = _mode_for_others(path)
    if mode is None or not mode & _OTHERS & ~allowed:
        return None
    return OpenAccess(
        message="other users of this host can use a directory of stored data: run chmod o-rwx",
        key=key,
        path=path,
        mode=mode,
    )


def _open_config(path: Path) -> OpenAccess | None:
    mode = _mode_for_others(path)
    if mode is None or not mode & _OTHERS_READ:
        return None
    secrets = [
        key
        for key, entry in read_properties(path).entries.items()
        if is_secret(key) and entry.value
    ]
    if not secrets:
        return None
    return OpenAccess(
        message="other users of this host can read a configuration file with secrets: run "
        "chmod o-rwx",
        key=secrets[0],
        path=path,
        mode=mode,
    )


def _mode_for_others(path: Path) -> int | None:
    """Return the path's permissions; None if others cannot reach it, or it does not exist."""
    try:
        resolved = path.resolve(strict=True)
        if not all(each.stat().st_mode & _OTHERS_SEARCH for each in resolved.parents):
            return None
        return resolved.stat().st_mode & 0o777
    except OSError:
        return None
