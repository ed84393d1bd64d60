"""The state directory, the lines of text in it, and the lock that keeps a second supervisor out."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rsm.segment.errors import InvalidConfigError

_LOCK = "lock"


def has_lock(path: Path) -> bool:
    """Whether the directory has a lock to take, held or not: then taking it creates nothing."""
    return (path / _LOCK).is_file()


@contextmanager
def locked_state_dir(path: Path) -> Iterator[Path]:
    """Create the directory if it is not there and hold its lock until the context ends.

    Users outside its group can neither read nor search it, unless it was there before.

    The lock is the kernel's (flock), so it vanishes with its holder however that ends. Raises
    InvalidConfigError if another process holds it or the directory cannot be made or written.
    """
    try:
        path.mkdir(mode=0o750, parents=True, exist_ok=True)
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise InvalidConfigError(
            "state directory cannot be used", key="state.dir", found=path, reason=error.strerror
        ) from error
    try:
        _lock(descriptor, path)
        yield path
    finally:
        os.close(descriptor)


def write_state(path: Path, text: str) -> None:
    """Write a file of one line as a whole, or nothing: a crash must not leave an empty one.

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
            "another rlm run or rlm gateway uses this state.dir", key="state.dir", found=path
        ) from error
