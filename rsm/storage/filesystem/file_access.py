"""FileAccess: with which permissions a file store makes its files and directories.

Stored segments hold what clients may read by Kafka's ACLs only. So other users of the host can read
nothing, unless a setting says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_FILE_MODE = 0o640


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """`mode` of files; a directory can also be searched by who may read its files.

    None is 0640, less what the process's umask takes. A mode that is given holds exactly.
    """

    mode: int | None = None

    @property
    def file_mode(self) -> int:
        return _FILE_MODE if self.mode is None else self.mode

    @property
    def directory_mode(self) -> int:
        return self.file_mode | (self.file_mode & 0o444) >> 2

    def create(self, path: Path) -> int:
        """A new file's descriptor, for writing. FileExistsError if it is there; OSError."""
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
        """Make a directory. FileExistsError if something is there; OSError."""
        path.mkdir(mode=self.directory_mode)
        if self.mode is not None:
            path.chmod(self.directory_mode)


DEFAULT_ACCESS = FileAccess()
