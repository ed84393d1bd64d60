"""Represents the root directory of a file store: locates names, and detects a missing mount.

The store never creates the root: after a mount disappeared, a new directory would receive data
meant for the lost file system. For the same reason, a missing file counts as absent only while the
root is the same directory. The parents of a chunk are created below the root, one by one.
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

# The directory of incoming files, and the one that ext4 creates at the top of a file system.
RESERVED = frozenset({INCOMING, "lost+found"})

# A retry cannot fix these errors: the file system does not support the name or the operation.
_HOPELESS = frozenset(
    {errno.ENAMETOOLONG, errno.ELOOP, errno.EXDEV, errno.EILSEQ, errno.EMLINK, errno.EOPNOTSUPP}
)


class StoreRoot:
    """Represents the root. Raises InvalidConfigError if it does not exist. Thread-safe."""

    def __init__(self, path: Path, access: FileAccess) -> None:
        """Open the root; `access` applies to files and directories created below it."""
        self.path = path
        self.access = access
        try:
            status = path.stat()
        except OSError as error:
            raise InvalidConfigError(
                "cannot access the store's root",
                root=path,
                reason=error.strerror,
                advice="Mount or create it, or give this user access to it. rlm does not create it",
            ) from error
        if not S_ISDIR(status.st_mode):
            raise InvalidConfigError(
                "the store's root is not a directory",
                root=path,
                advice="Set the root to an existing directory",
            )
        # The device number may change when the file system is mounted again, so it is not compared.
        self._inode = status.st_ino

    def verify(self) -> None:
        """Check that the root is still the same directory. Raises RetriableError."""
        try:
            inode = self.path.stat().st_ino
        except OSError as error:
            raise RetriableError(
                "cannot access the store's root", root=self.path, reason=error.strerror
            ) from error
        if inode != self._inode:
            raise RetriableError(
                "another directory replaced the store's root",
                root=self.path,
                advice="Look for a missing mount",
            )

    def locate(self, name: str) -> Path:
        """Return the path of the chunk `name`, existing or not.

        Raises InvalidConfigError for invalid names, and for symbolic links below the root, because
        they may lead out of the root.
        """
        check_name(name)
        first, *rest = name.split("/")
        if first in RESERVED:
            raise InvalidConfigError(
                "the chunk name is invalid: the file store reserves its first component", name=name
            )
        directory = self.path
        try:
            for segment in (first, *rest)[:-1]:
                directory /= segment
                if directory.is_symlink():
                    raise InvalidConfigError(
                        "cannot use the directory: it is a symbolic link below the store's root",
                        path=directory,
                        advice="Replace it with a directory or a mount",
                    )
        except OSError as error:
            raise store_error(error, name) from error
        return self.path / name

    def make_parents(self, path: Path) -> None:
        """Create the missing directories between the root and `path`."""
        for directory in reversed(self._parents(path)):
            # If the name is a file, creating the next level fails.
            with suppress(FileExistsError):
                self.access.make_directory(directory)

    def sync_parents(self, path: Path) -> None:
        """Make the entries that lead from the root to `path` durable.

        Syncs all directories each time: another process may have created one without a sync, and a
        sync without changes costs little. Another process may also have removed an empty directory;
        then only the removal of its entry must be durable.
        """
        for directory in self._parents(path):
            with suppress(FileNotFoundError):
                sync_directory(directory)
        sync_directory(self.path)

    def remove_empty_parents(self, path: Path) -> None:
        """Remove the empty directories above `path`, never the root.

        A concurrent writer that needs a removed directory creates it again.
        """
        for directory in self._parents(path):
            try:
                directory.rmdir()
            except OSError:  # The directory is not empty, or it was already removed.
                return

    def _parents(self, path: Path) -> tuple[Path, ...]:
        """Return the directories above `path` and below the root, the innermost first."""
        depth = len(path.relative_to(self.path).parts) - 1
        return tuple(path.parents)[:depth]

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Convert errors of the operating system; absent files raise NotFoundError."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            self.verify()
            raise NotFoundError("the object is not in the store", name=name) from error
        except OSError as error:
            raise store_error(error, name) from error

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Convert errors of the operating system during a creation."""
        try:
            yield
        except (NotADirectoryError, IsADirectoryError) as error:
            raise InvalidConfigError(
                "a chunk and a directory cannot have the same name in a file store", name=name
            ) from error
        except FileNotFoundError as error:
            self.verify()
            raise RetriableError(
                "cannot create the chunk: a directory of the store disappeared", name=name
            ) from error
        except OSError as error:
            raise store_error(error, name) from error


def store_error(error: OSError, name: str) -> TieredStorageError:
    """Convert a failed system call. Returns InvalidConfigError if a retry cannot help.

    Otherwise returns RetriableError: a retry helps after an operator has corrected a full or broken
    disk, a quota or permissions.
    """
    code = errno.errorcode.get(error.errno or 0, "unknown")
    if error.errno in _HOPELESS:
        return InvalidConfigError(
            "the file system does not support this name or operation",
            name=name,
            error=code,
            reason=error.strerror,
        )
    return RetriableError("the file store failed", name=name, error=code, reason=error.strerror)


def sync_directory(directory: Path) -> None:
    """Make a directory's entries durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
