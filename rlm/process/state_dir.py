"""Own the state directory: its one-line files, and the lock that excludes a second supervisor."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsm.segment.errors import InvalidConfigError

_LOCK = "lock"


def has_lock(path: Path) -> bool:
    """Return whether the directory has a lock file, locked or not; locking then creates nothing."""
    return (path / _LOCK).is_file()


@contextmanager
def locked_state_dir(path: Path) -> Iterator[Path]:
    """Create the directory if it does not exist, and lock it until the context ends.

    Users outside of its group can neither read nor search a directory that this created. The lock
    is the kernel's (flock), so it ends with its process. Raises InvalidConfigError if another
    process has it, or the directory cannot be created or written.
    """
    try:
        path.mkdir(mode=0o750, parents=True, exist_ok=True)
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise InvalidConfigError(
            "cannot use the state directory", key="state.dir", found=path, reason=error.strerror
        ) from error
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


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InvalidConfigError(
            "another rlm run or rlm gateway uses this state.dir",
            key="state.dir",
            found=path,
            advice="Stop it, or set another directory",
        ) from error
