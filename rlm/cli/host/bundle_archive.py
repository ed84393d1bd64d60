"""Writes the parts of a debug bundle into one archive, without secrets.

Memory: one part, and its copy without secrets. The archive has at most PART_MAX_BYTES of a part.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Collection
from pathlib import Path

from rlm.config.effective import MASK
from rsm.segment.errors import InvalidConfigError, TieredStorageError

PART_MAX_BYTES = 16 << 20
_MODE = 0o600

Part = Callable[[], bytes]
"""Returns a part's content. TieredStorageError or OSError if it cannot be obtained."""


class BundleArchive:
    """A new `.tar.gz` file, which only its owner can read. For one thread; close it."""

    def __init__(self, path: Path, secrets: Collection[str]) -> None:
        """Create the file. InvalidConfigError if it exists or cannot be written."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        except FileExistsError:
            raise InvalidConfigError(
                "the file exists and is not replaced: give another --out", file=path
            ) from None
        except OSError as error:
            raise InvalidConfigError(
                "file cannot be written", file=path, reason=error.strerror
            ) from error
        self._file = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz")  # noqa: SIM115 - see close
        self._created_s = int(os.fstat(descriptor).st_mtime)
        self._secrets = _spellings(secrets)
        self.contents: list[str] = []

    def add(self, name: str, part: Part) -> None:
        """Add a part; if it cannot be obtained, add its error as `NAME.error.txt`."""
        try:
            content = part()
        except (TieredStorageError, OSError) as error:
            name, content = f"{name}.error.txt", f"{error}\n".encode()
        self._write(name, content)

    def close(self) -> None:
        """Finish the archive."""
        self._tar.close()
        self._file.close()

    def _write(self, name: str, content: bytes) -> None:
        # Secrets first: a truncated one would not be recognized.
        for secret in self._secrets:
            content = content.replace(secret, MASK.encode())
        if len(content) > PART_MAX_BYTES:
            content = content[:PART_MAX_BYTES] + b"\n(truncated)\n"
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = len(content), _MODE, self._created_s
        self._tar.addfile(member, io.BytesIO(content))
        self.contents.append(f"{name}  {len(content)} bytes")


def _spellings(secrets: Collection[str]) -> list[bytes]:
    """Return the secrets as they may be spelled in text or JSON, the longest first."""
    found = {
        spelled.encode()
        for secret in secrets
        if secret
        for spelled in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1])
    }
    return sorted(found, key=len, reverse=True)
