"""Owns the state directory: its small files, and the lock against a second `rlm run` or gateway.

One file contains the directory's id, which distinguishes processes of the same broker.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from uuid import UUID

from rlm.source.denied_access import denied_access
from rsm.segment.errors import HostNotReadyError, InvalidConfigError, RetriableError
from rsm.segment.ids import id_from_text, id_to_text

_LOCK = "lock"
_ID_FILE = "id"
_LEAST_FREE_BYTES = 1 << 30


class _Usage(Protocol):
    """Represents the usage of a disk, as shutil.disk_usage returns it."""

    @property
    def free(self) -> int:
        """Return how many bytes this user can write."""


def check_state_dir(path: Path) -> None:
    """Check that this process can create or write the directory; create nothing.

    Raises InvalidConfigError if it cannot.
    """
    nearest = next(each for each in (path, *path.absolute().parents) if os.path.lexists(each))
    _check_access(path, nearest, os.W_OK | os.X_OK)
    if has_lock(path):
        _check_access(path, path / _LOCK, os.R_OK | os.W_OK)


def nearly_full_disk(
    path: Path, usage: Callable[[Path], _Usage] = shutil.disk_usage
) -> RetriableError | None:
    """Return a warning if the directory's disk is nearly full.

    If the directory does not exist, this is the disk of its nearest existing parent. The processes
    keep their copy of the metadata there, and are not ready without space for it.
    """
    nearest = next((each for each in (path, *path.absolute().parents) if each.exists()), path)
    try:
        free_bytes = usage(nearest).free
    except OSError:  # `check_state_dir` reports an unreadable directory.
        return None
    if free_bytes >= _LEAST_FREE_BYTES:
        return None
    return RetriableError(
        "the disk of the state directory is nearly full",
        key="state.dir",
        path=path,
        free_bytes=free_bytes,
        least_bytes=_LEAST_FREE_BYTES,
        advice="Free space: a process is not ready without space for its copy of the metadata",
    )


def has_lock(path: Path) -> bool:
    """Return whether the directory has a lock file, locked or not."""
    return (path / _LOCK).is_file()


@contextmanager
def locked_state_dir(path: Path) -> Iterator[Path]:
    """Create the directory if it does not exist, and lock it until the context ends.

    If this function creates it, users outside of the directory's group cannot read or search it.
    The lock is an flock, which ends with its process. Raises HostNotReadyError if another process
    has the lock, and InvalidConfigError if the directory cannot be created or written.
    """
    try:
        path.mkdir(mode=0o750, parents=True, exist_ok=True)
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise unusable_state_dir(path, error) from error
    try:
        _lock(descriptor, path)
        yield path
    finally:
        os.close(descriptor)


def write_state(path: Path, text: str) -> None:
    """Replace a one-line file atomically: a crash leaves the old file or the new one.

    Raises OSError.
    """
    new = path.with_suffix(".new")
    with new.open("w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)


def state_id(directory: Path, new_id: Callable[[], UUID]) -> UUID:
    """Read the directory's id, or create it; it survives restarts.

    Raises InvalidConfigError if the directory cannot be used or the file is malformed.
    """
    path = directory / _ID_FILE
    try:
        if not path.exists():
            write_state(path, id_to_text(new_id()))
        return id_from_text(path.read_text().strip())
    except OSError as error:
        raise unusable_state_dir(directory, error) from error


def unusable_state_dir(path: Path, error: OSError) -> InvalidConfigError:
    """Return the error for a state directory that this process cannot use."""
    advice, fields = "Set another directory", {}
    if isinstance(error, PermissionError):
        fields = dict(denied_access(Path(error.filename or path)))
        advice = f"As root, run `mkdir -p {path} && chown -R {os.geteuid()} {path}`"
    return InvalidConfigError(
        "cannot use the state directory",
        key="state.dir",
        found=path,
        **fields,
        reason=error.strerror,
        advice=advice,
    )


def _check_access(path: Path, needed: Path, rights: int) -> None:
    """Raise the error that `locked_state_dir` would raise for the path, if any."""
    if rights & os.X_OK and not needed.is_dir():
        number = errno.ENOTDIR
    elif os.access(needed, rights, effective_ids=True):
        return
    elif os.statvfs(needed).f_flag & os.ST_RDONLY:
        number = errno.EROFS
    else:
        number = errno.EACCES
    raise unusable_state_dir(path, OSError(number, os.strerror(number), str(needed)))


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise HostNotReadyError(
            "another rlm run or rlm gateway uses this state.dir",
            key="state.dir",
            found=path,
            advice="Stop that process: rlm can start once it has ended. Or set another directory",
        ) from error
