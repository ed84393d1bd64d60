"""Defines FileAccess: the permissions of a file store's files and directories.

Kafka's ACLs do not protect these files. So by default, other users of the host cannot read them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_FILE_MODE = 0o640


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """Represents the permissions of files. Users who may read files may also search directories.

    If `mode` is None, the process's umask applies to 0640. The umask does not change a given mode.
    """

    mode: int | None = None

    @property
    def file_mode(self) -> int:
        return _FILE_MODE if self.mode is None else self.mode

    @property
    def directory_mode(self) -> int:
        return self.file_mode | (self.file_mode & 0o444) >> 2

    def create(self, path: Path) -> int:
        """Create a file; return a descriptor to write to it. Raises FileExistsError, OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, self.file_mode)
        try:
            if self.mode is not None:
                os.fchmod(descriptor, self.file_mode)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def make_directory(self, path: Path) -> None:
        """Create a directory. Raises OSError, such as FileExistsError if the name exists."""
        path.mkdir(mode=self.directory_mode)
        if self.mode is not None:
            path.chmod(self.directory_mode)


DEFAULT_ACCESS = FileAccess()
