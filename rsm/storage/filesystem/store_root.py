"""The directory that a file store lies in: where names are, and whether it is still there.

The root is never made: where a mount has vanished, a new directory in its place would take what
is to be kept on the lost file system. Whatever is absent is therefore believed to be absent only
while the root is the directory that it was; and the parents of a chunk are made below it, one by
one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR

from rsm.segment.errors import (
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.storage.filesystem.file_access import FileAccess
from rsm.storage.names import check_name

INCOMING = ".incoming"

# Directly below the root: chunks under way, and what ext4 keeps at the top of a file system.
RESERVED = frozenset({INCOMING, "lost+found"})

# Errors that no retry heals: the name or the file system is not one that we can work with.
_HOPELESS = frozenset(
    {errno.ENAMETOOLONG, errno.ELOOP, errno.EXDEV, errno.EILSEQ, errno.EMLINK, errno.EOPNOTSUPP}
)


class StoreRoot:
    """An existing directory, watched. Raises InvalidConfigError if there is none. Thread-safe."""

    def __init__(self, path: Path, access: FileAccess) -> None:
        """`access` is that of what is made below."""
        self.path = path
        self.access = access
        try:
            status = path.stat()
        except OSError as error:
            raise InvalidConfigError(
                "the store's root must exist; it is never made", root=path, reason=error.strerror
            ) from error
        if not S_ISDIR(status.st_mode):
            raise InvalidConfigError("the store's root is not a directory", root=path)
        # Not the device: a file system that is mounted again may get another number.
        self._inode = status.st_ino

    def verify(self) -> None:
        """Return if the root is the directory that it was; RetriableError if it is not."""
        try:
            inode = self.path.stat().st_ino
        except OSError as error:
            raise RetriableError(
                "the store's root is gone", root=self.path, reason=error.strerror
            ) from error
        if inode != self._inode:
            raise RetriableError(
                "another directory is where the store's root was: a mount may be missing",
                root=self.path,
            )

    def locate(self, name: str) -> Path:
        """Where the chunk `name` lies, or would. InvalidConfigError for a name it cannot have.

        Symbolic links below the root are not followed: one may lead out of it.
        """
        check_name(name)
        first, *rest = name.split("/")
        if first in RESERVED:
            raise InvalidConfigError("the file store keeps this name for itself", name=name)
        directory = self.path
        try:
            for segment in (first, *rest)[:-1]:
                directory /= segment
                if directory.is_symlink():
                    raise InvalidConfigError(
                        "a symbolic link below the store's root", path=directory
                    )
        except OSError as error:
            raise store_error(error, name) from error
        return self.path / name

    def make_parents(self, path: Path) -> None:
        """Make the directories between the root and `path`; those that are there are kept."""
        for directory in reversed(self._parents(path)):
            # A file of that name is found out by the next step, which needs a directory there.
            with suppress(FileExistsError):
                self.access.make_directory(directory)

    def sync_parents(self, path: Path) -> None:
        """Make the entries that lead from the root to `path` durable.

        All of them each time: a directory made by someone else may not be durable yet, and to
        sync one that is clean costs next to nothing. One that is gone was emptied and removed by
        someone else, and what counts is that its own entry is gone.
        """
        for directory in self._parents(path):
            with suppress(FileNotFoundError):
                sync_directory(directory)
        sync_directory(self.path)

    def remove_empty_parents(self, path: Path) -> None:
        """Remove the directories above `path` that hold nothing now; never the root.

        Whoever makes a chunk in one of them at the same moment makes it again.
        """
        for directory in self._parents(path):
            try:
                directory.rmdir()
            except OSError:  # it holds something, or is gone: either way it needs nothing
                return

    def _parents(self, path: Path) -> tuple[Path, ...]:
        """The directories above `path` and below the root, the innermost first."""
        depth = len(path.relative_to(self.path).parts) - 1
        return tuple(path.parents)[:depth]

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Spell errors of the operating system as ours; what is absent is NotFoundError."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            self.verify()
            raise NotFoundError("no such chunk", name=name) from error
        except OSError as error:
            raise store_error(error, name) from error

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Spell errors of the operating system as ours, where something is to be made."""
        try:
            yield
        except (NotADirectoryError, IsADirectoryError) as error:
            raise InvalidConfigError(
                "a chunk and a directory cannot have one name in a file store", name=name
            ) from error
        except FileNotFoundError as error:
            self.verify()
            raise RetriableError("a directory of the store went away", name=name) from error
        except OSError as error:
            raise store_error(error, name) from error


def store_error(error: OSError, name: str) -> TieredStorageError:
    """What a caller can do about a failed system call: mend the configuration, or retry.

    A full or broken disk, a quota and a lack of rights are repaired outside and healed by a retry.
    """
    code = errno.errorcode.get(error.errno or 0, "unknown")
    if error.errno in _HOPELESS:
        return InvalidConfigError(
            "the file store cannot do this", name=name, error=code, reason=error.strerror
        )
    return RetriableError("the file store failed", name=name, error=code, reason=error.strerror)


def sync_directory(directory: Path) -> None:
    """Make a directory's entries durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
